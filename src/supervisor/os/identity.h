/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: accesses the file system with the rights of the invoking user. The supervisor may be
 * root on behalf of a user (sudo): it opens what the user names as that user, so that it does not
 * lend out its rights by mistake.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_IDENTITY_H
#define VETHGUARD_SRC_SUPERVISOR_OS_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#define IDENTITY_GROUPS_MAX 1024

struct identity {
	uid_t uid;
	gid_t gid;
	bool fixed; /* rootless: there is only one identity, nothing is switched */
	/* `run` through sudo: a file that the user may not read is read as root, on whom the user
	 * called. Never for callers of the control API: naming a file to the daemon must not give
	 * anybody the daemon's rights. */
	bool lends;
	/* groups are those of the process that asked (unix(7), SO_PEERGROUPS); otherwise the user's
	 * groups are looked up in the system's databases. */
	bool asked;
	size_t group_count;
	const gid_t *groups; /* borrowed, except in a copy of identity_copy() */
};

/* True if the identity is the machine's operator, or the only one there is: what belongs to the
 * machine is for policies that it names. */
static inline bool identity_owns_machine(const struct identity *id)
{
	return id->uid == 0 || id->fixed || id->lends;
}

/* Makes a copy with its own groups, for identity_fini(). Returns 0, or -ENOMEM: *out has the ids
 * and no supplementary group. */
int identity_copy(struct identity *out, const struct identity *id);
void identity_fini(struct identity *id);

/* Runs what(context) with the rights (effective ids, no capability) and groups of id. Returns
 * what's result, or -errno. Call it only from the main thread; other threads keep their own ids.
 * Failing to switch back ends the program. */
int identity_run(const struct identity *id, int (*what)(void *context), void *context);
/* Becomes id for good: groups, gid, uid. For a child before it executes. Returns 0 or -errno. */
int identity_become(const struct identity *id);

#endif
