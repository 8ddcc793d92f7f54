/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: for each group of destinations (diff/groups.c), a cell is made of every
 * scheme, every range of ports between two borders, and every method that some rule names (also in
 * lower case, which denies cover, and one method that no rule names). Methods with the same claims
 * are compared once (diff/cell.c). diff/text.c puts the results into words.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/decide/layers.h"
#include "policy/diff/groups.h"
#include "policy/diff/layers.h"
#include "policy/diff/text.h"

#define BUDGET 100000000u /* steps of one comparison: a second or so */
#define PORT_BORDERS_MAX 8192

struct method_class {
	uint64_t members[DIFF_METHOD_WORDS];
	size_t first; /* the method that represents all members */
};

struct diff {
	const struct policy *policies[2];
	struct arena arena;
	struct arena scratch; /* memory for one cell */
	struct diff_groups groups;
	struct diff_methods methods;
	struct diff_side from, to;
	struct diff_text text;
	uint64_t budget;
	bool failed; /* no memory */
	/* the current cell */
	struct diff_where where;
	bool bounds; /* compare what may pass, and nothing else */
	bool allowed_more, allowed_less;
};

/* Marks the borders of port ranges. False if no rule has the scheme. */
static bool mark_borders(
        uint64_t marks[65536 / 64], const struct diff_side *side, enum policy_scheme scheme)
{
	const struct policy *policy = side->policy;
	bool any = false;

	for (uint32_t t = 0; t < side->found.count; t++) {
		const struct image_profile *p = image_profile_at(
		        policy, image_target_at(policy, side->found.targets[t])->profile);

		for (uint32_t i = 0; i < p->ref_count + p->except_count; i++) {
			const struct image_entry *e =
			        image_entry_at(policy, image_ref_at(policy, p->first_ref + i));

			if (!scheme_agrees(e->scheme, true, scheme))
				continue;
			any = true;
			for (uint32_t k = 0; k < e->range_count; k++) {
				const struct image_range *r =
				        image_range_at(policy, e->first_range + k);
				uint32_t behind = (uint32_t)r->high + 1;

				marks[r->low / 64] |= UINT64_C(1) << (r->low % 64);
				if (behind <= UINT16_MAX)
					marks[behind / 64] |= UINT64_C(1) << (behind % 64);
			}
		}
	}
	return any;
}

static void on_change(void *context, const struct diff_change *change)
{
	struct diff *d = context;

	if (d->bounds && change->kind == DIFF_CREDENTIAL)
		return;
	d->allowed_more |= change->kind == DIFF_ALLOWED;
	d->allowed_less |= change->kind == DIFF_DENIED;
	diff_text_add(&d->text, &d->where, change);
}

/* Collects one method's claims on both sides. */
static bool collect(struct diff *d, const struct policy_request *base, size_t method)
{
	struct policy_request request = *base;
	struct question from, to;

	request.method = d->methods.names[method];
	request.path = SLICE("/");
	if (!question_prepare(d->policies[0], &request, &from) ||
	        !question_prepare(d->policies[1], &request, &to))
		return false;
	if (diff_collect(&d->from, &from, &d->budget) && diff_collect(&d->to, &to, &d->budget))
		return true;
	d->failed = true;
	return false;
}

/* The claims as bytes: rule and order of each. */
static struct slice claims_key(struct diff *d)
{
	const struct vec *lists[] = {
	        &d->from.allows, &d->from.denies, &d->to.allows, &d->to.denies};
	size_t count = 4, n = 0;
	uint32_t *key;

	for (size_t l = 0; l < 4; l++)
		count += 2 * lists[l]->n;
	key = arena_take(&d->scratch, count * sizeof(*key));
	for (size_t l = 0; key && l < 4; l++) {
		uint32_t last = UINT32_MAX, last_order = UINT32_MAX;

		for (size_t i = 0; i < lists[l]->n; i++) {
			const struct diff_claim *c = vec_at(lists[l], i);

			if (c->rule == last && c->order == last_order)
				continue; /* another pattern of the same rule */
			key[n++] = last = c->rule;
			key[n++] = last_order = c->order;
		}
		key[n++] = UINT32_MAX;
	}
	return slice_of(key ? (void *)key : (void *)"", n * sizeof(*key));
}

