/* SPDX-License-Identifier: Apache-2.0 */
/* A denial is decided a second time to find its words, so that other decisions do not pay for
 * them. */
#include <stdio.h>

#include "policy/decide/refusal.h"
#include "policy/image/image.h"
#include "vethguard/policy/refusal.h"

bool policy_explain_refusal(const struct policy *policy, const struct policy_request *request,
        struct policy_refusal *out)
{
	struct policy_request again = *request;
	char allows[POLICY_REFUSAL_RULE_MAX];
	struct policy_decision d;
	size_t n;

	*out = (struct policy_refusal){.rule = POLICY_NONE};
	again.refusal = out;
	policy_decide(policy, &again, &d);
	if (!out->weight || d.reason != POLICY_REASON_CONDITION)
		return false;
	out->of_value = out->weight == REFUSAL_VALUE;
	n = strlen(out->text);
	snprintf(out->text + n, sizeof(out->text) - n, "; rule \"%.*s\" allows %s",
	        SLICE_ARG(policy_rule_name(policy, out->rule)),
	        slice_escape_controls(
	                image_slice(policy, image_rule_at(policy, out->rule)->conditions), allows,
	                sizeof(allows)));
	return true;
}
