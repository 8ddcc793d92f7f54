/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop over libevent. One epoll_wait per turn. Descriptors are edge-triggered, so that
 * starting or stopping to read or write costs no system call. Tasks queued during a turn run at its
 * end: their event is appended to libevent's queue of active events behind the turn's descriptors
 * and runs in the same pass, without another epoll_wait. (So there is only one priority.)
 */
#include <errno.h>
#include <stdlib.h>
#include <event2/event.h>
#include <event2/util.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "loop/private.h"

struct loop {
	struct event_base *base;
	struct event *run_tasks;
	struct list tasks; /* struct loop_task, in the order they were queued */
	struct loop_alarms alarms;
	bool running; /* inside run_tasks() */
};

/* During a turn: runs the tasks at its end. From a task: in the next turn, after a look at the
 * descriptors. event_active() would put the event into the queue that is being processed, and a
 * task that queues itself would never let go. */
static void schedule(struct loop *loop)
{
	static const struct timeval at_once = {0, 0};

	if (loop->running)
		event_add(loop->run_tasks, &at_once);
	else
		event_active(loop->run_tasks, EV_TIMEOUT, 1);
}

static void run_tasks(evutil_socket_t fd, short what, void *argument)
{
	struct loop *loop = argument;
	struct list round;

	(void)fd, (void)what;
	if (list_is_empty(&loop->tasks))
		return;
	/* What these tasks queue waits for the next turn, so that no task can starve the
	 * descriptors. A task may still cancel another one of this round. */
	list_move(&loop->tasks, &round);
	loop->running = true;
	while (!list_is_empty(&round)) {
		struct loop_task *task = container_of(round.next, struct loop_task, place);

		list_remove(&task->place);
		task->run(task);
	}
	loop->running = false;
}

/* libevent's messages below warning (a name server that went away and came back) are for
 * debugging. */
static void on_log(int severity, const char *message)
{
	if (severity >= EVENT_LOG_WARN)
		log_warn("%s", message);
	else
		log_debug("%s", message);
}

static struct event_base *base_new(void)
{
	struct event_config *config;
	struct event_base *base = NULL;

	loop_memory_init();
	config = event_config_new();
	if (!config)
		return NULL;
	/* while /dev still exists: a role's root is empty later */
	evutil_secure_rng_init();
	event_set_log_callback(on_log);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

struct loop *loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	list_init(&loop->tasks);
	loop->base = base_new();
	if (loop->base)
		loop->run_tasks = event_new(loop->base, -1, 0, run_tasks, loop);
	if (!loop->run_tasks) {
		loop_free(loop);
		return NULL;
	}
	return loop;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	loop_alarms_close(&loop->alarms);
	if (loop->run_tasks)
		event_free(loop->run_tasks);
	if (loop->base)
		event_base_free(loop->base);
	free(loop);
}

struct event_base *loop_base(struct loop *loop)
{
	return loop->base;
}

struct loop_alarms *loop_alarms_of(struct loop *loop)
{
	return &loop->alarms;
}

int loop_run(struct loop *loop)
{
	return event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0 ? -EIO : 0;
}

void loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}

int64_t loop_now_ms(struct loop *loop)
{
	(void)loop;
	return clock_monotonic_ms();
}

void loop_task_queue(struct loop *loop, struct loop_task *task)
{
	if (list_has(&task->place))
		return;
	if (list_is_empty(&loop->tasks))
		schedule(loop);
	list_append(&loop->tasks, &task->place);
}

void loop_task_cancel(struct loop *loop, struct loop_task *task)
{
	(void)loop;
	list_remove(&task->place);
}
