/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: one thread's event loop (libevent); only this module knows libevent. Callbacks run on the loop's thread,
 * never from inside the call that registered them.
 */
#ifndef VETHGUARD_LOOP_LOOP_H
#define VETHGUARD_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vethguard/base/list.h"

struct loop;

struct loop *loop_new(void);       /* NULL: out of memory */
void loop_free(struct loop *loop); /* after everything opened in it was closed; does nothing for NULL */
/* Runs until loop_stop(). Returns 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop); /* takes effect when the running callback returns */
/* Monotonic milliseconds. */
int64_t loop_now_ms(struct loop *loop);

/* Descriptor readiness, edge-triggered: a callback says that something changed. The owner then reads or writes until
 * EAGAIN or until it chooses to stop, and remembers which. LOOP_CLOSED: the peer shut down its sending side. */
#define LOOP_READ 1u
#define LOOP_WRITE 2u
#define LOOP_CLOSED 4u

struct loop_io {
	struct loop *loop;
	struct loop_watch *watch; /* NULL: closed */
	int fd;
	void (*on_ready)(struct loop_io *io, unsigned events);
};

/* Watches fd (edge-triggered) for the given events. The caller owns io and finds its own struct with container_of. fd
 * stays the caller's. Returns 0 or -errno: no memory, or epoll_ctl(2) refuses it. */
int loop_io_open(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events));
/* The same, level-triggered: for listeners and control sockets, where simplicity matters more than speed. */
int loop_io_open_level(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events));
/* Stops watching. No callback follows, not even one that was due. Does nothing if io is closed (zeroed struct). */
void loop_io_close(struct loop_io *io);
/* Moves the registration of from (watched, closed afterwards) to to (not watched before): same descriptor and events,
 * no system call. Due events go to to. Since edges may have been reported already, to has to begin by trying. */
void loop_io_move(struct loop_io *from, struct loop_io *to, void (*on_ready)(struct loop_io *io, unsigned events));

/* One-shot timers, for few things. */
struct loop_timer {
	struct loop *loop;
	struct event *event;
	void (*on_time)(struct loop_timer *timer);
};
/* Returns 0 or -ENOMEM. */
int loop_timer_open(struct loop *loop, struct loop_timer *timer, void (*on_time)(struct loop_timer *timer));
void loop_timer_set(struct loop_timer *timer, int64_t delay_ms); /* from now; replaces an earlier setting */
/* No callback follows. Both do nothing on a closed timer (zeroed struct). */
void loop_timer_cancel(struct loop_timer *timer);
void loop_timer_close(struct loop_timer *timer);

/* One-shot alarms, for times that a person set. They count while the machine sleeps (CLOCK_BOOTTIME); one that falls
 * due meanwhile rings when the machine wakes. Meant to be few: setting one searches its place in a sorted list. */
struct loop_alarm {
	struct list place;
	struct loop *loop;
	int64_t at_ms;
	void (*on_time)(struct loop_alarm *alarm);
};
/* Returns 0 or -errno. */
int loop_alarm_open(struct loop *loop, struct loop_alarm *alarm, void (*on_time)(struct loop_alarm *alarm));
void loop_alarm_set(struct loop_alarm *alarm, int64_t delay_ms); /* from now; replaces an earlier setting */
void loop_alarm_cancel(struct loop_alarm *alarm);                /* it may be freed afterwards; does nothing on a
                                                                    zeroed one */

/* Deadlines, for many things: all in one list wait for the same time, so setting one moves it to the list's tail and
 * costs no system call. They fire late by at most a twentieth of the list's delay (at least 10 ms), never early. */
struct loop_deadline {
	struct list place;
	struct loop_deadlines *list; /* NULL: not set */
	int64_t at_ms;
};
struct loop_deadlines {
	struct loop *loop;
	struct loop_timer timer;
	struct list members; /* in order of at_ms */
	int64_t delay_ms;
	void (*on_time)(struct loop_deadline *deadline);
};
/* Returns 0 or -ENOMEM. */
int loop_deadlines_open(struct loop *loop, struct loop_deadlines *list, int64_t delay_ms,
        void (*on_time)(struct loop_deadline *deadline));
void loop_deadlines_close(struct loop_deadlines *list); /* unsets the deadlines in it */
/* Sets the deadline to delay_ms from now; removes it from any other list. */
void loop_deadline_set(struct loop_deadlines *list, struct loop_deadline *deadline);
void loop_deadline_clear(struct loop_deadline *deadline); /* does nothing if it is not set */

/* Tasks run once at the end of the current turn of the loop, in the order they were queued: to flush, to free, to
 * continue with a connection that used up its share. Queuing a queued task does nothing. What a task queues runs in
 * the next turn. */
struct loop_task {
	struct list place;
	void (*run)(struct loop_task *task);
};
void loop_task_queue(struct loop *loop, struct loop_task *task);
void loop_task_cancel(struct loop *loop, struct loop_task *task); /* does nothing if it is not queued */

/* Signals, delivered in the loop. Opening returns 0 or -ENOMEM; closing does nothing on a zeroed struct. */
struct loop_signal {
	struct loop *loop;
	struct event *event;
	int signal;
	void (*on_signal)(struct loop_signal *s);
};
int loop_signal_open(struct loop *loop, struct loop_signal *s, int signal, void (*on_signal)(struct loop_signal *s));
void loop_signal_close(struct loop_signal *s);

#endif
