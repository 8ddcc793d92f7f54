/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: two allow rules may name the same destination; the more specific path
 * decides about the credential. Only rules that share a profile can meet like this. A policy is
 * refused, with both lines, if two rules meet and:
 * - neither path is more specific, both could match one request, and they name different
 *   credentials: the policy does not say which one to send;
 * - one rule passes TLS through unopened and the other needs to see the requests;
 * - the rule that would decide (decide.c) does not name a protocol to upgrade to that the other
 *   rule names: such upgrades would be refused without any notice.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/compile/compile.h"
#include "policy/decide/condition.h"
#include "policy/json/json_path.h"
#include "policy/url/pattern.h"

#define SEALS (UINT32_C(1) << 31)

/* One way in which an allow rule claims requests of a profile. */
struct claim {
	uint32_t rank;
	uint32_t credential; /* with SEALS, if the rule seals answers into it */
	uint32_t entry;
	struct slice pattern; /* empty: any path */
};

static bool ports_meet(
        const struct compiler *c, const struct image_entry *a, const struct image_entry *b)
{
	const struct vec *ranges = &c->sections[SECTION_RANGES];

	for (uint32_t i = 0; i < a->range_count; i++)
		for (uint32_t k = 0; k < b->range_count; k++) {
			const struct image_range *x = vec_at(ranges, a->first_range + i);
			const struct image_range *y = vec_at(ranges, b->first_range + k);

			if (x->low <= y->high && y->low <= x->high)
				return true;
		}
	return false;
}

static bool methods_meet(const struct model_rule *a, const struct model_rule *b)
{
	return !a->has_methods || !b->has_methods || (a->methods & b->methods) != 0;
}

static bool is_literal(struct slice pattern)
{
	return slice_find_byte(pattern, '*') < 0;
}

/* Returns false if no text can match both patterns. Two patterns with wildcards are assumed to
 * have a common match. */
static bool patterns_meet(struct slice x, struct slice y)
{
	if (!is_literal(x) && !is_literal(y))
		return true;
	return is_literal(y) ? condition_matches(x, y, false) : condition_matches(y, x, false);
}

/* The same for two values of JSON conditions, which begin with their types. */
static bool json_values_meet(struct slice x, struct slice y)
{
	double low[2], high[2];

	if (x.p[0] == JSON_VALUE_ANY || y.p[0] == JSON_VALUE_ANY)
		return true;
	if (x.p[0] != y.p[0])
		return false;
	if (x.p[0] == JSON_VALUE_WORD)
		return slice_equals(x, y);
	if (x.p[0] == JSON_VALUE_TEXT)
		return patterns_meet(slice_of(x.p + 1, x.n - 1), slice_of(y.p + 1, y.n - 1));
	for (int i = 0; i < 2; i++) {
		memcpy(&low[i], (i ? y : x).p + 1, sizeof(low[i]));
		memcpy(&high[i], (i ? y : x).p + 1 + sizeof(low[i]), sizeof(high[i]));
	}
	return low[0] <= high[1] && low[1] <= high[0];
}

/* Returns false if no value can match a pattern of each. */
static bool values_meet(const struct model_condition *a, const struct model_condition *b)
{
	if (a->need != b->need)
		return false;
	if (a->need == CONDITION_ABSENT)
		return true;
	for (size_t i = 0; i < a->value_count; i++)
		for (size_t k = 0; k < b->value_count; k++) {
			struct slice x = a->values[i], y = b->values[k];

			if (condition_is_json(a->kind) ? json_values_meet(x, y)
			                               : patterns_meet(x, y))
				return true;
		}
	return false;
}

/* True if one request can meet the conditions of both rules and neither rule comes first. An ask
 * rule decides before an allow rule, and a rule with conditions before one without, so such pairs
 * do not conflict. */
static bool conditions_meet(const struct model_rule *a, const struct model_rule *b)
{
	if ((a->condition_count == 0) != (b->condition_count == 0) ||
	        (a->wait_s == 0) != (b->wait_s == 0))
		return false;
	for (size_t i = 0; i < a->condition_count; i++)
		for (size_t k = 0; k < b->condition_count; k++) {
			const struct model_condition *x = &a->conditions[i], *y = &b->conditions[k];

			/* An MCP message that calls no tool meets both rules, whatever their
			 * arguments. */
			if (x->kind == CONDITION_MCP_ARGUMENT)
				continue;
			if (x->kind == y->kind && x->name.n &&
			        slice_equals_ignoring_case(x->name, y->name) && !values_meet(x, y))
				return false;
		}
	return true;
}

