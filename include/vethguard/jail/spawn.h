/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn: starts the other programs of this build. They are searched beside the running executable (build/bin), then
 * in the installation's LIBEXECDIR, never through PATH. A long-lived program holds those that it will start again,
 * because a program installed in their place meanwhile is of another version and would not understand it.
 */
#ifndef VETHGUARD_JAIL_SPAWN_H
#define VETHGUARD_JAIL_SPAWN_H

#include <sys/types.h>

/* Starts "vethguardd", "vethguard-keeper", ... with argv (argv[0] is set) and an environment of only PATH, LANG and
 * TERM. Returns the pid or -errno; *pidfd: a pidfd of it (close-on-exec). Its cost does not grow with the caller's
 * memory and descriptors. Not for concurrent use by threads.
 * - control becomes descriptor 3; all others except 0, 1 and 2 are closed.
 * - stdin and stdout are /dev/null; a terminal at stderr is open for writing only; errors becomes stderr unless it is
 *   -1.
 * - mounts: the mount namespace to start in, unless it is -1 (spawn_unpinned_mounts()). */
pid_t spawn_program(const char *name, char *const argv[], int control, int errors, int mounts, int *pidfd);
/* Makes a copy of the caller's mount namespace without the mounts that pin network namespaces. A started role makes a
 * mount namespace of its own, a copy of all mounts it finds, and throws them away; with a thousand pins that takes
 * longer than everything else. Later mounts do not appear in the copy. Returns the descriptor (close-on-exec) or
 * -errno; -EXDEV: the caller's root is not that of its mount namespace, which a process that enters the copy would
 * get. */
int spawn_unpinned_mounts(void);
/* From now on spawn_program() starts the file that is found now for this name (static), whatever lies at its path
 * later. Returns 0 or -errno. */
int spawn_hold(const char *name);
/* Notes where this executable lies. To be called before a process leaves its mount namespace: if it was the last one
 * there, as process 1 of a container is, the kernel then knows only the last part of the path. */
void spawn_remember_self(void);
/* Finds the full path of a program of this build. Returns 0; -ENOENT: it does not exist; -EACCES: a directory above
 * the path in out, or the file's own mode, keeps this process out. */
int spawn_find(const char *name, char *out, size_t out_size);
/* Writes for a person why spawn_program() or spawn_find() failed with this error: what is missing, or which directory
 * keeps whom out. uid: the user's id as the person knows it. */
void spawn_explain(const char *name, int error, uid_t uid, char *out, size_t out_size);

#endif
