/* SPDX-License-Identifier: Apache-2.0 */
/* process: what tells one process from a later one that got its number; what a new one begins with. */
#ifndef VETHGUARD_BASE_PROCESS_H
#define VETHGUARD_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* Field 22 of /proc/PID/stat (proc_pid_stat(5)): clock ticks between the system's start and the process' own. 0;
 * -ESRCH: there is no such process; -EBADMSG: the file is not understood; -errno. */
int process_start_time(pid_t pid, uint64_t *out);
/* In a child: every signal has its default action again, and none is blocked. Async-signal-safe; may run on a stack
 * that AddressSanitizer does not know. */
void process_reset_signals(void);

#endif
