/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn: starting the other programs of this build. They are found beside the running executable (build/bin), else in
 * LIBEXECDIR of the installation; never through PATH. A program that lives long holds those that it will start again:
 * what is installed in their place meanwhile is of another version and would not understand it.
 */
#ifndef VETHGUARD_JAIL_SPAWN_H
#define VETHGUARD_JAIL_SPAWN_H

#include <sys/types.h>

/* Starts "vethguardd", "vethguard-keeper", ... with argv (argv[0] is set) and an empty environment but for PATH, LANG
 * and TERM; control becomes descriptor 3, all others but 0, 1, 2 are closed. stdin and stdout are /dev/null; a
 * terminal at stderr is open for writing only; errors, where it is not -1, becomes stderr instead. It begins in the
 * mount namespace that mounts is, where that is not -1 (spawn_unpinned_mounts). What a start costs does not grow with the
 * caller's memory and descriptors. For one thread at a time. The pid, or -errno. *pidfd: a pidfd of it (close-
 * on-exec). */
pid_t spawn_program(const char *name, char *const argv[], int control, int errors, int mounts, int *pidfd);
/* A copy of the caller's mount namespace without the mounts that network namespaces are pinned by. What is started
 * makes a mount namespace of its own, a copy of all mounts that it finds, and throws them away: with a thousand pins
 * that takes longer than all the rest. What is mounted later does not appear in it. The descriptor (close-on-exec),
 * or -errno: -EXDEV the caller's root is not that of its mount namespace, which one that is entered has. */
int spawn_unpinned_mounts(void);
/* From now on spawn_program starts this very file under that name (static), whatever lies at its path later. 0 or
 * -errno. */
int spawn_hold(const char *name);
/* Full path of a program of this build. 0; -ENOENT: it is not there; -EACCES: this process is kept from the path in out,
 * by a directory above it or by the file's own mode. */
int spawn_find(const char *name, char *out, size_t out_size);
/* Says for a person why spawn_program or spawn_find failed with this error: what is missing, or which directory keeps
 * whom (uid, as the person knows it) out. */
void spawn_explain(const char *name, int error, uid_t uid, char *out, size_t out_size);

#endif
