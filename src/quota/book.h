/* SPDX-License-Identifier: Apache-2.0 */
/* book: all budgets that this host shares with others, and whose turn it is to ask the server. */
#ifndef VETHGUARD_SRC_QUOTA_BOOK_H
#define VETHGUARD_SRC_QUOTA_BOOK_H

#include "quota/budget.h"
#include "quota/server.h"

#define BOOK_MEMORIES_MAX 4096
#define BOOK_TICK_MS 200   /* how often is looked at all budgets, if no bell rings */
#define BOOK_SINCE_MS 1000 /* how often the server is asked since when it has its data */

struct book_memory {
	struct book_memory *prev, *next;
	uint64_t id;
	struct quotas quotas;
	bool ending;        /* nobody uses it; its leases are given back */
	size_t count, turn; /* turn: the budget that is looked at first */
	struct budget budgets[QUOTAS_MAX];
};

struct book {
	struct server server;
	struct book_memory *memories; /* list, in the order of their turns */
	size_t memory_count;
	struct budget
	        *asking; /* of the question under way; NULL: the one about `since`, or forgotten */
	bool asks_since;
	struct server_clock clock;
	int64_t since_ms; /* since when the server has its data, as it said last; 0: not known */
	int64_t since_due_ms;
	struct loop_timer tick;
	int bell; /* eventfd */
	struct loop_io bell_io;
	/* why NULL: the server answers; else it does not. */
	void (*on_server)(struct book *book, const char *why);
};

/* The caller has set server's borrowed fields, bell (taken), on_server. Returns 0 or -errno. */
int book_open(struct book *book, struct loop *loop);
void book_close(struct book *book);
/* Takes fd. Adds what is not known yet of the memory's budgets. Returns 0, or -errno: the memory
 * cannot be used. */
int book_tell(struct book *book, const struct message_quota_budgets *budgets, int fd);
void book_end(struct book *book, uint64_t memory);

#endif
