/* SPDX-License-Identifier: Apache-2.0 */
/* load_limits: reads limits and budgets, of the policy and of rules. */
#ifndef VETHGUARD_SRC_POLICY_RULES_LIMITS_H
#define VETHGUARD_SRC_POLICY_RULES_LIMITS_H

#include "policy/load/loader.h"

struct limits_parse {
	struct loader *l;
	struct tree *tree;
	uint32_t rule; /* index that the rule will have; POLICY_NONE: the policy itself */
	bool budget;   /* true while a budget is read */
};

/* Reads limits: and budget: of a mapping (a rule, or a whole file) into the model. Reports
 * faults. */
void load_limits(struct limits_parse *p, const struct tree_node *map);
/* Reports limits that the rule's destinations make impossible. Call this after `to` was read. */
void load_limits_check(
        const struct limits_parse *p, const struct model_rule *rule, const struct tree_node *map);

#endif
