/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's conditions: the keys query and headers. */
#include <stdlib.h>

#include "policy/load/rule.h"
#include "policy/load/variables.h"

#define OTHERS "*" /* the name that stands for every parameter that the rule does not name */

/* Reads the patterns of one condition. */
static bool take_values(
        struct rule_parse *p, struct tree_node *node, const char *what, struct model_condition *out)
{
	struct tree_item single;
	const struct tree_item *item = tree_items(p->tree, node, what, &single);
	size_t n = node->kind == TREE_LIST ? node->count : 1;

	if (!item)
		return false;
	if (n > MODEL_VALUES_MAX) {
		tree_error(p->tree, node, "more than %d values in one condition", MODEL_VALUES_MAX);
		return false;
	}
	out->values = arena_take(p->tree->arena, n * sizeof(*out->values));
	for (; item && out->values; item = item->next) {
		struct slice *value = &out->values[out->value_count];

		if (!tree_text(p->tree, item->value, what, POLICY_VALUE_MAX, value) ||
		        !variables_in_value(p->l, p->tree, item->value, value))
			return false;
		out->value_count++;
	}
	return out->values != NULL;
}

/* False, with a report, if a server may take the name for another one of the rule: then every
 * request would be ambiguous. */
static bool is_new(
        struct rule_parse *p, const struct tree_node *key, const struct model_condition *c)
{
	for (size_t i = 0; i < p->rule.condition_count; i++) {
		const struct model_condition *other = &p->rule.conditions[i];
		bool alike = other->kind == c->kind &&
		             (url_parameter_resembles(other->name, c->name) ||
		                     url_parameter_resembles(c->name, other->name));

		if (!alike)
			continue;
		tree_error(p->tree, key,
		        "\"%.*s\" and \"%.*s\" are the same to some servers; name one of them",
		        SLICE_ARG(other->name), SLICE_ARG(c->name));
		return false;
	}
	return true;
}

static bool check_name(
        struct rule_parse *p, const struct tree_node *key, struct slice name, bool header)
{
	char quoted[TREE_QUOTE_MAX];

	if (header && !load_is_token(name))
		tree_error(p->tree, key, "header %s is no field name", tree_quote(name, quoted));
	else if (header && !load_header_is_free(name))
		tree_error(p->tree, key,
		        "header \"%.*s\" steers the connection, and vethguard writes it anew; a "
		        "condition on it would not hold for what is sent",
		        SLICE_ARG(name));
	else if (!header &&
	         (slice_find_byte(name, '%') >= 0 || slice_find_byte(name, '&') >= 0 ||
	                 slice_find_byte(name, '=') >= 0 || slice_find_byte(name, '+') >= 0))
		tree_error(p->tree, key,
		        "parameter %s: write one parameter's name, decoded, without \"=\" and "
		        "value",
		        tree_quote(name, quoted));
	else
		return true;
	return false;
}

/* "*": ~ says that there are no other parameters. */
static bool take_others(struct rule_parse *p, const struct tree_item *item, bool header,
        struct model_condition *out)
{
	if (header)
		tree_error(p->tree, item->key,
		        "\"*\" stands for all other parameters of a query; clients send header "
		        "fields that no rule names, so name each");
	else if (p->rule.deny)
		tree_error(p->tree, item->key,
		        "\"*\" belongs to allow rules: a deny rule names the parameters that it "
		        "denies");
	else if (!tree_is_null(item->value))
		tree_error(p->tree, item->value,
		        "\"*\": write \"*\": ~ for \"no other parameters\", or leave it out");
	else {
		out->kind = CONDITION_QUERY_ONLY;
		out->need = CONDITION_ABSENT;
		return true;
	}
	return false;
}

static bool take_condition(struct rule_parse *p, const struct tree_item *item, bool header,
        struct model_condition *out)
{
	struct slice name;

	if (!tree_text(p->tree, item->key, header ? "a field's name" : "a parameter's name",
	            POLICY_VALUE_MAX, &name))
		return false;
	if (slice_equals(name, SLICE(OTHERS)))
		return take_others(p, item, header, out);
	out->kind = header ? CONDITION_HEADER : CONDITION_QUERY;
	out->name = name;
	if (!check_name(p, item->key, name, header) || !is_new(p, item->key, out))
		return false;
	if (tree_is_null(item->value)) {
		out->need = CONDITION_ABSENT;
		return true;
	}
	return take_values(p, item->value, header ? "a field's value" : "a parameter's value", out);
}

void load_rule_conditions(struct rule_parse *p, const struct tree_node *node, bool header)
{
	const char *key = header ? "headers" : "query";

	if (!tree_is_map(p->tree, node, key))
		return;
	if (!node->first)
		tree_error(p->tree, node, "%s is empty; leave it out for any %s", key,
		        header ? "header fields" : "query");
	for (const struct tree_item *item = node->first; item; item = item->next) {
		struct model_condition condition = {.kind = CONDITION_QUERY};

		if (p->rule.condition_count == MODEL_CONDITIONS_MAX) {
			tree_error(p->tree, item->key, "more than %d conditions in one rule",
			        MODEL_CONDITIONS_MAX);
			return;
		}
		if (!p->rule.conditions)
			p->rule.conditions = arena_take(
			        p->tree->arena, MODEL_CONDITIONS_MAX * sizeof(*p->rule.conditions));
		if (!p->rule.conditions)
			return;
		if (take_condition(p, item, header, &condition))
			p->rule.conditions[p->rule.condition_count++] = condition;
	}
}

static int compare_conditions(const void *a, const void *b)
{
	const struct model_condition *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int by_name = n ? memcmp(x->name.p, y->name.p, n) : 0;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return by_name ? by_name : x->name.n < y->name.n ? -1 : x->name.n > y->name.n;
}

/* "query page = "1*" or "2", no other query". Appends such words to text. */
static struct slice describe(
        struct arena *arena, struct slice text, const struct model_condition *c)
{
	const char *kind = c->kind == CONDITION_HEADER ? "header" : "query";

	if (text.n)
		text = arena_printf(arena, "%.*s, ", SLICE_ARG(text));
	if (c->kind == CONDITION_QUERY_ONLY)
		return arena_printf(arena, "%.*sno other query", SLICE_ARG(text));
	if (c->need == CONDITION_ABSENT)
		return arena_printf(
		        arena, "%.*sno %s %.*s", SLICE_ARG(text), kind, SLICE_ARG(c->name));
	text = arena_printf(arena, "%.*s%s %.*s =", SLICE_ARG(text), kind, SLICE_ARG(c->name));
	for (size_t i = 0; i < c->value_count; i++)
		text = arena_printf(arena, "%.*s%s \"%.*s\"", SLICE_ARG(text), i ? " or" : "",
		        SLICE_ARG(c->values[i]));
	return text;
}

void load_rule_conditions_done(struct rule_parse *p)
{
	struct model_rule *r = &p->rule;

	if (r->condition_count == 0)
		return;
	qsort(r->conditions, r->condition_count, sizeof(*r->conditions), compare_conditions);
	for (size_t i = 0; i < r->condition_count; i++)
		r->conditions_text =
		        describe(p->tree->arena, r->conditions_text, &r->conditions[i]);
	r->to = arena_printf(
	        p->tree->arena, "%.*s where %.*s", SLICE_ARG(r->to), SLICE_ARG(r->conditions_text));
}
