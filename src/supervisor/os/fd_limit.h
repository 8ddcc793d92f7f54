/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_files: the daemon's descriptors. Each sandbox takes some for as long as it is there, and
 * what is there must not lose its next worker because there is one sandbox too many: so some are
 * kept for those that are there, and whoever attaches is refused before that.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_FD_LIMIT_H
#define VETHGUARD_SRC_SUPERVISOR_OS_FD_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Of one sandbox: its worker's socket, pidfd and stderr, its ring's file and two doorbells, the
 * gate's namespace and copies of dropped packets, the process that it stands for; and one to spare.
 */
#define FD_LIMIT_EACH 10
#define FD_LIMIT_KEPT \
	192 /* workers, roles and calls to come: a reload of all, eight at a time, too */

/* As many as so many sandboxes take, each with a second worker beside the first now and then, where
 * CAP_SYS_RESOURCE is there to raise the hard limit; else up to the hard limit. */
void fd_limit_raise(unsigned sandboxes);
/* True: there are enough for another sandbox. */
bool fd_limit_left(void);
uint64_t fd_limit_get(void);

#endif
