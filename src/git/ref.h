/* SPDX-License-Identifier: Apache-2.0 */
/* ref: names of refs, as git-check-ref-format(1) allows them. */
#ifndef VETHGUARD_SRC_GIT_REF_H
#define VETHGUARD_SRC_GIT_REF_H

#include "vethguard/base/slice.h"

/* True for "refs/" with two or more components that git allows in a ref's name; at most GIT_REF_MAX
 * bytes. */
bool ref_is_sound(struct slice ref);

#endif
