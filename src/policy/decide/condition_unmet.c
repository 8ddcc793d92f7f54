/* SPDX-License-Identifier: Apache-2.0 */
/* Notes the words for a condition that a request does not meet. Kinds of conditions without words
 * here (mcp, graphql, llm, git, grpc) note their own. */
#include "policy/decide/condition_unmet.h"

#include "policy/decide/refusal.h"

static const struct {
	const char *what, *why;
} words[CONDITION_KIND_COUNT] = {
        [CONDITION_QUERY] = {"the query's parameter",
                "is missing, repeated, or not what the rule asks for"},
        [CONDITION_QUERY_ONLY] = {"the query", "has a parameter that the rule does not name"},
        [CONDITION_HEADER] = {"the header field",
                "is missing, repeated, or not what the rule asks for"},
        [CONDITION_FORM] = {"the form's parameter",
                "is missing, repeated, or not what the rule asks for"},
        [CONDITION_FORM_ONLY] = {"the form", "has a parameter that the rule does not name"},
        [CONDITION_JSON] = {"the body's value", "is not what the rule asks for"},
        [CONDITION_JSON_ONLY] = {"the body", "has a member that the rule does not name"},
        [CONDITION_JSONRPC] = {"the message's value", "is not what the rule asks for"},
};

void condition_note_unmet(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	if (request->refusal && (rule->flags & RULE_DENY) == 0 && words[condition->kind].what)
		refusal_note(policy, request, rule, REFUSAL_VALUE, words[condition->kind].what,
		        image_slice(policy, condition->name), words[condition->kind].why);
}
