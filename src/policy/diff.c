/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: destinations that both policies treat alike are one group: the profiles of
 * their targets are the same on both sides. Each exact host, each wildcard (by a host that only it
 * matches) and each range of addresses between two borders of networks is looked up once and joins
 * its group, so that 100,000 hosts of one rule are one group. In a group, every scheme, every range
 * of ports between two borders and every method that some rule names (also in small letters, which
 * denies cover, and one that no rule names) make a cell; methods with the same claims are
 * compared once (diff_cell.c). What comes out is put into words by diff_text.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "diff_text.h"

#define BUDGET 100000000u /* steps of one comparison: a second or so */
#define PORT_BORDERS_MAX 8192
#define LABELS_MAX 3 /* of a glob's stand-in: bytes */

struct group {
	struct ip address; /* family 0: a host */
	struct slice host; /* one of its hosts */
	struct diff_names names;
};

struct method_class {
	uint64_t members[DIFF_METHOD_WORDS];
	size_t first; /* the method that stands for all */
};

struct diff {
	const struct policy *policies[2];
	struct arena arena;
	struct arena scratch; /* of one cell */
	struct intern group_keys, labels;
	struct vec groups; /* struct group, by number of the key */
	struct diff_methods methods;
	struct diff_side from, to;
	struct diff_text text;
	uint64_t budget;
	bool failed; /* no memory */
	/* the cell at hand */
	struct diff_where where;
	bool allowed_more, allowed_less;
};

static void add_name(struct diff *d, struct group *group, struct slice label)
{
	struct diff_names *names = &group->names;

	if (names->count < DIFF_NAMES_SHOWN)
		names->shown[names->count] = arena_copy(&d->arena, label);
	names->count++;
}

/* The profiles of both sides, with what stands between them. */
static struct slice group_key(
        struct diff *d, const struct found *from, const struct found *to, bool host)
{
	uint32_t *key = arena_take(&d->arena, (from->count + to->count + 2) * sizeof(*key));
	size_t n = 0;

	if (!key)
		return SLICE("");
	key[n++] = host;
	for (uint32_t i = 0; i < from->count; i++)
		key[n++] = image_target_at(d->policies[0], from->targets[i])->profile;
	key[n++] = UINT32_MAX;
	for (uint32_t i = 0; i < to->count; i++)
		key[n++] = image_target_at(d->policies[1], to->targets[i])->profile;
	return slice_of(key, n * sizeof(*key));
}

/* Puts one destination into its group. */
static void add_destination(
        struct diff *d, const struct policy_request *request, struct slice label)
{
	struct group group = {.address = request->address}, *found;
	struct found from, to;
	bool added;
	uint32_t id;

	lookup_targets(d->policies[0], request, &from);
	lookup_targets(d->policies[1], request, &to);
	if (from.count + to.count == 0)
		return;
	id = intern_put(&d->group_keys, group_key(d, &from, &to, request->host.n > 0), &added);
	if (id == UINT32_MAX || (added && !vec_append(&d->groups, &group, 1))) {
		d->failed = true;
		return;
	}
	found = vec_at(&d->groups, id);
	if (added)
		found->host = arena_copy(&d->arena, request->host);
	add_name(d, found, label);
}

static bool is_target(const struct policy *policy, const struct found *found, uint32_t kind,
        struct slice key, size_t at)
{
	const struct image_target *t;

	if (found->count <= at)
		return false;
	t = image_target_at(policy, found->targets[at]);
	return t->kind == kind && slice_equals(image_slice(policy, t->key), key);
}

/* Nothing more specific than the glob stands for this host. */
static bool only_glob(const struct diff *d, const struct policy_request *request,
        const struct policy *owner, struct slice suffix)
{
	for (int i = 0; i < 2; i++) {
		struct found found;

		lookup_targets(d->policies[i], request, &found);
		if (d->policies[i] == owner && !is_target(owner, &found, TARGET_GLOB, suffix, 0))
			return false;
		if (found.count > 0) {
			const struct image_target *t =
			        image_target_at(d->policies[i], found.targets[0]);

			if (t->kind == TARGET_HOST || t->key.n > suffix.n)
				return false;
		}
	}
	return true;
}

/* The other policy has the same target and was first. */
static bool is_known(const struct diff *d, int side, uint32_t kind, struct slice key,
        const struct policy_request *request)
{
	struct found found;

	if (side == 0)
		return false;
	lookup_targets(d->policies[0], request, &found);
	return is_target(d->policies[0], &found, kind, key, 0);
}

