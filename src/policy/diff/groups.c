/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: destinations that both policies treat alike form one group: the profiles of
 * their targets are the same on both sides. Each exact host, each wildcard (through a host that
 * only it matches) and each range of addresses between two borders of networks is looked up once
 * and joins its group. So 100,000 hosts of one rule are one group.
 */
#include <stdio.h>

#include "policy/diff/groups.h"

#define LABELS_MAX 3 /* bytes of the label that stands for a glob's "*" */

static void add_name(struct diff_groups *g, struct diff_group *group, struct slice label)
{
	struct diff_names *names = &group->names;

	if (names->count < DIFF_NAMES_SHOWN)
		names->shown[names->count] = arena_copy(g->arena, label);
	names->count++;
}

/* The profiles of both sides with a separator between them. */
static struct slice group_key(struct diff_groups *g, const struct found *from,
        const struct found *to, const struct policy_request *request)
{
	uint32_t *key = arena_take(g->arena, 2 * (from->count + to->count + 1) * sizeof(*key));
	size_t n = 0;

	if (!key)
		return SLICE("");
	key[n++] = request->host.n > 0;
	for (uint32_t i = 0; i < from->count; i++) {
		key[n++] = image_target_at(g->policies[0], from->targets[i])->profile;
		key[n++] = lookup_naming(g->policies[0], from->targets[i], &request->address);
	}
	key[n++] = UINT32_MAX;
	for (uint32_t i = 0; i < to->count; i++) {
		key[n++] = image_target_at(g->policies[1], to->targets[i])->profile;
		key[n++] = lookup_naming(g->policies[1], to->targets[i], &request->address);
	}
	return slice_of(key, n * sizeof(*key));
}

/* Adds one destination to its group. */
static void add_destination(
        struct diff_groups *g, const struct policy_request *request, struct slice label)
{
	struct diff_group group = {.address = request->address}, *found;
	struct found from, to;
	bool added;
	uint32_t id;

	lookup_targets(g->policies[0], request, &from);
	lookup_targets(g->policies[1], request, &to);
	if (from.count + to.count == 0)
		return;
	id = intern_put(&g->keys, group_key(g, &from, &to, request), &added);
	if (id == UINT32_MAX || (added && !vec_append(&g->groups, &group, 1))) {
		g->failed = true;
		return;
	}
	found = vec_at(&g->groups, id);
	if (added)
		found->host = arena_copy(g->arena, request->host);
	add_name(g, found, label);
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

/* True if no target of either policy is more specific for this host than the glob. */
static bool only_glob(const struct diff_groups *g, const struct policy_request *request,
        const struct policy *owner, struct slice suffix)
{
	for (int i = 0; i < 2; i++) {
		struct found found;

		lookup_targets(g->policies[i], request, &found);
		if (g->policies[i] == owner && !is_target(owner, &found, TARGET_GLOB, suffix, 0))
			return false;
		if (found.count > 0) {
			const struct image_target *t =
			        image_target_at(g->policies[i], found.targets[0]);

			if (t->kind == TARGET_HOST || t->key.n > suffix.n)
				return false;
		}
	}
	return true;
}

/* True if the other policy has the same target and came first. */
static bool is_known(const struct diff_groups *g, int side, uint32_t kind, struct slice key,
        const struct policy_request *request)
{
	struct found found;

	if (side == 0)
		return false;
	lookup_targets(g->policies[0], request, &found);
	return is_target(g->policies[0], &found, kind, key, 0);
}

/* Adds a glob through a host that only it matches: "a.suffix", "b.suffix", ... */
static void add_glob(struct diff_groups *g, int side, struct slice suffix)
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
			return; /* no host name is that long */
		if (n + suffix.n > POLICY_HOST_MAX)
			break;
		memcpy(host + n, suffix.p, suffix.n);
		request.host = slice_of(host, n + suffix.n);
		if (!only_glob(g, &request, g->policies[side], suffix))
			continue;
		if (is_known(g, side, TARGET_GLOB, suffix, &request))
			return;
		memcpy(label, "*.", 2);
		memcpy(label + 2, suffix.p, suffix.n);
		add_destination(g, &request, slice_of(label, suffix.n + 2));
		return;
	}
	g->hidden = true;
}

/* Formats into label the smallest network of either policy that contains the address. False: there
 * is none. */
