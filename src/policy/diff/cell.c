/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: paths are compared by their patterns. A pattern that a rule allows now was
 * allowed before if an old allow pattern contains it and every old deny pattern that meets it still
 * exists. Anything for which this cannot be shown counts as new. The same comparison with the sides
 * swapped gives what is no longer possible. A credential differs if two allow patterns meet that
 * have different credentials, and neither side has a claim of its own that takes their common paths
 * from one of them.
 *
 * Conditions on query and header fields are compared as words: a claim with conditions contains
 * only claims with the same ones.
 */
#include "policy/diff/cell.h"
#include "policy/diff/paths.h"

#define LINEAR_BYTES 32 /* bytes of patterns that cost one step of the budget */
#define SQUARE_BYTES 64

static bool spend(uint64_t *budget, uint64_t steps)
{
	*budget = *budget > steps ? *budget - steps : 0;
	return *budget > 0;
}

/* Comparing two patterns costs their lengths, or the product of both if both have wildcards. So the
 * budget is for many short patterns, and a few long ones do not count as few. */
static bool spend_pair(uint64_t *budget, struct slice a, struct slice b)
{
	return spend(budget,
	        1 + (a.n + b.n) / LINEAR_BYTES + (a.n / SQUARE_BYTES) * (b.n / SQUARE_BYTES));
}

static bool add_claims(struct diff_side *side, const struct image_rule *r, uint32_t rule,
        uint32_t order, bool exact, uint64_t *budget)
{
	const struct policy *policy = side->policy;
	struct vec *out = (r->flags & RULE_DENY) != 0 ? &side->denies : &side->allows;
	struct diff_claim claim = {.order = order, .rule = rule, .exact = exact};

	claim.upgrades = image_slice(policy, r->upgrades);
	claim.conditions = image_slice(policy, r->conditions);
	if (r->seals.n)
		claim.credential = image_slice(policy, r->seals);
	else if (r->credential != POLICY_NONE)
		claim.credential =
		        image_slice(policy, image_credential_at(policy, r->credential)->name);
	if ((r->flags & RULE_PATHS) == 0)
		return vec_append(out, &claim, 1);
	for (uint32_t i = 0; i < r->pattern_count && spend(budget, 1); i++) {
		const struct image_pattern *p = image_pattern_at(policy, r->first_pattern + i);

		claim.pattern = image_slice(policy, p->text);
		claim.rank = p->rank;
		if (!vec_append(out, &claim, 1))
			return false;
	}
	return true;
}

bool diff_collect(struct diff_side *side, const struct question *q, uint64_t *budget)
{
	const struct policy *policy = side->policy;

	side->allows.n = side->denies.n = 0;
	for (uint32_t t = 0; t < side->found.count; t++) {
		const struct image_profile *p = image_profile_at(
		        policy, image_target_at(policy, side->found.targets[t])->profile);
		enum lookup_naming naming =
		        lookup_naming(policy, side->found.targets[t], &q->request->address);

		for (uint32_t i = 0; i < p->ref_count && spend(budget, 1); i++) {
			const struct image_entry *e =
			        image_entry_at(policy, image_ref_at(policy, p->first_ref + i));
			const struct image_rule *r = image_rule_at(policy, e->rule);
			bool deny = (r->flags & RULE_DENY) != 0;

			if (deny && (r->flags & RULE_ASK) != 0)
				continue; /* a shadow: diff/asks.c compares the ask rule */
			if (!deny &&
			        (naming == LOOKUP_TOO_WIDE ||
			                (side->own_rules && (r->flags & RULE_INFRASTRUCTURE) != 0)))
				continue;
			if ((r->flags & RULE_EXCEPT) != 0 &&
			        lookup_excepts(policy, &side->found, q->request, e->rule))
				continue;
			if (scheme_agrees(e->scheme, deny, q->request->scheme) &&
			        port_agrees(policy, e, q->request->port) && method_agrees(q, r) &&
			        !add_claims(side, r, e->rule, t,
			                !deny && naming == LOOKUP_BY_ADDRESS, budget))
				return false;
		}
	}
	return true;
}

