/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a rule's key grpc: services and methods. They become one condition. */
#include "policy/rules/rule.h"

static bool check_name(struct rule_parse *p, const struct tree_node *node, struct slice name)
{
	char quoted[TREE_QUOTE_MAX];

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter =
		        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (letter || slice_find_byte(SLICE("._-*"), c) >= 0)
			continue;
		tree_error(p->tree, node,
		        "names of services and methods have letters, digits, \".\", \"_\" and "
		        "\"-\", and \"*\" stands for any of these; not %s; write the service "
		        "\"pkg.v1.Service\" and the method \"Get\" each under its own key",
		        tree_quote(name, quoted));
		return false;
	}
	return true;
}

void load_rule_grpc(struct rule_parse *p, const struct tree_node *node)
{
	static const char *const keys[] = {"services", "methods", NULL};
	const struct rule_names lists[] = {
	        {tree_get(node, "services"), "services", "a service's name", "service",
	                GRPC_VALUE_SERVICE, check_name, NULL},
	        {tree_get(node, "methods"), "methods", "a method's name", "method",
	                GRPC_VALUE_METHOD, check_name, NULL}};

	if (!tree_is_map(p->tree, node, "grpc") || !tree_check_keys(p->tree, node, keys, NULL))
		return;
	if (!lists[0].node && !(p->rule.deny && lists[1].node)) {
		tree_error(p->tree, node, "grpc needs services: {services: [pkg.v1.Service]}");
		return;
	}
	load_rule_names(p, CONDITION_GRPC, lists, 2);
}
