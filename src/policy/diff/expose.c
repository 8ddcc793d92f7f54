/* SPDX-License-Identifier: Apache-2.0 */
/* Published ports are compared entry by entry: by the port, the place where the host listens, and
 * the sources as they are written. */
#include <stdio.h>

#include "policy/diff/text.h"
#include "vethguard/policy/expose.h"

#define LINE_MAX (2 * POLICY_EXPOSE_TEXT_MAX + 64)

/* True if port i of a admits more than port j of b: at another address or port of the host, more
 * connections, or from a source that b does not name. */
static bool has_more(const struct policy *a, uint32_t i, const struct policy *b, uint32_t j)
{
	struct policy_expose x, y;
	struct policy_from from, other;
	bool found;

	policy_expose(a, i, &x);
	policy_expose(b, j, &y);
	if (!ip_equals(&x.at, &y.at) || x.at_port != y.at_port || x.connections > y.connections)
		return true;
	for (uint32_t k = 0; k < x.from_count; k++) {
		policy_expose_from(a, i, k, &from);
		found = false;
		for (uint32_t n = 0; n < y.from_count && !found; n++) {
			policy_expose_from(b, j, n, &other);
			found = slice_equals(from.text, other.text);
		}
		if (!found)
			return true;
	}
	return false;
}

static void note_alone(
        struct diff_text *text, bool widens, const struct policy *policy, uint32_t index)
{
	char line[LINE_MAX], port[POLICY_EXPOSE_TEXT_MAX];

	snprintf(line, sizeof(line), "%s port %s", widens ? "+ exposes" : "- no longer exposes",
	        policy_expose_text(policy, index, port, sizeof(port)));
	diff_text_note(text, widens, !widens, slice_from_string(line));
}

static void note_change(struct diff_text *text, const struct policy *from, uint32_t was,
        const struct policy *to, uint32_t is)
{
	bool widens = has_more(to, is, from, was), narrows = has_more(from, was, to, is);
	char line[LINE_MAX], now[POLICY_EXPOSE_TEXT_MAX], before[POLICY_EXPOSE_TEXT_MAX];
	struct policy_expose x, y;

	policy_expose(from, was, &x);
	policy_expose(to, is, &y);
	policy_expose_text(to, is, now, sizeof(now));
	policy_expose_text(from, was, before, sizeof(before));
	if (x.connections != y.connections)
		snprintf(line, sizeof(line),
		        "%s exposes port %s, %u connections (so far %s, %u connections)",
		        widens ? "+" : "-", now, y.connections, before, x.connections);
	else
		snprintf(line, sizeof(line), "%s exposes port %s (so far %s)", widens ? "+" : "-",
		        now, before);
	diff_text_note(text, widens, narrows, slice_from_string(line));
}

void diff_exposes(struct diff_text *text, const struct policy *from, const struct policy *to)
{
	struct policy_expose expose;
	uint32_t other;

	for (uint32_t i = 0; i < policy_expose_count(to); i++) {
		policy_expose(to, i, &expose);
		other = policy_expose_find(from, expose.port);
		if (other == POLICY_NONE)
			note_alone(text, true, to, i);
		else if (!policy_expose_equals(from, other, to, i))
			note_change(text, from, other, to, i);
	}
	for (uint32_t i = 0; i < policy_expose_count(from); i++) {
		policy_expose(from, i, &expose);
		if (policy_expose_find(to, expose.port) == POLICY_NONE)
			note_alone(text, false, from, i);
	}
}
