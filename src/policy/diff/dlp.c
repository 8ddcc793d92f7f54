/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what becomes of secrets in requests: the settings of the two policies, and each rule's
 * setting with that of the earlier policy's rule of the same name, or, if there is none, with that
 * of the earlier policy. */
#include <stdio.h>

#include "policy/diff/text.h"

#define LINE_MAX (2 * POLICY_DLP_TEXT_MAX + POLICY_NAME_MAX + 64)

static uint32_t find(const struct policy *policy, struct slice name)
{
	for (uint32_t i = 0; name.n && i < policy_rule_count(policy); i++)
		if (slice_equals(policy_rule_name(policy, i), name))
			return i;
	return POLICY_NONE;
}

/* True if a lets something pass that b does not let pass. */
static bool lets_more(const struct dlp_settings *a, const struct dlp_settings *b)
{
	bool more = a->mode < b->mode;

	for (size_t i = 0; a->mode != DLP_OFF && i < DLP_FORMATS_MAX / 64; i++)
		more |= b->mode != DLP_OFF && (a->except.bits[i] & ~b->except.bits[i]) != 0;
	return more;
}

/* Compares the setting of the rule `was` of `from` with that of the rule `is` of `to`, and notes a
 * difference. POLICY_NONE: the policy's own setting. */
static void note(struct diff_text *text, const struct policy *from, uint32_t was,
        const struct policy *to, uint32_t is)
{
	char line[LINE_MAX], before[POLICY_DLP_TEXT_MAX], now[POLICY_DLP_TEXT_MAX];
	struct slice name = policy_rule_name(to, is);
	struct dlp_settings a, b;
	bool widens, narrows;

	policy_dlp(from, was, &a);
	policy_dlp(to, is, &b);
	widens = lets_more(&b, &a);
	narrows = lets_more(&a, &b);
	if (!widens && !narrows)
		return;
	snprintf(line, sizeof(line), "%s secrets in requests of %s%.*s: %s (so far %s)",
	        widens ? "+" : "-", name.n ? "rule " : "the policy", SLICE_ARG(name),
	        policy_dlp_text(&b, now), policy_dlp_text(&a, before));
	diff_text_note(text, widens, narrows, slice_from_string(line));
}

static bool has_own(const struct policy *policy, uint32_t rule)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_DLPS); i++)
		if (image_dlp_at(policy, i)->rule == rule)
			return true;
	return false;
}

void diff_dlps(struct diff_text *text, const struct policy *from, const struct policy *to)
{
	if (!image_count(from, SECTION_DLPS) && !image_count(to, SECTION_DLPS))
		return;
	note(text, from, POLICY_NONE, to, POLICY_NONE);
	for (uint32_t i = 0; i < policy_rule_count(to); i++) {
		uint32_t was = find(from, policy_rule_name(to, i));

		if (has_own(to, i) || (was != POLICY_NONE && has_own(from, was)))
			note(text, from, was, to, i);
	}
}
