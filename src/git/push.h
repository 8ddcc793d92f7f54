/* SPDX-License-Identifier: Apache-2.0 */
/* push: the body of a request to git-receive-pack. */
#ifndef VETHGUARD_SRC_GIT_PUSH_H
#define VETHGUARD_SRC_GIT_PUSH_H

#include "vethguard/policy/git.h"

/* Reads the body, and proves of its updates what it can. Returns NULL; or why the body cannot be
 * read, one static sentence. The caller frees commands and options in each case. */
const char *push_read(struct policy_git *git, struct slice body);

#endif
