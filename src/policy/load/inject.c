/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a credential's value is put into a request: the key inject, and the keys that go with each
 * way. A key of another way is refused, so that nobody believes it has an effect.
 */
#include <stdio.h>

#include "policy/load/source.h"

#define FIELD_MAX 64
#define USERNAME_MAX 256
#define TEMPLATE_MAX 512

#define INJECTS "bearer, basic, header, query, cookie or sigv4"

static const char *const injects[] = {
        "bearer", "basic", "header", "query", "cookie", "sigv4", NULL};
static const char *const later_injects[] = {"client-certificate", "placeholder", NULL};

/* False for fields that frame the message or control the connection: a credential in one of them
 * would break both. */
static bool header_is_free(struct slice name)
{
	static const char *const taken[] = {"host", "content-length", "transfer-encoding",
	        "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
	        "proxy-authorization", "proxy-connection", "content-encoding", "accept-encoding",
	        NULL};

	for (size_t i = 0; taken[i]; i++)
		if (slice_equals_ignoring_case(name, slice_from_string(taken[i])))
			return false;
	return true;
}

static bool check_field_name(struct tree *tree, const struct tree_node *node, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	if (!load_is_token(name))
		tree_error(tree, node, "header %s is no field name",
		        tree_quote_value(tree, name, quoted));
	else if (!header_is_free(name))
		tree_error(tree, node,
		        "header \"%.*s\" steers the connection and cannot carry a credential",
		        SLICE_ARG(name));
	else
		return true;
	return false;
}

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
		check_field_name(tree, node, out->field);
	if (prefix)
		tree_text(tree, prefix, "prefix", FIELD_MAX, &out->prefix);
}

/* What the templates of a credential name. */
struct template_use {
	bool value, username;
};

/* Checks the names in a template. */
static bool check_template(struct tree *tree, const struct tree_node *node, struct slice text,
        struct template_use *use)
{
	static const char *const names[] = {"value", "username", NULL};
	const struct diag_known known = {names, "the names are", "${", "}"};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];
	struct slice literal, name;

	while (policy_template_next(&text, &literal, &name)) {
		bool value = slice_equals(name, SLICE("value"));
		bool username = slice_equals(name, SLICE("username"));

		use->value |= value;
		use->username |= username;
		if (literal.n || value || username)
			continue;
		tree_error(tree, node, "\"${...}\" in a template cannot name %s%s",
		        name.n ? tree_quote_value(tree, name, quoted) : "nothing",
		        diag_hint(name, &known, hint));
		return false;
	}
	if (text.n)
		tree_error(tree, node, "a template has \"${\" without \"}\" behind it");
	return !text.n;
}

/* True if an earlier item of the mapping has this field; some servers take '_' for '-'. */
static bool is_repeated(const struct tree_node *map, const struct tree_item *item)
{
	for (const struct tree_item *at = map->first; at != item; at = at->next) {
		struct slice a = at->key->text, b = item->key->text;
		bool same = a.n == b.n;

		for (size_t i = 0; same && i < a.n; i++) {
			char x = a.p[i] == '_' ? '-' : (char)(a.p[i] | 0x20);
			char y = b.p[i] == '_' ? '-' : (char)(b.p[i] | 0x20);

			same = x == y;
		}
		if (same)
			return true;
	}
	return false;
}

/* headers: {NAME: TEMPLATE, ...} */
static void take_headers(struct tree *tree, const struct tree_node *map,
        const struct tree_node *node, struct policy_credential *out)
{
	struct template_use use = {0};

	out->inject = POLICY_INJECT_FIELDS;
	if (tree_get(map, "header") || tree_get(map, "prefix"))
		tree_error(tree, node, "headers stands instead of header and prefix");
	if (!tree_is_map(tree, node, "headers"))
		return;
	if (!node->count || node->count > POLICY_FIELDS_MAX) {
		tree_error(tree, node, "headers has %zu fields; 1 to %d are possible", node->count,
		        POLICY_FIELDS_MAX);
		return;
	}
	for (const struct tree_item *item = node->first; item; item = item->next) {
		struct slice text;

		if (item->key->text.n > FIELD_MAX ||
		        !check_field_name(tree, item->key, item->key->text))
			return;
		if (is_repeated(node, item)) {
			tree_error(tree, item->key, "header \"%.*s\" is there twice",
			        SLICE_ARG(item->key->text));
			return;
		}
		if (!tree_text(tree, item->value, "a template", TEMPLATE_MAX, &text) ||
		        !check_template(tree, item->value, text, &use))
			return;
		out->prefix = arena_printf(tree->arena, "%.*s%s%.*s: %.*s", SLICE_ARG(out->prefix),
		        out->prefix.n ? "\n" : "", SLICE_ARG(item->key->text), SLICE_ARG(text));
	}
	if (!use.value)
		tree_error(tree, node, "no template has ${value}, so the credential is not sent");
	if (use.username && !tree_get(map, "username"))
		tree_error(tree, node, "a template has ${username}, but there is no username");
	if (!use.username && tree_get(map, "username"))
		tree_error(tree, tree_get(map, "username"), "no template has ${username}");
	if (tree_get(map, "username"))
		tree_text(
		        tree, tree_get(map, "username"), "username", USERNAME_MAX, &out->username);
}

/* key: "query" or "cookie", whose text is the name of what carries the credential. */
static void take_named(struct tree *tree, const struct tree_node *map, const char *key,
        const char *what, const char *example, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, key);
	char quoted[TREE_QUOTE_MAX];

	if (!node)
		tree_error(tree, map, "inject: %s needs the %s's name: %s: %s", key, what, key,
		        example);
	else if (tree_text(tree, node, key, FIELD_MAX, &out->field) && !load_is_token(out->field))
		tree_error(tree, node, "%s %s is no %s's name", key,
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

/* Adds a name to a sorted list, unless it is there. False: the list is full. */
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
			        "%s %s is no name of AWS: letters, digits, \"-\", \"_\" and \".\", "
			        "as in %s",
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
	        {"service", POLICY_INJECT_SIGV4}, {"headers", POLICY_INJECT_HEADER}};
	bool fields = inject == POLICY_INJECT_HEADER && tree_get(map, "headers");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct tree_node *node = tree_get(map, keys[i].key);

		if (fields && keys[i].inject == POLICY_INJECT_BASIC)
			continue; /* the username of a template */
		if (node && keys[i].inject != inject)
			tree_error(tree, node, "%s goes with inject: %s, but inject is %s",
			        keys[i].key, injects[keys[i].inject], injects[inject]);
	}
}

void load_inject(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	const struct tree_node *node = tree_get(map, "inject");
	int word;

	if (!node) {
		tree_error(tree, map, "inject is missing: " INJECTS);
		return;
	}
	if (node->kind == TREE_SCALAR && load_is_among(node->text, later_injects)) {
		tree_error(tree, node, "inject \"%.*s\" %s; use " INJECTS, SLICE_ARG(node->text),
		        load_later);
		return;
	}
	word = tree_word(tree, node, "inject", injects);
	if (word < 0)
		return;
	out->inject = (enum policy_inject)word;
	check_belonging(tree, map, out->inject);
	if (out->inject == POLICY_INJECT_HEADER && tree_get(map, "headers"))
		take_headers(tree, map, tree_get(map, "headers"), out);
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
}
