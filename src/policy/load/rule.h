/* SPDX-License-Identifier: Apache-2.0 */
/* load_rule: one rule while the loader reads it. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_RULE_H
#define VETHGUARD_SRC_POLICY_LOAD_RULE_H

#include "policy/load/loader.h"

struct rule_parse {
	struct loader *l;
	struct tree *tree;
	const struct tree_node *node;
	struct model_rule rule;
};

/* Each reads the value of one key and reports faults. */
void load_rule_to(struct rule_parse *p, struct tree_node *to);
/* Call this after everything else in the rule was read. */
void load_rule_except(struct rule_parse *p, struct tree_node *except);
void load_rule_ports(struct rule_parse *p, struct tree_node *node);
void load_rule_methods(struct rule_parse *p, struct tree_node *node);
void load_rule_paths(struct rule_parse *p, struct tree_node *node);
/* Reads the value of query (header false) or headers (header true). */
void load_rule_conditions(struct rule_parse *p, const struct tree_node *node, bool header);
/* Call this after both, and after to. */
void load_rule_conditions_done(struct rule_parse *p);
void load_rule_upgrade(struct rule_parse *p, struct tree_node *node);

#endif
