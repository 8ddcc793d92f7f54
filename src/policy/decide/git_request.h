/* SPDX-License-Identifier: Apache-2.0 */
/* git_request: what a path of git's smart HTTP protocol or of Git LFS names. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_GIT_REQUEST_H
#define VETHGUARD_SRC_POLICY_DECIDE_GIT_REQUEST_H

#include "vethguard/base/slice.h"

enum git_service {
	GIT_NONE,
	GIT_REFS, /* info/refs: which refs there are */
	GIT_FETCH,
	GIT_PUSH,
	GIT_LFS_BATCH,
	GIT_LFS_LOCKS,  /* lists or makes locks */
	GIT_LFS_VERIFY, /* lists locks before a push */
	GIT_LFS_UNLOCK,
	GIT_SERVICE_COUNT
};

/* Returns the service that the path ends with, or GIT_NONE. *repository: the path before it, with
 * the slash at the beginning, and with ".git" if that is there. fold: letters may have any case. */
enum git_service git_request_read(struct slice path, bool fold, struct slice *repository);
/* Returns the repository without ".git" at its end. */
struct slice git_request_bare(struct slice repository, bool fold);
/* True for a path that no server reads in another way: of letters, digits and "-._~+@", without an
 * empty segment. */
bool git_request_is_plain(struct slice repository);

#endif
