/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: real names to real addresses, on the worker's own side, with a cache by TTL. */
#ifndef VETHGUARD_LOOP_RESOLVER_H
#define VETHGUARD_LOOP_RESOLVER_H

#include "vethguard/loop/loop.h"
#include "vethguard/policy/config.h"

#define RESOLVER_ADDRESSES_MAX 16 /* of one name, both families */
#define RESOLVER_TTL_MAX_S 300
#define RESOLVER_CACHE_MAX 4096   /* names */

struct resolver;

struct resolver_answer {
	size_t count;          /* 0: error says why */
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	const char *error;     /* one sentence, static */
};

/* servers and hosts are copied; hosts win. timeout_ms: for one name. NULL: no memory. */
struct resolver *resolver_new(struct loop *loop, const struct config_server *servers, size_t server_count,
	const struct config_host *hosts, size_t host_count, uint32_t timeout_ms);
/* Between two turns of the loop. Whoever still waits is let go without a callback. */
void resolver_free(struct resolver *resolver);

struct resolver_wait {
	struct resolver_query *query; /* NULL: not waiting */
	struct list place;
	void (*on_answer)(struct resolver_wait *wait, const struct resolver_answer *answer);
};
/* Both families are asked at once; the answer comes when both are there, or 50 ms after the first that has addresses.
 * Callers for one name share one query. Returns the answer at once (borrowed until the loop's next turn) where it is
 * cached or static; else NULL and on_answer follows (never from within this call). */
const struct resolver_answer *resolver_get(struct resolver *resolver, struct slice host, struct resolver_wait *wait);
void resolver_wait_cancel(struct resolver_wait *wait); /* harmless when not waiting (zeroed) */

#endif
