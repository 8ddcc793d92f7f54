/* SPDX-License-Identifier: Apache-2.0 */
/* Compares weights and prices of rules of the same name, where limits of both policies use them. */
#include <stdio.h>

#include "policy/diff/text.h"
#include "vethguard/policy/limits.h"

#define LINE_MAX (4 * POLICY_NAME_MAX + 512)
#define NUMBERS_MAX (TOKEN_KINDS * (POLICY_DECIMAL_MAX + 16))

/* Returns POLICY_NONE if there is none. */
static uint32_t find_rule(const struct policy *policy, struct slice name)
{
	for (uint32_t i = 0; i < policy_rule_count(policy); i++)
		if (slice_equals(policy_rule_name(policy, i), name))
			return i;
	return POLICY_NONE;
}

/* Writes "input 3, cached 0.3, output 15". */
static const char *words(const uint32_t of[TOKEN_KINDS], char out[NUMBERS_MAX])
{
	char number[POLICY_DECIMAL_MAX];
	size_t n = 0;

	for (int k = 0; k < TOKEN_KINDS; k++)
		n += (size_t)snprintf(out + n, NUMBERS_MAX - n, "%s%s %s", k ? ", " : "",
		        policy_token_names[k], policy_decimal(of[k], number));
	return out;
}

static void compare(struct diff_text *text, const struct policy *from, uint32_t was,
        const struct policy *to, uint32_t is, enum policy_limit_kind kind)
{
	uint32_t before[TOKEN_KINDS], now[TOKEN_KINDS];
	char line[LINE_MAX], a[NUMBERS_MAX], b[NUMBERS_MAX];
	bool widens = false, narrows = false;

	policy_rule_tokens(from, was, kind, before);
	policy_rule_tokens(to, is, kind, now);
	for (int k = 0; k < TOKEN_KINDS; k++) {
		widens |= now[k] < before[k];
		narrows |= now[k] > before[k];
	}
	if (!widens && !narrows)
		return;
	snprintf(line, sizeof(line), "%s %s of rule %.*s: %s (so far %s)", widens ? "+" : "-",
	        kind == POLICY_LIMIT_COST ? "prices" : "weights",
	        SLICE_ARG(policy_rule_name(to, is)), words(now, a), words(before, b));
	diff_text_note(text, widens, narrows, slice_from_string(line));
}

void diff_tokens(struct diff_text *text, const struct policy *from, const struct policy *to)
{
	for (uint32_t is = 0; is < policy_rule_count(to); is++) {
		uint32_t was;

		if (!policy_counts_tokens(to, is))
			continue;
		was = find_rule(from, policy_rule_name(to, is));
		if (was == POLICY_NONE || !policy_counts_tokens(from, was))
			continue;
		compare(text, from, was, to, is, POLICY_LIMIT_TOKENS);
		compare(text, from, was, to, is, POLICY_LIMIT_COST);
	}
}
