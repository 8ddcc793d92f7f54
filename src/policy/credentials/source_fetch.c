/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that are asked over HTTPS: a table of keys for each, which says what a key holds and
 * whether it is needed. A secret that such a source needs (a token, a key) lies in a file; the
 * policy has its path alone. The result is a list of words, as exec: has one: the kind, then
 * KEY=VALUE; the program vethguard-fetch reads it.
 */
#include "policy/credentials/source.h"

#define FETCH_TTL_S 300 /* where the service tells no lifetime */
#define TEXT_MAX 1024
#define WORDS_MAX 100

/* SITE: where a login is. METADATA: where a machine asks for its own identity. PART: of a path. */
enum value { URL, TEXT, FILE_OF, WORDS, LEVELS, WAY, SITE, METADATA, PART };

struct fetch_key {
	const char *name;
	enum value value;
	bool needed;
};

#define KEYS_MAX 14

static const char *const ways[] = {"basic", "post", NULL}; /* of "auth" */

#define AWS_LOGIN                                                                                \
	{"keys", FILE_OF, false}, {"web_identity_token", FILE_OF, false}, {"role", TEXT, false}, \
	        {"session_name", TEXT, false}, {"external_id", TEXT, false},                     \
	        {"sts_url", SITE, false},                                                        \
	{                                                                                        \
		"metadata_url", METADATA, false                                                  \
	}

static const struct fetch_kind {
	const char *name;
	const char *default_url; /* NULL: the policy has to say it, or load_cloud() does */
	struct fetch_key keys[KEYS_MAX];
} kinds[] = {
        {"vault", NULL,
                {{"url", URL, true}, {"path", TEXT, true}, {"field", TEXT, false},
                        {"token", FILE_OF, false}, {"role_id", TEXT, false},
                        {"secret_id", FILE_OF, false}, {"role", TEXT, false},
                        {"jwt", FILE_OF, false}, {"auth_path", TEXT, false},
                        {"namespace", TEXT, false}}},
        {"oauth2", NULL,
                {{"token_url", URL, true}, {"client_id", TEXT, true},
                        {"client_secret", FILE_OF, false}, {"private_key", FILE_OF, false},
                        {"key_id", TEXT, false}, {"refresh_token", FILE_OF, false},
                        {"auth", WAY, false}, {"scope", TEXT, false}, {"audience", TEXT, false},
                        {"resource", TEXT, false}}},
        {"token-exchange", NULL,
                {{"token_url", URL, true}, {"subject_token", FILE_OF, true},
                        {"subject_token_type", TEXT, false}, {"requested_token_type", TEXT, false},
                        {"client_id", TEXT, false}, {"scope", TEXT, false},
                        {"audience", TEXT, false}, {"resource", TEXT, false}}},
        {"github-app", "https://api.github.com",
                {{"url", URL, false}, {"app_id", TEXT, true}, {"installation_id", TEXT, true},
                        {"key", FILE_OF, true}, {"repositories", WORDS, false},
                        {"permissions", LEVELS, false}}},
        {"gcp-service-account", "https://oauth2.googleapis.com/token",
                {{"token_url", URL, false}, {"key", FILE_OF, true}, {"scope", TEXT, true},
                        {"impersonate", PART, false}, {"impersonation_url", SITE, false}}},
        {"gcp-secretmanager", "https://secretmanager.googleapis.com",
                {{"url", URL, false}, {"project", PART, true}, {"secret", PART, true},
                        {"version", PART, false}, {"field", TEXT, false}, {"key", FILE_OF, false},
                        {"token_url", SITE, false}, {"metadata_url", METADATA, false},
                        {"impersonate", PART, false}, {"impersonation_url", SITE, false}}},
        {"azure-keyvault", NULL,
                {{"url", URL, true}, {"secret", PART, true}, {"version", PART, false},
                        {"field", TEXT, false}, {"tenant_id", PART, false},
                        {"client_id", PART, false}, {"client_secret", FILE_OF, false},
                        {"federated_token", FILE_OF, false}, {"login_url", SITE, false},
                        {"metadata_url", METADATA, false}, {"resource", TEXT, false}}},
        {"aws-secretsmanager", NULL,
                {{"region", PART, true}, {"secret", TEXT, true}, {"field", TEXT, false},
                        {"version_stage", TEXT, false}, {"url", URL, false}, AWS_LOGIN}},
        {"aws-ssm", NULL,
                {{"region", PART, true}, {"name", TEXT, true}, {"field", TEXT, false},
                        {"url", URL, false}, AWS_LOGIN}},
        {"aws-role", NULL, {{"region", PART, true}, AWS_LOGIN}},
        {"1password-connect", NULL,
                {{"url", URL, true}, {"token", FILE_OF, true}, {"vault", TEXT, true},
                        {"item", TEXT, true}, {"field", TEXT, false}}},
};