static bool claims_meet(const struct compiler *c, const struct claim *a, const struct claim *b)
{
	const struct image_entry *x = compile_entry(c, a->entry), *y = compile_entry(c, b->entry);

	if (x->scheme != y->scheme || !ports_meet(c, x, y))
		return false;
	if (!methods_meet(compile_rule(c, x->rule), compile_rule(c, y->rule)) ||
	        !conditions_meet(compile_rule(c, x->rule), compile_rule(c, y->rule)))
		return false;
	return a->pattern.n == 0 || b->pattern.n == 0 || pattern_overlaps(a->pattern, b->pattern);
}

static void report_credentials(struct compiler *c, const struct claim *a, const struct claim *b)
{
	struct model_rule *first = vec_at(&c->model->rules, compile_entry(c, a->entry)->rule);
	struct model_rule *second = vec_at(&c->model->rules, compile_entry(c, b->entry)->rule);
	const struct model_credential *credentials = c->model->credentials;

	if (first->reported && second->reported)
		return;
	first->reported = second->reported = true;
	diag_add(c->model->diags, second->mark.file, second->mark.line, second->mark.column,
	        "rule \"%.*s\" (credential \"%.*s\") and rule \"%.*s\" at %s:%u (credential "
	        "\"%.*s\") are equally specific for the same requests; give one of them a longer "
	        "path, or both %s",
	        SLICE_ARG(second->name), SLICE_ARG(credentials[second->credential].c.name),
	        SLICE_ARG(first->name), first->mark.file, first->mark.line,
	        SLICE_ARG(credentials[first->credential].c.name),
	        first->credential == second->credential ? "seal" : "the same credential");
}

static void report_tls(struct compiler *c, const struct image_entry *a, const struct image_entry *b)
{
	struct model_rule *first = vec_at(&c->model->rules, a->rule);
	struct model_rule *second = vec_at(&c->model->rules, b->rule);

	if (first->reported && second->reported)
		return;
	first->reported = second->reported = true;
	diag_add(c->model->diags, second->mark.file, second->mark.line, second->mark.column,
	        "rule \"%.*s\" and rule \"%.*s\" at %s:%u name the same destination, but only one "
	        "says tls: passthrough; a connection is either opened or passed through, so say it "
	        "in both or in none",
	        SLICE_ARG(second->name), SLICE_ARG(first->name), first->mark.file,
	        first->mark.line);
}

