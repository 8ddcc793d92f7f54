/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: two allow rules may name the same destination; the more specific path
 * decides about the credential. Where neither is more specific, both could match one request, and
 * they name different credentials, the policy does not say which one to send: refused, with both
 * lines. The same where one rule has TLS passed through unopened and another one wants to see the
 * requests. Only rules that share a profile can meet like this.
 */
#include <errno.h>
#include <stdlib.h>

#include "compile.h"
#include "pattern.h"

/* One way in which an allow rule with a credential claims requests of a profile. */
struct claim {
	uint32_t rank;
	uint32_t credential;
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

static bool claims_meet(const struct compiler *c, const struct claim *a, const struct claim *b)
{
	const struct image_entry *x = compile_entry(c, a->entry), *y = compile_entry(c, b->entry);

	if (a->credential == b->credential || x->scheme != y->scheme || !ports_meet(c, x, y))
		return false;
	if (!methods_meet(compile_rule(c, x->rule), compile_rule(c, y->rule)))
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
	        "path, or both the same credential",
	        SLICE_ARG(second->name), SLICE_ARG(credentials[second->credential].c.name),
	        SLICE_ARG(first->name), first->mark.file, first->mark.line,
	        SLICE_ARG(credentials[first->credential].c.name));
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

static void collect_claims(struct compiler *c, const struct image_profile *p, struct vec *claims)
{
	for (uint32_t i = p->deny; i < p->ref_count; i++) {
		uint32_t entry = *(uint32_t *)vec_at(&c->sections[SECTION_REFS], p->first_ref + i);
		const struct model_rule *rule = compile_rule(c, compile_entry(c, entry)->rule);
		struct claim claim = {.credential = rule->credential, .entry = entry};

		if (rule->credential == POLICY_NONE)
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

/* Claims [first, last) have one rank; pairs are only looked at where the credentials differ at all.
 */
static bool check_rank(struct compiler *c, const struct claim *claims, size_t first, size_t last)
{
	bool found = false;
	size_t differ = first;

	while (differ < last && claims[differ].credential == claims[first].credential)
		differ++;
	if (differ == last)
		return false;
	for (size_t i = first; i < last; i++)
		for (size_t k = i + 1; k < last; k++)
			if (claims_meet(c, &claims[i], &claims[k])) {
				report_credentials(c, &claims[i], &claims[k]);
				found = true;
				if (c->model->diags->count >= DIAG_MAX)
					return true;
			}
	return found;
}

static bool check_credentials(struct compiler *c, const struct image_profile *p)
{
	struct vec vec;
	const struct claim *claims;
	bool found = false;
	size_t first = 0;

	vec_init(&vec, sizeof(struct claim));
	collect_claims(c, p, &vec);
	if (vec.n > 1) {
		qsort(vec.p, vec.n, sizeof(struct claim), compare_claims);
		claims = vec_at(&vec, 0);
		for (size_t i = 1; i <= vec.n; i++)
			if (i == vec.n || claims[i].rank != claims[first].rank) {
				found |= check_rank(c, claims, first, i);
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

		found |= check_credentials(c, p);
		found |= check_tls(c, p);
	}
	if (c->failed)
		return -ENOMEM;
	return found ? -EINVAL : 0;
}
