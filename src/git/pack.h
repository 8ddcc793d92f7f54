/* SPDX-License-Identifier: Apache-2.0 */
/* pack: reads the commits of a pack (gitformat-pack(5)). */
#ifndef VETHGUARD_SRC_GIT_PACK_H
#define VETHGUARD_SRC_GIT_PACK_H

#include "git/commits.h"

/* True for the beginning of a pack of version 2 or 3. */
bool pack_begins(struct slice pack);
/* Adds the pack's commits to an empty table: those that are written whole, and those that are
 * written as a difference to an earlier commit of the pack. Commits that are written as another
 * difference are left out. Returns NULL, or one static sentence that says why the pack cannot be
 * read. */
const char *pack_read(struct slice pack, struct commits *commits);

#endif
