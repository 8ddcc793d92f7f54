/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a rule that another rule covers completely never decides, and its author
 * probably meant something else. A note is given only if that is certain for every request:
 * - A deny beats every allow that it covers, wherever either stands.
 * - Of two denies, or two allows, the more specific destination decides first, so only exactly
 *   equal destinations are compared. Then the deny of everything comes before the deny of some
 *   requests, then the earlier rule. Of two allows the earlier one decides if its paths are as
 *   specific and it does not lack the other's credential.
 * - A deny for some requests refuses nothing if only a tcp:// rule allows anything there, because
 *   what is relayed unread has no requests. This is noted if no allow rule for http or https, and
 *   no deny of whole connections, overlaps the destination.
 *
 * One rule has to cover the other alone; what only several rules cover together is not noted. Rules
 * of included files are not noted either, since they are written for more than this policy. The
 * search ends when the work exceeds its bound.
 */
#include "policy/compile/compile.h"
#include "policy/compile/unused.h"
#include "policy/rules/cover.h"
#include "policy/url/pattern.h"

#define STEPS_MAX 20000000 /* comparisons for all rules together: a fraction of a second */
#define PATH_STEPS 16      /* steps that comparing two paths counts for */

/* Without steps left nothing counts as covered: no note is better than a wrong one. */
static bool take_steps(uint32_t *left, uint32_t n)
{
	bool enough = *left >= n;

	*left = enough ? *left - n : 0;
	return enough;
}

static bool port_covered(
        const struct image_range *outer, size_t count, const struct image_range *inner)
{
	for (size_t i = 0; i < count; i++)
		if (outer[i].low <= inner->low && inner->high <= outer[i].high)
			return true;
	return false;
}

static bool ports_cover(const struct model_rule *outer, const struct model_destination *o,
        const struct model_rule *inner, const struct model_destination *i)
{
	struct image_range outer_one, inner_one;
	size_t outer_n, inner_n;
	const struct image_range *wide = cover_ports(outer, o, &outer_one, &outer_n);
	const struct image_range *narrow = cover_ports(inner, i, &inner_one, &inner_n);

	for (size_t k = 0; k < inner_n; k++)
		if (!port_covered(wide, outer_n, &narrow[k]))
			return false;
	return true;
}

static bool scheme_covers(
        const struct model_rule *outer, enum policy_scheme o, enum policy_scheme i)
{
	return o == i || (outer->deny && o == POLICY_TCP && i != POLICY_UDP);
}

static bool destination_covered(uint32_t *left, const struct model_rule *outer,
        const struct model_rule *inner, const struct model_destination *i)
{
	bool wider = outer->deny && !inner->deny;

	for (size_t l = 0; l < outer->destinations.count; l++)
		for (size_t k = 0; k < outer->destinations.lists[l].count; k++) {
			const struct model_destination *o = &outer->destinations.lists[l].items[k];

			if (!take_steps(left, 1))
				return false;
			if (scheme_covers(outer, o->scheme, i->scheme) &&
			        (wider ? cover_target(o->key, i->key)
			               : slice_equals(o->key, i->key)) &&
			        ports_cover(outer, o, inner, i))
				return true;
		}
	return false;
}

static bool destinations_covered(
        uint32_t *left, const struct model_rule *outer, const struct model_rule *inner)
{
	for (size_t l = 0; l < inner->destinations.count; l++)
		for (size_t k = 0; k < inner->destinations.lists[l].count; k++)
			if (!destination_covered(
			            left, outer, inner, &inner->destinations.lists[l].items[k]))
				return false;
	return true;
}

static bool path_covered(uint32_t *left, const struct model_rule *outer, struct slice path)
{
	for (size_t k = 0; k < outer->path_count; k++) {
		bool decides = outer->deny || pattern_rank(outer->paths[k]) >= pattern_rank(path);

		if (!take_steps(left, PATH_STEPS))
			return false;
		if (decides && pattern_contains(outer->paths[k], path))
			return true;
	}
	return false;
}

/* A rule without paths covers every path, but is the least specific. */
static bool paths_covered(
        uint32_t *left, const struct model_rule *outer, const struct model_rule *inner)
{
	if (outer->path_count == 0)
		return outer->deny || inner->path_count == 0;
	for (size_t k = 0; k < inner->path_count; k++)
		if (!path_covered(left, outer, inner->paths[k]))
			return false;
	return inner->path_count > 0;
}

static bool methods_cover(const struct model_rule *outer, const struct model_rule *inner)
{
	return !outer->has_methods ||
	       (inner->has_methods && (inner->methods & ~outer->methods) == 0);
}

