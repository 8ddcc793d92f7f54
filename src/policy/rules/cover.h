/* SPDX-License-Identifier: Apache-2.0 */
/* cover: which destinations of rules contain each other, or have requests in common. */
#ifndef VETHGUARD_SRC_POLICY_RULES_COVER_H
#define VETHGUARD_SRC_POLICY_RULES_COVER_H

#include "policy/load/model.h"

/* Returns the ports of a rule's destination; *one is the storage if there is only one range. */
const struct image_range *cover_ports(const struct model_rule *rule,
        const struct model_destination *d, struct image_range *one, size_t *n);
/* True if the target key outer names everything that inner names. "*.b" does not name "b" itself.
 */
bool cover_target(struct slice outer, struct slice inner);
/* True if a, a destination of x, and b, one of y, have a host and a port in common. Schemes are not
 * compared. */
bool cover_meets(const struct model_rule *x, const struct model_destination *a,
        const struct model_rule *y, const struct model_destination *b);

#endif
