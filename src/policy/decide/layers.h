/* SPDX-License-Identifier: Apache-2.0 */
/* decide_layers: one decision without the layers of the policy. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_LAYERS_H
#define VETHGUARD_SRC_POLICY_DECIDE_LAYERS_H

#include "policy/image/image.h"

/* Decides as policy_decide() does, but only by the policy's own rules, among which are the floor's
 * deny rules and the infrastructure's rules. The images inside of the policy's do not count. */
void decide_alone(const struct policy *policy, const struct policy_request *request,
        struct policy_decision *out);

#endif
