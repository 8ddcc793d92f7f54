/* SPDX-License-Identifier: Apache-2.0 */
/* Tells which tools of an MCP server may be called, and what is to be done about their
 * descriptions, by judging a call that was not made. */
#include "policy/image/image.h"
#include "vethguard/policy/tools.h"

static void decide(const struct policy *policy, const struct policy_request *request,
        struct slice tool, struct policy_decision *out)
{
	struct policy_request call = *request;

	call.method = SLICE("POST");
	call.body = NULL;
	call.tool = &tool;
	policy_decide(policy, &call, out);
}

bool policy_may_call(
        const struct policy *policy, const struct policy_request *request, struct slice tool)
{
	struct policy_decision decision;

	decide(policy, request, tool, &decision);
	return decision.verdict == POLICY_ALLOW;
}

/* Returns the rule's word for descriptions; empty: it has none. */
static struct slice word_of(const struct policy *policy, const struct image_rule *rule)
{
	const struct image_text *values = image_section(policy, SECTION_VALUES);

	for (uint32_t i = 0; i < rule->condition_count; i++) {
		const struct image_condition *c =
		        image_condition_at(policy, rule->first_condition + i);

		for (uint32_t k = 0; c->kind == CONDITION_MCP && k < c->value_count; k++) {
			struct slice value = image_slice(policy, values[c->first_value + k]);

			if (value.p[0] == MCP_VALUE_DESCRIPTIONS)
				return slice_of(value.p + 1, value.n - 1);
		}
	}
	return SLICE("");
}

enum policy_descriptions policy_tool_descriptions(
        const struct policy *policy, const struct policy_request *request, struct slice tool)
{
	struct policy_decision decision;
	struct slice word;

	decide(policy, request, tool, &decision);
	if (decision.rule >= policy_rule_count(policy))
		return POLICY_DESCRIPTIONS_ALERT;
	word = word_of(policy, image_rule_at(policy, decision.rule));
	if (slice_equals(word, SLICE("off")))
		return POLICY_DESCRIPTIONS_OFF;
	return slice_equals(word, SLICE("block")) && policy_mode(policy) != POLICY_OBSERVE
	               ? POLICY_DESCRIPTIONS_BLOCK
	               : POLICY_DESCRIPTIONS_ALERT;
}

static bool has_mcp(const struct policy *layer)
{
	for (uint32_t i = 0; i < image_count(layer, SECTION_CONDITIONS); i++)
		if (image_condition_at(layer, i)->kind == CONDITION_MCP)
			return true;
	return false;
}

/* The floor's allow rules are in an image of their own. The rules of the infrastructure are among
 * the policy's, too. */
bool policy_has_tools(const struct policy *policy)
{
	struct policy floor;

	return has_mcp(policy) || (policy_floor(policy, &floor) && has_mcp(&floor));
}
