/* SPDX-License-Identifier: Apache-2.0 */
/* privilege: who runs vethguard, and how it gets its rights: root directly, everyone else through a
 * user namespace. */
#ifndef VETHGUARD_SRC_CLI_RUN_PRIVILEGE_H
#define VETHGUARD_SRC_CLI_RUN_PRIVILEGE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/failure.h"

struct privilege {
	bool rootless;
	uid_t uid; /* the invoking user; through sudo, the user before it */
	gid_t gid;
};

/* Finds the invoking user. Unless that is root with the needed capabilities, enters a user
 * namespace in which the user is root. Returns 0, or -errno with a text that says what to do. */
int privilege_enter(struct privilege *out, struct failure *failure);
/* True if the process may make namespaces, mounts and ids like root. */
bool privilege_is_root(void);

/* Writes a file of proc(5) that maps the ids of a user namespace. Returns 0 or -errno. */
int privilege_write_map(const char *path, const char *text);

/* A user to run the command as. */
struct run_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[NGROUPS_MAX > 1024 ? 1024 : NGROUPS_MAX];
	int group_count; /* -1: the groups stay unchanged (rootless) */
	char name[256];
	char home[PATH_MAX];
	char shell[PATH_MAX];
};

/* wanted: NAME, UID, NAME:GROUP or UID:GID; NULL: the invoking user. Returns 0, or -errno with a
 * text. */
int run_user_find(const char *wanted, const struct privilege *privilege, struct run_user *out,
        struct failure *failure);

#endif
