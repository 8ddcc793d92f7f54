/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: every way a rule can name a destination is a key in one hash table: the host
 * itself, the suffix behind "*.", the masked address with its number of bits. A lookup tries the
 * host, then its suffixes (only as many labels as some glob has), then each prefix length that
 * occurs. A tag in the slot saves most comparisons of different keys. The probe is bounded by the
 * table's size, whatever the image holds.
 */
#include "policy/decide/lookup.h"
#include "policy/url/pattern.h"
#include "policy/url/url_path.h"

struct table {
	const struct image_slot *slots;
	uint32_t count; /* a power of two, or 0 */
};

static struct table table_of(const struct policy *policy, enum image_section_id id)
{
	return (struct table){image_section(policy, id), image_count(policy, id)};
}

static uint32_t find_target(const struct policy *policy, uint32_t kind, struct slice key)
{
	struct table table = table_of(policy, SECTION_TARGET_SLOTS);
	struct hash_key hash_key = image_target_key(image_header(policy), kind);
	uint64_t hash = hash_bytes(&hash_key, key.p, key.n);

	for (uint32_t i = 0; i < table.count; i++) {
		const struct image_slot *slot = &table.slots[(hash + i) & (table.count - 1)];
		const struct image_target *target;

		if (slot->index == IMAGE_EMPTY)
			break;
		if (slot->tag != hash >> 32)
			continue;
		target = image_target_at(policy, slot->index);
		if (target->kind == kind && slice_equals(image_slice(policy, target->key), key))
			return slot->index;
	}
	return POLICY_NONE;
}

uint32_t lookup_node(
        const struct policy *policy, uint32_t profile, uint32_t deny, struct slice start)
{
	struct table table = table_of(policy, SECTION_NODE_SLOTS);
	struct hash_key hash_key = image_node_key(image_header(policy), profile, deny);
	uint64_t hash = hash_bytes(&hash_key, start.p, start.n);

	for (uint32_t i = 0; i < table.count; i++) {
		const struct image_slot *slot = &table.slots[(hash + i) & (table.count - 1)];
		const struct image_node *node;

		if (slot->index == IMAGE_EMPTY)
			break;
		if (slot->tag != hash >> 32)
			continue;
		node = image_node_at(policy, slot->index);
		if (node->profile == profile && node->deny == deny &&
		        slice_equals(image_slice(policy, node->start), start))
			return slot->index;
	}
	return POLICY_NONE;
}

static void add(struct found *found, uint32_t target)
{
	if (target != POLICY_NONE && found->count < FOUND_MAX)
		found->targets[found->count++] = target;
}

static uint32_t count_labels(struct slice host)
{
	uint32_t labels = 1;

	for (size_t i = 0; i < host.n; i++)
		labels += host.p[i] == '.';
	return labels;
}

static void add_globs(const struct policy *policy, struct slice host, struct found *out)
{
	const struct image_header *h = image_header(policy);
	uint32_t labels;

	if (h->glob_labels_max == 0)
		return;
	labels = count_labels(host);
	for (;;) {
		ptrdiff_t dot = slice_find_byte(host, '.');

		if (dot < 0 || labels <= h->glob_labels_min)
			return;
		host = slice_of(host.p + dot + 1, host.n - (size_t)dot - 1);
		labels--;
		if (labels <= h->glob_labels_max)
			add(out, find_target(policy, TARGET_GLOB, host));
	}
}

static void mask_address(uint8_t bytes[16], unsigned bits)
{
	unsigned whole = bits / 8;

	if (whole >= 16)
		return;
	bytes[whole] &= (uint8_t)(0xff00u >> (bits % 8));
	memset(bytes + whole + 1, 0, 15 - whole);
}

static void add_prefixes(const struct policy *policy, const struct ip *ip, struct found *out)
{
	const struct image_header *h = image_header(policy);
	const uint32_t *lengths = ip->family == 4 ? h->prefix4_bits : h->prefix6_bits;
	uint8_t key[IMAGE_PREFIX_KEY] = {ip->family};

	memcpy(key + 2, ip->bytes, 16);
	for (int bits = ip->family == 4 ? 32 : 128; bits >= 0; bits--) {
		if ((lengths[bits / 32] & 1u << (bits % 32)) == 0)
			continue;
		key[1] = (uint8_t)bits;
		mask_address(key + 2, (unsigned)bits);
		add(out, find_target(policy, TARGET_PREFIX, slice_of(key, sizeof(key))));
	}
}

/* An IPv4-mapped IPv6 address is dialed as IPv4, so rules for either form apply to it. */
static bool unmap(const struct ip *ip, struct ip *out)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	if (ip->family != 6 || memcmp(ip->bytes, mapped, sizeof(mapped)) != 0)
		return false;
	*out = (struct ip){.family = 4};
	memcpy(out->bytes, ip->bytes + 12, 4);
	return true;
}