/* Puts methods with the same claims into one class. Returns the number of classes. */
static size_t classify_methods(
        struct diff *d, const struct policy_request *base, struct method_class *classes)
{
	struct intern keys;
	size_t count = 0;

	intern_init(&keys);
	arena_init(&d->scratch);
	for (size_t m = 0; m < d->methods.count && d->budget > 0; m++) {
		bool added;
		uint32_t id;

		if (!collect(d, base, m))
			break;
		id = intern_put(&keys, claims_key(d), &added);
		if (id == UINT32_MAX || d->scratch.failed) {
			d->failed = true;
			break;
		}
		if (added)
			classes[count++] = (struct method_class){.first = m};
		classes[id].members[m / 64] |= UINT64_C(1) << (m % 64);
	}
	intern_fini(&keys);
	arena_fini(&d->scratch);
	return count;
}

static void compare_requests(struct diff *d, const struct policy_request *base)
{
	struct method_class classes[DIFF_METHODS_MAX];
	size_t count = classify_methods(d, base, classes);
	struct diff_sink sink = {d, on_change, &d->budget};

	for (size_t i = 0; i < count && d->budget > 0; i++) {
		if (!collect(d, base, classes[i].first))
			return;
		memcpy(d->where.methods, classes[i].members, sizeof(d->where.methods));
		diff_cell(&d->from, &d->to, &sink);
	}
}

/* True if allowed, and dialing is not refused later because a wide network does not mean the
 * address. */
static bool opens(const struct policy_decision *d, const struct policy_request *request)
{
	return d->verdict == POLICY_ALLOW && !d->observed &&
	       (request->address.family == 0 || d->names_address);
}

static void compare_connections(struct diff *d, const struct policy_request *request)
{
	struct diff_change change = {.kind = DIFF_KIND_COUNT};
	struct policy_decision from, to;
	bool was, is;

	decide_alone(d->policies[0], request, &from);
	decide_alone(d->policies[1], request, &to);
	was = opens(&from, request);
	is = opens(&to, request) && !(d->bounds && policy_rule_layer(d->policies[1], to.rule) ==
	                                                   POLICY_LAYER_INFRASTRUCTURE);
	if (!was && is && !d->allowed_more)
		change.kind = DIFF_CONNECTION_ALLOWED;
	else if (was && !is && !d->allowed_less)
		change.kind = DIFF_CONNECTION_DENIED;
	else if (was && is && from.passthrough != to.passthrough)
		change.kind = to.passthrough ? DIFF_UNOPENED : DIFF_OPENED;
	if (change.kind != DIFF_KIND_COUNT)
		diff_text_add(&d->text, &d->where, &change);
}

static void compare_ports(struct diff *d, const struct diff_group *group, enum policy_scheme scheme,
        uint16_t low, uint16_t high)
{
	struct policy_request request = {
	        .scheme = scheme, .host = group->host, .address = group->address, .port = low};

	d->where = (struct diff_where){
	        .names = &group->names, .scheme = scheme, .low = low, .high = high};
	d->allowed_more = d->allowed_less = false;
	if (scheme == POLICY_HTTPS || scheme == POLICY_HTTP)
		compare_requests(d, &request);
	memset(d->where.methods, 0, sizeof(d->where.methods));
	compare_connections(d, &request);
}

static void compare_scheme(
        struct diff *d, const struct diff_group *group, enum policy_scheme scheme)
{
	uint64_t marks[65536 / 64] = {0};
	uint32_t low = 0, borders = 0;
	bool named = mark_borders(marks, &d->from, scheme);

