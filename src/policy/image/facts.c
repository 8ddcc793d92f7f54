/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: plain reads of an opened image: names, ports, credentials. Nothing is
 * decided here. */
#include <string.h>

#include "policy/image/image.h"
#include "vethguard/policy/placeholder.h"

#define PORT_WORDS (65536 / 64)

struct slice policy_name(const struct policy *policy)
{
	return image_slice(policy, image_header(policy)->name);
}

bool policy_refuses_leaks(const struct policy *policy)
{
	return policy_mode(policy) != POLICY_OBSERVE && !image_header(policy)->leaks_pass;
}

bool policy_answers(const struct policy *policy)
{
	return !image_header(policy)->silent;
}

enum policy_mode policy_mode(const struct policy *policy)
{
	return (enum policy_mode)image_header(policy)->mode;
}

struct slice policy_fingerprint(const struct policy *policy)
{
	return slice_of(image_header(policy)->fingerprint, IMAGE_FINGERPRINT);
}

uint32_t policy_rule_count(const struct policy *policy)
{
	return image_header(policy)->rule_count;
}

struct slice policy_rule_name(const struct policy *policy, uint32_t rule)
{
	if (rule >= policy_rule_count(policy))
		return SLICE("");
	return image_slice(policy, image_rule_at(policy, rule)->name);
}

struct slice policy_rule_text(const struct policy *policy, uint32_t rule)
{
	if (rule >= policy_rule_count(policy))
		return SLICE("");
	return image_slice(policy, image_rule_at(policy, rule)->text);
}

struct slice policy_rule_to(const struct policy *policy, uint32_t rule)
{
	if (rule >= policy_rule_count(policy))
		return SLICE("");
	return image_slice(policy, image_rule_at(policy, rule)->to);
}

uint32_t policy_rule_credential(const struct policy *policy, uint32_t rule)
{
	return rule < policy_rule_count(policy) ? image_rule_at(policy, rule)->credential
	                                        : POLICY_NONE;
}

uint32_t policy_rule_wait_s(const struct policy *policy, uint32_t rule)
{
	return rule < policy_rule_count(policy) ? image_rule_at(policy, rule)->wait_s : 0;
}

struct slice policy_rule_upgrades(const struct policy *policy, uint32_t rule)
{
	if (rule >= policy_rule_count(policy))
		return SLICE("");
	return image_slice(policy, image_rule_at(policy, rule)->upgrades);
}

bool policy_rule_allows_upgrade(const struct policy *policy, uint32_t rule, struct slice protocol)
{
	struct slice list = policy_rule_upgrades(policy, rule);

	while (list.n) {
		ptrdiff_t comma = slice_find_byte(list, ',');
		size_t n = comma < 0 ? list.n : (size_t)comma;

		if (slice_equals_ignoring_case(slice_trim(slice_of(list.p, n)), protocol))
			return true;
		list = comma < 0 ? SLICE("") : slice_of(list.p + n + 1, list.n - n - 1);
	}
	return false;
}

/* Sets the bit of every port in an allow rule of one of the schemes (a mask of bits by scheme). */
static void collect_ports(const struct policy *policy, unsigned schemes, uint64_t ports[PORT_WORDS])
{
	for (uint32_t i = 0; i < image_count(policy, SECTION_ENTRIES); i++) {
		const struct image_entry *e = image_entry_at(policy, i);

		if ((schemes & 1u << e->scheme) == 0 ||
		        (image_rule_at(policy, e->rule)->flags & RULE_DENY) != 0)
			continue;
		for (uint32_t r = 0; r < e->range_count; r++) {
			const struct image_range *range =
			        image_range_at(policy, e->first_range + r);

			for (uint32_t port = range->low; port <= range->high; port++)
				ports[port / 64] |= UINT64_C(1) << (port % 64);
		}
	}
}

static size_t list_ports(const uint64_t ports[PORT_WORDS], uint16_t *out, size_t max)
{
	size_t count = 0;

	for (uint32_t word = 0; word < PORT_WORDS; word++)
		for (uint32_t bit = 0; bit < 64 && ports[word] >> bit; bit++) {
			if ((ports[word] >> bit & 1) == 0)
				continue;
			if (count < max)
				out[count] = (uint16_t)(word * 64 + bit);
			count++;
		}
	return count;
}

/* Refs of denies stand before those of allows. */
static bool is_allowed(const struct policy *policy, const struct image_target *target)
{
	const struct image_profile *p = image_profile_at(policy, target->profile);

	return p->ref_count > p->deny;
}

bool policy_named_next(const struct policy *policy, uint32_t *index, struct policy_named *out)
{
	while (*index < image_count(policy, SECTION_TARGETS)) {
		const struct image_target *t = image_target_at(policy, (*index)++);
		struct slice key = image_slice(policy, t->key);

		if (!is_allowed(policy, t))
			continue;
		*out = (struct policy_named){.host = SLICE(""), .below = t->kind == TARGET_GLOB};
		if (t->kind != TARGET_PREFIX) {
			out->host = key;
			return true;
		}
		out->network.base.family = key.p[0];
		out->network.bits = (uint8_t)key.p[1];
		memcpy(out->network.base.bytes, key.p + 2, sizeof(out->network.base.bytes));
		return true;
	}
	return false;
}

