/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jail of a process that loads a stranger's shared object, such as the module of a PKCS #11 token. It cannot have
 * an empty root: the module needs its libraries, its settings and its tokens. It keeps three things: read access to the
 * files that its user may read, a few folders to write to, and Unix sockets with a path (pcscd, p11-kit). It has no
 * network at all, starts no program, and sees no process of another user.
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
	const char *step; /* names the step that failed, for the error text */
};

/* Sets ids and groups of this user. "" stands for _vethguard-token or, if that user does not exist, for an id that
 * nobody has. Returns false if there is no such user or it is root. Call this before any foreign code is loaded. */
bool jail_module_user(struct jail_module *jail, const char *name);
/* Enters the jail, after jail_start(). Returns 0, or -errno with jail->step set. */
int jail_module(struct jail_module *jail);

#endif
