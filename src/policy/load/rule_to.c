/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the destinations of a rule. A list may name groups, whose destinations are shared, not
 * copied. Explanations show `to` as it was written: the first destinations, then the count of the
 * others.
 */
#include <stdio.h>

#include "policy/load/rule.h"

#define TO_TEXT_MAX 160 /* bytes of `to` kept for explanations; further ones are counted */

struct to_text {
	char text[TO_TEXT_MAX + 64];
	size_t n, shown;
	bool full;
};

#define GROUPS_LOOKED_AT 64

/* Reports an unknown group. Names in the arena are NUL-terminated. */
static void report_group(
        const struct rule_parse *p, const struct tree_node *node, struct slice name)
{
	const char *names[GROUPS_LOOKED_AT + 1] = {NULL};
	const struct diag_known groups = {names, "the groups are", "group:", NULL};
	const struct vec *keys = &p->l->group_names.keys;
	char quoted[TREE_QUOTE_MAX], hint[DIAG_HINT_MAX];

	for (size_t i = 0; i < keys->n && i < GROUPS_LOOKED_AT; i++)
		names[i] = ((const struct slice *)vec_at(keys, i))->p;
	if (keys->n == 0)
		tree_error(p->tree, node,
		        "no group %s; groups are lists under groups:", tree_quote(name, quoted));
	else
		tree_error(p->tree, node, "no group %s under groups:%s", tree_quote(name, quoted),
		        diag_hint(name, &groups, hint));
}

static void take_group(struct rule_parse *p, const struct tree_node *node, struct slice name,
        struct model_destinations *out)
{
	uint32_t id = intern_find(&p->l->group_names, name);

	if (id == UINT32_MAX)
		report_group(p, node, name);
	else
		*out = ((struct load_group *)vec_at(&p->l->groups, id))->destinations;
}

/* Notes a host with the name of a group: "to: mirrors" names a host, but the group was probably
 * meant. */
static void note_group(const struct rule_parse *p, const struct tree_node *node)
{
	const struct policy_load_options *options = p->l->options;
	char quoted[TREE_QUOTE_MAX];

	if (options && options->notes && intern_find(&p->l->group_names, node->text) != UINT32_MAX)
		diag_add(options->notes, p->tree->file, node->line, node->column,
		        "destination %s is a host here; the group of that name is \"group:%.*s\"",
		        tree_quote(node->text, quoted), SLICE_ARG(node->text));
}

static void show_destination(struct to_text *t, struct slice text)
{
	t->full = t->full || text.n + 2 > TO_TEXT_MAX - t->n;
	if (t->full)
		return;
	t->n += (size_t)snprintf(t->text + t->n, sizeof(t->text) - t->n, "%s%.*s",
	        t->shown ? ", " : "", SLICE_ARG(text));
	t->shown++;
}

/* Reads `to`: all destinations written here become the first list, each group another one. */
static void take_destinations(struct rule_parse *p, struct tree_node *to, struct to_text *shown)
{
	struct tree_item single;
	const struct tree_item *first = tree_items(p->tree, to, "to", &single);
	size_t n = to->kind == TREE_LIST ? to->count : 1;
	struct model_destinations *lists;
	struct model_destination *items;
	size_t each;

	if (!first || n > MODEL_DESTINATIONS_MAX)
		return;
	lists = arena_take(p->tree->arena, (n + 1) * sizeof(*lists));
	items = arena_take(p->tree->arena, n * LOAD_DESTINATIONS_EACH * sizeof(*items));
	if (!lists || !items)
		return;
	p->rule.lists = lists;
	p->rule.list_count = 1; /* the first list: destinations written here */
	lists[0].items = items;
	for (const struct tree_item *item = first; item; item = item->next) {
		struct slice text = item->value->text;

		if (item->value->kind == TREE_SCALAR && slice_starts_with(text, SLICE("group:")))
			take_group(p, item->value, slice_of(text.p + 6, text.n - 6),
			        &lists[p->rule.list_count++]);
		else if ((each = load_destination(
		                  p->l, p->tree, item->value, &items[lists[0].count])) > 0) {
			text = items[lists[0].count].text;
			lists[0].count += each;
			note_group(p, item->value);
		}
		show_destination(shown, text);
	}
}

static void set_to_text(struct rule_parse *p, const struct tree_node *to, struct to_text *t)
{
	size_t n = t->n, count = to->kind == TREE_LIST ? to->count : 1;

	if (t->shown < count && to->kind == TREE_LIST)
		n += (size_t)snprintf(t->text + n, sizeof(t->text) - n, "%s%zu %s",
		        t->shown ? " and " : "", count - t->shown,
		        t->shown ? "more" : "destinations");
	p->rule.to = count == 1 && p->rule.lists && p->rule.lists[0].count == 1
	                     ? p->rule.lists[0].items[0].text
	             : n ? arena_copy(p->tree->arena, slice_of(t->text, n))
	                 : to->text;
}

void load_rule_to(struct rule_parse *p, struct tree_node *to)
{
	struct to_text shown = {.n = 0};

	take_destinations(p, to, &shown);
	set_to_text(p, to, &shown);
}
