/* SPDX-License-Identifier: Apache-2.0 */
/* pack: the commits of a pack (gitformat-pack(5)). */
#ifndef VETHGUARD_SRC_GIT_PACK_H
#define VETHGUARD_SRC_GIT_PACK_H

#include "git/commits.h"

/* True for the beginning of a pack that this program knows. */
bool pack_begins(struct slice pack);
/* Adds the commits of the pack to an empty table, those included that are written as a difference
 * to an earlier commit of it. Others that are written as a difference are left out. Returns NULL;
 * or why the pack cannot be read, one static sentence. */
const char *pack_read(struct slice pack, struct commits *commits);

#endif
