/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident: what the guard runs on stays in memory. Pages of programs and libraries that nobody has
 * used for a while are the first that a machine gives up, because a sandbox takes all there is or
 * to have some to spare, and the next attachment, or the next stop of a sandbox, would wait for a
 * disk.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_MLOCK_H
#define VETHGUARD_SRC_SUPERVISOR_OS_MLOCK_H

#include <stddef.h>

#define MLOCK_MIB 64 /* of all files together; they take 12 */
#define MLOCK_MAX ((size_t)MLOCK_MIB << 20)

/* Keeps a file in memory until this process ends, with its pages read. 0 or -errno: ENOMEM the
 * limit of locked memory (CAP_IPC_LOCK knows none) or MLOCK_MAX. */
int mlock_file(const char *path);
/* This program, the libraries it has loaded, and the others of this build by their names
 * (spawn_find), up to NULL. What cannot be kept is told once, and is no reason not to go on. */
void mlock_programs(const char *const names[]);

#endif