/* A host that only the glob matches: "a.suffix", "b.suffix", ... */
static void add_glob(struct diff *d, int side, struct slice suffix)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	char host[POLICY_HOST_MAX + LABELS_MAX + 2], label[POLICY_HOST_MAX + 4];
	struct policy_request request = {0};
	size_t n;

	for (size_t try = 0; try < (sizeof(bytes) - 1) * (sizeof(bytes) - 1); try++) {
		n = 0;
		if (try >= sizeof(bytes) - 1)
			host[n++] = bytes[try / (sizeof(bytes) - 1)];
		host[n++] = bytes[try % (sizeof(bytes) - 1)];
		host[n++] = '.';
		if (n + suffix.n > POLICY_HOST_MAX && try == 0)
			return; /* no name is that long */
		if (n + suffix.n > POLICY_HOST_MAX)
			break;
		memcpy(host + n, suffix.p, suffix.n);
		request.host = slice_of(host, n + suffix.n);
		if (!only_glob(d, &request, d->policies[side], suffix))
			continue;
		if (is_known(d, side, TARGET_GLOB, suffix, &request))
			return;
		memcpy(label, "*.", 2);
		memcpy(label + 2, suffix.p, suffix.n);
		add_destination(d, &request, slice_of(label, suffix.n + 2));
		return;
	}
	d->budget = 0; /* a thousand hosts under one wildcard hide it */
}

/* The smallest network of either policy that has the address. */
static bool smallest_network(
        const struct diff *d, const struct policy_request *request, char label[IP_TEXT_MAX + 8])
{
	char text[IP_TEXT_MAX];
	struct ip base = {0};
	int bits = -1;

	for (int i = 0; i < 2; i++) {
		struct found found;
		struct slice key;

		lookup_targets(d->policies[i], request, &found);
		if (found.count == 0)
			continue;
		key = image_slice(
		        d->policies[i], image_target_at(d->policies[i], found.targets[0])->key);
		if ((uint8_t)key.p[1] <= bits)
			continue;
		bits = (uint8_t)key.p[1];
		base.family = (uint8_t)key.p[0];
		memcpy(base.bytes, key.p + 2, 16);
	}
	if (bits < 0)
		return false;
	ip_format(&base, text);
	if (bits == (base.family == 4 ? 32 : 128))
		snprintf(label, IP_TEXT_MAX + 8, base.family == 4 ? "%s" : "[%s]", text);
	else
		snprintf(
		        label, IP_TEXT_MAX + 8, base.family == 4 ? "%s/%d" : "[%s/%d]", text, bits);
	return true;
}

static void add_address(struct diff *d, const struct ip *ip)
{
	struct policy_request request = {.address = *ip};
	char label[IP_TEXT_MAX + 8];
	struct found from, to;
	struct slice key, all;
	bool added;
	char *p;

	if (!smallest_network(d, &request, label))
		return;
	lookup_targets(d->policies[0], &request, &from);
	lookup_targets(d->policies[1], &request, &to);
	key = group_key(d, &from, &to, false);
	all = slice_of(label, strlen(label));
	p = arena_take(&d->arena, key.n + all.n);
	if (!p) {
		d->failed = true;
		return;
	}
	memcpy(p, key.p, key.n);
	memcpy(p + key.n, all.p, all.n);
	if (intern_put(&d->labels, slice_of(p, key.n + all.n), &added) == UINT32_MAX)
		d->failed = true;
	else if (added)
		add_destination(d, &request, all);
}

/* Also in its IPv6 clothes, for which rules of both families count. */
static void add_border(struct diff *d, const struct ip *ip)
{
	struct ip mapped = {.family = 6, .bytes = {[10] = 0xff, [11] = 0xff}};

	add_address(d, ip);
	if (ip->family != 4)
		return;
	memcpy(mapped.bytes + 12, ip->bytes, 4);
	add_address(d, &mapped);
}

/* The first address of a network, and the first one behind it: between such borders nothing
 * changes. */
static void add_network(struct diff *d, struct slice key)
{
	struct ip ip = {.family = (uint8_t)key.p[0]};
	unsigned bits = (uint8_t)key.p[1];

	memcpy(ip.bytes, key.p + 2, 16);
	add_border(d, &ip);
	for (int bit = (int)bits - 1; bit >= 0; bit--) {
		uint8_t mask = (uint8_t)(0x80u >> (bit % 8));

		ip.bytes[bit / 8] ^= mask;
		if (ip.bytes[bit / 8] & mask) {
			add_border(d, &ip);
			return;
		}
	}
}

static void add_target(struct diff *d, int side, uint32_t index)
{
	const struct image_target *t = image_target_at(d->policies[side], index);
	struct slice key = image_slice(d->policies[side], t->key);
	struct policy_request request = {.host = key};

	if (t->kind == TARGET_GLOB)
		add_glob(d, side, key);
	else if (t->kind == TARGET_PREFIX)
		add_network(d, key);
	else if (!is_known(d, side, TARGET_HOST, key, &request))
		add_destination(d, &request, key);
}