size_t policy_udp_ports(const struct policy *policy, uint16_t *out, size_t max)
{
	uint64_t ports[PORT_WORDS] = {0};

	collect_ports(policy, 1u << POLICY_UDP, ports);
	return list_ports(ports, out, max);
}

size_t policy_tcp_ports(const struct policy *policy, uint16_t *out, size_t max)
{
	uint64_t ports[PORT_WORDS] = {0};
	size_t count;

	/* mode observe also lets through what no rule names, on any port */
	if (policy_mode(policy) == POLICY_OBSERVE)
		return SIZE_MAX;
	collect_ports(policy, 1u << POLICY_HTTPS | 1u << POLICY_HTTP | 1u << POLICY_TCP, ports);
	count = list_ports(ports, out, max);
	return count == UINT16_MAX ? SIZE_MAX : count;
}

uint32_t policy_credential_count(const struct policy *policy)
{
	return image_count(policy, SECTION_CREDENTIALS);
}

/* Splits "NAME SHAPE LENGTH"; none of the three parts has a blank. Any other text is a variable's
 * name alone. */
static void read_env(struct slice text, struct policy_credential *out)
{
	ptrdiff_t first = slice_find_byte(text, ' '), second;
	struct slice shape;
	uint64_t n;

	out->env = text;
	if (first < 0)
		return;
	out->env = slice_of(text.p, (size_t)first);
	shape = slice_of(text.p + first + 1, text.n - (size_t)first - 1);
	second = slice_find_byte(shape, ' ');
	if (second < 0 ||
	        !slice_to_u64(slice_of(shape.p + second + 1, shape.n - (size_t)second - 1),
	                PLACEHOLDER_MAX, &n))
		return;
	shape.n = (size_t)second;
	if (placeholder_check_shape(shape) || n < placeholder_shape_min(shape))
		return;
	out->placeholder = shape;
	out->placeholder_n = (uint32_t)n;
}

void policy_credential(const struct policy *policy, uint32_t index, struct policy_credential *out)
{
	const struct image_text *arg = image_section(policy, SECTION_ARGS);
	const struct image_credential *c;

	memset(out, 0, sizeof(*out));
	if (index >= policy_credential_count(policy))
		return;
	c = image_credential_at(policy, index);
	out->name = image_slice(policy, c->name);
	out->inject = (enum policy_inject)c->inject;
	out->field = image_slice(policy, c->field);
	out->prefix = image_slice(policy, c->prefix);
	out->username = image_slice(policy, c->username);
	read_env(image_slice(policy, c->env), out);
	out->source = (enum policy_source)c->source;
	out->location = image_slice(policy, c->location);
	out->argc = c->arg_count;
	for (uint32_t i = 0; i < c->arg_count; i++)
		out->argv[i] = image_slice(policy, arg[c->first_arg + i]);
	out->ttl_s = c->ttl_s;
	out->timeout_ms = c->timeout_ms;
	out->require = c->require;
}

bool policy_argument_is_file(struct slice argument, struct slice *path)
{
	static const char *const starts[] = {
	        "token=file:", "secret_id=file:", "client_secret=file:", "subject_token=file:",
	        "key=file:", "jwt=file:", "private_key=file:", "refresh_token=file:", "keys=file:",
	        "web_identity_token=file:", "federated_token=file:"};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct slice start = slice_from_string(starts[i]);

		if (!slice_starts_with(argument, start))
			continue;
		*path = slice_of(argument.p + start.n, argument.n - start.n);
		return true;
	}
	return false;
}

bool policy_argument_is_url(struct slice argument, struct slice *url)
{
	const ptrdiff_t end = slice_find_byte(argument, '=');

	if (end < 0 || !slice_ends_with(slice_of(argument.p, (size_t)end), SLICE("_url")))
		return false;
	*url = slice_of(argument.p + end + 1, argument.n - (size_t)end - 1);
	return true;
}

bool policy_credential_file(
        const struct policy_credential *credential, size_t i, struct slice *path)
{
	if (credential->source == POLICY_SOURCE_FILE) {
		*path = credential->location;
		return i == 0;
	}
	if (credential->source != POLICY_SOURCE_FETCH)
		return false;
	for (size_t k = 1; k < credential->argc; k++)
		if (policy_argument_is_file(credential->argv[k], path) && i-- == 0)
			return true;
	return false;
}

bool policy_credential_equals(
        const struct policy *a, uint32_t i, const struct policy *b, uint32_t j)
{
	struct policy_credential x, y;

	policy_credential(a, i, &x);
	policy_credential(b, j, &y);
	for (size_t k = 0; x.argc == y.argc && k < x.argc; k++)
		if (!slice_equals(x.argv[k], y.argv[k]))
			return false;
	return x.argc == y.argc && slice_equals(x.name, y.name) && x.inject == y.inject &&
	       slice_equals(x.field, y.field) && slice_equals(x.prefix, y.prefix) &&
	       slice_equals(x.username, y.username) && slice_equals(x.env, y.env) &&
	       slice_equals(x.placeholder, y.placeholder) && x.placeholder_n == y.placeholder_n &&
	       x.source == y.source && slice_equals(x.location, y.location) && x.ttl_s == y.ttl_s &&
	       x.timeout_ms == y.timeout_ms && x.require == y.require;
}
