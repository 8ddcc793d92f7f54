/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ACLs of squid.conf: domains, networks, ports and methods. ACLs about the client are taken
 * to match the sandbox. Every other ACL is unknown, which matters only where http_access uses it.
 */
#include "policy/import/squid.h"

static const struct {
	const char *type;
	enum squid_kind kind;
} types[] = {{"dstdomain", SQUID_NAMES}, {"dst", SQUID_NETWORKS}, {"port", SQUID_PORT},
        {"method", SQUID_METHOD}, {"src", SQUID_CLIENT}, {"localip", SQUID_CLIENT},
        {"localport", SQUID_CLIENT}, {"myport", SQUID_CLIENT}, {"myportname", SQUID_CLIENT},
        {"proxy_auth", SQUID_CLIENT}, {"ident", SQUID_CLIENT}, {"arp", SQUID_CLIENT},
        {"eui64", SQUID_CLIENT}, {"srcdomain", SQUID_CLIENT}, {NULL, SQUID_UNKNOWN}};

/* The values of squid's built-in ACLs: this machine, and link-local networks. */
#define INNER(text_)                                                                  \
	{                                                                             \
		.host = {.kind = IMPORT_NETWORK, .text = {text_, sizeof(text_) - 1} } \
	}
static struct squid_value to_localhost[] = {
        INNER("127.0.0.0/8"), INNER("0.0.0.0"), INNER("[::1]"), INNER("[::]")};
static struct squid_value to_linklocal[] = {INNER("169.254.0.0/16"), INNER("[fe80::/10]")};
static struct squid_value connect_value[] = {{.method = {"CONNECT", 7}}};
#define VALUES(array)                                                             \
	{                                                                         \
		.p = (uint8_t *)(array), .n = sizeof(array) / sizeof((array)[0]), \
		.size = sizeof((array)[0])                                        \
	}

static const struct squid_acl built_in[] = {
        {.name = {"all", 3}, .kind = SQUID_ALL},
        {.name = {"localhost", 9}, .kind = SQUID_CLIENT},
        {.name = {"manager", 7}, .kind = SQUID_NOTHING},
        {.name = {"to_localhost", 12}, .kind = SQUID_NETWORKS, .values = VALUES(to_localhost)},
        {.name = {"to_linklocal", 12}, .kind = SQUID_NETWORKS, .values = VALUES(to_linklocal)},
        {.name = {"CONNECT", 7}, .kind = SQUID_METHOD, .values = VALUES(connect_value)},
};

static const struct squid_acl *find_built_in(struct slice name)
{
	for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
		if (slice_equals(name, built_in[i].name))
			return &built_in[i];
	return NULL;
}

bool squid_is_empty(const struct squid_acl *acl)
{
	return acl->at.line > 0 && acl->kind <= SQUID_CLIENT && acl->values.n == 0;
}

const struct squid_acl *squid_find(const struct vec *acls, struct slice name)
{
	for (size_t i = 0; i < acls->n; i++) {
		const struct squid_acl *acl = vec_at(acls, i);

		if (slice_equals(acl->name, name))
			return acl;
	}
	return find_built_in(name);
}

void squid_free(struct vec *acls)
{
	for (size_t i = 0; i < acls->n; i++)
		vec_fini(&((struct squid_acl *)vec_at(acls, i))->values);
	vec_fini(acls);
}

static enum squid_kind kind_of(struct slice type)
{
	for (size_t i = 0; types[i].type; i++)
		if (slice_equals(type, slice_from_string(types[i].type)))
			return types[i].kind;
	return SQUID_UNKNOWN;
}

