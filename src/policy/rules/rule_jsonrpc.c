/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a rule asks of a JSON-RPC 2.0 body: the key jsonrpc, with methods and params. It
 * becomes conditions on each message of the body: one that it calls one of the methods, and one for
 * each of params.
 */
#include "policy/json/json_path.h"
#include "policy/rules/rule.h"

#define VERSION "2.0"

static bool take_methods(struct rule_parse *p, struct tree_node *node)
{
	struct model_condition *room = load_condition_room(p, node);

	if (!room)
		return false;
	*room = (struct model_condition){.kind = CONDITION_JSONRPC, .name = SLICE("/method")};
	if (!load_json_values(p, node, room))
		return false;
	for (size_t i = 0; i < room->value_count; i++) {
		char type = room->values[i].p[0];

		if (type == JSON_VALUE_TEXT || type == JSON_VALUE_ANY)
			continue;
		tree_error(
		        p->tree, node, "methods of jsonrpc are names: tools/call, \"resources/*\"");
		return false;
	}
	p->rule.condition_count++;
	return true;
}

/* A deny rule does not ask for a version: a server may accept a call without it. */
static void ask_for_version(struct rule_parse *p, const struct tree_node *node)
{
	static struct slice value = {"s" VERSION, sizeof(VERSION)};
	static struct slice written = {"\"" VERSION "\"", sizeof(VERSION) + 1};
	struct model_condition *room = load_condition_room(p, node);

	if (!room)
		return;
	*room = (struct model_condition){.kind = CONDITION_JSONRPC,
	        .name = SLICE("/jsonrpc"),
	        .values = &value,
	        .written = &written,
	        .value_count = 1};
	p->rule.condition_count++;
}

/* The conditions of params are those of json, below /params. */
static void take_params(struct rule_parse *p, const struct tree_node *node)
{
	if (!tree_is_map(p->tree, node, "params"))
		return;
	for (const struct tree_item *item = node->first; item; item = item->next) {
		struct model_condition *room = load_condition_room(p, item->key);
		struct model_condition condition = {.kind = CONDITION_JSON};

		if (!room)
			return;
		if (slice_equals(item->key->text, SLICE("*"))) {
			tree_error(p->tree, item->key, "params have no \"*\": name each of them");
			return;
		}
		if (!load_json_condition(p, item, &condition))
			return;
		condition.kind = CONDITION_JSONRPC;
		condition.name =
		        arena_printf(p->tree->arena, "/params%.*s", SLICE_ARG(condition.name));
		if (!json_path_is_sound(condition.name) || condition.name.n > POLICY_VALUE_MAX) {
			tree_error(p->tree, item->key, "the path is too long below params");
			return;
		}
		if (!load_json_is_new(p, item->key, &condition))
			return;
		*room = condition;
		p->rule.condition_count++;
	}
}

void load_rule_jsonrpc(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const keys[] = {"methods", "params", NULL};
	struct tree_node *methods = tree_get(node, "methods"), *params = tree_get(node, "params");

	if (!tree_is_map(p->tree, node, "jsonrpc") || !tree_check_keys(p->tree, node, keys, NULL))
		return;
	if (!methods) {
		tree_error(p->tree, node, "jsonrpc needs methods: {methods: [tools/list]}");
		return;
	}
	if (!take_methods(p, methods))
		return;
	if (!p->rule.deny)
		ask_for_version(p, node);
	if (params)
		take_params(p, params);
}
