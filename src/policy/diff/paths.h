/* SPDX-License-Identifier: Apache-2.0 */
/* paths: compares the paths of two rules by their patterns. An empty pattern means any path, which
 * is more than "/" and "**" (these match no escaped slash). */
#ifndef VETHGUARD_SRC_POLICY_DIFF_PATHS_H
#define VETHGUARD_SRC_POLICY_DIFF_PATHS_H

#include <stdbool.h>

#include "vethguard/base/slice.h"

/* True if outer matches every path that inner matches. */
bool paths_contain(struct slice outer, struct slice inner);
/* The same for allows, whose patterns with wildcards do not match every path they seem to. */
bool paths_allow_contains(struct slice outer, struct slice inner);
/* True if some path matches both. */
bool paths_meet(struct slice a, struct slice b);
/* True if a deny may refuse some path of a pattern. */
bool paths_deny_meets(struct slice deny, struct slice pattern);

#endif
