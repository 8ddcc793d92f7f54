/* SPDX-License-Identifier: Apache-2.0 */
/* proposals_private: the proposals of one sandbox, for the files of proposals. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ASK_PROPOSALS_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_ASK_PROPOSALS_PRIVATE_H

#include "supervisor/ask/proposals.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/sandbox/asks.h"

struct proposals_item {
	uint64_t id;
	enum message_proposal_state state;
	int64_t since_ms; /* the epoch */
	int64_t until_ms; /* APPROVED: clock_boot_ms(); 0: no end */
	char by[ASKS_BY_MAX];
	char text[MESSAGE_ASK_TEXT_MAX];
	struct policy_proposal rule;
};

struct proposals {
	struct attachment *attachment;
	size_t count;
	uint64_t tried;   /* the next load has this proposal as well; 0: none */
	unsigned ended;   /* approvals so far that have ended */
	bool behind;      /* an approval has ended, and the policy in force still has its rule */
	int64_t again_ms; /* loop_now_ms(): behind, and the reload is tried again then */
	unsigned failed;  /* reloads in a row that have failed */
	struct loop_timer timer;
	struct proposals_item items[MESSAGE_PROPOSALS_MAX];
};

/* The item with this id, or NULL. p NULL: there is none. */
struct proposals_item *proposals_item_of(struct proposals *p, uint64_t id);

#endif
