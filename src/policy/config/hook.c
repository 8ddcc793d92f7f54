/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the endpoints that are told about questions that wait for a person:
 *
 *   ask:
 *     webhook: {url: "https://chat.example/x", key: "file:key", text: '{"text": "${id}"}'}
 *     decider: {url: "https://decide.example/", key: "file:key", timeout: 5s}
 *
 * or decider: {program: [/usr/local/bin/decide], user: nobody}.
 */
#include <errno.h>

#include "policy/config/read.h"
#include "vethguard/base/buf.h"
#include "vethguard/policy/json.h"
#include "vethguard/policy/url.h"

#define TIMEOUT_MIN_MS 100

int config_hook_fill(struct slice text,
        bool (*value)(void *context, struct slice name, struct slice *out), void *context,
        struct buf *out)
{
	struct slice literal, name, with;
	int rc = 0;

	while (rc == 0 && policy_template_next(&text, &literal, &name)) {
		if (!name.n)
			rc = buf_append_slice(out, literal);
		else if (!value(context, name, &with))
			rc = -EINVAL;
		else
			rc = json_escape(out, with);
	}
	return rc ? rc : text.n ? -EINVAL : 0;
}

static bool sample(void *context, struct slice name, struct slice *out)
{
	static const char *const names[] = {
	        "kind", "id", "sandbox", "rule", "method", "url", "paths", "reason", "bytes"};

	(void)context;
	*out = SLICE("1");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_equals(name, slice_from_string(names[i])))
			return true;
	return false;
}

static void read_text(struct tree *tree, const struct tree_node *node, char *out)
{
	struct json_tree json;
	struct slice text;
	struct buf filled;
	int rc;

	if (!tree_text(tree, node, "text", CONFIG_HOOK_TEXT_MAX - 1, &text))
		return;
	buf_init(&filled, (size_t)2 * CONFIG_HOOK_TEXT_MAX);
	rc = config_hook_fill(text, sample, NULL, &filled);
	if (rc == -EINVAL) {
		tree_error(tree, node,
		        "text may have ${kind}, ${id}, ${sandbox}, ${rule}, ${method}, ${url}, "
		        "${paths}, ${reason} and ${bytes}");
	} else if (rc || json_read(&json, buf_slice(&filled)) != 0) {
		tree_error(tree, node, "text has to be JSON, with ${...} inside of strings");
	} else {
		memcpy(out, text.p, text.n);
		out[text.n] = 0;
	}
	if (rc == 0)
		json_fini(&json);
	buf_fini(&filled);
}

static void read_url(struct tree *tree, const struct tree_node *node, char *out)
{
	struct slice text;
	struct url url;

	if (!tree_text(tree, node, "url", CONFIG_HOOK_URL_MAX - 1, &text))
		return;
	if (!url_parse(text, &url) || url.scheme != POLICY_HTTPS)
		tree_error(tree, node, "url has to be https://HOST/PATH");
	else
		memcpy(out, text.p, text.n);
}

static void read_program(struct tree *tree, const struct tree_node *list, struct config_texts *out)
{
	struct slice text;

	if (!tree_is_list(tree, list, "program"))
		return;
	if (!list->count)
		tree_error(tree, list, "program has to be [/PATH, argument, ...]");
	for (const struct tree_item *item = list->first; item; item = item->next) {
		if (!tree_text(tree, item->value, "program", PATH_MAX - 1, &text))
			return;
		if (item == list->first && text.p[0] != '/')
			tree_error(tree, item->value, "program has to begin with an absolute path");
		if (config_add_text(out, SLICE(""), text))
			continue;
		tree_error(tree, list, "the program and its arguments are too long together");
		return;
	}
}

/* Reads a decider that is a program. */
static void read_decider(struct tree *tree, const struct tree_node *map, struct config_hook *out)
{
	static const char *const known[] = {"program", "user", "timeout", NULL};
	const struct tree_node *user = tree_get(map, "user");
	struct slice name;

	if (!tree_check_keys(tree, map, known, NULL))
		return;
	read_program(tree, tree_get(map, "program"), &out->program);
	if (!user)
		tree_error(tree, map, "program needs user: the name of the user who runs it");
	else if (tree_text(tree, user, "user", sizeof(out->user) - 1, &name))
		memcpy(out->user, name.p, name.n);
	if (strcmp(out->user, "root") == 0 || strcmp(out->user, "0") == 0)
		tree_error(tree, user, "a decider does not run as root");
}

static void read_timeout(struct tree *tree, const struct tree_node *map, struct config_hook *out)
{
	const struct tree_node *node = tree_get(map, "timeout");
	uint64_t ms = CONFIG_HOOK_TIMEOUT_MS;

	if (node)
		tree_duration(
		        tree, node, "timeout", TIMEOUT_MIN_MS, CONFIG_HOOK_TIMEOUT_MAX_MS, &ms);
	out->timeout_ms = (uint32_t)ms;
}

static void read_hook(struct tree *tree, const struct tree_node *map, const char *what,
        bool has_text, struct config_hook *out)
{
	static const char *const known[] = {"url", "key", "timeout", "text", NULL};
	static const char *const of_decider[] = {"url", "key", "timeout", NULL};
	const struct tree_node *node;

	if (!tree_is_map(tree, map, what))
		return;
	read_timeout(tree, map, out);
	if (!has_text && tree_get(map, "program")) {
		read_decider(tree, map, out);
		return;
	}
	if (!tree_check_keys(tree, map, has_text ? known : of_decider, NULL))
		return;
	if ((node = tree_get(map, "url")))
		read_url(tree, node, out->url);
	else
		tree_error(tree, map, "%s needs a url", what);
	if ((node = tree_get(map, "key")))
		config_read_key_file(tree, node, "key", out->key_file);
	else if (!has_text)
		tree_error(tree, map, "%s needs a key: file:PATH", what);
	if (has_text && (node = tree_get(map, "text")))
		read_text(tree, node, out->text);
}

void config_read_ask(struct tree *tree, const struct tree_node *map, struct config_ask *ask)
{
	static const char *const known[] = {"webhook", "decider", NULL};
	const struct tree_node *node;

	if (!tree_is_map(tree, map, "ask") || !tree_check_keys(tree, map, known, NULL))
		return;
	if ((node = tree_get(map, "webhook")))
		read_hook(tree, node, "webhook", true, &ask->webhook);
	if ((node = tree_get(map, "decider")))
		read_hook(tree, node, "decider", false, &ask->decider);
}
