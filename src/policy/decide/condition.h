/* SPDX-License-Identifier: Apache-2.0 */
/* condition: the conditions of a rule on a request's query and header fields. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_CONDITION_H
#define VETHGUARD_SRC_POLICY_DECIDE_CONDITION_H

#include "policy/image.h"

/* True if the request meets all conditions of the rule. A part that two servers could read
 * differently meets no condition of an allow rule and every condition of a deny rule. */
bool condition_agrees(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule);
/* True if the pattern, in which '*' stands for any bytes, matches all of text. fold: letters match
 * without regard to case. */
bool condition_matches(struct slice pattern, struct slice text, bool fold);

#endif
