/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes: the workers this keeper serves, each over its own pair and with nothing but its own.
 */
#ifndef KEEPER_SANDBOXES_H
#define KEEPER_SANDBOXES_H

#include "keeper/intermediates.h"
#include "keeper/sources.h"

#define SANDBOXES_MAX 4096

struct sandboxes {
	struct loop *loop;
	const struct ca *root;
	struct intermediates *intermediates;
	struct sources *sources;
	struct sandbox *first;
	size_t count;
};

/* MESSAGE_KEEPER_SANDBOX with the worker's descriptor, which is taken. 0 or -errno: -EBADMSG for a
 * message that is wrong, -ENOSPC over SANDBOXES_MAX, -ENOMEM. */
int sandboxes_add(struct sandboxes *sandboxes, struct ipc_message *message);
/* Ends all of them. */
void sandboxes_free(struct sandboxes *sandboxes);

#endif
