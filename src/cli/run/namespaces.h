/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces: makes those of the sandbox, before anything lives in them. */
#ifndef VETHGUARD_SRC_CLI_RUN_NAMESPACES_H
#define VETHGUARD_SRC_CLI_RUN_NAMESPACES_H

#include "cli/run/privilege.h"

struct namespaces {
	int user, net, ipc; /* descriptors, close-on-exec; -1: none */
};

/* Makes a user namespace and, owned by it, a network and an IPC namespace. Root inside has power
 * over these and over nothing outside. With privilege, ids are the same inside and outside;
 * rootless, the only id becomes user->uid. Returns 0, or -errno with a text. The caller closes the
 * namespaces. */
int namespaces_make(const struct privilege *privilege, const struct run_user *user,
        struct namespaces *out, struct failure *failure);
void namespaces_close(struct namespaces *ns);

#endif
