/* SPDX-License-Identifier: Apache-2.0 */
/* attach_process: finds the process or namespace to be guarded. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_PROCESS_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "supervisor/os/identity.h"

/* Opens a pidfd of the process that started at start_time (base/process.h; 0: any). Returns the
 * descriptor, or -errno; -ESRCH: there is none, or another process has its pid by now. */
int attach_process_open(pid_t pid, uint64_t start_time);
/* Opens its network namespace with the rights of id, as proc_pid_ns(5) demands: the process's user
 * and groups, or root. pidfd: of that process; it is checked afterwards, so that the pid cannot
 * have been reused. Returns the descriptor or -errno. */
int attach_process_netns(const struct identity *id, pid_t pid, int pidfd);
/* Opens the namespace that a file stands for, with the rights of id. Returns the descriptor or
 * -errno; -EINVAL: it is no network namespace; LOCAL_FILE_UNKNOWN (local_file.h): opening it might
 * not end, so it was not opened. */
int attach_netns_open(const struct identity *id, const char *path);
/* Returns whether it is in the daemon's network namespace; false if that cannot be known. pidfd: of
 * that process, checked afterwards; negative: there is none, and the pid is trusted. */
bool attach_process_is_in_own_netns(pid_t pid, int pidfd);
/* Returns true if the namespace is the daemon's own, or that of the host's first process. */
bool attach_netns_is_own(int netns);

#endif
