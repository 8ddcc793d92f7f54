/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a credential's value is put into a request: the key inject, and the keys that go with each
 * way. A key that belongs to another way is refused, so that nobody believes that it has an effect.
 */
#include <stdio.h>

#include "policy/credentials/source.h"
#include "vethguard/wire/pkcs11_uri.h"

#define FIELD_MAX 64
#define USERNAME_MAX 256
#define TOKEN_LABEL_MAX 32 /* CK_TOKEN_INFO */

#define INJECTS                                                                                \
	"bearer, basic, header, query, cookie, sigv4, hmac, placeholder, client-certificate, " \
	"postgres or docker-registry"

static const char *const injects[POLICY_INJECT_COUNT + 1] = {"bearer", "basic", "header", "query",
        "cookie", "sigv4", "hmac", "placeholder", "client-certificate", "postgres",
        "docker-registry", NULL};

static void take_header(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "header"), *prefix = tree_get(map, "prefix");

	if (!node)
		tree_error(tree, map,
		        "inject: header needs the field's name: header: x-api-key; or several: "
		        "headers: {x-api-key: \"${value}\", ...}");
	else if (!tree_text(tree, node, "header", FIELD_MAX, &out->field))
		return;
	else
		load_check_field(tree, node, out->field);
	if (prefix)
		tree_text(tree, prefix, "prefix", FIELD_MAX, &out->prefix);
}

/* key: "query" or "cookie", whose text is the name of the parameter or cookie that carries the
 * credential. */
static void take_named(struct tree *tree, const struct tree_node *map, const char *key,
        const char *what, const char *example, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, key);
	char quoted[TREE_QUOTE_MAX];

	if (!node)
		tree_error(tree, map, "inject: %s needs the %s's name: %s: %s", key, what, key,
		        example);
	else if (tree_text(tree, node, key, FIELD_MAX, &out->field) && !load_is_token(out->field))
		tree_error(tree, node, "%s %s is not a %s's name", key,
		        tree_quote_value(tree, out->field, quoted), what);
}

static void take_username(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "username");
	char quoted[TREE_QUOTE_MAX];

	if (!node || !tree_text(tree, node, "username", USERNAME_MAX, &out->username))
		return;
	if (slice_find_byte(out->username, ':') >= 0)
		tree_error(tree, node, "username %s holds \":\", which ends it (RFC 7617)",
		        tree_quote_value(tree, out->username, quoted));
}

/* Reads the user that inject: postgres logs in as. The credential's value is the password alone. */
static void take_role(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "username");

	if (!node)
		tree_error(
		        tree, map, "inject: postgres needs the user who logs in: username: agent");
	else
		tree_text(tree, node, "username", POLICY_ROLE_MAX, &out->username);
}

/* Adds a name to a sorted list, unless it is there already. Returns false if the list is full. */
static bool add_name(struct slice *list, size_t *count, struct slice name)
{
	size_t at = 0;

	while (at < *count) {
		size_t n = list[at].n < name.n ? list[at].n : name.n;
		int order = memcmp(list[at].p, name.p, n);

		if (order == 0 && list[at].n == name.n)
			return true;
		if (order > 0 || (order == 0 && list[at].n > name.n))
			break;
		at++;
	}
	if (*count == POLICY_SCOPE_NAMES_MAX)
		return false;
	memmove(list + at + 1, list + at, (*count - at) * sizeof(*list));
	list[at] = name;
	++*count;
	return true;
}

static struct slice join_names(struct arena *arena, const struct slice *list, size_t count)
{
	struct slice all = SLICE("");

	for (size_t i = 0; i < count; i++)
		all = arena_printf(
		        arena, "%.*s%s%.*s", SLICE_ARG(all), i ? " " : "", SLICE_ARG(list[i]));
	return all;
}

/* Reads region: or service:, a name or a list of names, into a sorted text with spaces between. */
static void take_scope_names(struct tree *tree, const struct tree_node *map, const char *key,
        const char *example, size_t max, struct slice *out)
{
	struct tree_node *node = tree_get(map, key);
	struct slice list[POLICY_SCOPE_NAMES_MAX];
	char quoted[TREE_QUOTE_MAX];
	struct tree_item single;
	size_t count = 0;

	if (!node) {
		tree_error(tree, map,
		        "inject: sigv4 needs the %s that requests are signed for: %s: %s, or a "
		        "list",
		        key, key, example);
		return;
	}
	for (const struct tree_item *item = tree_items(tree, node, key, &single); item;
	        item = item->next) {
		struct slice name;

		if (!tree_text(tree, item->value, key, max, &name))
			return;
		if (slice_equals(name, SLICE("*"))) {
			tree_error(tree, item->value,
			        "%s \"*\" would be every %s: name each one that is meant", key,
			        key);
			return;
		}
		if (!policy_is_scope_name(name, max)) {
			tree_error(tree, item->value,
			        "%s %s is not a name of AWS: letters, digits, \"-\", \"_\" and "
			        "\".\", as in %s",
			        key, tree_quote_value(tree, name, quoted), example);
			return;
		}
		if (!add_name(list, &count, name)) {
			tree_error(tree, item->value, "%s names more than %d", key,
			        POLICY_SCOPE_NAMES_MAX);
			return;
		}
	}
	*out = join_names(tree->arena, list, count);
}