/* True if outer decides before inner when both match, as far as paths do not matter. */
static bool goes_first(const struct model_rule *outer, const struct model_rule *inner)
{
	if (outer->deny != inner->deny)
		return outer->deny;
	if (compile_order(outer) != compile_order(inner))
		return compile_order(outer) < compile_order(inner);
	return outer < inner && (outer->wait_s == 0) == (inner->wait_s == 0) &&
	       outer->condition_count == inner->condition_count &&
	       outer->passthrough == inner->passthrough &&
	       (!inner->upgrades.n || slice_equals(outer->upgrades, inner->upgrades)) &&
	       (outer->credential != POLICY_NONE || inner->credential == POLICY_NONE);
}

static bool covers(uint32_t *left, const struct model_rule *outer, const struct model_rule *inner)
{
	return outer != inner && !model_is_shadow(outer) && !model_is_shadow(inner) &&
	       outer->except.count == 0 &&
	       (outer->condition_count == 0 ||
	               slice_equals(outer->conditions_text, inner->conditions_text)) &&
	       goes_first(outer, inner) && methods_cover(outer, inner) &&
	       destinations_covered(left, outer, inner) && paths_covered(left, outer, inner);
}

static void note(
        struct diag_list *notes, const struct model_rule *outer, const struct model_rule *inner)
{
	diag_add(notes, inner->mark.file, inner->mark.line, inner->mark.column,
	        "rule \"%.*s\" decides no request: rule \"%.*s\" at %s:%u %s; remove one of them, "
	        "or narrow \"%.*s\"",
	        SLICE_ARG(inner->name), SLICE_ARG(outer->name), outer->mark.file, outer->mark.line,
	        !outer->deny  ? "allows all of it first"
	        : inner->deny ? "denies all of it first"
	                      : "denies all that it allows, and deny beats allow",
	        SLICE_ARG(outer->name));
}

/* True if a rule that overlaps the destination d of the deny rule inner does more there than let it
 * be relayed. *relays: the rule lets it be relayed. */
static bool speaks_of(uint32_t *left, const struct model_rule *rule, const struct model_rule *inner,
        const struct model_destination *d, bool *relays)
{
	if (!take_steps(left, 1))
		return true;
	if (rule->deny && (model_is_about_requests(rule) || model_is_shadow(rule)))
		return false;
	for (size_t l = 0; l < rule->destinations.count; l++)
		for (size_t k = 0; k < rule->destinations.lists[l].count; k++) {
			const struct model_destination *o = &rule->destinations.lists[l].items[k];

			if (!take_steps(left, 1))
				return true;
			if (o->scheme == POLICY_UDP || !cover_meets(rule, o, inner, d))
				continue;
			if (rule->deny || o->scheme != POLICY_TCP)
				return true;
			*relays = true;
		}
	return false;
}

/* The tcp:// allow rule, if only such rules open the destination; else NULL. */
static const struct model_rule *relayed_by(uint32_t *left, const struct model *model,
        const struct model_rule *inner, const struct model_destination *d)
{
	const struct model_rule *by = NULL;

	for (size_t i = 0; i < model->rules.n; i++) {
		const struct model_rule *rule = vec_at(&model->rules, i);
		bool relays = false;

		if (speaks_of(left, rule, inner, d, &relays))
			return NULL;
		if (relays && !by)
			by = rule;
	}
	return by;
}

static void note_unread(uint32_t *left, const struct model *model, const struct model_rule *inner,
        struct diag_list *notes)
{
	for (size_t l = 0; l < inner->destinations.count; l++)
		for (size_t k = 0; k < inner->destinations.lists[l].count; k++) {
			const struct model_destination *d = &inner->destinations.lists[l].items[k];
			const struct model_rule *by = relayed_by(left, model, inner, d);

			if (!by)
				continue;
			diag_add(notes, d->mark.file, d->mark.line, d->mark.column,
			        "rule \"%.*s\" refuses nothing at \"%.*s\": only the tcp:// rule "
			        "\"%.*s\" at %s:%u allows that place, and what it relays is not "
			        "read; allow the place by https:// or http:// too, or deny it "
			        "without methods and paths",
			        SLICE_ARG(inner->name), SLICE_ARG(d->text), SLICE_ARG(by->name),
			        by->mark.file, by->mark.line);
			return;
		}
}

void unused_note_rules(const struct model *model, const char *main_file, struct diag_list *notes)
{
	uint32_t left = STEPS_MAX;

	for (size_t i = 0; i < model->rules.n; i++) {
		const struct model_rule *inner = vec_at(&model->rules, i);

		if (strcmp(inner->mark.file, main_file) != 0)
			continue;
		if (inner->deny && !model_is_shadow(inner) && model_is_about_requests(inner))
			note_unread(&left, model, inner, notes);
		for (size_t k = 0; k < model->rules.n; k++) {
			const struct model_rule *outer = vec_at(&model->rules, k);

			if (!take_steps(&left, 1))
				return;
			if (covers(&left, outer, inner)) {
				note(notes, outer, inner);
				break;
			}
		}
	}
}