/* True if every request that meets inner's conditions meets outer's. */
static bool conditions_contain(struct slice outer, struct slice inner)
{
	return outer.n == 0 || slice_equals(outer, inner);
}

/* True if some deny contains the pattern, with these conditions. */
static bool is_denied_by(
        const struct vec *claims, struct slice pattern, struct slice conditions, uint64_t *budget)
{
	for (size_t i = 0; i < claims->n; i++) {
		const struct diff_claim *claim = vec_at(claims, i);

		if (!spend_pair(budget, claim->pattern, pattern))
			return false;
		if (paths_contain(claim->pattern, pattern) &&
		        conditions_contain(claim->conditions, conditions))
			return true;
	}
	return false;
}

/* True if some allow contains the pattern. */
static bool is_allowed_by(const struct vec *claims, const struct diff_claim *now, uint64_t *budget)
{
	struct slice pattern = now->pattern;

	for (size_t i = 0; i < claims->n; i++) {
		const struct diff_claim *claim = vec_at(claims, i);

		if (!spend_pair(budget, claim->pattern, pattern))
			return false;
		if (claim->exact >= now->exact && paths_allow_contains(claim->pattern, pattern) &&
		        conditions_contain(claim->conditions, now->conditions))
			return true;
	}
	return false;
}

/* Reports the parts of the pattern that an old deny refused and no new deny does. */
static void compare_denies(const struct diff_side *old, const struct diff_side *now,
        struct diff_change *change, struct diff_sink *sink)
{
	struct slice pattern = change->pattern, conditions = change->conditions;

	for (size_t i = 0; i < old->denies.n; i++) {
		const struct diff_claim *claim = vec_at(&old->denies, i);
		struct slice deny = claim->pattern;

		if (!spend_pair(sink->budget, deny, pattern))
			break;
		if (is_denied_by(&now->denies, deny, claim->conditions, sink->budget) ||
		        !paths_deny_meets(deny, pattern))
			continue;
		change->conditions = claim->conditions.n ? claim->conditions : conditions;
		change->pattern = paths_contain(pattern, deny) ? deny : pattern;
		change->within = paths_contain(deny, change->pattern) ? SLICE("") : deny;
		sink->change(sink->context, change);
	}
	change->pattern = pattern;
	change->conditions = conditions;
	change->within = SLICE("");
}

/* Reports what `now` allows and `old` did not. */
static void compare_allows(const struct diff_side *old, const struct diff_side *now,
        enum diff_kind kind, struct diff_sink *sink)
{
	for (size_t i = 0; i < now->allows.n && spend(sink->budget, 1); i++) {
		const struct diff_claim *claim = vec_at(&now->allows, i);
		struct diff_change change = {.kind = kind,
		        .pattern = claim->pattern,
		        .conditions = claim->conditions,
		        .credential = claim->credential,
		        .upgrades = claim->upgrades};

		if (is_denied_by(&now->denies, claim->pattern, claim->conditions, sink->budget))
			continue;
		if (is_allowed_by(&old->allows, claim, sink->budget))
			compare_denies(old, now, &change, sink);
		else
			sink->change(sink->context, &change);
	}
}

/* True if a decides wherever both match. Both are of one policy. */
static bool beats(const struct diff_claim *a, const struct diff_claim *b)
{
	if (a->order != b->order)
		return a->order < b->order;
	if (a->rank != b->rank)
		return a->rank > b->rank;
	if ((a->conditions.n == 0) != (b->conditions.n == 0))
		return a->conditions.n > 0;
	if ((a->credential.n == 0) != (b->credential.n == 0))
		return a->credential.n > 0;
	return a->rule < b->rule;
}

/* True if no request that matches mine can meet the conditions of c. The compiler refuses a policy
 * in which one could, because it would not say which credential to send (compile/conflicts.c). */
static bool excludes(const struct diff_claim *c, const struct diff_claim *mine)
{
	return c->conditions.n && mine->conditions.n && c->order == mine->order &&
	       c->rank == mine->rank && c->credential.n && mine->credential.n &&
	       !slice_equals(c->credential, mine->credential);
}

