/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces: those of the sandbox, made before anything lives in them. */
#ifndef VETHGUARD_SRC_CLI_RUN_NAMESPACES_H
#define VETHGUARD_SRC_CLI_RUN_NAMESPACES_H

#include "cli/run/privilege.h"

struct namespaces {
	int user, net, ipc; /* descriptors, close-on-exec; -1: none */
};

/* A user namespace and, owned by it, a network and an IPC namespace. Root inside is root over these
 * and over nothing outside: with privilege, ids are the same inside and out; rootless, the one id
 * there is becomes user->uid. 0 or -errno with a text; the caller closes. */
int namespaces_make(const struct privilege *privilege, const struct run_user *user,
        struct namespaces *out, struct failure *failure);
void namespaces_close(struct namespaces *ns);

#endif
