/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the server of budgets that several hosts share:
 *
 *   quota:
 *     server: rediss://quota.corp.example:6379/0
 *     user: vethguard
 *     password: file:/etc/vethguard/quota.password
 *     hosts: 3
 */
#include <string.h>

#include "policy/config/read.h"
#include "policy/load/loader.h"
#include "vethguard/policy/url.h"

#define SERVER_MAX (POLICY_HOST_MAX + 32)
#define SERVER_PORT 6379

static struct slice after(struct slice text, size_t n)
{
	return slice_of(text.p + n, text.n - n);
}

/* Takes "rediss://" or "redis://" off. */
static bool take_scheme(struct slice *text, bool *tls)
{
	const struct slice plain = SLICE("redis://"), secure = SLICE("rediss://");

	*tls = slice_starts_with(*text, secure);
	if (!*tls && !slice_starts_with(*text, plain))
		return false;
	*text = after(*text, *tls ? secure.n : plain.n);
	return true;
}

static bool take_server(struct slice text, struct config_quota *out)
{
	struct url_authority authority;
	ptrdiff_t slash;
	uint64_t database = 0;

	if (!take_scheme(&text, &out->tls))
		return false;
	slash = slice_find_byte(text, '/');
	if (slash >= 0) {
		struct slice rest = after(text, (size_t)slash + 1);

		if (rest.n && !slice_to_u64(rest, CONFIG_QUOTA_DATABASE_MAX, &database))
			return false;
		text.n = (size_t)slash;
	}
	if (memchr(text.p, '@', text.n) || !url_parse_authority(text, &authority))
		return false;
	if (authority.address.family)
		ip_format(&authority.address, out->host);
	else
		memcpy(out->host, authority.host, authority.host_n);
	out->address = authority.address;
	out->port = authority.port ? authority.port : SERVER_PORT;
	out->database = (uint32_t)database;
	return true;
}

/* The text may hold a password, if somebody has written one into the URL: it is not quoted. */
static void read_server(struct tree *tree, const struct tree_node *node, struct config_quota *out)
{
	struct slice text;

	tree->secretive = true;
	if (tree_text(tree, node, "server", SERVER_MAX, &text) && !take_server(text, out))
		tree_error(tree, node,
		        "server must be redis://HOST, redis://HOST:PORT, or the same with "
		        "/DATABASE "
		        "(0 to %d) behind it; rediss:// for TLS. User and password have keys of "
		        "their own",
		        CONFIG_QUOTA_DATABASE_MAX);
	tree->secretive = false;
}

static void read_user(struct tree *tree, const struct tree_node *node, struct config_quota *out)
{
	struct slice text;

	if (!tree_text(tree, node, "user", CONFIG_QUOTA_USER_MAX, &text))
		return;
	if (memchr(text.p, ' ', text.n))
		tree_error(tree, node, "user must not hold a space");
	else
		memcpy(out->user, text.p, text.n);
}

void config_read_quota(struct tree *tree, const struct tree_node *map, struct config_quota *quota)
{
	static const char *const known[] = {"server", "user", "password", "hosts", NULL};
	static const struct tree_refusal refused[] = {
	        {"password_file", "does not exist here: write password: file:PATH"},
	        {"url", "does not exist here: write server: redis://HOST"}, {NULL, NULL}};
	const struct tree_node *node;
	uint64_t hosts;

	memset(quota, 0, sizeof(*quota));
	if (!tree_is_map(tree, map, "quota") || !tree_check_keys(tree, map, known, refused))
		return;
	if ((node = tree_get(map, "server")))
		read_server(tree, node, quota);
	else
		tree_error(tree, map, "quota needs a server: redis://HOST or rediss://HOST");
	if ((node = tree_get(map, "user")))
		read_user(tree, node, quota);
	if ((node = tree_get(map, "password")))
		config_read_key_file(tree, node, "password", quota->password_file);
	if (quota->user[0] && !tree_get(map, "password"))
		tree_error(tree, map, "user needs a password: file:PATH");
	if ((node = tree_get(map, "hosts")) &&
	        tree_uint(tree, node, "hosts", 2, CONFIG_QUOTA_HOSTS_MAX, &hosts))
		quota->hosts = (uint32_t)hosts;
}
