/* SPDX-License-Identifier: Apache-2.0 */
/* diff_layers: compares two policies without their layers. */
#ifndef VETHGUARD_SRC_POLICY_DIFF_LAYERS_H
#define VETHGUARD_SRC_POLICY_DIFF_LAYERS_H

#include "vethguard/policy/diff.h"
#include "policy/image.h"

/* Compares as policy_diff() does, without the layers inside of the policies. bounds: only what may
 * pass, whatever credential goes with it. */
int diff_alone(
        const struct policy *from, const struct policy *to, bool bounds, struct policy_diff *out);

#endif
