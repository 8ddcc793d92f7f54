/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of workers that are started, executed and wait for their first message, so that attaching
 * a sandbox need not wait for a program to start; each with the ring it will write to.
 *
 * The pool is refilled one worker at a time. A pool that is poor (less than half full) is refilled
 * when the sandbox that took one is served, or after SPARE_AFTER_TAKEN_MS. Otherwise it waits for
 * SPARE_CALM_MS: a worker costs some 10 ms of a processor, which the engine that starts a container
 * behind the attachment wants at that moment. Taking the next worker does not put this off: a pool
 * that waits for a quiet moment stays empty under steady calls. A worker that dies is replaced
 * after SPARE_AFTER_DEATH_MS.
 */
#include <errno.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/os/heap.h"
#include "supervisor/supervisor.h"

#define SPARE_AFTER_MS 2        /* after the taken worker serves, and between two */
#define SPARE_AFTER_TAKEN_MS 50 /* after one was taken, at the latest */
#define SPARE_CALM_MS 200       /* instead of both, while the pool is not poor */
#define SPARE_AFTER_DEATH_MS 1000

static void make_another(struct supervisor *sv, int64_t after_ms)
{
	if (!sv->pool.due)
		loop_timer_set(&sv->pool.timer, after_ms);
	sv->pool.due = true;
}

static bool is_poor(const struct supervisor *sv)
{
	return sv->pool.count * 2 < sv->pool.goal;
}

static void on_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, pool.timer);
	struct instance *i;

	sv->pool.due = sv->pool.waits = false;
	if (sv->finishing || sv->pool.count >= sv->pool.goal)
		return;
	i = instance_new(sv, slice_of("", 0));
	if (!i) {
		log_warn("no further worker can be started in advance: %s", strerror(errno));
		make_another(sv, SPARE_AFTER_DEATH_MS);
		return;
	}
	recording_prepare_ring(&sv->recording);
	heap_warm();
	DL_APPEND(sv->pool.first, i);
	sv->pool.count++;
	make_another(sv, is_poor(sv) ? SPARE_AFTER_MS : SPARE_CALM_MS);
}

int worker_pool_open(struct supervisor *sv, size_t count)
{
	int rc = loop_timer_open(sv->loop, &sv->pool.timer, on_time);

	if (rc)
		return rc;
	sv->pool.goal = count;
	make_another(sv, 0);
	return 0;
}

void worker_pool_want(struct supervisor *sv, size_t count)
{
	const bool more = count > sv->pool.goal;

	sv->pool.goal = count;
	if (more)
		make_another(sv, SPARE_AFTER_MS);
}

static void remove_from_pool(struct supervisor *sv, struct instance *i)
{
	DL_DELETE(sv->pool.first, i);
	sv->pool.count--;
}

struct instance *worker_pool_take(struct supervisor *sv, struct slice root)
{
	struct instance *i = sv->pool.first;

	if (!i || !ca_leads(sv, root)) /* the pool's have intermediates of the current CA */
		return instance_new(sv, root);
	remove_from_pool(sv, i);
	sv->pool.waits |= !sv->pool.due;
	make_another(sv, is_poor(sv) ? SPARE_AFTER_TAKEN_MS : SPARE_CALM_MS);
	return i;
}

void worker_pool_refill(struct supervisor *sv)
{
	if (!is_poor(sv))
		return;
	if (sv->pool.waits)
		loop_timer_set(&sv->pool.timer, SPARE_AFTER_MS);
	sv->pool.waits = false;
}

void worker_pool_dead(struct supervisor *sv, struct instance *i, const char *how)
{
	log_warn("a worker that was started in advance %s", how);
	remove_from_pool(sv, i);
	sv->pool.due = sv->pool.waits = false;
	make_another(sv, SPARE_AFTER_DEATH_MS);
	instance_free(i);
}

void worker_pool_close(struct supervisor *sv)
{
	struct instance *i, *next;

	sv->pool.goal = 0;
	DL_FOREACH_SAFE(sv->pool.first, i, next)
	{
		DL_DELETE(sv->pool.first, i);
		instance_free(i);
	}
	loop_timer_close(&sv->pool.timer);
}
