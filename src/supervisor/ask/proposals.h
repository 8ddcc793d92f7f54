/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposals: rules that a sandbox proposes, until a person has decided, and those that were
 * approved. An approved rule is loaded beside the sandbox's policy at each reload, until its time
 * is over, a person ends it, or the daemon ends: after a restart the sandbox proposes again.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_ASK_PROPOSALS_H
#define VETHGUARD_SRC_SUPERVISOR_ASK_PROPOSALS_H

#include "supervisor/attach/attachments.h"
#include "vethguard/wire/message.h"

#define PROPOSALS_WAITING_MAX 8 /* of one sandbox */

struct attachment;
struct instance;

/* Takes a worker's proposal, or refuses it. */
void proposals_take(struct attachment *a, struct instance *i, uint64_t id,
        const struct message_worker_proposal *m);
/* Tells a worker that starts about all proposals. */
void proposals_tell(struct attachment *a, struct instance *i);
void proposals_free(struct attachment *a);

/* Fills in *out for the index-th proposal that waits or is in force. Returns false behind the last.
 */
bool proposals_at(struct attachment *a, size_t index, struct attach_ask *out);
/* Returns the attachment whose sandbox has such a proposal with this id, or NULL. */
struct attachment *proposals_find(struct attachments *all, uint64_t id);
/* Approves or refuses a proposal, or ends one that is in force. Calls done with the result. */
void proposals_decide(
        struct attachment *a, const struct attach_decision *d, attach_done done, void *context);

/* The texts of the rules that are in force or tried, for policy_load_options.more. */
struct proposals_text {
	struct policy_more items[MESSAGE_PROPOSALS_MAX];
	size_t count;
	char names[MESSAGE_PROPOSALS_MAX][32];
	char *texts[MESSAGE_PROPOSALS_MAX]; /* owned */
};
/* Returns 0 or -ENOMEM. Call proposals_text_fini() in each case. */
int proposals_write(const struct attachment *a, struct proposals_text *out);
void proposals_text_fini(struct proposals_text *text);

#endif
