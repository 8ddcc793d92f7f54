/* SPDX-License-Identifier: Apache-2.0 */
/* Tells which tools of an MCP server may be called, by judging a call that was not made. */
#include "vethguard/policy/policy.h"

bool policy_may_call(
        const struct policy *policy, const struct policy_request *request, struct slice tool)
{
	struct policy_request call = *request;
	struct policy_decision decision;

	call.method = SLICE("POST");
	call.body = NULL;
	call.tool = &tool;
	policy_decide(policy, &call, &decision);
	return decision.verdict == POLICY_ALLOW;
}
