/* SPDX-License-Identifier: Apache-2.0 */
/* push: the body of a request to git-receive-pack. */
#ifndef VETHGUARD_SRC_GIT_PUSH_H
#define VETHGUARD_SRC_GIT_PUSH_H

#include "vethguard/policy/git.h"

/* Reads the body into *git. Marks the updates that the body proves to lose no commits
 * (POLICY_GIT_FORWARDS). Returns NULL, or one static sentence that says why the body cannot be
 * read. The caller frees commands and options in either case. */
const char *push_read(struct policy_git *git, struct slice body);

#endif
