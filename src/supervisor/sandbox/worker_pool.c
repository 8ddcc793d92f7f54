/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers in store: started, executed, waiting for their first message, so that who attaches a
 * sandbox need not wait for a program to start; and beside each of them the ring it will write to.
 * They are made again one at a time, when whoever took one is served, or when that takes long. That
 * is not put off when the next one is taken: a store that waits for a quiet moment stays empty
 * under steady calls. One that dies is made again as any other: not before a pause.
 */
#include <errno.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

#define SPARE_AFTER_MS 2        /* after whoever took one is served, and between two */
#define SPARE_AFTER_TAKEN_MS 50 /* at the latest */
#define SPARE_AFTER_DEATH_MS 1000

static void make_another(struct supervisor *sv, int64_t after_ms)
{
	if (!sv->spare_due)
		loop_timer_set(&sv->spare_timer, after_ms);
	sv->spare_due = true;
}

static void on_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, spare_timer);
	struct instance *i;

	sv->spare_due = sv->spare_waits = false;
	if (sv->finishing || sv->spare_count >= sv->spare_goal)
		return;
	i = instance_new(sv);
	if (!i) {
		log_warn("no further worker can be started in advance: %s", strerror(errno));
		make_another(sv, SPARE_AFTER_DEATH_MS);
		return;
	}
	recording_prepare_ring(&sv->recording);
	DL_APPEND(sv->spares, i);
	sv->spare_count++;
	make_another(sv, SPARE_AFTER_MS);
}

int supervisor_keep_spares(struct supervisor *sv, size_t count)
{
	int error = loop_timer_open(sv->loop, &sv->spare_timer, on_time);

	if (error)
		return error;
	sv->spare_goal = count;
	make_another(sv, 0);
	return 0;
}

static void remove_spare(struct supervisor *sv, struct instance *i)
{
	DL_DELETE(sv->spares, i);
	sv->spare_count--;
}

struct instance *supervisor_take_worker(struct supervisor *sv)
{
	struct instance *i = sv->spares;

	if (!i)
		return instance_new(sv);
	remove_spare(sv, i);
	sv->spare_waits = !sv->spare_due;
	make_another(sv, SPARE_AFTER_TAKEN_MS);
	return i;
}

void supervisor_spares_may_come(struct supervisor *sv)
{
	if (sv->spare_waits)
		loop_timer_set(&sv->spare_timer, SPARE_AFTER_MS);
	sv->spare_waits = false;
}

void supervisor_spare_dead(struct supervisor *sv, struct instance *i, const char *how)
{
	log_warn("a worker that was started in advance %s", how);
	remove_spare(sv, i);
	sv->spare_due = sv->spare_waits = false;
	make_another(sv, SPARE_AFTER_DEATH_MS);
	instance_free(i);
}

void spares_fini(struct supervisor *sv)
{
	struct instance *i, *next;

	sv->spare_goal = 0;
	DL_FOREACH_SAFE(sv->spares, i, next)
	{
		DL_DELETE(sv->spares, i);
		instance_free(i);
	}
	loop_timer_close(&sv->spare_timer);
}
