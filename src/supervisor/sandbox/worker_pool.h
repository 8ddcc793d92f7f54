/* SPDX-License-Identifier: Apache-2.0 */
/* worker_pool: workers that are started in advance and have no sandbox yet. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_WORKER_POOL_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_WORKER_POOL_H

#include "vethguard/loop/loop.h"

struct instance;
struct supervisor;

struct worker_pool {
	struct instance *first; /* list of the workers without a sandbox */
	size_t count, goal;
	struct loop_timer timer;
	bool due;   /* timer is set */
	bool waits; /* until the sandbox that took the last worker is served */
};

/* Returns a worker process that has no sandbox yet: one from the pool, otherwise a new one. The
 * caller gives it a sandbox. Returns NULL with errno on failure. */
struct instance *worker_pool_take(struct supervisor *sv);
/* Call when a worker from the pool has begun to serve: the pool is refilled. */
void worker_pool_refill(struct supervisor *sv);
void worker_pool_dead(struct supervisor *sv, struct instance *i, const char *how);
/* Keeps count spare workers from now on. Call once. Returns 0 or -errno. */
int worker_pool_open(struct supervisor *sv, size_t count);
/* Keeps another number from now on; workers beyond it are used first. */
void worker_pool_want(struct supervisor *sv, size_t count);
void worker_pool_close(struct supervisor *sv);

#endif
