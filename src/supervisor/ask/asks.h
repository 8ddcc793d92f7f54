/* SPDX-License-Identifier: Apache-2.0 */
/* asks: what waits for a person in all sandboxes, and how it is decided. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ASK_ASKS_H
#define VETHGUARD_SRC_SUPERVISOR_ASK_ASKS_H

#include "supervisor/attach/attachments.h"

/* ask_url.c: writes the URL of the request, cut if it is too long. */
void attach_ask_url(const struct message_worker_ask *ask, char *out, size_t out_size);
/* asks.c: calls each for every waiting request and every grant of all sandboxes. */
void attachments_asks(struct attachments *all,
        void (*each)(void *context, const struct attach_ask *ask), void *context);
/* proposals_load.c: calls done with what the sandbox's proposal with this id would change, in diff,
 * if it were approved now. */
void attachments_propose(struct attachments *all, uint64_t id, attach_done done, void *context);
/* asks.c: decides about one of them. Calls done with the result. */
void attachments_decide(struct attachments *all, const struct attach_decision *decision,
        attach_done done, void *context);

#endif
