/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_limit: the daemon's limit of open descriptors. Each sandbox holds some as long as it exists,
 * and an existing sandbox must not lose its next worker because there is one sandbox too many: so
 * some descriptors are reserved for existing sandboxes, and attaching is refused before they are
 * used.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_FD_LIMIT_H
#define VETHGUARD_SRC_SUPERVISOR_OS_FD_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* For one sandbox: its worker's socket, pidfd and stderr; its ring's file and two doorbells; the
 * gate's namespace and NFLOG socket; the process it stands for; and one to spare. */
#define FD_LIMIT_EACH 10
/* Reserved for new workers, roles and calls, including a reload of all, eight at a time. */
#define FD_LIMIT_KEPT 192

/* Raises the limit to what so many sandboxes need, each with a second worker now and then, if
 * CAP_SYS_RESOURCE permits raising the hard limit; else to the hard limit. */
void fd_limit_raise(unsigned sandboxes);
/* Returns true if there are enough for another sandbox. */
bool fd_limit_left(void);
uint64_t fd_limit_get(void);

#endif
