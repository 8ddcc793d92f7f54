/* SPDX-License-Identifier: Apache-2.0 */
/* fetch: the body of a request to git-upload-pack. */
#ifndef VETHGUARD_SRC_GIT_FETCH_H
#define VETHGUARD_SRC_GIT_FETCH_H

#include "vethguard/base/slice.h"

/* True if the body asks for refs or objects as git does, and for nothing that is not known here. */
bool fetch_is_sound(struct slice body);

#endif