	named |= mark_borders(marks, &d->to, scheme);
	if (!named)
		return;
	for (uint32_t port = 1; port <= 65536 && d->budget > 0 && !d->failed; port++) {
		if (port < 65536 && port % 64 == 0 && marks[port / 64] == 0) {
			port += 63;
			continue;
		}
		if (port < 65536 && (marks[port / 64] >> (port % 64) & 1) == 0)
			continue;
		if (low > 0 && borders++ == PORT_BORDERS_MAX)
			d->budget = 0;
		if (low > 0)
			compare_ports(d, group, scheme, (uint16_t)low, (uint16_t)(port - 1));
		low = port;
	}
}

static void compare_group(struct diff *d, const struct diff_group *group)
{
	struct policy_request request = {.host = group->host, .address = group->address};

	lookup_targets(d->policies[0], &request, &d->from.found);
	lookup_targets(d->policies[1], &request, &d->to.found);
	for (int s = 0; s < POLICY_SCHEME_COUNT; s++)
		compare_scheme(d, group, (enum policy_scheme)s);
}

static void compare_notes(struct diff *d)
{
	diff_text_modes(&d->text, policy_mode(d->policies[0]), policy_mode(d->policies[1]));
	diff_text_answers(&d->text, policy_answers(d->policies[0]), policy_answers(d->policies[1]));
	diff_text_inspect(&d->text, d->policies[0], d->policies[1]);
	diff_text_credentials(&d->text, d->policies[0], d->policies[1]);
	diff_exposes(&d->text, d->policies[0], d->policies[1]);
	diff_limits(&d->text, d->policies[0], d->policies[1]);
	diff_tokens(&d->text, d->policies[0], d->policies[1]);
	diff_asks(&d->text, d->policies[0], d->policies[1]);
	diff_dlps(&d->text, d->policies[0], d->policies[1]);
}

static void compare(struct diff *d)
{
	if (!d->bounds)
		compare_notes(d);
	if (!diff_methods_find(&d->methods, &d->arena, d->policies[0], d->policies[1]))
		d->failed = true;
	if (!diff_groups_find(&d->groups))
		d->failed = true;
	if (d->groups.hidden)
		d->budget = 0;
	for (size_t i = 0; i < d->groups.groups.n && d->budget > 0 && !d->failed; i++)
		compare_group(d, vec_at(&d->groups.groups, i));
}

static void diff_init(struct diff *d, const struct policy *from, const struct policy *to)
{
	memset(d, 0, sizeof(*d));
	d->policies[0] = d->from.policy = from;
	d->policies[1] = d->to.policy = to;
	d->budget = BUDGET;
	arena_init(&d->arena);
	diff_groups_init(&d->groups, &d->arena, from, to);
	vec_init(&d->from.allows, sizeof(struct diff_claim));
	vec_init(&d->from.denies, sizeof(struct diff_claim));
	vec_init(&d->to.allows, sizeof(struct diff_claim));
	vec_init(&d->to.denies, sizeof(struct diff_claim));
	diff_text_init(&d->text, &d->arena, &d->methods);
}

static void diff_fini(struct diff *d)
{
	diff_text_fini(&d->text);
	diff_groups_fini(&d->groups);
	vec_fini(&d->from.allows);
	vec_fini(&d->from.denies);
	vec_fini(&d->to.allows);
	vec_fini(&d->to.denies);
	arena_fini(&d->arena);
}

int diff_alone(
        const struct policy *from, const struct policy *to, bool bounds, struct policy_diff *out)
{
	struct diff *d = malloc(sizeof(*d));
	int rc;

	memset(out, 0, sizeof(*out));
	if (!d)
		return -ENOMEM;
	diff_init(d, from, to);
	d->bounds = d->to.own_rules = bounds;
	if (!slice_equals(policy_fingerprint(from), policy_fingerprint(to)))
		compare(d);
	rc = d->failed || d->arena.failed ? -ENOMEM
	                                  : diff_text_write(&d->text, d->budget == 0, out);
	diff_fini(d);
	free(d);
	return rc;
}
