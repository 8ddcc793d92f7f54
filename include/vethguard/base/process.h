/* SPDX-License-Identifier: Apache-2.0 */
/* process: tells a process from a later one with the same number, and resets signals in a child. */
#ifndef VETHGUARD_BASE_PROCESS_H
#define VETHGUARD_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* Field 22 of /proc/PID/stat (proc_pid_stat(5)): clock ticks from the system's start to the process's start. Returns
 * 0; -ESRCH: no such process; -EBADMSG: the file cannot be parsed; or another -errno. */
int process_start_time(pid_t pid, uint64_t *out);
/* For a child: gives every signal its default action and unblocks all. Async-signal-safe; may run on a stack that
 * AddressSanitizer does not know. */
void process_reset_signals(void);

#endif
