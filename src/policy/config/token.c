/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token that holds the key of the operator's CA:
 *
 *   ca:
 *     key: "pkcs11:token=company;object=node"
 *     token: {module: /usr/lib/softhsm/libsofthsm2.so, pin: "file:/etc/vethguard/pin"}
 */
#include "policy/config/read.h"
#include "policy/credentials/source.h"

#include "vethguard/wire/pkcs11_uri.h"

_Static_assert(sizeof(((struct config_token *)0)->uri) == PKCS11_URI_MAX + 1, "the longest fits");

bool config_add_text(struct config_texts *texts, struct slice name, struct slice value)
{
	const size_t need = name.n + (name.n > 0) + value.n + 1;

	if (texts->count == CONFIG_TOKEN_ARGV_MAX || need > sizeof(texts->text) - texts->bytes)
		return false;
	snprintf(texts->text + texts->bytes, need, "%.*s%s%.*s", SLICE_ARG(name), name.n ? "=" : "",
	        SLICE_ARG(value));
	texts->bytes += need;
	texts->count++;
	return true;
}

const char *config_token_text(const struct config_texts *texts, size_t i)
{
	const char *at = texts->text;

	while (i-- > 0)
		at += strlen(at) + 1;
	return at;
}

void config_read_token_key(
        struct tree *tree, const struct tree_node *node, struct slice text, struct config *config)
{
	struct pkcs11_uri uri;
	const char *why = pkcs11_uri_parse(text, &uri);

	if (why)
		tree_error(tree, node, "key: this pkcs11: URI (RFC 7512) cannot be used: %s", why);
	else
		snprintf(config->ca.token.uri, sizeof(config->ca.token.uri), "%.*s",
		        SLICE_ARG(text));
}

static void read_pin(struct tree *tree, const struct tree_node *node, struct config_token *out)
{
	struct policy_credential source = {0};

	tree->secretive = true;
	load_source_value(tree, node, slice_from_string(tree->file), &source);
	tree->secretive = false;
	if (source.source == POLICY_SOURCE_FILE && source.location.n < sizeof(out->pin_file)) {
		snprintf(out->pin_file, sizeof(out->pin_file), "%.*s", SLICE_ARG(source.location));
		return;
	}
	if (source.source != POLICY_SOURCE_EXEC && !tree->wrong)
		tree_error(tree, node, "pin has to be file:PATH or exec:[program, argument, ...]");
	for (size_t i = 0; source.source == POLICY_SOURCE_EXEC && i < source.argc; i++)
		if (!config_add_text(&out->pin_program, SLICE(""), source.argv[i])) {
			tree_error(
			        tree, node, "the program and its arguments are too long together");
			return;
		}
}

static void read_environment(
        struct tree *tree, const struct tree_node *map, struct config_token *out)
{
	struct slice value;

	if (!tree_is_map(tree, map, "environment"))
		return;
	for (const struct tree_item *item = map->first; item; item = item->next) {
		if (!load_check_variable(tree, item->key, "environment:", item->key->text) ||
		        !tree_text(tree, item->value, "environment", PATH_MAX / 2, &value))
			continue;
		if (slice_starts_with(item->key->text, SLICE("LD_")))
			tree_error(tree, item->key,
			        "environment: variables of the loader (LD_...) are "
			        "not for the module");
		else if (out->environment.count == CONFIG_TOKEN_TEXTS_MAX ||
		         !config_add_text(&out->environment, item->key->text, value))
			tree_error(tree, map,
			        "environment: at most %d variables, 2,048 bytes in all",
			        CONFIG_TOKEN_TEXTS_MAX);
	}
}

static void read_writable(struct tree *tree, struct tree_node *list, struct config_token *out)
{
	struct tree_item single;
	const struct tree_item *item = tree_items(tree, list, "writable", &single);
	char path[PATH_MAX];

	for (; item; item = item->next) {
		if (!config_read_path(tree, item->value, "writable", path))
			continue;
		if (path[1] == '\0')
			tree_error(tree, item->value,
			        "writable: name the folder of the tokens, not /");
		else if (out->writable.count == CONFIG_TOKEN_TEXTS_MAX ||
		         !config_add_text(&out->writable, SLICE(""), slice_from_string(path)))
			tree_error(tree, list, "writable: at most %d paths, 2,048 bytes in all",
			        CONFIG_TOKEN_TEXTS_MAX);
	}
}

static void read_user(struct tree *tree, const struct tree_node *node, struct config_token *out)
{
	struct slice text;

	if (!tree_text(tree, node, "user", sizeof(out->user) - 1, &text))
		return;
	if (slice_equals(text, SLICE("root")))
		tree_error(
		        tree, node, "user: the module is a stranger's code and never runs as root");
	else
		snprintf(out->user, sizeof(out->user), "%.*s", SLICE_ARG(text));
}

void config_read_token(struct tree *tree, const struct tree_node *map, struct config *config)
{
	static const char *const known[] = {
	        "module", "pin", "timeout", "user", "environment", "writable", NULL};
	struct config_token *out = &config->ca.token;
	struct tree_node *node;
	uint64_t ms;

	out->pin_timeout_ms = CONFIG_PIN_TIMEOUT_MS;
	if (!tree_is_map(tree, map, "token"))
		return;
	tree_check_keys(tree, map, known, NULL);
	if ((node = tree_get(map, "module")))
		config_read_path(tree, node, "module", out->module);
	else
		tree_error(tree, map,
		        "token: module is missing: the path of the token's library, such "
		        "as /usr/lib/softhsm/libsofthsm2.so");
	if ((node = tree_get(map, "pin")))
		read_pin(tree, node, out);
	else
		tree_error(tree, map,
		        "token: pin is missing: where the user's PIN is: file:PATH or "
		        "exec:[...]");
	if ((node = tree_get(map, "timeout")) &&
	        tree_duration(tree, node, "timeout", 100, 60000, &ms))
		out->pin_timeout_ms = (uint32_t)ms;
	if ((node = tree_get(map, "user")))
		read_user(tree, node, out);
	if ((node = tree_get(map, "environment")))
		read_environment(tree, node, out);
	if ((node = tree_get(map, "writable")))
		read_writable(tree, node, out);
}