static const struct fetch_kind *kind_of(struct slice word)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (slice_equals(word, slice_from_string(kinds[i].name)))
			return &kinds[i];
	return NULL;
}

bool load_is_fetched(struct slice word)
{
	return kind_of(word) != NULL;
}

static bool take_url(
        struct tree *tree, const struct tree_node *node, const char *key, struct slice *text)
{
	char quoted[TREE_QUOTE_MAX];
	struct url url;

	if (!tree_text(tree, node, key, TEXT_MAX, text))
		return false;
	if (url_parse(*text, &url) && url.scheme == POLICY_HTTPS && url.query.n == 0)
		return true;
	tree_error(tree, node, "%s %s is not an https:// URL (without user, query and fragment)",
	        key, tree_quote_value(tree, *text, quoted));
	return false;
}

/* Without TLS only an address that never leaves the link will do. */
static bool take_metadata_url(
        struct tree *tree, const struct tree_node *node, const char *key, struct slice *text)
{
	struct url url;

	if (!tree_text(tree, node, key, TEXT_MAX, text))
		return false;
	if (url_parse(*text, &url) && url.scheme == POLICY_HTTP && url.query.n == 0 &&
	        slice_equals(url.path, SLICE("/")) && url.authority.address.family &&
	        (ip_classify(&url.authority.address) == IP_METADATA ||
	                ip_classify(&url.authority.address) == IP_LINK_LOCAL))
		return true;
	tree_error(tree, node,
	        "%s has to be http://ADDRESS[:PORT] with a link-local address: "
	        "http://169.254.169.254",
	        key);
	return false;
}

static bool take_part(
        struct tree *tree, const struct tree_node *node, const char *key, struct slice *text)
{
	if (!tree_text(tree, node, key, POLICY_NAME_MAX, text))
		return false;
	for (size_t i = 0; i < text->n; i++) {
		const struct slice c = slice_of(text->p + i, 1);

		if (load_is_token(c) && *c.p != '%' ? true : *c.p == '@' || *c.p == ':')
			continue;
		tree_error(tree, node,
		        "%s has a character that no name of this service has: letters, digits, "
		        "'.', '_', '-', '@' and ':' may be in it",
		        key);
		return false;
	}
	return true;
}

/* Reads "file:PATH" of a secret. */
static bool take_secret(struct tree *tree, const struct tree_node *node, const char *key,
        struct slice policy, struct slice *text)
{
	struct slice path;

	if (!tree_text(tree, node, key, TEXT_MAX, text))
		return false;
	path = slice_starts_with(*text, SLICE("file:")) ? slice_of(text->p + 5, text->n - 5)
	                                                : SLICE("");
	if (path.n == 0 || path.p[0] == '~' || path.p[0] == ' ') {
		tree_error(tree, node,
		        "%s has to name a file: %s: \"file:PATH\"; the secret itself stands in no "
		        "policy",
		        key, key);
		return false;
	}
	path = load_join(tree->arena, policy, path);
	*text = arena_printf(tree->arena, "file:%.*s", SLICE_ARG(path));
	return !tree->arena->failed;
}

/* Joins a list, or a mapping of words to words, with commas. */
static bool take_words(
        struct tree *tree, struct tree_node *node, const char *key, bool levels, struct slice *text)
{
	struct tree_item single;
	const struct tree_item *item = NULL;
	struct slice word, level = SLICE(""), all = SLICE("");
	size_t count = 0;

	if (levels ? !tree_is_map(tree, node, key) : !(item = tree_items(tree, node, key, &single)))
		return false;
	for (item = levels ? node->first : item; item; item = item->next) {
		const struct tree_node *name = levels ? item->key : item->value;

		if (!tree_text(tree, name, key, POLICY_NAME_MAX, &word) ||
		        (levels && !tree_text(tree, item->value, key, POLICY_NAME_MAX, &level)))
			return false;
		if (!load_is_token(word) || (levels && !load_is_token(level)) ||
		        ++count > WORDS_MAX) {
			tree_error(tree, name, "%s has up to %d plain words", key, WORDS_MAX);
			return false;
		}
		all = arena_printf(tree->arena, "%.*s%s%.*s%s%.*s", SLICE_ARG(all),
		        all.n ? "," : "", SLICE_ARG(word), levels ? ":" : "", SLICE_ARG(level));
	}
	*text = all;
	return !tree->arena->failed;
}

