/* SPDX-License-Identifier: Apache-2.0 */
/* delta: makes an object from another one and the difference (gitformat-pack(5), "Deltified
 * representation"). */
#ifndef VETHGUARD_SRC_GIT_DELTA_H
#define VETHGUARD_SRC_GIT_DELTA_H

#include "vethguard/base/slice.h"

/* Finds the size of the object that the delta makes from a base of base_n bytes. Returns false if
 * the delta is for a base of another size, or the object is larger than max bytes. */
bool delta_size(struct slice delta, size_t base_n, size_t max, size_t *out);
/* Makes the object in out, which has the room that delta_size() said. Returns false if the delta is
 * damaged. */
bool delta_apply(struct slice delta, struct slice base, uint8_t *out);

#endif
