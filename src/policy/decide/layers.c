/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the policy decides first, by its own rules, the infrastructure's rules and
 * the floor's deny rules, which the loader has put among them. Two more decisions may follow, each
 * by an image inside of the policy's (policy/image/layers.c):
 * - What the policy lets pass has to match an allow rule of the floor, in mode observe too. What a
 *   rule of the infrastructure has let pass need not.
 * - What did not simply pass (it was denied, asked about or observed) is decided again, by the
 *   rules of the infrastructure and the floor's deny rules alone.
 * For a policy without these images all of this costs one comparison. Requests for vethguard itself
 * (POLICY_OWN_HOST) are decided by the policy alone.
 */
#include "policy/decide/layers.h"

static bool is_let_pass(const struct policy_decision *d)
{
	return d->verdict == POLICY_ALLOW && !d->observed && !d->asks;
}

static void refuse(struct policy_decision *out, enum policy_reason reason, bool needs_body)
{
	*out = (struct policy_decision){.verdict = POLICY_DENY,
	        .reason = reason,
	        .rule = POLICY_NONE,
	        .credential = POLICY_NONE,
	        .needs_body = needs_body};
}

/* Narrows what the policy lets pass, asks about or observes to what the floor allows. */
static void hold_to_floor(const struct policy *floor, const struct policy_request *request,
        struct policy_decision *out)
{
	struct policy_decision d;

	decide_alone(floor, request, &d);
	if (d.needs_body) {
		refuse(out, POLICY_REASON_CONDITION, true);
	} else if (d.verdict != POLICY_ALLOW) {
		refuse(out, POLICY_REASON_FLOOR, false);
	} else {
		out->floor_rule = d.rule + 1;
		out->passthrough &= d.passthrough;
		out->lists_tools |= d.lists_tools;
		out->needs_messages |= d.needs_messages;
	}
}

/* Lets pass what the infrastructure's rules allow, whatever the policy says. */
static void let_infrastructure_pass(const struct policy *infrastructure,
        const struct policy_request *request, struct policy_decision *out)
{
	struct policy_decision d;

	decide_alone(infrastructure, request, &d);
	if (d.verdict == POLICY_ALLOW)
		*out = d;
	else if (d.needs_body)
		refuse(out, POLICY_REASON_CONDITION, true);
}

static void decide_layers(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	struct policy_request again = *request;
	struct policy layer;

	again.refusal = NULL; /* it names rules of the policy itself */
	if (is_let_pass(out) && policy_rule_layer(policy, out->rule) == POLICY_LAYER_INFRASTRUCTURE)
		return;
	if (out->verdict == POLICY_ALLOW && policy_floor(policy, &layer))
		hold_to_floor(&layer, &again, out);
	if (!is_let_pass(out) && out->reason != POLICY_REASON_BAD_REQUEST &&
	        policy_infrastructure(policy, &layer))
		let_infrastructure_pass(&layer, &again, out);
}

void policy_decide(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out)
{
	decide_alone(policy, request, out);
	if (image_has_layers(policy) && !slice_equals(request->host, SLICE(POLICY_OWN_HOST)))
		decide_layers(policy, request, out);
}