static void take_scope(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	take_scope_names(tree, map, "region", "us-east-1", POLICY_REGION_MAX, &out->field);
	take_scope_names(tree, map, "service", "s3", POLICY_SERVICE_MAX, &out->prefix);
}

static bool is_of_hmac(const char *key)
{
	static const char *const keys[] = {"headers", "query", "username", NULL};

	return load_is_among(slice_from_string(key), keys);
}

static bool is_of_registry(const char *key)
{
	static const char *const keys[] = {"username", "service", NULL};

	return load_is_among(slice_from_string(key), keys);
}

/* Refuses keys that belong to another way of injection. */
static void check_belonging(
        struct tree *tree, const struct tree_node *map, enum policy_inject inject)
{
	static const struct {
		const char *key;
		enum policy_inject inject;
	} keys[] = {{"header", POLICY_INJECT_HEADER}, {"prefix", POLICY_INJECT_HEADER},
	        {"query", POLICY_INJECT_QUERY}, {"cookie", POLICY_INJECT_COOKIE},
	        {"username", POLICY_INJECT_BASIC}, {"region", POLICY_INJECT_SIGV4},
	        {"service", POLICY_INJECT_SIGV4}, {"headers", POLICY_INJECT_HEADER},
	        {"sign", POLICY_INJECT_HMAC}, {"encoding", POLICY_INJECT_HMAC},
	        {"secret-encoding", POLICY_INJECT_HMAC}, {"in", POLICY_INJECT_PLACEHOLDER},
	        {"realm", POLICY_INJECT_DOCKER_REGISTRY},
	        {"repositories", POLICY_INJECT_DOCKER_REGISTRY},
	        {"actions", POLICY_INJECT_DOCKER_REGISTRY},
	        {"key", POLICY_INJECT_CLIENT_CERTIFICATE}};
	bool header = inject == POLICY_INJECT_HEADER && tree_get(map, "headers");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct tree_node *node = tree_get(map, keys[i].key);

		/* A template and postgres may have a username; hmac has fields and a
		 * parameter too; docker-registry has a username and a service. */
		if (((header || inject == POLICY_INJECT_POSTGRES) &&
		            keys[i].inject == POLICY_INJECT_BASIC) ||
		        (inject == POLICY_INJECT_HMAC && is_of_hmac(keys[i].key)) ||
		        (inject == POLICY_INJECT_DOCKER_REGISTRY && is_of_registry(keys[i].key)))
			continue;
		if (node && keys[i].inject != inject)
			tree_error(tree, node, "%s needs inject: %s, but inject is %s", keys[i].key,
			        injects[keys[i].inject], injects[inject]);
	}
}

/* Reads `key`, which names the token's key of a client certificate. Without `key`, the credential's
 * value has the key. */
static void take_key(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "key");
	struct pkcs11_uri uri;
	const char *why;

	if (!node || !tree_text(tree, node, "key", PKCS11_URI_MAX, &out->field))
		return;
	if (!slice_starts_with(out->field, SLICE("pkcs11:"))) {
		tree_error(tree, node,
		        "key must be the pkcs11: URI (RFC 7512) of a key in a token; a key in a "
		        "file belongs into the source, behind the certificate");
		return;
	}
	why = pkcs11_uri_parse(out->field, &uri);
	if (why)
		tree_error(tree, node, "key: this pkcs11: URI (RFC 7512) cannot be used: %s", why);
	else if (!uri.values[PKCS11_TOKEN].given)
		tree_error(tree, node,
		        "key: the URI has to name the token by its label (token=LABEL), as tokens "
		        "of the configuration does");
	else if (uri.values[PKCS11_TOKEN].n > TOKEN_LABEL_MAX)
		tree_error(
		        tree, node, "key: a token's label has at most %d bytes", TOKEN_LABEL_MAX);
}

void load_inject(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "inject");
	int word;

	if (!node) {
		tree_error(tree, map, "inject is missing: " INJECTS);
		return;
	}
	word = tree_word(tree, node, "inject", injects);
	if (word < 0)
		return;
	out->inject = (enum policy_inject)word;
	check_belonging(tree, map, out->inject);
	if (out->inject == POLICY_INJECT_HEADER && tree_get(map, "headers"))
		load_headers(tree, map, out);
	else if (out->inject == POLICY_INJECT_HMAC)
		load_hmac(tree, map, out);
	else if (out->inject == POLICY_INJECT_PLACEHOLDER)
		load_places(tree, map, out);
	else if (out->inject == POLICY_INJECT_HEADER)
		take_header(tree, map, out);
	else if (out->inject == POLICY_INJECT_QUERY)
		take_named(tree, map, "query", "parameter", "key", out);
	else if (out->inject == POLICY_INJECT_COOKIE)
		take_named(tree, map, "cookie", "cookie", "session", out);
	else if (out->inject == POLICY_INJECT_BASIC)
		take_username(tree, map, out);
	else if (out->inject == POLICY_INJECT_SIGV4)
		take_scope(tree, map, out);
	else if (out->inject == POLICY_INJECT_CLIENT_CERTIFICATE)
		take_key(tree, map, out);
	else if (out->inject == POLICY_INJECT_POSTGRES)
		take_role(tree, map, out);
	else if (out->inject == POLICY_INJECT_DOCKER_REGISTRY) {
		take_username(tree, map, out);
		load_registry(tree, map, out);
	}
}
