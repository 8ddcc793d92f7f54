/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds profiles and nodes. The sorted pairs (target, entry) give each target its list of entries;
 * targets with equal lists share a profile; each profile's entries are filed under the literal
 * start of their path patterns (nodes).
 */
#include <stdlib.h>

#include "policy/compile/compile.h"
#include "policy/decide/reading.h"
#include "policy/url/pattern.h"

static int compare_pairs(const void *a, const void *b)
{
	const struct compile_pair *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return x->pattern < y->pattern ? -1 : x->pattern > y->pattern;
}

/* The profile for a list of count entries; entries points into c->lists. */
static uint32_t profile_of(struct compiler *c, const uint32_t *entries, size_t count)
{
	struct image_profile p = {.first_ref = (uint32_t)c->sections[SECTION_REFS].n};
	bool added;
	uint32_t id = intern_put(&c->profiles, slice_of(entries, count * sizeof(*entries)), &added);

	if (id == UINT32_MAX)
		c->failed = true;
	if (!added)
		return id;
	for (size_t i = 0; i < count; i++) {
		const struct image_entry *e = compile_entry(c, entries[i]);
		uint32_t order = compile_order(compile_rule(c, e->rule));

		if (e->except) {
			p.except_count++;
			continue;
		}
		p.ref_count++;
		p.deny_connection += order == 0;
		p.deny += order <= 1;
	}
	if (!vec_append(&c->sections[SECTION_REFS], entries, count))
		c->failed = true;
	compile_push(c, SECTION_PROFILES, &p);
	return id;
}

void compile_profiles(struct compiler *c)
{
	size_t n = c->pairs.n, i = 0;
	uint32_t *entries = vec_extend(&c->lists, n);

	if (n == 0)
		return;
	if (!entries) {
		c->failed = true;
		return;
	}
	qsort(c->pairs.p, n, sizeof(struct compile_pair), compare_pairs);
	while (i < n && !c->failed) {
		const struct compile_pair *pair = vec_at(&c->pairs, i);
		struct image_target *target = vec_at(&c->sections[SECTION_TARGETS], pair->owner);
		size_t count = 0;

		for (; i < n; i++) {
			const struct compile_pair *next = vec_at(&c->pairs, i);

			if (next->owner != pair->owner)
				break;
			if (count == 0 || entries[count - 1] != next->entry)
				entries[count++] = next->entry;
		}
		target->profile = profile_of(c, entries, count);
		entries += count;
	}
}

/* The part of a deny's pattern with which its readings begin: its segments without wildcards, in
 * the shortest form. An escaped slash ends a segment there like any other slash. */
static struct slice deny_start(struct slice pattern, char *bytes, unsigned *depth)
{
	struct slice start = slice_of(bytes, reading_of_pattern(pattern, bytes));
	size_t n = 0;

	while (n < start.n && (unsigned char)bytes[n] > READING_WILDCARD_MAX)
		n++;
	if (n < start.n && bytes[n] != READING_DEPTH) {
		while (n > 0 && bytes[n - 1] != '/' && bytes[n - 1] != READING_SLASH)
			n--;
		n -= n > 0;
	}
	*depth = 0;
	n = n > 0 ? reading_shortest(slice_of(bytes, n), bytes) : 0;
	if (n <= 1)
		return SLICE("");
	for (size_t i = 0; i < n; i++)
		if (bytes[i] == '/' && ++*depth > IMAGE_DEPTH_MAX) {
			--*depth;
			return slice_of(bytes, i);
		}
	return slice_of(bytes, n);
}

static struct slice node_key(
        struct compiler *c, uint32_t profile, uint32_t deny, struct slice start)
{
	uint32_t numbers[2] = {profile, deny};
	char *key = arena_take(c->model->arena, sizeof(numbers) + start.n);

	if (!key) {
		c->failed = true;
		return SLICE("");
	}
	memcpy(key, numbers, sizeof(numbers));
	memcpy(key + sizeof(numbers), start.p, start.n);
	return slice_of(key, sizeof(numbers) + start.n);
}

/* Files an entry of a profile under the literal start of one of its patterns, or under "" for
 * POLICY_NONE. */
static void add_candidate(struct compiler *c, uint32_t profile, uint32_t entry, uint32_t pattern)
{
	struct image_profile *p = vec_at(&c->sections[SECTION_PROFILES], profile);
	const struct image_entry *e = compile_entry(c, entry);
	const struct model_rule *rule = compile_rule(c, e->rule);
	const struct image_rule *out = vec_at(&c->sections[SECTION_RULES], e->rule);
	struct compile_pair pair = {
	        .order = compile_order(rule), .entry = entry, .pattern = pattern};
	struct image_node node = {.profile = profile, .deny = rule->deny};
	struct image_starts *starts = &p->starts[rule->deny];
	struct slice start = SLICE(""), key;
	char bytes[READING_MAX];
	unsigned depth = 0;
	bool added = false;

	if (pattern != POLICY_NONE)
		start = rule->deny
		                ? deny_start(
		                          rule->paths[pattern - out->first_pattern], bytes, &depth)
		                : pattern_literal_start(rule->paths[pattern - out->first_pattern],
		                          IMAGE_DEPTH_MAX, &depth);
	starts->depths |= 1u << depth;
	if (starts->longest < start.n)
		starts->longest = (uint32_t)start.n;
	key = node_key(c, profile, rule->deny, start);
	if (c->failed)
		return;
	pair.owner = intern_put(&c->nodes, key, &added);
	if (added) {
		node.start = compile_text(c, slice_of(key.p + key.n - start.n, start.n));
		compile_push(c, SECTION_NODES, &node);
	}
	if (pair.owner == UINT32_MAX || !vec_append(&c->candidates, &pair, 1))
		c->failed = true;
}

void compile_profile_nodes(struct compiler *c, uint32_t profile)
{
	struct image_profile p =
	        *(struct image_profile *)vec_at(&c->sections[SECTION_PROFILES], profile);

	for (uint32_t i = 0; i < p.ref_count && !c->failed; i++) {
		uint32_t entry = *(uint32_t *)vec_at(&c->sections[SECTION_REFS], p.first_ref + i);
		const struct image_rule *rule =
		        vec_at(&c->sections[SECTION_RULES], compile_entry(c, entry)->rule);
		struct image_rule r = *rule;

		if (r.pattern_count == 0)
			add_candidate(c, profile, entry, POLICY_NONE);
		for (uint32_t k = 0; k < r.pattern_count && !c->failed; k++)
			add_candidate(c, profile, entry, r.first_pattern + k);
	}
}

void compile_candidates(struct compiler *c)
{
	if (c->candidates.n > 0)
		qsort(c->candidates.p, c->candidates.n, sizeof(struct compile_pair), compare_pairs);
	for (size_t i = 0; i < c->candidates.n && !c->failed; i++) {
		const struct compile_pair *pair = vec_at(&c->candidates, i);
		struct image_node *node = vec_at(&c->sections[SECTION_NODES], pair->owner);
		struct image_candidate candidate = {pair->entry, pair->pattern};

		if (node->candidate_count++ == 0)
			node->first_candidate = (uint32_t)c->sections[SECTION_CANDIDATES].n;
		compile_push(c, SECTION_CANDIDATES, &candidate);
	}
}
