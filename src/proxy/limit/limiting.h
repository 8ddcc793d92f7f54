/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiting: counts an exchange against the limits of the policy. A request's head, and content of
 * known length, are counted before the request begins; other content, and that of the response, as
 * it passes. An exchange that meets a limit on the way is ended by a task, because its peers are in
 * the middle of a piece then; nothing more of it passes until the task runs.
 */
#ifndef VETHGUARD_SRC_PROXY_LIMIT_LIMITING_H
#define VETHGUARD_SRC_PROXY_LIMIT_LIMITING_H

#include "proxy/limit/limit.h"
#include "vethguard/loop/loop.h"

struct exchange;

enum limiting_state {
	LIMITING_OFF,
	LIMITING_ON,  /* the exchange is counted */
	LIMITING_MET, /* ... and has met a limit after it began: it is about to end */
	LIMITING_STATE_COUNT
};

struct limiting {
	enum limiting_state state;
	bool counts_body;    /* the request's content is counted as it comes */
	uint64_t reserved;   /* content that was counted in advance */
	int64_t reserved_ms; /* ... and when: limits.added_ms */
	uint64_t body, most; /* content that has come, and may come */
	struct limit_held held;
	struct limit_hit hit;
	struct loop_task task; /* ends the exchange */
};

static inline bool limiting_is_on(const struct limiting *l)
{
	return l->state != LIMITING_OFF;
}

static inline bool limiting_is_met(const struct limiting *l)
{
	return l->state == LIMITING_MET;
}

/* The verdict allows the request. False: a limit refuses it, and ex may be freed. */
bool limiting_begin(struct exchange *ex);
/* Call this when the exchange goes on under another policy, which may be the first with limits. */
void limiting_goes_on(struct exchange *ex, const struct policy *next);
/* Counts n bytes that the sandbox sends, or that are sent to it. False: they may not pass. Call
 * both only if limiting_is_on(). */
bool limiting_takes(struct exchange *ex, uint64_t n);
bool limiting_gives(struct exchange *ex, uint64_t n);
/* Ends an exchange that has met a limit on the way. ex is freed afterwards. */
void limiting_end(struct exchange *ex);
/* Releases what the exchange holds. */
void limiting_fini(struct exchange *ex);

#endif
