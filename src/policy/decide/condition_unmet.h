/* SPDX-License-Identifier: Apache-2.0 */
/* condition_unmet: says which condition of an allow rule a request does not meet. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_CONDITION_UNMET_H
#define VETHGUARD_SRC_POLICY_DECIDE_CONDITION_UNMET_H

#include "policy/image/image.h"

/* Notes the condition of an allow rule in request->refusal, if that is not NULL. */
void condition_note_unmet(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition);

#endif
