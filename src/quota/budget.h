/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget: one budget that several hosts share: when the server is asked for more of it, how much,
 * and what its answer means for the lease (ipc/quotas.h) that workers take from.
 */
#ifndef VETHGUARD_SRC_QUOTA_BUDGET_H
#define VETHGUARD_SRC_QUOTA_BUDGET_H

#include "quota/script.h"
#include "vethguard/ipc/quotas.h"
#include "vethguard/wire/message.h"

/* A lease that nobody has taken from for this time is given back. */
#define BUDGET_IDLE_MS 5000
/* Where the server has nothing, it is asked again after what it says, but after this time at most:
 * other hosts may have given something back. */
#define BUDGET_AGAIN_MS 1000
#define BUDGET_AGAIN_LEAST_MS 20
/* What is got ahead of need: this part of the amount, or so many times what was missed at once, or
 * what is taken in so many seconds, whichever is most; but not more than a larger part of the
 * amount, since other hosts want some too. */
#define BUDGET_SLICE 1024
#define BUDGET_SLICE_MOST 16
#define BUDGET_BURST 4
#define BUDGET_AHEAD_S 2

/* The server's clock: what has to be added to clock_boot_ms(). */
struct server_clock {
	bool known;
	int64_t offset_ms;
};

struct budget {
	const struct quotas *quotas; /* borrowed */
	uint32_t index;
	char name[SCRIPT_NAME_MAX + 1], host[SCRIPT_HOST_MAX + 1];
	uint64_t amount;
	int64_t part_ms;
	bool changed;    /* the server does not know all claims */
	bool ending;     /* nobody takes from it any more */
	uint64_t wanted; /* the largest amount that a worker has missed */
	uint64_t burst;  /* the largest such amount since it was idle */
	uint64_t rate;   /* taken in a second, lately */
	uint64_t taken;  /* at looked_ms */
	int64_t looked_ms, active_ms;
	int64_t need_ms, extra_ms; /* no question for these before */
	int64_t asked_ms;
	struct script_question question; /* the one under way */
	struct script_claim claims[QUOTAS_CLAIMS];
};

void budget_init(struct budget *b, const struct quotas *quotas,
        const struct message_quota_budget *message, int64_t now_ms);
/* Looks at what workers took and want. Returns true if the server has to be asked; then
 * b->question is what to ask it. */
bool budget_look(struct budget *b, const struct server_clock *clock, int64_t now_ms);
/* Takes the answer to b->question. */
void budget_answered(struct budget *b, const struct script_answer *answer,
        struct server_clock *clock, int64_t now_ms);
/* The server cannot be asked any more. */
void budget_away(struct budget *b);
/* Nobody takes from it any more: the lease goes back with the next question. */
void budget_end(struct budget *b);

#endif
