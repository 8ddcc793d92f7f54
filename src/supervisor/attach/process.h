/* SPDX-License-Identifier: Apache-2.0 */
/* attach_process: finding the process, or the namespace, that somebody wants to have guarded. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_PROCESS_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "supervisor/os/identity.h"

/* A pidfd of the process that started at start_time (base/process.h; 0: whichever it is). The
 * descriptor, or -errno: -ESRCH there is none, or another one has its number by now. */
int attach_process_open(pid_t pid, uint64_t start_time);
/* Its network namespace, opened with the rights of id: those of proc_pid_ns(5), which are to be of
 * the process's user and groups, or root. pidfd: of that process, looked at again afterwards, so
 * that the number cannot have changed hands. The descriptor or -errno. */
int attach_process_netns(const struct identity *id, pid_t pid, int pidfd);
/* The namespace that a file stands for, opened with the rights of id. The descriptor or -errno:
 * -EINVAL it is no network namespace; LOCAL_FILE_UNKNOWN (local_file.h): it cannot be known how
 * long opening it would take, and it was not. */
int attach_netns_open(const struct identity *id, const char *path);
/* Whether it is in the daemon's network namespace. False also where that cannot be known. pidfd: of
 * that process, looked at afterwards; negative: there is none, and the number is believed. */
bool attach_process_is_in_own_netns(pid_t pid, int pidfd);
/* True: the namespace is the daemon's own, or that of the host's first process. */
bool attach_netns_is_own(int netns);

#endif