static int compare_claims(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

typedef bool (*claims_check)(
        struct compiler *c, const struct claim *claims, size_t first, size_t last);

static void collect_claims(
        struct compiler *c, const struct image_profile *p, bool all, struct vec *claims)
{
	for (uint32_t i = p->deny; i < p->ref_count; i++) {
		uint32_t entry = *(uint32_t *)vec_at(&c->sections[SECTION_REFS], p->first_ref + i);
		const struct model_rule *rule = compile_rule(c, compile_entry(c, entry)->rule);
		struct claim claim = {
		        .credential = rule->credential | (rule->seals ? SEALS : 0), .entry = entry};

		if (rule->credential == POLICY_NONE && !all)
			continue;
		for (size_t k = 0; k < rule->path_count; k++) {
			claim.pattern = rule->paths[k];
			claim.rank = pattern_rank(claim.pattern);
			vec_append(claims, &claim, 1);
		}
		if (rule->path_count == 0)
			vec_append(claims, &claim, 1);
	}
	if (claims->failed)
		c->failed = true;
}

/* Claims [first, last) have one rank. Compares pairs only if some credentials differ. */
static bool credentials_conflict(
        struct compiler *c, const struct claim *claims, size_t first, size_t last)
{
	bool found = false;
	size_t differ = first;

	while (differ < last && claims[differ].credential == claims[first].credential)
		differ++;
	if (differ == last)
		return false;
	for (size_t i = first; i < last; i++)
		for (size_t k = i + 1; k < last; k++)
			if (claims[i].credential != claims[k].credential &&
			        claims_meet(c, &claims[i], &claims[k])) {
				report_credentials(c, &claims[i], &claims[k]);
				found = true;
				if (c->model->diags->count >= DIAG_MAX)
					return true;
			}
	return found;
}

/* --- protocols to upgrade to --- */

static bool next_protocol(struct slice *list, struct slice *one)
{
	ptrdiff_t comma = slice_find_byte(*list, ',');
	size_t n = comma < 0 ? list->n : (size_t)comma;

	if (!list->n)
		return false;
	*one = slice_trim(slice_of(list->p, n));
	*list = comma < 0 ? SLICE("") : slice_of(list->p + n + 1, list->n - n - 1);
	return true;
}

/* The first protocol in the list that is not in other, or empty. */
static struct slice protocol_beyond(struct slice list, struct slice other)
{
	struct slice one, rest, theirs;

	while (next_protocol(&list, &one)) {
		bool found = false;

		for (rest = other; !found && next_protocol(&rest, &theirs);)
			found = slice_equals(one, theirs);
		if (!found)
			return one;
	}
	return SLICE("");
}

/* True if a's rule decides; a and b are equally specific. Follows beats() in decide.c. */
static bool decides(const struct compiler *c, const struct claim *a, const struct claim *b)
{
	if ((a->credential == POLICY_NONE) != (b->credential == POLICY_NONE))
		return a->credential != POLICY_NONE;
	return compile_entry(c, a->entry)->rule < compile_entry(c, b->entry)->rule;
}

static void report_upgrade(struct compiler *c, const struct claim *winner,
        const struct claim *loser, struct slice protocol)
{
	struct model_rule *first = vec_at(&c->model->rules, compile_entry(c, winner->entry)->rule);
	struct model_rule *second = vec_at(&c->model->rules, compile_entry(c, loser->entry)->rule);

	if (first->reported && second->reported)
		return;
	first->reported = second->reported = true;
	diag_add(c->model->diags, second->mark.file, second->mark.line, second->mark.column,
	        "rule \"%.*s\" names the upgrade \"%.*s\" and rule \"%.*s\" at %s:%u does not, but "
	        "they are equally specific for the same requests, and the latter would decide; "
	        "give "
	        "one of them a longer path, or both the same upgrade",
	        SLICE_ARG(second->name), SLICE_ARG(protocol), SLICE_ARG(first->name),
	        first->mark.file, first->mark.line);
}

/* Claims [first, last) have one rank. Compares pairs only if one of them names protocols. */
static bool upgrades_conflict(
        struct compiler *c, const struct claim *claims, size_t first, size_t last)
{
	bool found = false;

	for (size_t i = first; i < last; i++) {
		const struct model_rule *mine =
		        compile_rule(c, compile_entry(c, claims[i].entry)->rule);

		for (size_t k = first; mine->upgrades.n && k < last; k++) {
			uint32_t other = compile_entry(c, claims[k].entry)->rule;
			struct slice protocol =
			        protocol_beyond(mine->upgrades, compile_rule(c, other)->upgrades);

			if (!protocol.n || !decides(c, &claims[k], &claims[i]) ||
			        !claims_meet(c, &claims[k], &claims[i]))
				continue;
			report_upgrade(c, &claims[k], &claims[i], protocol);
			found = true;
			if (c->model->diags->count >= DIAG_MAX)
				return true;
		}
	}
	return found;
}

static bool names_upgrades(const struct compiler *c, const struct image_profile *p)
{
	const uint32_t *refs = vec_at(&c->sections[SECTION_REFS], p->first_ref);

	for (uint32_t i = p->deny; i < p->ref_count; i++)
		if (compile_rule(c, compile_entry(c, refs[i])->rule)->upgrades.n)
			return true;
	return false;
}

/* --- rules that share a profile --- */

/* all: include claims of rules without a credential. */
static bool check_ranks(
        struct compiler *c, const struct image_profile *p, bool all, claims_check check)
{
	struct vec vec;
	const struct claim *claims;
	bool found = false;
	size_t first = 0;

	vec_init(&vec, sizeof(struct claim));
	collect_claims(c, p, all, &vec);
	if (vec.n > 1) {
		qsort(vec.p, vec.n, sizeof(struct claim), compare_claims);
		claims = vec_at(&vec, 0);
		for (size_t i = 1; i <= vec.n; i++)
			if (i == vec.n || claims[i].rank != claims[first].rank) {
				found |= check(c, claims, first, i);
				first = i;
			}
	}
	vec_fini(&vec);
	return found;
}

static bool check_tls(struct compiler *c, const struct image_profile *p)
{
	const uint32_t *refs = vec_at(&c->sections[SECTION_REFS], p->first_ref);
	bool found = false;

	for (uint32_t i = p->deny; i < p->ref_count; i++) {
		const struct image_entry *a = compile_entry(c, refs[i]);

		if (!compile_rule(c, a->rule)->passthrough)
			continue;
		for (uint32_t k = p->deny; k < p->ref_count; k++) {
			const struct image_entry *b = compile_entry(c, refs[k]);

			if (compile_rule(c, b->rule)->passthrough || b->scheme != a->scheme ||
			        !ports_meet(c, a, b))
				continue;
			if (a->rule < b->rule)
				report_tls(c, a, b);
			else
				report_tls(c, b, a);
			found = true;
			if (c->model->diags->count >= DIAG_MAX)
				return true;
		}
	}
	return found;
}

int compile_check_conflicts(struct compiler *c)
{
	bool found = false;

	for (uint32_t i = 0; i < c->sections[SECTION_PROFILES].n; i++) {
		const struct image_profile *p = vec_at(&c->sections[SECTION_PROFILES], i);

		found |= check_ranks(c, p, false, credentials_conflict);
		found |= check_tls(c, p);
		if (names_upgrades(c, p))
			found |= check_ranks(c, p, true, upgrades_conflict);
	}
	if (c->failed)
		return -ENOMEM;
	return found ? -EINVAL : 0;
}
