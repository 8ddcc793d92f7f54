/* SPDX-License-Identifier: Apache-2.0 */
/* condition_body: what a rule asks of a request's body. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_CONDITION_BODY_H
#define VETHGUARD_SRC_POLICY_DECIDE_CONDITION_BODY_H

#include "policy/decide/condition.h"
#include "vethguard/policy/json.h"

/* True if the JSON text meets the condition, which is of the kind JSON, JSON_ONLY or
 * JSONRPC. */
bool condition_json(const struct policy *policy, const struct image_rule *rule,
        const struct image_condition *condition, const struct json_tree *tree);

#endif