void lookup_targets(
        const struct policy *policy, const struct policy_request *request, struct found *out)
{
	struct ip inner;

	out->count = 0;
	if (request->host.n > 0) {
		add(out, find_target(policy, TARGET_HOST, request->host));
		add_globs(policy, request->host, out);
	}
	if (request->address.family == 0)
		return;
	if (unmap(&request->address, &inner))
		add_prefixes(policy, &inner, out);
	add_prefixes(policy, &request->address, out);
}

enum lookup_naming lookup_naming(
        const struct policy *policy, uint32_t target, const struct ip *address)
{
	const struct image_target *t = image_target_at(policy, target);
	const uint8_t *key = (const uint8_t *)image_slice(policy, t->key).p;
	struct ip_prefix network;
	struct ip inner;

	if (t->kind != TARGET_PREFIX)
		return LOOKUP_BY_NAME;
	network = (struct ip_prefix){.base.family = key[0], .bits = key[1]};
	memcpy(network.base.bytes, key + 2, sizeof(network.base.bytes));
	if (network.base.family == 4 && unmap(address, &inner))
		address = &inner;
	return !ip_network_means(&network, address) ? LOOKUP_TOO_WIDE
	       : ip_network_is_one(&network)        ? LOOKUP_BY_ADDRESS
	                                            : LOOKUP_BY_NETWORK;
}

/* An exception matches the destinations that the same words would match in `to`. */
static bool is_exception(const struct policy *policy, const struct policy_request *request,
        uint32_t rule, uint32_t entry)
{
	const struct image_entry *e = image_entry_at(policy, entry);

	return e->rule == rule && scheme_agrees(e->scheme, true, request->scheme) &&
	       port_agrees(policy, e, request->port);
}

bool lookup_excepts(const struct policy *policy, const struct found *found,
        const struct policy_request *request, uint32_t rule)
{
	for (uint32_t i = 0; i < found->count; i++) {
		const struct image_profile *p = image_profile_at(
		        policy, image_target_at(policy, found->targets[i])->profile);
		uint32_t first = p->first_ref + p->ref_count;

		for (uint32_t k = 0; k < p->except_count; k++)
			if (is_exception(policy, request, rule, image_ref_at(policy, first + k)))
				return true;
	}
	return false;
}

static void set_method(const struct policy *policy, struct question *q)
{
	const struct image_text *names = image_section(policy, SECTION_METHODS);
	struct slice method = q->request->method;

	q->method = q->method_lenient = 0;
	for (uint32_t i = 0; i < image_count(policy, SECTION_METHODS); i++) {
		struct slice name = image_slice(policy, names[i]);

		if (name.n != method.n)
			continue;
		if (slice_equals(name, method))
			q->method |= UINT64_C(1) << i;
		if (slice_equals_ignoring_case(name, method))
			q->method_lenient |= UINT64_C(1) << i;
	}
}

static bool host_is_canonical(struct slice host)
{
	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
		            c == '_'))
			return false;
	}
	return host.n <= POLICY_HOST_MAX && host.p[0] != '.' && host.p[host.n - 1] != '.';
}

bool question_prepare(
        const struct policy *policy, const struct policy_request *request, struct question *out)
{
	bool http = request->scheme == POLICY_HTTPS || request->scheme == POLICY_HTTP;

	if ((unsigned)request->scheme >= POLICY_SCHEME_COUNT || request->port == 0)
		return false;
	if (request->host.n == 0 && request->address.family != 4 && request->address.family != 6)
		return false;
	if (request->host.n > 0 && !host_is_canonical(request->host))
		return false;
	out->request = request;
	out->connection = !http || request->method.n == 0;
	out->method = out->method_lenient = 0;
	if (out->connection)
		return true;
	if (request->method.n > POLICY_METHOD_MAX || !url_path_is_canonical(request->path))
		return false;
	set_method(policy, out);
	return true;
}

bool lookup_denies(
        const struct policy *policy, const struct image_pattern *pattern, struct path_view *view)
{
	struct slice text = image_slice(policy, pattern->text);

	if (pattern_matches(text, view->path))
		return true;
	path_view_make(view);
	if (!path_view_is_plain(view) || !pattern->simple) {
		struct slice reading = image_slice(policy, pattern->reading);

		return reading_matches(reading, view->full) ||
		       (view->has_levels && reading_matches(reading, view->once));
	}
	/* only letter case and a '/' at the end can differ */
	return pattern_matches(text, view->full) ||
	       (view->shortest.n != view->full.n && pattern_matches(text, view->shortest));
}

enum lookup_match lookup_allows(
        const struct policy *policy, const struct image_pattern *pattern, struct path_view *view)
{
	struct slice text = image_slice(policy, pattern->text);

	if (!pattern_matches(text, view->path))
		return LOOKUP_DIFFERS;
	if (path_view_is_plain(view) || !pattern_has_wildcard(text))
		return LOOKUP_MATCHES;
	path_view_make(view);
	return !view->has_two_cuts && reading_matches(
	                                      image_slice(policy, pattern->reading), view->shortest)
	               ? LOOKUP_MATCHES
	               : LOOKUP_MISREAD;
}
