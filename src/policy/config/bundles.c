/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the section of signed bundles:
 *
 *   bundles:
 *     - name: fleet
 *       source: https://control.example/fleet.bundle
 *       keys: [fleet.pub, next.pub]
 *       refresh: 1m
 *
 * and, in other sections, the names of files in bundles, such as "bundle:fleet/agent.yaml".
 */
#include <stdlib.h>

#include "policy/config/read.h"
#include "vethguard/policy/url.h"

#define PREFIX "bundle:"
#define REFRESH_DEFAULT_MS 60000
#define REFRESH_MIN_MS 5000
#define REFRESH_MAX_MS (24u * 3600 * 1000)

/* --- names --- */

static bool is_small(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool config_bundle_is_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!is_small(name.p[i]) && !(i && name.p[i] == '-'))
			return false;
	return name.n > 0 && name.n <= CONFIG_BUNDLE_NAME_MAX;
}

bool config_bundle_is_file(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		const char c = name.p[i];

		if (!is_small(c) && !(c >= 'A' && c <= 'Z') && c != '-' && c != '_' &&
		        !(i && c == '.'))
			return false;
	}
	return name.n > strlen(".yaml") && name.n <= CONFIG_BUNDLE_FILE_MAX &&
	       (slice_ends_with(name, SLICE(".yaml")) || slice_ends_with(name, SLICE(".jwks")));
}

bool config_bundle_split(struct slice text, struct slice *name, struct slice *file)
{
	const size_t n = sizeof(PREFIX) - 1;
	ptrdiff_t slash;

	*name = *file = SLICE("");
	if (!slice_starts_with(text, SLICE(PREFIX)))
		return false;
	text = slice_of(text.p + n, text.n - n);
	slash = slice_find_byte(text, '/');
	if (slash < 0)
		return true;
	*name = slice_of(text.p, (size_t)slash);
	*file = slice_of(text.p + slash + 1, text.n - (size_t)slash - 1);
	if (!config_bundle_is_name(*name) || !config_bundle_is_file(*file))
		*name = *file = SLICE("");
	return true;
}

bool config_read_path_or_bundle(struct tree *tree, const struct tree_node *node, const char *what,
        const char *suffix, char out[PATH_MAX])
{
	char quoted[TREE_QUOTE_MAX];
	struct slice name, file;

	if (node->kind != TREE_SCALAR || !config_bundle_split(node->text, &name, &file))
		return config_read_path(tree, node, what, out);
	if (!file.n || !slice_ends_with(file, slice_from_string(suffix))) {
		tree_error(tree, node, "%s %s: a file of a bundle is named bundle:NAME/FILE%s",
		        what, tree_quote(node->text, quoted), suffix);
		return false;
	}
	memcpy(out, node->text.p, node->text.n);
	out[node->text.n] = '\0';
	return true;
}

/* --- a bundle --- */

static void read_name(struct tree *tree, const struct tree_node *node, struct config_bundle *b)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(tree, node, "name", CONFIG_BUNDLE_NAME_MAX, &text))
		return;
	if (config_bundle_is_name(text))
		memcpy(b->name, text.p, text.n);
	else
		tree_error(tree, node,
		        "name %s: a bundle's name is small letters, digits and '-', beginning with "
		        "a letter or digit",
		        tree_quote(text, quoted));
}

