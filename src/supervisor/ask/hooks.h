/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks: tells the operator's endpoints what waits for a person (ask: of the configuration). A
 * webhook that fails is told again. A decider decides: a request is refused if the decider does not
 * answer in time, or answers wrongly.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_ASK_HOOKS_H
#define VETHGUARD_SRC_SUPERVISOR_ASK_HOOKS_H

#include <stdint.h>

struct attachment;
struct attachments;
struct config_ask;
struct message_worker_ask;
struct policy_proposal;

/* Notes that wait or are being sent. Beyond that the webhook is not told, and requests for the
 * decider are refused. */
#define HOOKS_WAITING_MAX 64
#define HOOKS_CALLS_MAX 8    /* at a time */
#define HOOKS_ATTEMPTS_MAX 5 /* of a webhook */

/* Copies the endpoints; what is under way goes on. */
void hooks_configure(struct attachments *all, const struct config_ask *config);
void hooks_free(struct attachments *all);
void hooks_tell_ask(struct attachment *a, uint64_t id, const struct message_worker_ask *ask);
/* Deciders are not told of proposals: a person decides about these. */
void hooks_tell_proposal(struct attachment *a, uint64_t id, const struct policy_proposal *proposal);

#endif
