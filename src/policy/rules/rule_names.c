/* SPDX-License-Identifier: Apache-2.0 */
/* Reads several lists of names into one condition. Each value begins with the byte of its list. */
#include "policy/rules/rule.h"

static size_t count_of(const struct tree_node *node)
{
	return !node ? 0 : node->kind == TREE_LIST ? node->count : 1;
}

static bool take_list(
        struct rule_parse *p, const struct rule_names *list, struct model_condition *out)
{
	struct arena *arena = p->tree->arena;
	struct tree_item single;
	const struct tree_item *item = tree_items(p->tree, list->node, list->key, &single);
	size_t first = out->value_count;

	for (; item; item = item->next) {
		struct slice name, quoted;

		if (!tree_text(p->tree, item->value, list->what, POLICY_VALUE_MAX, &name))
			return false;
		if (list->check && !list->check(p, item->value, name))
			return false;
		if (list->take && !list->take(p, item->value, &name))
			return false;
		out->values[out->value_count] =
		        arena_printf(arena, "%c%.*s", list->type, SLICE_ARG(name));
		quoted = load_condition_quote(arena, name);
		out->written[out->value_count] =
		        out->value_count > first
		                ? quoted
		                : arena_printf(arena, "%s%s %.*s", first ? "; " : "", list->word,
		                          SLICE_ARG(quoted));
		out->value_count++;
	}
	return out->value_count > 0;
}

bool load_rule_names(struct rule_parse *p, enum image_condition_kind kind,
        const struct rule_names *lists, size_t count)
{
	const struct tree_node *first = NULL;
	struct model_condition *room;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (!first)
			first = lists[i].node;
		n += count_of(lists[i].node);
		if (count_of(lists[i].node) <= MODEL_VALUES_MAX)
			continue;
		tree_error(
		        p->tree, lists[i].node, "more than %d names in one list", MODEL_VALUES_MAX);
		return false;
	}
	room = first ? load_condition_room(p, first) : NULL;
	if (!room)
		return false;
	*room = (struct model_condition){.kind = kind};
	room->values = arena_take(p->tree->arena, (n + 1) * sizeof(*room->values));
	room->written = arena_take(p->tree->arena, (n + 1) * sizeof(*room->written));
	if (!room->values || !room->written)
		return false;
	for (size_t i = 0; i < count; i++)
		if (lists[i].node && !take_list(p, &lists[i], room))
			return false;
	p->rule.condition_count++;
	return true;
}
