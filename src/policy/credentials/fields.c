/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials that are sent in several fields, by templates, and those that sign (hmac). A template
 * may use only the names that are known in its place. The names that it uses are noted, because a
 * credential that no template names would never be sent.
 */
#include "policy/credentials/source.h"

#define FIELD_MAX 64
#define TEMPLATE_MAX 1024
#define USERNAME_MAX 256

static bool check_field_name(struct tree *tree, const struct tree_node *node, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	if (!load_is_token(name))
		tree_error(tree, node, "header %s is not a field name",
		        tree_quote_value(tree, name, quoted));
	else if (!load_header_is_free(name))
		tree_error(tree, node,
		        "header \"%.*s\" steers the connection and cannot carry a credential",
		        SLICE_ARG(name));
	else
		return true;
	return false;
}

bool load_check_field(struct tree *tree, const struct tree_node *node, struct slice name)
{
	if (name.n > FIELD_MAX) {
		tree_error(tree, node, "a header's name has at most %d bytes", FIELD_MAX);
		return false;
	}
	return check_field_name(tree, node, name);
}

static bool check_template(struct tree *tree, const struct tree_node *node, struct slice text,
        const char *const names[], unsigned *used)
{
	const struct diag_known known = {names, "the names are", "${", "}"};
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];
	struct slice literal, name;
	unsigned pieces = 0;

	while (policy_template_next(&text, &literal, &name)) {
		size_t i = 0;

		while (names[i] && !slice_equals(name, slice_from_string(names[i])))
			i++;
		if (!literal.n && !names[i]) {
			tree_error(tree, node, "\"${...}\" in a template cannot name %s%s",
			        name.n ? tree_quote_value(tree, name, quoted) : "nothing",
			        diag_hint(name, &known, hint));
			return false;
		}
		if (!literal.n)
			*used |= 1u << i;
		if (++pieces > POLICY_TEMPLATE_PIECES_MAX) {
			tree_error(tree, node, "a template has more than %d parts",
			        POLICY_TEMPLATE_PIECES_MAX);
			return false;
		}
	}
	if (text.n)
		tree_error(tree, node, "a template has \"${\" without \"}\" behind it");
	return !text.n;
}

static char alike(char c)
{
	return c == '_' ? '-' : (char)(c | 0x20);
}

/* True if an earlier item of the mapping has this field; some servers take '_' for '-'. */
static bool is_repeated(const struct tree_node *map, const struct tree_item *item)
{
	for (const struct tree_item *at = map->first; at != item; at = at->next) {
		struct slice a = at->key->text, b = item->key->text;
		bool same = a.n == b.n;

		for (size_t i = 0; same && i < a.n; i++)
			same = alike(a.p[i]) == alike(b.p[i]);
		if (same)
			return true;
	}
	return false;
}

/* headers: {NAME: TEMPLATE, ...}. False: reported. */
static bool take_fields(struct tree *tree, const struct tree_node *node, const char *const names[],
        unsigned *used, struct slice *out)
{
	if (!tree_is_map(tree, node, "headers"))
		return false;
	if (!node->count || node->count > POLICY_FIELDS_MAX) {
		tree_error(tree, node, "headers has %zu fields; 1 to %d are possible", node->count,
		        POLICY_FIELDS_MAX);
		return false;
	}
	for (const struct tree_item *item = node->first; item; item = item->next) {
		struct slice text;

		if (!load_check_field(tree, item->key, item->key->text))
			return false;
		if (is_repeated(node, item)) {
			tree_error(tree, item->key, "header \"%.*s\" appears twice",
			        SLICE_ARG(item->key->text));
			return false;
		}
		if (!tree_text(tree, item->value, "a template", TEMPLATE_MAX, &text) ||
		        !check_template(tree, item->value, text, names, used))
			return false;
		*out = arena_printf(tree->arena, "%.*s%s%.*s: %.*s", SLICE_ARG(*out),
		        out->n ? "\n" : "", SLICE_ARG(item->key->text), SLICE_ARG(text));
	}
	return true;
}

/* node: the place that errors about a template with ${username} point to. */
static void take_username(struct tree *tree, const struct tree_node *map,
        const struct tree_node *node, bool used, struct policy_credential *out)
{
	const struct tree_node *username = tree_get(map, "username");

	if (used && !username)
		tree_error(tree, node, "a template has ${username}, but there is no username");
	else if (username && !used)
		tree_error(tree, username, "no template has ${username}");
	else if (username)
		tree_text(tree, username, "username", USERNAME_MAX, &out->username);
}

