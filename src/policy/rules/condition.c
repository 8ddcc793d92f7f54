/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of conditions share: room in the rule, and a value in words. */
#include "policy/rules/rule.h"

struct slice load_condition_quote(struct arena *arena, struct slice text)
{
	struct slice out = SLICE("\"");

	for (;;) {
		ptrdiff_t at = slice_find_byte(text, '"');

		if (at < 0)
			return arena_printf(arena, "%.*s%.*s\"", SLICE_ARG(out), SLICE_ARG(text));
		out = arena_printf(arena, "%.*s%.*s\"\"", SLICE_ARG(out), (int)at, text.p);
		text = slice_of(text.p + at + 1, text.n - (size_t)at - 1);
	}
}

struct model_condition *load_condition_room(struct rule_parse *p, const struct tree_node *node)
{
	struct model_rule *r = &p->rule;

	if (r->condition_count == MODEL_CONDITIONS_MAX) {
		tree_error(
		        p->tree, node, "more than %d conditions in one rule", MODEL_CONDITIONS_MAX);
		return NULL;
	}
	if (!r->conditions)
		r->conditions =
		        arena_take(p->tree->arena, MODEL_CONDITIONS_MAX * sizeof(*r->conditions));
	return r->conditions ? &r->conditions[r->condition_count] : NULL;
}
