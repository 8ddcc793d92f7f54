/* SPDX-License-Identifier: Apache-2.0 */
/* refusal: says in words for the client which part of a request an allow rule refused. */
#ifndef VETHGUARD_POLICY_REFUSAL_H
#define VETHGUARD_POLICY_REFUSAL_H

#include "vethguard/policy/policy.h"

#define POLICY_REFUSAL_MAX 1024     /* bytes, with the NUL */
#define POLICY_REFUSAL_NAME_MAX 160 /* bytes of a name from the request, escaped */
#define POLICY_REFUSAL_RULE_MAX 400 /* bytes of what the rule allows */

struct policy_refusal {
	unsigned weight; /* how far the rule agreed with the request; 0: no rule has noted anything */
	uint32_t rule;
	bool of_value; /* the rule takes the request's names, and refused an argument or another value */
	char text[POLICY_REFUSAL_MAX]; /* printable */
};

/* Finds what was refused of a request that policy_decide() denied with POLICY_REASON_CONDITION: the first objection
 * of the allow rules that agree with most of the request, and what that rule allows. False: there is none. */
bool policy_explain_refusal(
        const struct policy *policy, const struct policy_request *request, struct policy_refusal *out);

#endif
