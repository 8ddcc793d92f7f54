/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the destinations of a rule. A list may name groups, whose destinations are shared, not
 * copied. Explanations show `to` as it was written: the first destinations, then the count of the
 * others.
 */
#include <stdio.h>

#include "policy/rules/cover.h"
#include "policy/rules/rule.h"

#define TO_TEXT_MAX 160 /* bytes of `to` kept for explanations; further ones are counted */

struct to_text {
	char text[TO_TEXT_MAX + 64];
	size_t n, shown;
	bool full;
};

#define GROUPS_LOOKED_AT 64
#define EXCEPT_STEPS_MAX 20000000 /* comparisons of exceptions with destinations, per rule */

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

/* Reads `to` or `except`: all destinations written there become the first list, each group another
 * one. */
static void take_destinations(struct rule_parse *p, struct tree_node *node, const char *key,
        struct model_lists *out, struct to_text *shown)
{
	struct tree_item single;
	const struct tree_item *first = tree_items(p->tree, node, key, &single);
	size_t n = node->kind == TREE_LIST ? node->count : 1;
	struct model_destinations *lists;
	struct model_destination *items;
	size_t each;

	if (!first || n > MODEL_DESTINATIONS_MAX)
		return;
	lists = arena_take(p->tree->arena, (n + 1) * sizeof(*lists));
	items = arena_take(p->tree->arena, n * LOAD_DESTINATIONS_EACH * sizeof(*items));
	if (!lists || !items)
		return;
	*out = (struct model_lists){lists, 1};
	lists[0].items = items;
	for (const struct tree_item *item = first; item; item = item->next) {
		struct slice text = item->value->text;

		if (item->value->kind == TREE_SCALAR && slice_starts_with(text, SLICE("group:")))
			take_group(p, item->value, slice_of(text.p + 6, text.n - 6),
			        &lists[out->count++]);
		else if ((each = load_destination(
		                  p->l, p->tree, item->value, &items[lists[0].count])) > 0) {
			text = items[lists[0].count].text;
			lists[0].count += each;
			note_group(p, item->value);
		}
		show_destination(shown, text);
	}
}

static struct slice text_of(const struct rule_parse *p, const struct model_lists *lists,
        const struct tree_node *node, struct to_text *t)
{
	size_t n = t->n, count = node->kind == TREE_LIST ? node->count : 1;

	if (t->shown < count && node->kind == TREE_LIST)
		n += (size_t)snprintf(t->text + n, sizeof(t->text) - n, "%s%zu %s",
		        t->shown ? " and " : "", count - t->shown,
		        t->shown ? "more" : "destinations");
	return count == 1 && lists->count && lists->lists[0].count == 1
	               ? lists->lists[0].items[0].text
	       : n ? arena_copy(p->tree->arena, slice_of(t->text, n))
	           : node->text;
}

void load_rule_to(struct rule_parse *p, struct tree_node *to)
{
	struct to_text shown = {.n = 0};

	take_destinations(p, to, "to", &p->rule.destinations, &shown);
	p->rule.to = text_of(p, &p->rule.destinations, to, &shown);
}

enum taken { TAKEN_NOTHING, TAKEN_PART, TAKEN_ALL };

/* Returns how much an exception takes from one destination of its rule. */
static enum taken taken_from(const struct model_rule *rule, const struct model_destination *to,
        const struct model_destination *d)
{
	bool same = to->scheme == d->scheme ||
	            (to->scheme == POLICY_TCP && d->scheme != POLICY_UDP) ||
	            (d->scheme == POLICY_TCP && to->scheme != POLICY_UDP);

	if (!same || !cover_target(to->key, d->key) || !cover_meets(rule, to, rule, d))
		return TAKEN_NOTHING;
	return slice_equals(to->key, d->key) && to->port == d->port && to->scheme == d->scheme
	               ? TAKEN_ALL
	               : TAKEN_PART;
}

/* Returns the most that the exception takes from any destination. When no steps are left the answer
 * is: a part. */
static enum taken taken_by(
        const struct model_rule *rule, const struct model_destination *d, uint32_t *left)
{
	enum taken most = TAKEN_NOTHING;

	for (size_t l = 0; l < rule->destinations.count; l++)
		for (size_t i = 0; i < rule->destinations.lists[l].count; i++) {
			enum taken taken =
			        taken_from(rule, &rule->destinations.lists[l].items[i], d);

			if (*left == 0)
				return TAKEN_PART;
			--*left;
			if (taken > most)
				most = taken;
		}
	return most;
}

/* Most of these are slips: a deny whose exception never applies denies more than its author thinks.
 */
static void report_exception(const struct rule_parse *p, const struct model_destination *d,
        const struct tree_node *at, enum taken taken)
{
	char quoted[TREE_QUOTE_MAX];

	tree_quote(d->text, quoted);
	if (taken == TAKEN_NOTHING)
		tree_error(p->tree, at,
		        "except %s: the rule does not deny that destination, so there is nothing "
		        "to except; name a host, network or port inside of its to, with the same "
		        "scheme",
		        quoted);
	if (taken == TAKEN_ALL)
		tree_error(p->tree, at,
		        "except %s: to names the same, so the rule would deny nothing there; "
		        "remove it from both, or except a part of it",
		        quoted);
}

static void check_exceptions(struct rule_parse *p, const struct tree_node *except)
{
	const struct model_lists *lists = &p->rule.except;
	uint32_t left = EXCEPT_STEPS_MAX;

	for (size_t l = 0; l < lists->count; l++)
		for (size_t i = 0; i < lists->lists[l].count; i++) {
			const struct model_destination *d = &lists->lists[l].items[i];
			struct tree_node at = *except;

			if (d->is_public)
				continue; /* reported elsewhere */
			if (l == 0) {
				at.line = d->mark.line;
				at.column = d->mark.column;
			}
			report_exception(p, d, &at, taken_by(&p->rule, d, &left));
		}
}

void load_rule_except(struct rule_parse *p, struct tree_node *except)
{
	struct to_text shown = {.n = 0};
	struct slice text;

	take_destinations(p, except, "except", &p->rule.except, &shown);
	text = text_of(p, &p->rule.except, except, &shown);
	p->rule.to = arena_printf(
	        p->tree->arena, "%.*s except %.*s", SLICE_ARG(p->rule.to), SLICE_ARG(text));
	check_exceptions(p, except);
}