static bool take_value(struct tree *tree, struct tree_node *node, const struct fetch_key *key,
        struct slice policy, struct policy_credential *out, struct slice *text)
{
	switch (key->value) {
	case URL:
	case SITE:
		if (!take_url(tree, node, key->name, text))
			return false;
		if (key->value == URL)
			out->location = *text;
		return true;
	case METADATA:
		return take_metadata_url(tree, node, key->name, text);
	case PART:
		return take_part(tree, node, key->name, text);
	case FILE_OF:
		return take_secret(tree, node, key->name, policy, text);
	case WAY:
		*text = node->text;
		return tree_word(tree, node, key->name, ways) >= 0;
	case WORDS:
	case LEVELS:
		return take_words(tree, node, key->name, key->value == LEVELS, text);
	default:
		return tree_text(tree, node, key->name, TEXT_MAX, text);
	}
}

/* Checks that exactly one of the three ways to log in to Vault is given. */
static void check_login(struct tree *tree, const struct tree_item *item)
{
	const struct tree_node *map = item->value;
	const int token = tree_get(map, "token") != NULL;
	const int approle =
	        (tree_get(map, "role_id") != NULL) + (tree_get(map, "secret_id") != NULL);
	const int jwt = (tree_get(map, "role") != NULL) + (tree_get(map, "jwt") != NULL);

	if (2 * token + approle + jwt != 2 || approle == 1)
		tree_error(tree, item->key,
		        "vault needs one way to log in: token; or role_id and secret_id; or role "
		        "and jwt");
}

/* Checks that the client has a secret, or a key, or is public and has a refresh token. */
static void check_client(struct tree *tree, const struct tree_item *item)
{
	const struct tree_node *map = item->value;
	const bool secret = tree_get(map, "client_secret"), key = tree_get(map, "private_key");

	if (secret && key)
		tree_error(tree, item->key, "oauth2 takes client_secret or private_key, not both");
	else if (!secret && !key && !tree_get(map, "refresh_token"))
		tree_error(tree, item->key,
		        "oauth2 needs the key client_secret, private_key or refresh_token");
	if (tree_get(map, "auth") && !secret)
		tree_error(tree, tree_get(map, "auth"), "auth needs client_secret");
	if (tree_get(map, "key_id") && !key)
		tree_error(tree, tree_get(map, "key_id"), "key_id needs private_key");
}

void load_fetch(struct tree *tree, const struct tree_item *item, struct slice policy,
        struct policy_credential *out)
{
	const struct fetch_kind *kind = kind_of(item->key->text);
	const char *known[KEYS_MAX + 1] = {NULL};
	struct slice text;

	out->source = POLICY_SOURCE_FETCH;
	out->ttl_s = FETCH_TTL_S;
	out->argv[out->argc++] = slice_from_string(kind->name);
	if (!tree_is_map(tree, item->value, kind->name))
		return;
	for (size_t i = 0; i < KEYS_MAX && kind->keys[i].name; i++)
		known[i] = kind->keys[i].name;
	tree_check_keys(tree, item->value, known, NULL);
	for (size_t i = 0; i < KEYS_MAX && kind->keys[i].name; i++) {
		const struct fetch_key *key = &kind->keys[i];
		struct tree_node *node = tree_get(item->value, key->name);

		if (!node && key->needed)
			tree_error(tree, item->key, "%s needs the key %s", kind->name, key->name);
		if (node && take_value(tree, node, key, policy, out, &text))
			out->argv[out->argc++] =
			        arena_printf(tree->arena, "%s=%.*s", key->name, SLICE_ARG(text));
	}
	if (out->location.n == 0 && kind->default_url)
		out->location = slice_from_string(kind->default_url);
	if (kind == kind_of(SLICE("vault")))
		check_login(tree, item);
	if (kind == kind_of(SLICE("oauth2")))
		check_client(tree, item);
	load_cloud(tree, item, out);
}
