/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: touching the file system with the rights of the invoking user. The supervisor may be
 * root on behalf of somebody (sudo): what that somebody names, it opens as somebody, so that its
 * rights are not lent out by mistake.
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
	bool lends; /* `run` through sudo: a file that the user may not read is read as root, whom
	               it called upon. Never for callers of the control API: nobody gets the
	               daemon's rights by naming a file to it */
	bool asked; /* groups are those that the process which asked had (unix(7), SO_PEERGROUPS);
	               else the system's own databases are asked for the user's */
	size_t group_count;
	const gid_t *groups; /* borrowed, but in a copy of identity_copy() */
};

/* With groups of its own, for identity_fini(). 0; or -ENOMEM: *out has the ids and no further
 * group.
 */
int identity_copy(struct identity *out, const struct identity *id);
void identity_fini(struct identity *id);

/* Runs what(context) with the rights (effective ids, no capability) and the groups of id. what's
 * result, or -errno. Only from the main thread, while there is no other. Failing to come back is
 * fatal. */
int identity_run(const struct identity *id, int (*what)(void *context), void *context);
/* Becomes id for good: groups, gid, uid. For a child before it executes. 0 or -errno. */
int identity_become(const struct identity *id);

#endif
