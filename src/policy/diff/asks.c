/* SPDX-License-Identifier: Apache-2.0 */
/* Compares ask rules one by one, by their text: the comparison of requests shows what may pass, and
 * not whether a person is asked first. */
#include <stdio.h>

#include "policy/diff/text.h"

#define SAYS_MAX 2048
#define LINE_MAX (SAYS_MAX + 128)

/* Writes what the rule asks about: methods, destinations with the conditions, and paths. */
static struct slice says(const struct policy *policy, uint32_t rule, char out[SAYS_MAX])
{
	const struct image_rule *r = image_rule_at(policy, rule);
	const struct image_text *method = image_section(policy, SECTION_METHODS);
	size_t n = 0;

	for (uint32_t i = 0; (r->flags & RULE_METHODS) && i < image_count(policy, SECTION_METHODS);
	        i++)
		if (r->methods >> i & 1 && n < SAYS_MAX)
			n += (size_t)snprintf(out + n, SAYS_MAX - n, "%.*s ",
			        SLICE_ARG(image_slice(policy, method[i])));
	if (n < SAYS_MAX)
		n += (size_t)snprintf(
		        out + n, SAYS_MAX - n, "%.*s", SLICE_ARG(image_slice(policy, r->to)));
	for (uint32_t i = 0; i < r->pattern_count && n < SAYS_MAX; i++) {
		const struct image_pattern *p = image_pattern_at(policy, r->first_pattern + i);

		n += (size_t)snprintf(
		        out + n, SAYS_MAX - n, " %.*s", SLICE_ARG(image_slice(policy, p->text)));
	}
	return slice_of(out, n < SAYS_MAX ? n : SAYS_MAX - 1);
}

/* True if a rule of that policy asks about the same. A text that was cut equals no other. */
static bool has(const struct policy *policy, struct slice text)
{
	char other[SAYS_MAX];

	for (uint32_t i = 0; i < policy_rule_count(policy); i++)
		if (policy_rule_wait_s(policy, i) && text.n < SAYS_MAX - 1 &&
		        slice_equals(says(policy, i, other), text))
			return true;
	return false;
}

static void note(struct diff_text *text, const struct policy *policy, const struct policy *other,
        bool widens, const char *begin)
{
	char asked[SAYS_MAX], line[LINE_MAX];

	for (uint32_t i = 0; i < policy_rule_count(policy); i++) {
		if (!policy_rule_wait_s(policy, i) || has(other, says(policy, i, asked)))
			continue;
		snprintf(line, sizeof(line), "%s%s", begin, asked);
		diff_text_note(text, widens, !widens, slice_from_string(line));
	}
}

void diff_asks(struct diff_text *text, const struct policy *from, const struct policy *to)
{
	note(text, from, to, true, "+ no person is asked any more about: ");
	note(text, to, from, false, "- a person is asked about: ");
}
