/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail of a process that loads a stranger's shared object, such as the module of a PKCS #11 token. It cannot have
 * an empty root: the module needs its libraries, its settings and its tokens. What is left to it: files read-only as
 * its user may read them, a few folders to write, Unix sockets with a path (pcscd, p11-kit). It has no network at all,
 * starts no program, and sees no process of another user.
 */
#ifndef VETHGUARD_JAIL_MODULE_H
#define VETHGUARD_JAIL_MODULE_H

#include "vethguard/jail/jail.h"

#define JAIL_MODULE_PATHS_MAX 16
#define JAIL_MODULE_GROUPS_MAX 64

struct jail_module {
	struct jail_ids ids;
	size_t group_count;
	gid_t groups[JAIL_MODULE_GROUPS_MAX]; /* the user's, since tokens belong to groups */
	size_t writable_count;
	const char *writable[JAIL_MODULE_PATHS_MAX];
	const char *step; /* that failed, for the error text */
};

/* Sets ids and groups of this user; "": _vethguard-token, or without it an id that nobody has. False: there is no such
 * user, or it is root. Call this before anything of a stranger is loaded. */
bool jail_module_user(struct jail_module *jail, const char *name);
/* Enters it, after jail_start(). Returns 0, or -errno with step. */
int jail_module(struct jail_module *jail);

#endif
