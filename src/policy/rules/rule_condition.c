/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's conditions: the keys query, headers, form and json. */
#include <stdlib.h>

#include "policy/load/variables.h"
#include "policy/rules/rule.h"

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
		tree_error(p->tree, key, "header %s is not a field name", tree_quote(name, quoted));
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
static bool take_others(struct rule_parse *p, const struct tree_item *item,
        enum image_condition_kind kind, struct model_condition *out)
{
	if (kind == CONDITION_HEADER)
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
		out->kind = kind == CONDITION_FORM ? CONDITION_FORM_ONLY : CONDITION_QUERY_ONLY;
		out->need = CONDITION_ABSENT;
		return true;
	}
	return false;
}

static bool take_condition(struct rule_parse *p, const struct tree_item *item,
        enum image_condition_kind kind, struct model_condition *out)
{
	bool header = kind == CONDITION_HEADER;
	struct slice name;

	if (kind == CONDITION_JSON)
		return load_json_condition(p, item, out);
	if (!tree_text(p->tree, item->key, header ? "a field's name" : "a parameter's name",
	            POLICY_VALUE_MAX, &name))
		return false;
	if (slice_equals(name, SLICE(OTHERS)))
		return take_others(p, item, kind, out);
	out->kind = kind;
	out->name = name;
	if (!check_name(p, item->key, name, header) || !is_new(p, item->key, out))
		return false;
	if (tree_is_null(item->value)) {
		out->need = CONDITION_ABSENT;
		return true;
	}
	return take_values(p, item->value, header ? "a field's value" : "a parameter's value", out);
}

static const struct {
	const char *key, *any, *word, *only; /* words of messages and descriptions */
} kinds[CONDITION_KIND_COUNT] = {
        [CONDITION_QUERY] = {"query", "query", "query", NULL},
        [CONDITION_QUERY_ONLY] = {NULL, NULL, NULL, "no other query"},
        [CONDITION_HEADER] = {"headers", "header fields", "header", NULL},
        [CONDITION_FORM] = {"form", "form", "form", NULL},
        [CONDITION_FORM_ONLY] = {NULL, NULL, NULL, "no other form"},
        [CONDITION_JSON] = {"json", "body", "json", NULL},
        [CONDITION_JSON_ONLY] = {NULL, NULL, NULL, "no other json"},
        [CONDITION_JSONRPC] = {NULL, NULL, "jsonrpc", NULL},
        [CONDITION_MCP] = {NULL, NULL, "mcp", NULL},
        [CONDITION_MCP_ARGUMENT] = {NULL, NULL, "mcp argument", NULL},
        [CONDITION_GRAPHQL] = {NULL, NULL, "graphql", NULL},
        [CONDITION_LLM] = {NULL, NULL, "llm", NULL},
        [CONDITION_GIT] = {NULL, NULL, "git", NULL},
        [CONDITION_GRPC] = {NULL, NULL, "grpc", NULL},
};

void load_rule_conditions(
        struct rule_parse *p, const struct tree_node *node, enum image_condition_kind kind)
{
	if (!tree_is_map(p->tree, node, kinds[kind].key))
		return;
	if (!node->first)
		tree_error(p->tree, node, "%s is empty; leave it out for any %s", kinds[kind].key,
		        kinds[kind].any);
	for (const struct tree_item *item = node->first; item; item = item->next) {
		struct model_condition condition = {.kind = kind};
		struct model_condition *room = load_condition_room(p, item->key);

		if (!room)
			return;
		if (take_condition(p, item, kind, &condition)) {
			*room = condition;
			p->rule.condition_count++;
		}
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

/* The name without quotes, if it has no character of the surrounding words' syntax. */
static struct slice show_name(struct arena *arena, struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (slice_find_byte(SLICE(" \"=,"), name.p[i]) >= 0)
			return load_condition_quote(arena, name);
	return name;
}

/* "query page = "1*" or "2", no other query". Appends such words to text. */
static struct slice describe(
        struct arena *arena, struct slice text, const struct model_condition *c)
{
	const char *word = kinds[c->kind].word;
	struct slice name = show_name(arena, c->name);

	if (text.n)
		text = arena_printf(arena, "%.*s, ", SLICE_ARG(text));
	if (kinds[c->kind].only)
		return arena_printf(arena, "%.*s%s", SLICE_ARG(text), kinds[c->kind].only);
	if (c->need == CONDITION_ABSENT)
		return arena_printf(
		        arena, "%.*sno %s %.*s", SLICE_ARG(text), word, SLICE_ARG(name));
	text = name.n ? arena_printf(arena, "%.*s%s %.*s =", SLICE_ARG(text), word, SLICE_ARG(name))
	              : arena_printf(arena, "%.*s%s", SLICE_ARG(text), word);
	for (size_t i = 0; i < c->value_count; i++) {
		struct slice value =
		        c->written ? c->written[i] : load_condition_quote(arena, c->values[i]);
		/* a value that begins with "; " begins the condition's next list */
		const char *between = slice_starts_with(value, SLICE("; ")) ? "" : i ? " or " : " ";

		text = arena_printf(
		        arena, "%.*s%s%.*s", SLICE_ARG(text), between, SLICE_ARG(value));
	}
	return text;
}

/* Returns the kind of body that the condition needs, in words, or NULL. A rule needs at most one
 * kind. */
static const char *body_of(enum image_condition_kind kind)
{
	switch (kind) {
	case CONDITION_FORM:
	case CONDITION_FORM_ONLY:
		return "a form";
	case CONDITION_MCP:
	case CONDITION_MCP_ARGUMENT:
		return "messages of MCP";
	case CONDITION_GRAPHQL:
		return "a GraphQL request";
	case CONDITION_GIT:
		return "a request of git";
	case CONDITION_GRPC:
		return "a call of gRPC";
	case CONDITION_JSON:
	case CONDITION_JSON_ONLY:
	case CONDITION_JSONRPC:
	case CONDITION_LLM:
		return "a JSON text";
	default:
		return NULL;
	}
}

/* Reports a rule that needs two kinds of bodies. */
static void check_bodies(struct rule_parse *p)
{
	const struct model_rule *r = &p->rule;
	const char *first = NULL;

	for (size_t i = 0; i < r->condition_count; i++) {
		const char *one = body_of(r->conditions[i].kind);

		if (!first)
			first = one;
		if (!one || one == first || strcmp(one, first) == 0)
			continue;
		tree_error(p->tree, p->node, "a body is %s or %s, never both; write two rules",
		        first, one);
		return;
	}
}

void load_rule_conditions_done(struct rule_parse *p)
{
	struct model_rule *r = &p->rule;

	if (r->condition_count == 0)
		return;
	qsort(r->conditions, r->condition_count, sizeof(*r->conditions), compare_conditions);
	check_bodies(p);
	for (size_t i = 0; i < r->condition_count; i++)
		r->conditions_text =
		        describe(p->tree->arena, r->conditions_text, &r->conditions[i]);
	r->to = arena_printf(
	        p->tree->arena, "%.*s where %.*s", SLICE_ARG(r->to), SLICE_ARG(r->conditions_text));
}
