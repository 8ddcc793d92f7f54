/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a floor takes away from a policy what the policy allows and the floor does
 * not. So comparing the floor with the policy shows what it takes away. The new policy is compared
 * with the old floor and with the new one, and the difference of the two lists of lines shows what
 * the change of the floor means for the policy. If the floors differ and the lists do not, the
 * floors themselves are compared.
 *
 * The infrastructure's rules are among the rules of the policy, so the comparison of the policies
 * shows what they allow. For each such rule that is new, one more line says that no rule of the
 * policy can deny what it allows.
 */
#include "policy/diff/layers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAY "+ may: "

static int add(struct policy_diff *out, bool widens, const char *begin, struct slice what)
{
	struct policy_diff_line *lines, line = {.widens = widens, .narrows = !widens};
	size_t at = 0;
	int n;

	out->differs = true;
	out->widens |= widens;
	out->narrows |= !widens;
	if (out->count == POLICY_DIFF_LINES_MAX) {
		out->dropped++;
		return 0;
	}
	lines = realloc(out->lines, (out->count + 1) * sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	out->lines = lines;
	n = snprintf(line.text, sizeof(line.text), "%s%.*s", begin, SLICE_ARG(what));
	if (n >= (int)sizeof(line.text))
		memcpy(line.text + sizeof(line.text) - 4, "...", 4);
	while (widens ? at < out->count && lines[at].widens : at < out->count)
		at++;
	memmove(lines + at + 1, lines + at, (out->count - at) * sizeof(*lines));
	lines[at] = line;
	out->count++;
	return 0;
}

/* Compares the floor of the policy `of` with what another policy allows. Without a floor there are
 * no lines. */
static int compare_with_floor(
        const struct policy *of, const struct policy *policy, struct policy_diff *out)
{
	struct policy floor;

	*out = (struct policy_diff){.lines = NULL};
	return policy_floor(of, &floor) ? diff_alone(&floor, policy, true, out) : 0;
}

static bool has(const struct policy_diff *diff, const char *text)
{
	for (size_t i = 0; i < diff->count; i++)
		if (strcmp(diff->lines[i].text, text) == 0)
			return true;
	return false;
}

/* Adds a line for each widening line of these that others does not have. */
static int add_lines(const struct policy_diff *these, const struct policy_diff *others, bool widens,
        struct policy_diff *out)
{
	int rc = 0;

	for (size_t i = 0; i < these->count && rc == 0; i++) {
		const char *text = these->lines[i].text;
		size_t begin = strncmp(text, MAY, strlen(MAY)) == 0 ? strlen(MAY) : 2;

		if (these->lines[i].widens && !has(others, text))
			rc = add(out, widens,
			        widens ? "+ the floor no longer takes away: "
			               : "- the floor takes away: ",
			        slice_from_string(text + begin));
	}
	return rc;
}

/* Adds a line if b lets more pass than a, and one if it lets less pass. bounds: see diff_alone().
 */
static int compare_layers(const struct policy *a, const struct policy *b, bool bounds,
        const char *widened, const char *narrowed, struct policy_diff *out)
{
	struct policy_diff diff = {.lines = NULL};
	int rc = diff_alone(a, b, bounds, &diff);

	if (rc == 0 && (diff.widens || diff.incomplete))
		rc = add(out, true, widened, SLICE(""));
	if (rc == 0 && diff.narrows)
		rc = add(out, false, narrowed, SLICE(""));
	policy_diff_fini(&diff);
	return rc;
}

/* Adds lines for floors that differ although no line shows how. */
static int compare_floors(
        const struct policy *from, const struct policy *to, struct policy_diff *out)
{
	struct policy a, b;

	if (!policy_floor(from, &a) || !policy_floor(to, &b))
		return 0;
	return compare_layers(&a, &b, true, "+ the floor's allow rules let other requests pass",
	        "- the floor's allow rules refuse other requests", out);
}

static bool same_floor(const struct policy *from, const struct policy *to)
{
	struct policy a, b;
	bool has_a = policy_floor(from, &a), has_b = policy_floor(to, &b);

	return has_a == has_b &&
	       (!has_a || slice_equals(policy_fingerprint(&a), policy_fingerprint(&b)));
}

static int diff_floors(const struct policy *from, const struct policy *to, struct policy_diff *out)
{
	struct policy_diff before, now;
	size_t count = out->count + out->dropped;
	int rc;

	if (same_floor(from, to))
		return 0;
	rc = compare_with_floor(from, to, &before);
	if (rc != 0)
		return rc;
	rc = compare_with_floor(to, to, &now);
	if (rc == 0)
		rc = add_lines(&before, &now, true, out);
	if (rc == 0)
		rc = add_lines(&now, &before, false, out);
	if (rc == 0 && (before.incomplete || before.dropped || now.incomplete || now.dropped)) {
		out->incomplete = out->widens = out->narrows = out->differs = true;
	} else if (rc == 0 && out->count + out->dropped == count) {
		rc = compare_floors(from, to, out);
	}
	policy_diff_fini(&before);
	policy_diff_fini(&now);
	return rc;
}

/* True if the infrastructure of the policy has a rule of this name and destination. */
static bool has_rule(const struct policy *policy, struct slice name, struct slice to)
{
	struct policy layer;

	for (uint32_t i = 0; policy_infrastructure(policy, &layer) && i < policy_rule_count(&layer);
	        i++)
		if (slice_equals(policy_rule_name(&layer, i), name) &&
		        slice_equals(policy_rule_to(&layer, i), to))
			return true;
	return false;
}

static int list_rules(const struct policy *policy, const struct policy *other, bool widens,
        struct policy_diff *out)
{
	struct policy layer;
	int rc = 0;

	if (!policy_infrastructure(policy, &layer))
		return 0;
	for (uint32_t i = 0; i < policy_rule_count(&layer) && rc == 0; i++)
		if (policy_rule_layer(&layer, i) == POLICY_LAYER_INFRASTRUCTURE &&
		        !has_rule(other, policy_rule_name(&layer, i), policy_rule_to(&layer, i)))
			rc = add(out, widens,
			        widens ? "+ whatever the policy denies, infrastructure may be "
			                 "reached: "
			               : "- a policy may deny infrastructure again: ",
			        policy_rule_to(&layer, i));
	return rc;
}

static int diff_infrastructure(
        const struct policy *from, const struct policy *to, struct policy_diff *out)
{
	size_t count = out->count + out->dropped;
	struct policy a, b;
	int rc = list_rules(to, from, true, out);

	if (rc == 0)
		rc = list_rules(from, to, false, out);
	/* These layers have the floor's deny rules too, which may be all that has changed. */
	if (rc == 0 && out->count + out->dropped == count && policy_infrastructure(from, &a) &&
	        policy_infrastructure(to, &b))
		rc = compare_layers(&a, &b, false,
		        "+ infrastructure lets other requests pass, whatever the policy denies",
		        "- infrastructure lets fewer requests pass", out);
	return rc;
}

int policy_diff(const struct policy *from, const struct policy *to, struct policy_diff *out)
{
	int rc = diff_alone(from, to, false, out);

	if (rc != 0 || !(image_has_layers(from) || image_has_layers(to)))
		return rc;
	rc = diff_floors(from, to, out);
	if (rc == 0)
		rc = diff_infrastructure(from, to, out);
	if (rc != 0)
		policy_diff_fini(out);
	return rc;
}
