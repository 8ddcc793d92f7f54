/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's conditions on GraphQL requests: graphql, with operations, fields at their root,
 * and documents that the server keeps. They become one condition. */
#include "policy/graphql/graphql.h"
#include "policy/rules/rule.h"

static bool check_operation(struct rule_parse *p, const struct tree_node *node, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	if (graphql_operation_of(name) != GRAPHQL_OPERATION_COUNT)
		return true;
	tree_error(p->tree, node, "operations are query, mutation and subscription, not %s",
	        tree_quote(name, quoted));
	return false;
}

static bool check_field(struct rule_parse *p, const struct tree_node *node, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter =
		        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '*';

		if (letter || (i > 0 && c >= '0' && c <= '9'))
			continue;
		tree_error(p->tree, node,
		        "fields are names at the root of an operation, of letters, digits and "
		        "\"_\", where \"*\" stands for any of these; not %s",
		        tree_quote(name, quoted));
		return false;
	}
	return true;
}

void load_rule_graphql(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const keys[] = {"operations", "fields", "persisted", NULL};
	const struct rule_names lists[] = {
	        {tree_get(node, "operations"), "operations", "an operation", "operation",
	                GRAPHQL_VALUE_OPERATION, check_operation, NULL},
	        {tree_get(node, "fields"), "fields", "a field's name", "field", GRAPHQL_VALUE_FIELD,
	                check_field, NULL},
	        {tree_get(node, "persisted"), "persisted", "a document's hash or id", "persisted",
	                GRAPHQL_VALUE_PERSISTED, NULL, NULL}};

	if (!tree_is_map(p->tree, node, "graphql") || !tree_check_keys(p->tree, node, keys, NULL))
		return;
	if (!lists[0].node && !lists[1].node && !lists[2].node) {
		tree_error(p->tree, node,
		        "graphql needs operations, fields or persisted: {operations: [query]}");
		return;
	}
	load_rule_names(p, CONDITION_GRAPHQL, lists, 3);
}
