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

/* True if `value`, where the condition's path begins, meets the condition, which is of the kind
 * MCP_ARGUMENT. value: NULL if there is none. deny: judge as a deny rule does. */
bool condition_json_at(const struct policy *policy, const struct image_condition *condition,
        const struct json_tree *tree, const struct json_value *value, bool deny);
/* condition_mcp.c: true if the request meets the rule's condition of kind MCP and its conditions of
 * kind MCP_ARGUMENT. */
bool condition_mcp(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_graphql.c: true if the request meets the rule's condition of kind GRAPHQL. */
bool condition_graphql(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_git.c: true if the request meets the rule's condition of kind GIT. */
bool condition_git(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_grpc.c: true if the request, whose body is not read, meets the rule's condition of kind
 * GRPC. */
bool condition_grpc(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_llm.c: true if the request meets the rule's condition of kind LLM. */
bool condition_llm(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);
/* condition_grpc.c: true for a call of gRPC: its service and method. */
bool condition_grpc_call(
        const struct policy_request *request, struct slice *service, struct slice *method);
/* condition_llm.c: true if the request goes to an API of language models and names one model.
 * decoded: room for a model that the path names. */
bool condition_llm_model(const struct policy_request *request, const struct json_tree *tree,
        char decoded[POLICY_PATH_MAX], struct slice *model);
/* Judges as condition_mcp() does, for any call of request->tool. Returns true for an allow rule if
 * it could allow some call, for a deny rule if it denies each call. */
bool condition_mcp_tool(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);

#endif
