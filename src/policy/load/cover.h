/* SPDX-License-Identifier: Apache-2.0 */
/* cover: which destinations of rules contain each other, or have requests in common. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_COVER_H
#define VETHGUARD_SRC_POLICY_LOAD_COVER_H

#include "policy/load/model.h"

/* The ports of a destination of a rule; *one is storage if there is only one. */
const struct image_range *cover_ports(const struct model_rule *rule,
        const struct model_destination *d, struct image_range *one, size_t *n);
/* True if one key of a target names everything that another names. "*.b" never names "b" itself. */
bool cover_target(struct slice outer, struct slice inner);
/* True if a, a destination of x, and b, one of y, have a host and a port in common. Schemes are not
 * compared. */
bool cover_meets(const struct model_rule *x, const struct model_destination *a,
        const struct model_rule *y, const struct model_destination *b);

#endif
