/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers and deadlines. All deadlines of a list wait equally long, so the list stays in order of
 * time, and the timer only looks at its head. Setting a deadline does not touch the timer: it fires
 * at the earliest time known when it was armed, handles what is due, and is armed again for the new
 * head.
 */
#include <errno.h>
#include <event2/event.h>

#include "loop/private.h"

static void on_timer_event(evutil_socket_t fd, short what, void *argument)
{
	struct loop_timer *timer = argument;

	(void)fd, (void)what;
	timer->on_time(timer);
}

int loop_timer_open(
        struct loop *loop, struct loop_timer *timer, void (*on_time)(struct loop_timer *timer))
{
	timer->loop = loop;
	timer->on_time = on_time;
	timer->event = event_new(loop_base(loop), -1, 0, on_timer_event, timer);
	return timer->event ? 0 : -ENOMEM;
}

void loop_timer_set(struct loop_timer *timer, int64_t delay_ms)
{
	struct timeval delay;

	if (delay_ms < 0)
		delay_ms = 0;
	delay.tv_sec = delay_ms / 1000;
	delay.tv_usec = delay_ms % 1000 * 1000;
	event_add(timer->event, &delay);
}

void loop_timer_cancel(struct loop_timer *timer)
{
	if (timer->event)
		event_del(timer->event);
}

void loop_timer_close(struct loop_timer *timer)
{
	if (timer->event)
		event_free(timer->event);
	timer->event = NULL;
}

/* Extra delay of the timer, so that a list under steady use arms it rarely. */
static int64_t slack_ms(const struct loop_deadlines *list)
{
	int64_t slack = list->delay_ms / 20;

	return slack < 10 ? 10 : slack;
}

static void deadline_unlink(struct loop_deadline *d)
{
	list_remove(&d->place);
	d->list = NULL;
}

/* NULL: the list is empty. */
static struct loop_deadline *first_of(const struct loop_deadlines *list)
{
	return list_is_empty(&list->members)
	               ? NULL
	               : container_of(list->members.next, struct loop_deadline, place);
}

static void arm(struct loop_deadlines *list, const struct loop_deadline *first, int64_t now_ms)
{
	int64_t delay = first->at_ms - now_ms;

	loop_timer_set(&list->timer, (delay < 0 ? 0 : delay) + slack_ms(list));
}

static void on_deadlines(struct loop_timer *timer)
{
	struct loop_deadlines *list = container_of(timer, struct loop_deadlines, timer);
	int64_t now_ms = loop_now_ms(list->timer.loop);
	struct loop_deadline *first;

	while ((first = first_of(list)) && first->at_ms <= now_ms) {
		deadline_unlink(first);
		list->on_time(first);
		if (!list->timer.event) /* closed by the callback */
			return;
	}
	if (first)
		arm(list, first, now_ms);
}

int loop_deadlines_open(struct loop *loop, struct loop_deadlines *list, int64_t delay_ms,
        void (*on_time)(struct loop_deadline *deadline))
{
	list->loop = loop;
	list->delay_ms = delay_ms;
	list->on_time = on_time;
	list_init(&list->members);
	return loop_timer_open(loop, &list->timer, on_deadlines);
}

void loop_deadlines_close(struct loop_deadlines *list)
{
	struct loop_deadline *first;

	if (!list->members.next) /* it was never opened */
		return;
	while ((first = first_of(list)))
		deadline_unlink(first);
	loop_timer_close(&list->timer);
}

void loop_deadline_set(struct loop_deadlines *list, struct loop_deadline *d)
{
	int64_t now_ms = loop_now_ms(list->loop);
	bool was_empty = list_is_empty(&list->members);

	if (d->list)
		deadline_unlink(d);
	d->at_ms = now_ms + list->delay_ms;
	d->list = list;
	list_append(&list->members, &d->place);
	/* A list that became empty keeps its timer running: an early look costs less than arming
	 * the timer each time. */
	if (was_empty && !event_pending(list->timer.event, EV_TIMEOUT, NULL))
		arm(list, d, now_ms);
}

void loop_deadline_clear(struct loop_deadline *d)
{
	if (d->list)
		deadline_unlink(d);
}
