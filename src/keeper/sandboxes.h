/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes: the workers this keeper serves, each over its own pair and with nothing but its own. A
 * worker in store has a pair already, and its CA; whose it is follows. */
#ifndef VETHGUARD_SRC_KEEPER_SANDBOXES_H
#define VETHGUARD_SRC_KEEPER_SANDBOXES_H

#include "keeper/sources.h"

#define SANDBOXES_MAX 4096

struct sandboxes {
	struct loop *loop;
	const struct ca *root;
	struct sources *sources;
	struct sandbox *first;
	size_t count;
};

/* MESSAGE_KEEPER_WORKER with the worker's descriptor, which is taken. 0 or -errno: -EBADMSG for a
 * message that is wrong, -ENOSPC over SANDBOXES_MAX, -ENOMEM. */
int sandboxes_add(struct sandboxes *sandboxes, struct ipc_message *message);
/* MESSAGE_KEEPER_SANDBOX: whose that worker is, and what it may ask for; one that has gone
 * meanwhile is passed over. Said again: what is held for it is wiped, and what it asks for is read
 * anew. 0 or -errno: -EBADMSG for a message that is wrong, or of an earlier generation; -ENOMEM. */
int sandboxes_describe(struct sandboxes *sandboxes, struct ipc_message *message);
/* Ends all of them. */
void sandboxes_free(struct sandboxes *sandboxes);

#endif
