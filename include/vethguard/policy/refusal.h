/* SPDX-License-Identifier: Apache-2.0 */
/* refusal: which part of a request an allow rule did not take, in words for whoever sent the request. */
#ifndef VETHGUARD_POLICY_REFUSAL_H
#define VETHGUARD_POLICY_REFUSAL_H

#include "vethguard/policy/policy.h"

#define POLICY_REFUSAL_MAX 1024     /* bytes, with the NUL */
#define POLICY_REFUSAL_NAME_MAX 160 /* bytes of a name from the request, escaped */
#define POLICY_REFUSAL_RULE_MAX 400 /* bytes of what the rule allows */

struct policy_refusal {
	unsigned weight; /* how far the rule agreed that noted it; 0: no rule noted anything */
	uint32_t rule;
	char text[POLICY_REFUSAL_MAX]; /* printable */
};

/* Finds what was refused of a request that policy_decide() denied with POLICY_REASON_CONDITION: of the rules that take
 * the most of it, the first one's objection, and what that rule allows. Returns false if no rule says. */
bool policy_explain_refusal(
        const struct policy *policy, const struct policy_request *request, struct policy_refusal *out);

#endif