static bool read_range(struct slice text, struct squid_value *out)
{
	ptrdiff_t dash = slice_find_byte(text, '-');
	struct slice low = dash < 0 ? text : slice_of(text.p, (size_t)dash);
	struct slice high =
	        dash < 0 ? text : slice_of(text.p + dash + 1, text.n - (size_t)dash - 1);
	uint64_t from, to;

	if (!slice_to_u64(low, UINT16_MAX, &from) || !slice_to_u64(high, UINT16_MAX, &to))
		return false;
	out->low = (uint16_t)from;
	out->high = (uint16_t)to;
	return from <= to;
}

/* ".x" means x and every name below it. */
static bool read_domain(
        struct import *im, struct import_place at, struct slice text, struct import_host *out)
{
	bool dot = text.n > 1 && text.p[0] == '.';

	if (dot)
		text = slice_of(text.p + 1, text.n - 1);
	if (!import_read_host(im, at, text, false, out))
		return false;
	if (dot && out->kind == IMPORT_NAME)
		out->kind = IMPORT_BELOW;
	return out->kind == IMPORT_NAME || out->kind == IMPORT_BELOW;
}

/* Returns false if the value is not understood; the whole ACL is unknown then. */
static bool read_value(
        struct import *im, enum squid_kind kind, struct slice text, struct squid_value *out)
{
	if (text.n == 0 || text.p[0] == '-' || text.p[0] == '/')
		return false; /* a flag, or a file */
	switch (kind) {
	case SQUID_NAMES:
		return read_domain(im, out->at, text, &out->host);
	case SQUID_NETWORKS:
		if (slice_equals(text, SLICE("all")) || slice_find_byte(text, '-') >= 0)
			return false;
		return import_read_host(im, out->at, text, false, &out->host) &&
		       out->host.kind == IMPORT_NETWORK;
	case SQUID_PORT:
		return read_range(text, out);
	case SQUID_METHOD:
		return import_method(im, text, &out->method);
	default:
		return true;
	}
}

static struct squid_acl *make(struct import *im, struct vec *acls, struct import_place at,
        struct slice name, enum squid_kind kind)
{
	const struct squid_acl *base = find_built_in(name);
	struct squid_acl acl = {.kind = kind};

	for (size_t i = 0; i < acls->n; i++) {
		struct squid_acl *old = vec_at(acls, i);

		if (slice_equals(old->name, name)) {
			if (old->kind != kind)
				old->kind = SQUID_UNKNOWN;
			return old;
		}
	}
	if (acls->n == SQUID_ACLS_MAX) {
		import_fault(im, at, "more than %d ACLs", SQUID_ACLS_MAX);
		return NULL;
	}
	acl.name = arena_copy(&im->arena, name);
	acl.at = base ? base->at : at;
	vec_init(&acl.values, sizeof(struct squid_value));
	/* A line about a built-in ACL adds to its values. */
	if (base && base->kind == kind && base->values.n &&
	        !vec_append(&acl.values, base->values.p, base->values.n)) {
		im->no_memory = true;
		return NULL;
	}
	if (!vec_append(acls, &acl, 1)) {
		vec_fini(&acl.values);
		im->no_memory = true;
		return NULL;
	}
	return vec_at(acls, acls->n - 1);
}

void squid_read_acl(struct import *im, struct vec *acls, struct import_place at,
        const struct import_word *words, size_t count)
{
	struct squid_acl *acl;

	if (count < 3) {
		import_fault(im, at, "an ACL is \"acl NAME TYPE VALUE...\"");
		return;
	}
	acl = make(im, acls, at, words[1].text, kind_of(words[2].text));
	for (size_t i = 3; acl && i < count && acl->kind != SQUID_UNKNOWN; i++) {
		struct squid_value value = {.at = {at.line, words[i].column}};

		if (acl->values.n == SQUID_VALUES_MAX) {
			import_fault(im, at, "more than %d values in one ACL", SQUID_VALUES_MAX);
			return;
		}
		if (!read_value(im, acl->kind, words[i].text, &value))
			acl->kind = SQUID_UNKNOWN;
		else if (!vec_append(&acl->values, &value, 1))
			im->no_memory = true;
	}
}
