/* SPDX-License-Identifier: Apache-2.0 */
/* credentials: operators' questions to the keeper about credentials, until the keeper has answered.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_CREDENTIALS_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_CREDENTIALS_H

#include "vethguard/wire/message.h"

struct ipc_message;
struct sandbox;
struct supervisor;

struct credential_question {
	struct credential_question *prev, *next;
	uint64_t id, sandbox; /* id of the sandbox in the registry */
};

/* Asks the keeper. s->owner->credentials is called with this id, never from within this call.
 * Returns 0, or -errno; -EPIPE, -EAGAIN: no keeper runs at the moment. */
int credential_ask(struct supervisor *sv, const struct sandbox *s, uint64_t id,
        const struct message_credential_ask *ask);
/* Does the same without an answer. */
int credential_tell(struct supervisor *sv, uint64_t id, const struct message_credential_ask *ask);
/* keeper.c calls these when the keeper has answered, and when it is gone. */
int credential_answered(struct supervisor *sv, struct ipc_message *message);
void credential_keeper_lost(struct supervisor *sv);
void credential_fini(struct supervisor *sv);

#endif