void load_headers(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	static const char *const names[] = {"value", "username", NULL};
	enum { VALUE = 1, USERNAME = 2 };
	const struct tree_node *node = tree_get(map, "headers");
	unsigned used = 0;

	out->inject = POLICY_INJECT_FIELDS;
	if (tree_get(map, "header") || tree_get(map, "prefix"))
		tree_error(tree, node, "headers stands instead of header and prefix");
	if (!take_fields(tree, node, names, &used, &out->prefix))
		return;
	if (!(used & VALUE))
		tree_error(tree, node, "no template has ${value}, so the credential is not sent");
	take_username(tree, map, node, used & USERNAME, out);
}

/* --- hmac --- */

/* Returns the word of an optional key, or the first allowed word. */
static const char *take_word(
        struct tree *tree, const struct tree_node *map, const char *key, const char *const words[])
{
	const struct tree_node *node = tree_get(map, key);
	int word = node ? tree_word(tree, node, key, words) : 0;

	return words[word < 0 ? 0 : word];
}

/* Returns the parameter's name, or empty. */
static struct slice take_query(struct tree *tree, const struct tree_node *map)
{
	const struct tree_node *node = tree_get(map, "query");
	struct slice name = SLICE("");
	char quoted[TREE_QUOTE_MAX];

	if (node && tree_text(tree, node, "query", POLICY_NAME_MAX, &name) && !load_is_token(name))
		tree_error(tree, node, "query %s is not a parameter's name",
		        tree_quote_value(tree, name, quoted));
	return name;
}

void load_hmac(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	static const char *const signs[] = {"username", "method", "host", "path", "query", "target",
	        "timestamp", "timestamp-ms", "body", "body-sha256", NULL};
	static const char *const sends[] = {
	        "username", "signature", "timestamp", "timestamp-ms", NULL};
	static const char *const encodings[] = {"hex", "base64", NULL};
	static const char *const secrets[] = {"text", "base64", "hex", NULL};
	enum { USERNAME = 1, SIGNATURE = 2 };
	const struct tree_node *node = tree_get(map, "sign"), *headers = tree_get(map, "headers");
	const char *encoding = take_word(tree, map, "encoding", encodings);
	const char *secret = take_word(tree, map, "secret-encoding", secrets);
	struct slice query = take_query(tree, map), text = SLICE("");
	unsigned signed_names = 0, sent = 0;

	if (!node)
		tree_error(tree, map,
		        "inject: hmac needs what is signed: sign: "
		        "\"${timestamp}${method}${target}${body}\"");
	else if (!tree_text(tree, node, "sign", TEMPLATE_MAX, &text) ||
	         !check_template(tree, node, text, signs, &signed_names))
		return;
	if (headers && !take_fields(tree, headers, sends, &sent, &out->prefix))
		return;
	if (!query.n && !(sent & SIGNATURE))
		tree_error(tree, headers ? headers : map,
		        "the signature is sent nowhere: no template of headers has ${signature}, "
		        "and "
		        "there is no query");
	take_username(tree, map, headers && sent & USERNAME ? headers : node,
	        (signed_names | sent) & USERNAME, out);
	out->field = arena_printf(tree->arena, "%s %s %.*s %.*s", encoding, secret,
	        SLICE_ARG(query), SLICE_ARG(text));
}

/* --- placeholder --- */

void load_places(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	static const char *const places[] = {
	        "header", "basic", "query", "path", "form", "json", "multipart", "websocket", NULL};
	struct tree_node *node = tree_get(map, "in");
	struct tree_item single;
	bool taken[sizeof(places) / sizeof(*places) - 1] = {false};

	if (!tree_get(map, "env") && out->source != POLICY_SOURCE_SEALED)
		tree_error(tree, map,
		        "inject: placeholder needs the variable that holds the placeholder: env: "
		        "API_KEY");
	if (!node) {
		tree_error(tree, map,
		        "inject: placeholder needs the places where it is replaced: in: [header, "
		        "basic, query, ...]");
		return;
	}
	for (const struct tree_item *item = tree_items(tree, node, "in", &single); item;
	        item = item->next) {
		const struct tree_node *value = item->value;
		int word;

		word = tree_word(tree, value, "in", places);
		if (word < 0)
			return;
		taken[word] = true;
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (taken[i])
			out->field = arena_printf(tree->arena, "%.*s%s%s", SLICE_ARG(out->field),
			        out->field.n ? " " : "", places[i]);
}
