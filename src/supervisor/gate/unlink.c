/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread for each link that is being deleted. It does nothing else and waits in the kernel most
 * of the time, together with the other deletions. The loop handles signals; ids and network
 * namespaces belong to each thread (see identity.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "supervisor/gate/private.h"
#include "supervisor/gate/unlink.h"

#define STACK_BYTES (256 * 1024)

struct gate_unlinking {
	struct gate_unlinking *prev, *next;
	struct loop *loop;
	int netns, event;
	bool runs; /* its thread runs; else it waits for one */
	pthread_t thread;
	struct loop_io io;
	void (*done)(void *context);
	void *context;
};

static struct gate_unlinking *all; /* those that wait follow those that run */
static unsigned running;

/* The result is ignored: gate_remove() deletes the link again and reports it. */
static void *delete_link(void *argument)
{
	const struct gate_unlinking *u = argument;

	netns_run(u->netns, gate_delete_link, NULL);
	eventfd_write(u->event, 1);
	return NULL;
}

static int start_thread(struct gate_unlinking *u)
{
	pthread_attr_t attributes;
	sigset_t blocked, before;
	int rc = pthread_attr_init(&attributes);

	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	rc = pthread_create(&u->thread, &attributes, delete_link, u);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	u->runs = rc == 0;
	running += u->runs;
	return -rc;
}

static void start_next(void)
{
	struct gate_unlinking *u;

	DL_FOREACH(all, u)
	{
		if (running >= GATE_UNLINKS_MAX)
			return;
		if (!u->runs && start_thread(u) != 0)
			eventfd_write(u->event, 1); /* gate_remove() deletes its link */
	}
}

static void unlinking_free(struct gate_unlinking *u)
{
	if (u->runs) {
		pthread_join(u->thread, NULL);
		running--;
	}
	loop_io_close(&u->io);
	DL_DELETE(all, u);
	close(u->netns);
	close(u->event);
	free(u);
}

static void on_deleted(struct loop_io *io, unsigned events)
{
	struct gate_unlinking *u = container_of(io, struct gate_unlinking, io);
	void (*done)(void *context) = u->done;
	void *context = u->context;

	(void)events;
	unlinking_free(u);
	start_next();
	done(context);
}

void gate_unlink_end(struct gate_unlinking *u)
{
	if (!u)
		return;
	unlinking_free(u);
	start_next();
}

int gate_unlink(struct gate *gate, struct loop *loop, void (*done)(void *context), void *context,
        struct gate_unlinking **out)
{
	struct gate_unlinking *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return -ENOMEM;
	u->loop = loop;
	u->done = done;
	u->context = context;
	u->netns = fcntl(gate->netns, F_DUPFD_CLOEXEC, 0);
	u->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	DL_APPEND(all, u);
	rc = u->netns < 0 || u->event < 0 ? -errno : 0;
	if (!rc)
		rc = loop_io_open_level(loop, &u->io, u->event, LOOP_READ, on_deleted);
	if (!rc && running < GATE_UNLINKS_MAX)
		rc = start_thread(u);
	if (rc) {
		unlinking_free(u);
		return rc;
	}
	gate_unwatch(gate); /* it would report that the link is gone */
	*out = u;
	return 0;
}
