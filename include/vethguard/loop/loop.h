/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop: one thread's event loop (libevent), and the only place that knows libevent. Callbacks run on the loop's
 * thread, never from inside the call that registered them.
 */
#ifndef VETHGUARD_LOOP_LOOP_H
#define VETHGUARD_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vethguard/base/list.h"

struct loop;

struct loop *loop_new(void); /* NULL: no memory */
void loop_free(struct loop *loop); /* after all that was opened in it was closed; NULL is harmless */
/* Runs until loop_stop(). 0 or -errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop); /* when the callback that is running returns */
/* Monotonic milliseconds. */
int64_t loop_now_ms(struct loop *loop);

/* Descriptor readiness. Edge-triggered: a callback says that something changed, and the owner reads or writes until
 * EAGAIN or until it chooses to stop, and remembers which. LOOP_CLOSED: the peer has shut down its sending side. */
#define LOOP_READ 1u
#define LOOP_WRITE 2u
#define LOOP_CLOSED 4u

struct loop_io {
	struct loop *loop;
	struct loop_watch *watch; /* NULL: closed */
	int fd;
	void (*on_ready)(struct loop_io *io, unsigned events);
};

/* Watches fd (edge-triggered) for the events named. The struct belongs to the caller, who gets at its own through
 * container_of. 0 or -ENOMEM. fd stays the caller's. */
int loop_io_open(struct loop *loop, struct loop_io *io, int fd, unsigned events,
	void (*on_ready)(struct loop_io *io, unsigned events));
/* The same, level-triggered: for listeners and control sockets, where simple beats fast. */
int loop_io_open_level(struct loop *loop, struct loop_io *io, int fd, unsigned events,
	void (*on_ready)(struct loop_io *io, unsigned events));
/* Stops watching; no callback follows, also none that was already due. Harmless on a closed one (zeroed struct). */
void loop_io_close(struct loop_io *io);
/* Hands the registration of from (watched, then closed) over to to (not watched before): the same descriptor and
 * events, no system call. What was due is told to to. As edges may have been told already, to begins by trying. */
void loop_io_move(struct loop_io *from, struct loop_io *to, void (*on_ready)(struct loop_io *io, unsigned events));

/* One-shot timers, for things that are few. */
struct loop_timer {
	struct loop *loop;
	struct event *event;
	void (*on_time)(struct loop_timer *timer);
};
/* 0 or -ENOMEM. */
int loop_timer_open(struct loop *loop, struct loop_timer *timer, void (*on_time)(struct loop_timer *timer));
void loop_timer_set(struct loop_timer *timer, int64_t delay_ms); /* from now; replaces an earlier setting */
/* No callback follows. Both are harmless on a closed one (zeroed struct). */
void loop_timer_cancel(struct loop_timer *timer);
void loop_timer_close(struct loop_timer *timer);

/* One-shot alarms, for times that a person has set: they go on while the machine sleeps (CLOCK_BOOTTIME), and one whose
 * time came meanwhile rings when it wakes. Few, and in order: setting one looks for its place. */
struct loop_alarm {
	struct list place;
	struct loop *loop;
	int64_t at_ms;
	void (*on_time)(struct loop_alarm *alarm);
};
/* 0 or -errno. */
int loop_alarm_open(struct loop *loop, struct loop_alarm *alarm, void (*on_time)(struct loop_alarm *alarm));
void loop_alarm_set(struct loop_alarm *alarm, int64_t delay_ms); /* from now; replaces an earlier setting */
void loop_alarm_cancel(struct loop_alarm *alarm);                /* it may be freed then; harmless on a zeroed one */

/* Deadlines, for things that are many: all in one list wait the same time, so setting one is a move to the list's
 * tail and costs no system call. Precision is a twentieth of the list's delay (at least 10 ms), never early. */
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
/* 0 or -ENOMEM. */
int loop_deadlines_open(struct loop *loop, struct loop_deadlines *list, int64_t delay_ms,
	void (*on_time)(struct loop_deadline *deadline));
void loop_deadlines_close(struct loop_deadlines *list); /* the deadlines in it are unset */
/* Due delay_ms from now; moves it from whichever list it was in. */
void loop_deadline_set(struct loop_deadlines *list, struct loop_deadline *deadline);
void loop_deadline_clear(struct loop_deadline *deadline); /* harmless where it is not set */

/* Work to be done once at the end of this turn of the loop, in order of asking: flushing, freeing, going on with a
 * connection that used up its share. Asking again while asked is harmless; what a task asks for runs in the next
 * turn. */
struct loop_task {
	struct list place;
	void (*run)(struct loop_task *task);
};
void loop_task_queue(struct loop *loop, struct loop_task *task);
void loop_task_cancel(struct loop *loop, struct loop_task *task); /* harmless where it was not asked for */

/* Signals, delivered in the loop. Opening: 0 or -ENOMEM; closing is harmless on a zeroed one. */
struct loop_signal {
	struct loop *loop;
	struct event *event;
	int signal;
	void (*on_signal)(struct loop_signal *s);
};
int loop_signal_open(struct loop *loop, struct loop_signal *s, int signal, void (*on_signal)(struct loop_signal *s));
void loop_signal_close(struct loop_signal *s);

#endif