static void read_source(struct tree *tree, const struct tree_node *map, struct config_bundle *b)
{
	const struct tree_node *node = tree_get(map, "source"), *refresh = tree_get(map, "refresh");
	char quoted[TREE_QUOTE_MAX];
	uint64_t ms = REFRESH_DEFAULT_MS;
	struct slice text;
	struct url url;

	if (!node || node->kind != TREE_SCALAR || slice_find_byte(node->text, ':') < 0) {
		if (node)
			config_read_path(tree, node, "source", b->source);
		if (refresh)
			tree_error(tree, refresh,
			        "refresh is for the source at a URL; a file is looked at every "
			        "five seconds");
		return;
	}
	if (!tree_text(tree, node, "source", CONFIG_URL_MAX, &text) ||
	        (refresh && !tree_duration(
	                            tree, refresh, "refresh", REFRESH_MIN_MS, REFRESH_MAX_MS, &ms)))
		return;
	memcpy(b->source, text.p, text.n);
	if (url_parse(text, &url) && url.scheme == POLICY_HTTPS && slice_find_byte(text, '#') < 0)
		b->refresh_s = (uint32_t)(ms / 1000);
	else
		tree_error(tree, node, "source %s must be a path, or a URL: https://HOST/PATH",
		        tree_quote(text, quoted));
}

static void read_keys(struct tree *tree, struct tree_node *node, struct config_bundle *b)
{
	struct tree_item single;

	for (const struct tree_item *item = tree_items(tree, node, "keys", &single); item;
	        item = item->next) {
		if (b->key_count == CONFIG_BUNDLE_KEYS_MAX) {
			tree_error(tree, item->value, "more than %d keys", CONFIG_BUNDLE_KEYS_MAX);
			return;
		}
		if (config_read_path(tree, item->value, "keys", b->keys[b->key_count]))
			b->key_count++;
	}
	if (!b->key_count)
		tree_error(tree, node, "keys is empty: name the file of a public key");
}

static void read_bundle(struct tree *tree, const struct tree_node *map, struct config_bundle *b)
{
	static const char *const known[] = {"name", "source", "keys", "refresh", NULL};
	static const char *const needed[] = {"name", "source", "keys"};
	struct tree_node *node;

	if (!tree_is_map(tree, map, "a bundle"))
		return;
	tree_check_keys(tree, map, known, NULL);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!tree_get(map, needed[i]))
			tree_error(tree, map, "%s is missing", needed[i]);
	if ((node = tree_get(map, "name")))
		read_name(tree, node, b);
	read_source(tree, map, b);
	if ((node = tree_get(map, "keys")))
		read_keys(tree, node, b);
}

static bool is_configured(const struct config *c, struct slice name)
{
	for (size_t i = 0; i < c->bundle_count; i++)
		if (slice_equals(slice_from_string(c->bundles[i].name), name))
			return true;
	return false;
}

void config_read_bundles(struct tree *tree, const struct tree_node *list, struct config *config)
{
	if (!tree_is_list(tree, list, "bundles") || config->bundles)
		return;
	config->bundles = calloc(CONFIG_BUNDLES_MAX, sizeof(*config->bundles));
	if (!config->bundles) {
		tree_error(tree, list, "no memory for bundles");
		return;
	}
	for (const struct tree_item *item = list->first; item; item = item->next) {
		struct config_bundle *b = &config->bundles[config->bundle_count];

		if (config->bundle_count == CONFIG_BUNDLES_MAX) {
			tree_error(tree, item->value, "more than %d bundles", CONFIG_BUNDLES_MAX);
			return;
		}
		read_bundle(tree, item->value, b);
		if (b->name[0] && is_configured(config, slice_from_string(b->name)))
			tree_error(tree, item->value, "another bundle has this name already");
		config->bundle_count++;
	}
}

/* --- signers that name bundles --- */

static void check_name(
        struct tree *tree, const struct config *c, const struct config_signer *s, const char *text)
{
	struct slice name, file;

	if (config_bundle_split(slice_from_string(text), &name, &file) && !is_configured(c, name))
		tree_error(tree, tree->root,
		        "signer %s names %s, but there is no bundle \"%.*s\" under bundles",
		        s->name, text, SLICE_ARG(name));
}

void config_check_bundle_names(struct tree *tree, const struct config *config)
{
	for (size_t i = 0; i < config->gateway.signer_count; i++) {
		const struct config_signer *s = &config->gateway.signers[i];

		check_name(tree, config, s, s->keys);
		for (size_t k = 0; k < s->rule_count; k++)
			check_name(tree, config, s, s->rules[k].policy);
	}
}
