/* SPDX-License-Identifier: Apache-2.0 */
/* diff_layers: compares two policies without their layers. */
#ifndef VETHGUARD_SRC_POLICY_DIFF_LAYERS_H
#define VETHGUARD_SRC_POLICY_DIFF_LAYERS_H

#include "vethguard/policy/diff.h"
#include "policy/image/image.h"

/* Compares as policy_diff() does, without the images inside of the policies. bounds: compares only
 * what may pass, with any credential, and leaves the infrastructure's rules of `to` out. */
int diff_alone(
        const struct policy *from, const struct policy *to, bool bounds, struct policy_diff *out);

#endif