/* False where no rule has the scheme. */
static bool mark_borders(
        uint64_t marks[65536 / 64], const struct diff_side *side, enum policy_scheme scheme)
{
	const struct policy *policy = side->policy;
	bool any = false;

	for (uint32_t t = 0; t < side->found.count; t++) {
		const struct image_profile *p = image_profile_at(
		        policy, image_target_at(policy, side->found.targets[t])->profile);

		for (uint32_t i = 0; i < p->ref_count; i++) {
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

	d->allowed_more |= change->kind == DIFF_ALLOWED;
	d->allowed_less |= change->kind == DIFF_DENIED;
	diff_text_add(&d->text, &d->where, change);
}

/* Collects a method's claims of both sides. */
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

/* The claims as bytes: rule and place of each. */
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

/* Methods with the same claims are one class. */
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

static void compare_connections(struct diff *d, const struct policy_request *request)
{
	struct diff_change change = {.kind = DIFF_KIND_COUNT};
	struct policy_decision from, to;
	bool was, is;

	policy_decide(d->policies[0], request, &from);
	policy_decide(d->policies[1], request, &to);
	was = from.verdict == POLICY_ALLOW && !from.observed;
	is = to.verdict == POLICY_ALLOW && !to.observed;
	if (!was && is && !d->allowed_more)
		change.kind = DIFF_CONNECTION_ALLOWED;
	else if (was && !is && !d->allowed_less)
		change.kind = DIFF_CONNECTION_DENIED;
	else if (was && is && from.passthrough != to.passthrough)
		change.kind = to.passthrough ? DIFF_UNOPENED : DIFF_OPENED;
	if (change.kind != DIFF_KIND_COUNT)
		diff_text_add(&d->text, &d->where, &change);
}

static void compare_ports(struct diff *d, const struct group *group, enum policy_scheme scheme,
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

static void compare_scheme(struct diff *d, const struct group *group, enum policy_scheme scheme)
{
	uint64_t marks[65536 / 64] = {0};
	uint32_t low = 0, borders = 0;

	if (!mark_borders(marks, &d->from, scheme) & !mark_borders(marks, &d->to, scheme))
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

static void compare_group(struct diff *d, const struct group *group)
{
	struct policy_request request = {.host = group->host, .address = group->address};

	lookup_targets(d->policies[0], &request, &d->from.found);
	lookup_targets(d->policies[1], &request, &d->to.found);
	for (int s = 0; s < POLICY_SCHEME_COUNT; s++)
		compare_scheme(d, group, (enum policy_scheme)s);
}

static void compare(struct diff *d)
{
	diff_text_modes(&d->text, policy_mode(d->policies[0]), policy_mode(d->policies[1]));
	diff_text_credentials(&d->text, d->policies[0], d->policies[1]);
	if (!diff_methods_find(&d->methods, &d->arena, d->policies[0], d->policies[1]))
		d->failed = true;
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0;
		        i < image_count(d->policies[side], SECTION_TARGETS) && !d->failed; i++)
			add_target(d, side, i);
	for (size_t i = 0; i < d->groups.n && d->budget > 0 && !d->failed; i++)
		compare_group(d, vec_at(&d->groups, i));
}

static void diff_init(struct diff *d, const struct policy *from, const struct policy *to)
{
	memset(d, 0, sizeof(*d));
	d->policies[0] = d->from.policy = from;
	d->policies[1] = d->to.policy = to;
	d->budget = BUDGET;
	arena_init(&d->arena);
	intern_init(&d->group_keys);
	intern_init(&d->labels);
	vec_init(&d->groups, sizeof(struct group));
	vec_init(&d->from.allows, sizeof(struct diff_claim));
	vec_init(&d->from.denies, sizeof(struct diff_claim));
	vec_init(&d->to.allows, sizeof(struct diff_claim));
	vec_init(&d->to.denies, sizeof(struct diff_claim));
	diff_text_init(&d->text, &d->arena, &d->methods);
}

static void diff_fini(struct diff *d)
{
	diff_text_fini(&d->text);
	intern_fini(&d->group_keys);
	intern_fini(&d->labels);
	vec_fini(&d->groups);
	vec_fini(&d->from.allows);
	vec_fini(&d->from.denies);
	vec_fini(&d->to.allows);
	vec_fini(&d->to.denies);
	arena_fini(&d->arena);
}

int policy_diff(const struct policy *from, const struct policy *to, struct policy_diff *out)
{
	struct diff *d = malloc(sizeof(*d));
	int rc;

	memset(out, 0, sizeof(*out));
	if (!d)
		return -ENOMEM;
	diff_init(d, from, to);
	if (!slice_equals(policy_fingerprint(from), policy_fingerprint(to)))
		compare(d);
	rc = d->failed || d->arena.failed ? -ENOMEM
	                                  : diff_text_write(&d->text, d->budget == 0, out);
	diff_fini(d);
	free(d);
	return rc;
}

void policy_diff_fini(struct policy_diff *diff)
{
	free(diff->lines);
	memset(diff, 0, sizeof(*diff));
}
