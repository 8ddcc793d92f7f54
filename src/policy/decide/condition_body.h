/* SPDX-License-Identifier: Apache-2.0 */
/* condition_body: what a rule asks of a request's body. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_CONDITION_BODY_H
#define VETHGUARD_SRC_POLICY_DECIDE_CONDITION_BODY_H

#include "policy/decide/condition.h"
#include "vethguard/policy/json.h"

/* True if the JSON text meets the condition, which is of the kind JSON, JSON_ONLY or
 * JSONRPC. */
bool condition_json(const struct policy *policy, const struct image_rule *rule,
        const struct image_condition *condition, const struct json_tree *tree);

/* The same of one value, from which the condition's path leads on; NULL: there is none. */
bool condition_json_at(const struct policy *policy, const struct image_condition *condition,
        const struct json_tree *tree, const struct json_value *value, bool deny);
/* condition_mcp.c: true if the request meets the rule's condition of kind MCP, and what the
 * rule says of arguments. */
bool condition_mcp(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_graphql.c: true if the request meets the rule's condition of kind GRAPHQL. */
bool condition_graphql(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_llm.c: the same of the kind LLM. */
bool condition_llm(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_mcp(), for request->tool: true for an allow rule if some call of that tool may pass,
 * for a deny rule if none may. */
bool condition_mcp_tool(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);

#endif