static bool smallest_network(const struct diff_groups *g, const struct policy_request *request,
        char label[IP_TEXT_MAX + 8])
{
	char text[IP_TEXT_MAX];
	struct ip base = {0};
	int bits = -1;

	for (int i = 0; i < 2; i++) {
		struct found found;
		struct slice key;

		lookup_targets(g->policies[i], request, &found);
		if (found.count == 0)
			continue;
		key = image_slice(
		        g->policies[i], image_target_at(g->policies[i], found.targets[0])->key);
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

static void add_address(struct diff_groups *g, const struct ip *ip)
{
	struct policy_request request = {.address = *ip};
	char label[IP_TEXT_MAX + 8];
	struct found from, to;
	struct slice key, all;
	bool added;
	char *p;

	if (!smallest_network(g, &request, label))
		return;
	lookup_targets(g->policies[0], &request, &from);
	lookup_targets(g->policies[1], &request, &to);
	key = group_key(g, &from, &to, &request);
	all = slice_of(label, strlen(label));
	p = arena_take(g->arena, key.n + all.n);
	if (!p) {
		g->failed = true;
		return;
	}
	memcpy(p, key.p, key.n);
	memcpy(p + key.n, all.p, all.n);
	if (intern_put(&g->labels, slice_of(p, key.n + all.n), &added) == UINT32_MAX)
		g->failed = true;
	else if (added)
		add_destination(g, &request, all);
}

/* Adds an address, and for IPv4 also its IPv4-mapped IPv6 form, which rules of both families apply
 * to. */
static void add_border(struct diff_groups *g, const struct ip *ip)
{
	struct ip mapped = {.family = 6, .bytes = {[10] = 0xff, [11] = 0xff}};

	add_address(g, ip);
	if (ip->family != 4)
		return;
	memcpy(mapped.bytes + 12, ip->bytes, 4);
	add_address(g, &mapped);
}

/* Adds the first address of a network and the first address behind it: nothing changes between such
 * borders. */
static void add_network(struct diff_groups *g, struct ip ip, unsigned bits)
{
	add_border(g, &ip);
	for (int bit = (int)bits - 1; bit >= 0; bit--) {
		uint8_t mask = (uint8_t)(0x80u >> (bit % 8));

		ip.bytes[bit / 8] ^= mask;
		if (ip.bytes[bit / 8] & mask) {
			add_border(g, &ip);
			return;
		}
	}
}

/* The base address of a network's key. */
static struct ip address_of(struct slice key)
{
	struct ip ip = {.family = (uint8_t)key.p[0]};

	memcpy(ip.bytes, key.p + 2, sizeof(ip.bytes));
	return ip;
}

static void add_target(struct diff_groups *g, int side, uint32_t index)
{
	const struct image_target *t = image_target_at(g->policies[side], index);
	struct slice key = image_slice(g->policies[side], t->key);
	struct policy_request request = {.host = key};

	if (t->kind == TARGET_GLOB)
		add_glob(g, side, key);
	else if (t->kind == TARGET_PREFIX)
		add_network(g, address_of(key), (uint8_t)key.p[1]);
	else if (!is_known(g, side, TARGET_HOST, key, &request))
		add_destination(g, &request, key);
}

void diff_groups_init(struct diff_groups *g, struct arena *arena, const struct policy *from,
        const struct policy *to)
{
	memset(g, 0, sizeof(*g));
	g->policies[0] = from;
	g->policies[1] = to;
	g->arena = arena;
	intern_init(&g->keys);
	intern_init(&g->labels);
	vec_init(&g->groups, sizeof(struct diff_group));
}

void diff_groups_fini(struct diff_groups *g)
{
	intern_fini(&g->keys);
	intern_fini(&g->labels);
	vec_fini(&g->groups);
}

bool diff_groups_find(struct diff_groups *g)
{
	struct ip_prefix range;

	for (int side = 0; side < 2; side++)
		for (uint32_t i = 0;
		        i < image_count(g->policies[side], SECTION_TARGETS) && !g->failed; i++)
			add_target(g, side, i);
	/* a wide network does not mean every class of addresses in it */
	for (size_t i = 0; ip_class_range(i, &range) && !g->failed; i++)
		add_network(g, range.base, range.bits);
	return !g->failed;
}
