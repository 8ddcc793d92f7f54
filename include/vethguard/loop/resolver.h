/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: resolves real names to real addresses, on the worker's side, with a cache by TTL. */
#ifndef VETHGUARD_LOOP_RESOLVER_H
#define VETHGUARD_LOOP_RESOLVER_H

#include "vethguard/loop/loop.h"
#include "vethguard/policy/config.h"

#define RESOLVER_ADDRESSES_MAX 16 /* per name, both families together */
#define RESOLVER_TTL_MAX_S 300
#define RESOLVER_CACHE_MAX 4096 /* names */

struct resolver;

struct resolver_answer {
	size_t count; /* 0: error says why */
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	const char *error; /* one sentence, static */
};

/* Copies servers and hosts; hosts win over servers. timeout_ms: for one name. Returns NULL if out of memory. */
struct resolver *resolver_new(struct loop *loop, const struct config_server *servers, size_t server_count,
        const struct config_host *hosts, size_t host_count, uint32_t timeout_ms);
/* Call between two turns of the loop. Waiting callers get no callback. */
void resolver_free(struct resolver *resolver);

struct resolver_wait {
	struct resolver_name *name; /* NULL: not waiting */
	struct list place;
	void (*on_answer)(struct resolver_wait *wait, const struct resolver_answer *answer);
};
/* Resolves a host. Both families are queried at once; the answer is ready when both have come, or 50 ms after the
 * first one with addresses. Callers for one name share a query. If the name is cached or static, returns the answer
 * (borrowed until the loop's next turn); else returns NULL, and on_answer follows (never from within this call). */
const struct resolver_answer *resolver_get(struct resolver *resolver, struct slice host, struct resolver_wait *wait);
void resolver_wait_cancel(struct resolver_wait *wait); /* does nothing if wait is not waiting (zeroed) */

#endif
