/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail: what a role gives up before it reads its first hostile byte. Stages in a fixed order, each checked; a stage
 * that fails is fatal (nothing runs half confined). No flag and no debug build skips one.
 */
#ifndef VETHGUARD_JAIL_JAIL_H
#define VETHGUARD_JAIL_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum jail_role { JAIL_KEEPER, JAIL_WORKER, JAIL_RECORDER };

struct jail_ids {
	uid_t uid;
	gid_t gid;
};

/* The user a role runs as: "_vethguard-keeper", "_vethguard-worker", "_vethguard-recorder" where the system has them,
 * else an unused id between 61184 and 65519 chosen by role and salt (two runs side by side differ); the caller's own
 * where only one id is mapped (rootless). */
struct jail_ids jail_role_ids(enum jail_role role, uint32_t salt);

/* First stage, at the very start of main(): not dumpable, no core (RLIMIT_CORE 0), dies with its parent
 * (PR_SET_PDEATHSIG; exits at once where the parent is gone already), stdin from /dev/null, umask 077, every descriptor
 * from keep_fds_below on closed, environment cleared. Ends the program where that fails. */
void jail_start(int keep_fds_below);
/* Namespaces and root: new mount, IPC and UTS namespaces, an empty read-only root (pivot_root). The network namespace
 * stays. 0 or -errno. */
int jail_empty_root(void);
/* Groups, gid, uid; every capability and the bounding set; no_new_privs; verified by reading them back. 0 or -errno. */
int jail_drop(struct jail_ids ids);
/* Landlock: no file system at all; TCP bind to no port (binds: to an ephemeral one the kernel chooses, and no other),
 * connect only to ports (count SIZE_MAX: any); no abstract socket and no signal to a process outside, where the kernel
 * knows that much. 0; -EOPNOTSUPP where the kernel has no Landlock (logged, not fatal: the
 * empty root stands); -errno. */
int jail_landlock(const uint16_t *ports, size_t count, bool binds);
/* Version of the kernel's Landlock, 0 where there is none. */
int landlock_abi(void);
/* seccomp: the role's own list of system calls, all else kills the process; binds: bind(2) as well, for a worker whose
 * connections have a configured source address. 0 or -errno. */
int jail_seccomp(enum jail_role role, bool binds);
/* Its longer part, for who has time to spare before: what jail_seccomp() will load, if it is asked for the same. 0 or
 * -errno, and then jail_seccomp() tries by itself. */
int jail_seccomp_prepare(enum jail_role role, bool binds);

#define JAIL_TEXT_MAX 16384 /* with JAIL_PORTS_MAX ports */
#define JAIL_PORTS_MAX 1032
#define JAIL_NAMESPACES 6

/* What this process is confined to, one "key: value" line each: ids, capability sets (hexadecimal), namespaces (inode
 * numbers), root, seccomp, Landlock and a try of it, number and kinds of descriptors. Of a process without a jail, what
 * the kernel says. */
void jail_describe(char *out, size_t out_size);
/* From now on it tries a connection, too. For a role that may make sockets. */
void jail_probes_connections(void);

#endif
