/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes: the workers this keeper serves, each over its own socket pair and with nothing but its
 * own. A worker in the supervisor's pool has its pair and CA already; its sandbox follows. */
#ifndef VETHGUARD_SRC_KEEPER_SANDBOXES_H
#define VETHGUARD_SRC_KEEPER_SANDBOXES_H

#include "keeper/authorities.h"
#include "keeper/sources.h"

#define SANDBOXES_MAX 4096

struct sandboxes {
	struct loop *loop;
	const struct authorities *authorities;
	struct token *token;
	struct key_tokens *key_tokens;
	struct sources *sources;
	struct jars jars;
	struct sandbox *first;
	size_t count;
};

/* Handles MESSAGE_KEEPER_WORKER, with the worker's descriptor (takes ownership). Returns 0 or
 * -errno; -EBADMSG: the message is wrong; -ENOSPC: SANDBOXES_MAX reached; -ENOMEM. */
int sandboxes_add(struct sandboxes *sandboxes, struct ipc_message *message);
/* Handles MESSAGE_KEEPER_SANDBOX: the worker's sandbox, and the credentials it may ask for. A
 * worker that has gone meanwhile is ignored. If the message is repeated, the values held for the
 * worker are wiped and read again on demand. Returns 0 or -errno; -EBADMSG: the message is wrong,
 * or of an earlier generation; -ENOMEM. */
int sandboxes_describe(struct sandboxes *sandboxes, struct ipc_message *message);
/* Answers MESSAGE_KEEPER_SANDBOX with the roots that the sandbox is to trust. Returns 0 or -errno;
 * -ENOKEY: no CA can sign for it, and why is filled in. */
int sandboxes_send_root(
        struct sandboxes *sandboxes, const struct ipc_message *message, char why[CA_WHY_MAX]);
/* sandbox_credentials.c. Handles MESSAGE_KEEPER_CREDENTIAL and answers it, at once or when the
 * source has answered. Returns 0 or -EBADMSG. */
int sandboxes_operate(struct sandboxes *sandboxes, struct ipc_message *message);
/* The on_operated function of struct sources. */
void sandboxes_on_operated(
        struct source *source, uint64_t id, const char *error, struct slice mark, uint32_t ttl_s);
/* The CAs have changed, or time has passed: workers whose CA is gone, or that would now get an
 * intermediate that ends later than theirs, which ends soon, get it. every: all get another one. */
void sandboxes_renew(struct sandboxes *sandboxes, bool every);
/* Ends all of them. */
void sandboxes_free(struct sandboxes *sandboxes);

#endif
