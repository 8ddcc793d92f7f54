/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asking: requests that a person has to approve (rules under ask:). A request is held, its body
 * unread unless the verdict needs it, until the supervisor sends an answer; if its time is over
 * before, it is refused. A grant approves the requests like its question, for a while or without
 * end; when it ends, so do the requests that run by it.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_ASKING_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_ASKING_H

#include "vethguard/base/list.h"
#include "vethguard/base/rate.h"
#include "vethguard/loop/loop.h"
#include "vethguard/proxy/proxy.h"

#define ASKING_KEY 16 /* bytes that stand for what is asked */

struct exchange;
struct proxy;

/* A grant: approves requests that have this key. */
struct asking_grant {
	uint64_t id; /* of the request that was asked about; 0: free */
	uint8_t key[ASKING_KEY];
	int64_t until_ms; /* clock_boot_ms(); 0: no end */
	char text[MESSAGE_ASK_TEXT_MAX + 1];
};

/* The proxy's waiting requests and its grants. */
struct asking_all {
	struct list waiting; /* struct asking */
	size_t count;
	struct list granted; /* struct asking: under way by a grant */
	struct asking_grant grants[MESSAGE_ASKS_MAX];
	struct rate rate; /* of questions */
	struct loop_timer tick;
	bool ticking;
};

enum asking_state {
	ASKING_NONE,     /* nobody was asked */
	ASKING_WAITS,    /* the supervisor was asked, and has not answered */
	ASKING_DENIED,   /* a person has refused it while it waited: the task will refuse it */
	ASKING_APPROVED, /* a person or a grant has approved it: the task will let it go on */
	ASKING_PASSED,   /* it goes on */
	ASKING_ENDED,    /* it was not approved, or its grant has ended */
	ASKING_STATE_COUNT
};

/* The part of an exchange. */
struct asking {
	struct list list;
	enum asking_state state;
	uint64_t grant;   /* that has approved it, or 0 */
	int64_t until_ms; /* clock_boot_ms(): when waiting ends */
	struct loop_task task;
};

/* True if the request needs no further approval. */
static inline bool asking_is_approved(const struct asking *a)
{
	return a->state == ASKING_APPROVED || a->state == ASKING_PASSED;
}

int asking_open(struct proxy *proxy);
void asking_close(struct proxy *proxy);
/* True if the request may go on: it was approved, now or before. False: it waits, or was refused
 * and ex may be freed. */
bool asking_passes(struct exchange *ex);
/* Calls each for every request that waits. */
void asking_each(
        struct proxy *proxy, void (*each)(void *context, const struct exchange *ex), void *context);
/* Call this when the exchange ends. */
void asking_fini(struct exchange *ex);

#endif
