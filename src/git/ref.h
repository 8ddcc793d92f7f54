/* SPDX-License-Identifier: Apache-2.0 */
/* ref: names of refs, as git-check-ref-format(1) allows them. */
#ifndef VETHGUARD_SRC_GIT_REF_H
#define VETHGUARD_SRC_GIT_REF_H

#include "vethguard/base/slice.h"

/* True for "refs/", two or more components, and nothing that git refuses in a name. */
bool ref_is_sound(struct slice ref);

#endif
