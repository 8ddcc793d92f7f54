/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlock: keeps the programs that vethguard needs in memory. Pages of programs and libraries that
 * were not used for a while are the first that the kernel gives up, when a sandbox takes all memory
 * or to keep some free, and the next attachment, or the next end of a sandbox, would wait for a
 * disk.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_MLOCK_H
#define VETHGUARD_SRC_SUPERVISOR_OS_MLOCK_H

#include <stddef.h>

#define MLOCK_MIB 64 /* of all files together; they take 12 */
#define MLOCK_MAX ((size_t)MLOCK_MIB << 20)

/* Keeps a file in memory until this process ends, and reads its pages. Returns 0 or -errno; ENOMEM:
 * the limit of locked memory (none with CAP_IPC_LOCK) or MLOCK_MAX. */
int mlock_file(const char *path);
/* Keeps this program, its loaded libraries, and the named programs of this build (spawn_find();
 * names ends with NULL). A failure is logged once and not fatal. */
void mlock_programs(const char *const names[]);

#endif
