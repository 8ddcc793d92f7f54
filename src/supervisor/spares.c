/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers in store: started, executed, waiting for their first message, so that who attaches a
 * sandbox need not wait for a program to start. They are made again one at a time, in quiet
 * moments, and one that dies is made again as any other: not before a pause.
 */
#include <errno.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

#define SPARE_AFTER_MS 60 /* after one was taken: whoever took it is served first */
#define SPARE_AFTER_DEATH_MS 1000

static void on_time(struct loop_timer *timer)
{
	struct supervisor *sv = container_of(timer, struct supervisor, spare_timer);
	struct instance *i;

	if (sv->finishing || sv->spare_count >= sv->spare_goal)
		return;
	i = instance_new(sv);
	if (!i) {
		log_warn("no further worker can be started in advance: %s", strerror(errno));
		loop_timer_set(timer, SPARE_AFTER_DEATH_MS);
		return;
	}
	DL_APPEND(sv->spares, i);
	sv->spare_count++;
	loop_timer_set(timer, SPARE_AFTER_MS);
}

int supervisor_keep_spares(struct supervisor *sv, size_t count)
{
	int error = loop_timer_open(sv->loop, &sv->spare_timer, on_time);

	if (error)
		return error;
	sv->spare_goal = count;
	loop_timer_set(&sv->spare_timer, 0);
	return 0;
}

static void remove_spare(struct supervisor *sv, struct instance *i, int64_t again_ms)
{
	DL_DELETE(sv->spares, i);
	sv->spare_count--;
	loop_timer_set(&sv->spare_timer, again_ms);
}

struct instance *supervisor_take_worker(struct supervisor *sv)
{
	struct instance *i = sv->spares;

	if (!i)
		return instance_new(sv);
	remove_spare(sv, i, SPARE_AFTER_MS);
	return i;
}

void supervisor_spare_dead(struct supervisor *sv, struct instance *i, const char *how)
{
	log_warn("a worker that was started in advance %s", how);
	remove_spare(sv, i, SPARE_AFTER_DEATH_MS);
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
