/* SPDX-License-Identifier: Apache-2.0 */
/* condition: the conditions of a rule on a request's query, header fields and body. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_CONDITION_H
#define VETHGUARD_SRC_POLICY_DECIDE_CONDITION_H

#include "policy/image/image.h"

enum condition_answer {
	CONDITION_UNMET,
	CONDITION_MET,
	CONDITION_OPEN /* it depends on a body that was not read yet */
};

/* Says if the request meets all conditions of the rule. A part that two servers could read
 * differently meets no condition of an allow rule and every condition of a deny rule. */
enum condition_answer condition_decide(const struct policy *policy,
        const struct policy_request *request, const struct image_rule *rule);
/* True if the pattern, in which '*' stands for any bytes, matches all of text. fold: letters match
 * without regard to case. */
bool condition_matches(struct slice pattern, struct slice text, bool fold);
/* True if a server may take one field name for the other. Letter case does not count, and '-'
 * equals '_', since some servers replace one by the other (RFC 3875 section 4.1.18). */
bool condition_names_alike(struct slice a, struct slice b);

#endif
