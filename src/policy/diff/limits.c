/* SPDX-License-Identifier: Apache-2.0 */
/* Compares limits one by one: each with the one that counts with the same counter, which is of the
 * same kind and of the rule of the same name (policy_limit_key()). */
#include <stdio.h>

#include "policy/diff/text.h"
#include "vethguard/policy/limits.h"

#define LINE_MAX (2 * (POLICY_LIMIT_TEXT_MAX + POLICY_NAME_MAX + POLICY_LIMIT_SHARED_MAX) + 128)

/* Finds the limit of b that has the same key as limit l of a. Returns false if b has none. */
static bool find(const struct policy *a, const struct policy_limit *l, const struct policy *b,
        struct policy_limit *out)
{
	uint8_t key[POLICY_LIMIT_KEY], other[POLICY_LIMIT_KEY];

	policy_limit_key(a, l, key);
	for (uint32_t i = 0; i < policy_limit_count(b); i++) {
		policy_limit(b, i, out);
		policy_limit_key(b, out, other);
		if (memcmp(key, other, sizeof(key)) == 0)
			return true;
	}
	return false;
}

/* Writes "rule x: upload 10MB/1h, shared by label team". */
static const char *words(
        const struct policy *policy, const struct policy_limit *l, char *out, size_t size)
{
	struct slice rule = policy_rule_name(policy, l->rule);
	char text[POLICY_LIMIT_TEXT_MAX], shared[POLICY_LIMIT_SHARED_MAX];

	snprintf(out, size, "%s%s%.*s: %s%s", l->budget ? "budget of " : "limit of ",
	        rule.n     ? "rule "
	        : l->floor ? "the floor"
	                   : "the policy",
	        SLICE_ARG(rule), policy_limit_text(l, text), policy_limit_shared_text(l, shared));
	return out;
}

/* True if a lets more pass than b in some span of time: also if b is shared and a not by the same
 * label, and if b is shared over hosts and a not, or not closed while their server is away. */
static bool has_more(const struct policy_limit *a, const struct policy_limit *b)
{
	if (b->hosts && a->hosts != b->hosts && a->hosts != POLICY_HOSTS_CLOSED)
		return true;
	return a->amount > b->amount || a->period_s < b->period_s ||
	       (b->shared.n && !slice_equals(a->shared, b->shared));
}

static void note_change(struct diff_text *text, const struct policy *from,
        const struct policy_limit *was, const struct policy *to, const struct policy_limit *is)
{
	bool widens = has_more(is, was), narrows = has_more(was, is);
	char line[LINE_MAX], now[LINE_MAX / 2], before[LINE_MAX / 2];

	if (!widens && !narrows)
		return;
	snprintf(line, sizeof(line), "%s %s (so far %s)", widens ? "+" : "-",
	        words(to, is, now, sizeof(now)), words(from, was, before, sizeof(before)));
	diff_text_note(text, widens, narrows, slice_from_string(line));
}

void diff_limits(struct diff_text *text, const struct policy *from, const struct policy *to)
{
	struct policy_limit limit, other;
	char line[LINE_MAX], now[LINE_MAX / 2];

	for (uint32_t i = 0; i < policy_limit_count(to); i++) {
		policy_limit(to, i, &limit);
		if (find(to, &limit, from, &other)) {
			note_change(text, from, &other, to, &limit);
			continue;
		}
		snprintf(line, sizeof(line), "- new %s", words(to, &limit, now, sizeof(now)));
		diff_text_note(text, false, true, slice_from_string(line));
	}
	for (uint32_t i = 0; i < policy_limit_count(from); i++) {
		policy_limit(from, i, &limit);
		if (find(from, &limit, to, &other))
			continue;
		snprintf(line, sizeof(line), "+ no more %s", words(from, &limit, now, sizeof(now)));
		diff_text_note(text, true, false, slice_from_string(line));
	}
}
