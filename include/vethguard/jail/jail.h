/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail: what a role gives up before it reads its first hostile byte. The stages run in a fixed order, and each is
 * checked; a failing stage is fatal, so nothing runs half confined. No flag and no debug build skips one.
 */
#ifndef VETHGUARD_JAIL_JAIL_H
#define VETHGUARD_JAIL_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum jail_role { JAIL_KEEPER, JAIL_WORKER, JAIL_RECORDER, JAIL_FETCH, JAIL_TOKEN, JAIL_GATEWAY, JAIL_QUOTA };

struct jail_ids {
	uid_t uid;
	gid_t gid;
};

/* The user a role runs as: "_vethguard-keeper", "_vethguard-worker", ... if the system has it,
 * else an unused id between 61184 and 65519 chosen by role and salt (so that two runs side by side differ). The
 * caller's own ids if only one id is mapped (rootless). */
struct jail_ids jail_role_ids(enum jail_role role, uint32_t salt);

/* First stage, at the very start of main(): not dumpable, no core (RLIMIT_CORE 0), dies with its parent
 * (PR_SET_PDEATHSIG; exits at once if the parent is gone already), stdin from /dev/null, umask 077, every descriptor
 * from keep_fds_below on closed, environment cleared. Ends the program if this fails. */
void jail_start(int keep_fds_below);
/* Namespaces and root: new mount, IPC and UTS namespaces, and an empty read-only root (pivot_root). The network
 * namespace stays. Returns 0 or -errno. */
int jail_empty_root(void);
/* Gives up groups, gid, uid, every capability and the bounding set, and sets no_new_privs; reads all of it back.
 * Returns 0 or -errno. */
int jail_drop(struct jail_ids ids);
/* Landlock: no file system at all; no TCP bind (binds: only to an ephemeral port that the kernel chooses); TCP
 * connect only to ports (count SIZE_MAX: any); no abstract socket of and no signal to processes outside, if the
 * kernel supports that. Returns 0; -EOPNOTSUPP: the kernel has no Landlock (logged, not fatal, since the root is
 * empty); or another -errno. */
int jail_landlock(const uint16_t *ports, size_t count, bool binds);
/* Version of the kernel's Landlock, or 0. */
int landlock_abi(void);
/* seccomp: only the role's own list of system calls; any other call kills the process. binds: also bind(2), for a
 * worker whose connections have a configured source address. Returns 0 or -errno. */
int jail_seccomp(enum jail_role role, bool binds);
/* Does the longer part of jail_seccomp() in advance: makes the program that jail_seccomp() loads if called with the
 * same arguments. Returns 0, or -errno; then jail_seccomp() tries by itself. */
int jail_seccomp_prepare(enum jail_role role, bool binds);

/* All of these in their order, for a role that knows its ports when it starts and binds none: an empty root, ids,
 * Landlock, seccomp. A kernel without Landlock is not a failure. Returns 0, or -errno with *step. */
int jail_enter(enum jail_role role, const uint16_t *ports, size_t count, const char **step);

#define JAIL_TEXT_MAX 16384 /* enough for JAIL_PORTS_MAX ports */
#define JAIL_PORTS_MAX 1032
#define JAIL_NAMESPACES 6

/* How this process is confined, one "key: value" per line: ids, capability sets (hexadecimal), namespaces (inode
 * numbers), root, seccomp, Landlock and a probe of it, number and kinds of descriptors. For a process without a jail,
 * what the kernel says. */
void jail_describe(char *out, size_t out_size);
/* From now on jail_describe() also tries a connection. For roles that may make sockets. */
void jail_probes_connections(void);

#endif