/* True if another claim of the same side takes everything that mine and other have in common. */
static bool is_taken(const struct vec *claims, const struct diff_claim *mine,
        const struct diff_claim *other, uint64_t *budget)
{
	for (size_t i = 0; i < claims->n; i++) {
		const struct diff_claim *c = vec_at(claims, i);

		if (!spend_pair(budget, c->pattern, mine->pattern) ||
		        !spend_pair(budget, c->pattern, other->pattern))
			break;
		if ((beats(c, mine) || excludes(c, mine)) &&
		        (conditions_contain(c->conditions, mine->conditions) ||
		                conditions_contain(c->conditions, other->conditions)) &&
		        (paths_contain(c->pattern, mine->pattern) ||
		                paths_contain(c->pattern, other->pattern)))
			return true;
	}
	return false;
}

static bool is_denied(
        const struct diff_side *side, struct slice a, struct slice b, uint64_t *budget)
{
	return is_denied_by(&side->denies, a, SLICE(""), budget) ||
	       is_denied_by(&side->denies, b, SLICE(""), budget);
}

static bool is_same(const struct diff_claim *a, const struct diff_claim *b)
{
	return slice_equals(a->credential, b->credential) && slice_equals(a->upgrades, b->upgrades);
}

static void compare_pair(const struct diff_side *from, const struct diff_side *to,
        const struct diff_claim *old, const struct diff_claim *now, struct diff_sink *sink)
{
	struct diff_change change = {.kind = DIFF_CREDENTIAL,
	        .pattern = now->pattern,
	        .conditions = now->conditions.n ? now->conditions : old->conditions,
	        .credential = now->credential,
	        .was = old->credential};

	if (is_same(old, now) || !paths_meet(old->pattern, now->pattern) ||
	        is_taken(&to->allows, now, old, sink->budget) ||
	        is_taken(&from->allows, old, now, sink->budget) ||
	        is_denied(from, old->pattern, now->pattern, sink->budget) ||
	        is_denied(to, old->pattern, now->pattern, sink->budget))
		return;
	if (paths_contain(now->pattern, old->pattern))
		change.pattern = old->pattern;
	else if (!paths_contain(old->pattern, now->pattern))
		change.within = old->pattern;
	if (!slice_equals(old->credential, now->credential))
		sink->change(sink->context, &change);
	if (slice_equals(old->upgrades, now->upgrades))
		return;
	change.kind = DIFF_UPGRADE;
	change.credential = change.was = SLICE("");
	change.upgrades = now->upgrades;
	change.upgrades_were = old->upgrades;
	sink->change(sink->context, &change);
}

/* True if all claims have the same credential and the same upgrades. */
static bool have_same_terms(const struct diff_side *from, const struct diff_side *to)
{
	const struct diff_claim *first = from->allows.n ? vec_at(&from->allows, 0) : NULL;
	const struct vec *lists[] = {&from->allows, &to->allows};

	for (size_t l = 0; first && l < 2; l++)
		for (size_t i = 0; i < lists[l]->n; i++)
			if (!is_same(vec_at(lists[l], i), first))
				return false;
	return true;
}

static bool claims_are_equal(const struct vec *a, const struct vec *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct diff_claim *x = vec_at(a, i), *y = vec_at(b, i);

		if (x->order != y->order || x->exact != y->exact ||
		        !slice_equals(x->pattern, y->pattern) ||
		        !slice_equals(x->conditions, y->conditions) || !is_same(x, y))
			return false;
	}
	return true;
}

void diff_cell(const struct diff_side *from, const struct diff_side *to, struct diff_sink *sink)
{
	if (claims_are_equal(&from->allows, &to->allows) &&
	        claims_are_equal(&from->denies, &to->denies))
		return;
	compare_allows(from, to, DIFF_ALLOWED, sink);
	compare_allows(to, from, DIFF_DENIED, sink);
	if (have_same_terms(from, to))
		return;
	for (size_t i = 0; i < to->allows.n; i++)
		for (size_t k = 0; k < from->allows.n; k++) {
			const struct diff_claim *old = vec_at(&from->allows, k),
			                        *now = vec_at(&to->allows, i);

			if (!spend_pair(sink->budget, old->pattern, now->pattern))
				return;
			compare_pair(from, to, old, now, sink);
		}
}
