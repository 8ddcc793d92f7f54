/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about what belongs to no destination: mode, inspect, credentials. */
#include <stdio.h>
#include <string.h>

#include "policy/diff/text.h"
#include "vethguard/policy/body.h"

void diff_text_modes(struct diff_text *text, enum policy_mode from, enum policy_mode to)
{
	if (from == to)
		return;
	if (to == POLICY_OBSERVE)
		diff_text_note(text, true, false,
		        SLICE("+ mode: observe: what the policy refuses is let through and logged "
		              "(so far refused)"));
	else
		diff_text_note(text, false, true,
		        SLICE("- mode: enforce: what the policy refuses is refused (so far let "
		              "through and logged)"));
}

void diff_text_answers(struct diff_text *text, bool from, bool to)
{
	if (from != to)
		diff_text_note(text, to, from,
		        to ? SLICE("+ internal: https://" POLICY_OWN_HOST "/ tells what may be "
		                   "done, and takes proposals (so far off)")
		           : SLICE("- internal: off: https://" POLICY_OWN_HOST
		                   "/ answers no more"));
}

static bool reads_bodies(const struct policy *policy)
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_CONDITIONS); i++)
		if (condition_reads_body(image_condition_at(policy, i)->kind))
			return true;
	return false;
}

void diff_text_inspect(struct diff_text *text, const struct policy *from, const struct policy *to)
{
	uint32_t before = policy_inspect(from), now = policy_inspect(to);
	char line[128];

	if (before == now || !reads_bodies(from) || !reads_bodies(to))
		return;
	snprintf(line, sizeof(line),
	        "%s inspect: bodies of up to %u bytes pass where a rule reads them (so far %u)",
	        now > before ? "+" : "-", now, before);
	diff_text_note(text, now > before, now < before, slice_from_string(line));
}

static bool same_source(const struct policy_credential *a, const struct policy_credential *b)
{
	bool same = a->source == b->source && a->argc == b->argc &&
	            slice_equals(a->location, b->location);

	for (size_t i = 0; same && i < a->argc; i++)
		same = slice_equals(a->argv[i], b->argv[i]);
	return same;
}

/* True if a and b are the same apart from the source. */
static bool same_use(const struct policy_credential *a, const struct policy_credential *b)
{
	return a->inject == b->inject && a->require == b->require && a->ttl_s == b->ttl_s &&
	       a->timeout_ms == b->timeout_ms && slice_equals(a->field, b->field) &&
	       slice_equals(a->prefix, b->prefix) && slice_equals(a->username, b->username) &&
	       slice_equals(a->env, b->env);
}

static bool same_placeholder(const struct policy_credential *a, const struct policy_credential *b)
{
	return slice_equals(a->placeholder, b->placeholder) && a->placeholder_n == b->placeholder_n;
}

/* How a credential differs from what it was, or empty. The arguments of exec: may be the
 * difference; they are not shown. */
static struct slice describe_change(
        struct arena *arena, const struct policy_credential *c, const struct policy_credential *was)
{
	char now[POLICY_SOURCE_TEXT_MAX], then[POLICY_SOURCE_TEXT_MAX];

	if (same_source(c, was) && !same_use(c, was))
		return SLICE("is sent or kept in another way");
	if (same_source(c, was))
		return same_placeholder(c, was) ? SLICE("")
		                                : SLICE("has a placeholder of another shape");
	policy_source_text(c, now);
	policy_source_text(was, then);
	if (strcmp(now, then) == 0)
		return SLICE("is taken from elsewhere");
	return arena_printf(arena, "is taken from %s (so far from %s)", now, then);
}

static bool find_credential(
        const struct policy *policy, struct slice name, struct policy_credential *out)
{
	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, out);
		if (slice_equals(out->name, name))
			return true;
	}
	return false;
}

static void note_credentials(
        struct diff_text *text, const struct policy *mine, const struct policy *other, bool is_new)
{
	for (uint32_t i = 0; i < policy_credential_count(mine); i++) {
		struct policy_credential c, was;
		struct slice what = SLICE("");

		policy_credential(mine, i, &c);
		if (!find_credential(other, c.name, &was))
			what = is_new ? SLICE("is new") : SLICE("is gone");
		else if (is_new)
			what = describe_change(text->arena, &c, &was);
		if (what.n > 0)
			diff_text_note(text, false, false,
			        arena_printf(text->arena, "~ credential %.*s %.*s",
			                SLICE_ARG(c.name), SLICE_ARG(what)));
	}
}

void diff_text_credentials(
        struct diff_text *text, const struct policy *from, const struct policy *to)
{
	note_credentials(text, to, from, true);
	note_credentials(text, from, to, false);
}
