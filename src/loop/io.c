/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and signals: thin wrappers around libevent's events. A registration is an allocation
 * of its own that points to its current owner, so it can change hands without a system call.
 */
#include <errno.h>
#include <stdlib.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "loop/private.h"

struct loop_watch {
	struct event event;
	struct loop_io *owner;
};

static void on_event(evutil_socket_t fd, short what, void *argument)
{
	const struct loop_watch *watch = argument;
	struct loop_io *io = watch->owner;
	unsigned events = 0;

	(void)fd;
	if (what & EV_READ)
		events |= LOOP_READ;
	if (what & EV_WRITE)
		events |= LOOP_WRITE;
	if (what & EV_CLOSED)
		events |= LOOP_CLOSED;
	io->on_ready(io, events);
}

static int open_with(struct loop *loop, struct loop_io *io, int fd, unsigned events, short flags,
        void (*on_ready)(struct loop_io *io, unsigned events))
{
	struct loop_watch *watch = malloc(sizeof(*watch));
	short what = EV_PERSIST | flags;

	if (events & LOOP_READ)
		what |= EV_READ;
	if (events & LOOP_WRITE)
		what |= EV_WRITE;
	if (events & LOOP_CLOSED)
		what |= EV_CLOSED;
	*io = (struct loop_io){.loop = loop, .fd = fd, .on_ready = on_ready};
	if (!watch || event_assign(&watch->event, loop_base(loop), fd, what, on_event, watch) < 0) {
		free(watch);
		return -ENOMEM;
	}
	watch->owner = io;
	if (event_add(&watch->event, NULL) < 0) {
		int rc = errno;

		free(watch);
		return rc ? -rc : -ENOMEM;
	}
	io->watch = watch;
	return 0;
}

int loop_io_open(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events))
{
	return open_with(loop, io, fd, events, EV_ET, on_ready);
}

int loop_io_open_level(struct loop *loop, struct loop_io *io, int fd, unsigned events,
        void (*on_ready)(struct loop_io *io, unsigned events))
{
	return open_with(loop, io, fd, events, 0, on_ready);
}

void loop_io_close(struct loop_io *io)
{
	if (!io->watch)
		return;
	event_del(&io->watch->event);
	free(io->watch);
	io->watch = NULL;
}

void loop_io_move(struct loop_io *from, struct loop_io *to,
        void (*on_ready)(struct loop_io *io, unsigned events))
{
	*to = *from;
	to->on_ready = on_ready;
	to->watch->owner = to;
	from->watch = NULL;
}

static void on_signal_event(evutil_socket_t fd, short what, void *argument)
{
	struct loop_signal *s = argument;

	(void)fd, (void)what;
	s->on_signal(s);
}

int loop_signal_open(struct loop *loop, struct loop_signal *s, int signal,
        void (*on_signal)(struct loop_signal *s))
{
	s->loop = loop;
	s->signal = signal;
	s->on_signal = on_signal;
	s->event = evsignal_new(loop_base(loop), signal, on_signal_event, s);
	if (!s->event)
		return -ENOMEM;
	if (event_add(s->event, NULL) < 0) {
		loop_signal_close(s);
		return -ENOMEM;
	}
	return 0;
}

void loop_signal_close(struct loop_signal *s)
{
	if (s->event)
		event_free(s->event);
	s->event = NULL;
}
