/* SPDX-License-Identifier: Apache-2.0 */
/* privilege: who runs vethguard, and what that lets it do: root as it is, everyone else by a user
 * namespace. */
#ifndef VETHGUARD_SRC_CLI_RUN_PRIVILEGE_H
#define VETHGUARD_SRC_CLI_RUN_PRIVILEGE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/failure.h"

struct privilege {
	bool rootless;
	uid_t uid; /* who invoked: through sudo the user before it */
	gid_t gid;
};

/* Finds out who invoked; where that is not root with the capabilities needed, enters a user
 * namespace in which the invoking user is root. 0 or -errno with a text that says what to do. */
int privilege_enter(struct privilege *out, struct failure *failure);
/* True where the process may make namespaces, mounts and ids as root does. */
bool privilege_is_root(void);

/* Writes a file of proc(5) that says which ids a user namespace has. 0 or -errno. */
int privilege_write_map(const char *path, const char *text);

/* A user to run the command as. */
struct run_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[NGROUPS_MAX > 1024 ? 1024 : NGROUPS_MAX];
	int group_count; /* -1: the groups stay as they are (rootless) */
	char name[256];
	char home[PATH_MAX];
	char shell[PATH_MAX];
};

/* wanted: NAME, UID, NAME:GROUP or UID:GID; NULL: who invoked. 0 or -errno with a text. */
int run_user_find(const char *wanted, const struct privilege *privilege, struct run_user *out,
        struct failure *failure);

#endif
