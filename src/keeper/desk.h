/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk: where the supervisor asks about this keeper's CAs and has them changed
 * (MESSAGE_KEEPER_CA_ASK). A change is written into the new file that came with the question, and
 * holds once the supervisor has put that file in the old one's place.
 */
#ifndef VETHGUARD_SRC_KEEPER_DESK_H
#define VETHGUARD_SRC_KEEPER_DESK_H

#include "keeper/authorities.h"
#include "keeper/sandboxes.h"
#include "keeper/token.h"

struct desk {
	struct authorities *now;     /* borrowed */
	struct sandboxes *sandboxes; /* borrowed */
	struct token *token;         /* borrowed */
	struct ipc_peer *supervisor;
	struct authorities next; /* written, not in force yet */
	uint64_t next_id;        /* 0: there is none */
	bool every;              /* next is about the workers: each gets a new intermediate */
};

/* Handle KEEPER_CA_ASK and KEEPER_CA_KEPT. Return 0 or -EBADMSG. */
int desk_ask(struct desk *desk, struct ipc_message *message);
int desk_kept(struct desk *desk, const struct ipc_message *message);
void desk_fini(struct desk *desk);

#endif
