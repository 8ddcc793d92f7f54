/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a rule's conditions on messages of the Model Context Protocol: mcp, with tools, conditions
 * on their arguments, other methods, and what becomes of tools whose descriptions change. The names
 * become one condition, and each argument becomes another one.
 */
#include "policy/json/json_path.h"
#include "policy/rules/rule.h"

static bool check_method(struct rule_parse *p, const struct tree_node *node, struct slice name)
{
	if (p->rule.deny || !slice_equals(name, SLICE("tools/call")))
		return true;
	tree_error(p->tree, node,
	        "\"tools/call\" is allowed by tools: name the tools that may be called");
	return false;
}

/* Returns false after a report for a pattern that no plain path (file_path.h) matches. */
static bool check_path(struct rule_parse *p, const struct tree_node *node, struct slice path)
{
	for (size_t at = 1; at <= path.n;) {
		size_t end = at;
		struct slice segment;
		bool stars, empty;

		while (end < path.n && path.p[end] != '/')
			end++;
		segment = slice_of(path.p + at, end - at);
		stars = segment.n > 2 && memmem(segment.p, segment.n, "**", 2);
		empty = segment.n == 0 && end < path.n;
		if (stars || empty || slice_equals(segment, SLICE(".")) ||
		        slice_equals(segment, SLICE("..")) || slice_find_byte(segment, '\\') >= 0 ||
		        slice_find_byte(segment, '%') >= 0) {
			tree_error(p->tree, node,
			        "argument \"%.*s\" begins with \"/\", so it is a pattern for "
			        "paths: "
			        "\"*\" stands for anything in a segment, \"**\" alone between "
			        "slashes for any segments, and no path with \"..\", \".\", \"//\", "
			        "a backslash or \"%%\" passes",
			        SLICE_ARG(path));
			return false;
		}
		at = end + 1;
	}
	return true;
}

/* Turns each text that begins with a slash into a pattern for paths of files. */
static bool make_paths(
        struct rule_parse *p, const struct tree_node *node, struct model_condition *c)
{
	struct arena *arena = p->tree->arena;

	for (size_t i = 0; i < c->value_count; i++) {
		struct slice text = slice_of(c->values[i].p + 1, c->values[i].n - 1);

		if (c->values[i].p[0] != JSON_VALUE_TEXT || !slice_starts_with(text, SLICE("/")))
			continue;
		if (!check_path(p, node, text))
			return false;
		c->values[i] = arena_printf(arena, "%c%.*s", JSON_VALUE_PATH, SLICE_ARG(text));
		c->written[i] = arena_printf(arena, "path %.*s", SLICE_ARG(c->written[i]));
	}
	return true;
}

/* Reads arguments:, whose conditions are written as those of json:. */
static void take_arguments(struct rule_parse *p, const struct tree_node *node)
{
	if (!tree_is_map(p->tree, node, "arguments"))
		return;
	if (!node->first)
		tree_error(p->tree, node, "arguments is empty; leave it out for any arguments");
	for (const struct tree_item *item = node->first; item; item = item->next) {
		struct model_condition *room = load_condition_room(p, item->key);
		struct model_condition condition = {.kind = CONDITION_JSON};

		if (!room)
			return;
		if (slice_equals(item->key->text, SLICE("*"))) {
			tree_error(
			        p->tree, item->key, "arguments have no \"*\": name each of them");
			return;
		}
		if (!load_json_condition(p, item, &condition))
			return;
		condition.kind = CONDITION_MCP_ARGUMENT;
		if (!load_json_is_new(p, item->key, &condition) ||
		        !make_paths(p, item->value, &condition))
			return;
		*room = condition;
		p->rule.condition_count++;
	}
}

/* Reads descriptions:, as one more value of the condition that was just made. `alert`, the default,
 * is not written. */
static void take_descriptions(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const words[] = {"alert", "block", "off", NULL};
	struct model_condition *c = &p->rule.conditions[p->rule.condition_count - 1];
	struct arena *arena = p->tree->arena;
	int word;

	if (p->rule.deny || p->rule.layer != POLICY_LAYER_POLICY) {
		tree_error(p->tree, node,
		        "descriptions belongs to rules of policies under allow: or ask:, which say "
		        "what becomes of the tools in a server's answers");
		return;
	}
	word = tree_word(p->tree, node, "descriptions", words);
	if (word <= 0)
		return;
	/* load_rule_names() makes room for one value more than there are names. */
	c->values[c->value_count] =
	        arena_printf(arena, "%c%s", MCP_VALUE_DESCRIPTIONS, words[word]);
	c->written[c->value_count++] = arena_printf(arena, "; descriptions %s", words[word]);
}

void load_rule_mcp(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const keys[] = {"tools", "arguments", "methods", "descriptions", NULL};
	struct tree_node *tools = tree_get(node, "tools"), *methods = tree_get(node, "methods");
	struct tree_node *arguments = tree_get(node, "arguments");
	struct tree_node *descriptions = tree_get(node, "descriptions");
	const struct rule_names lists[] = {
	        {tools, "tools", "a tool's name", "tool", MCP_VALUE_TOOL, NULL, NULL},
	        {methods, "methods", "a method's name", "method", MCP_VALUE_METHOD, check_method,
	                NULL}};

	if (!tree_is_map(p->tree, node, "mcp") || !tree_check_keys(p->tree, node, keys, NULL))
		return;
	if (arguments && !tools) {
		tree_error(p->tree, arguments,
		        "arguments are those of tools; name the tools too: {tools: [search], "
		        "arguments: {...}}");
		return;
	}
	if (!tools && !methods) {
		tree_error(
		        p->tree, node, "mcp needs tools or methods: {tools: [search, \"fs_*\"]}");
		return;
	}
	if (!load_rule_names(p, CONDITION_MCP, lists, 2))
		return;
	if (descriptions)
		take_descriptions(p, descriptions);
	if (arguments)
		take_arguments(p, arguments);
}
