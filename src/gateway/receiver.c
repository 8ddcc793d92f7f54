/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets. Connections are accepted up to the bound on connections without a proof.
 * Further ones wait in the kernel's backlog, not for long, because each connection has a deadline
 * for its proof. A connection beyond the bound of its address is closed at once.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/visitor.h"
#include "vethguard/base/clock.h"

#define BATCH 32     /* connections accepted per turn */
#define PACE_MS 10   /* pause between turns while pace_is_tight() */
#define PACE_BATCH 4 /* connections opened per turn then */
#define PACE_MOST 64 /* the same, with those closed at once because of their address */
#define AGAIN_MS 200 /* pause after descriptors or memory ran out */

static bool may_accept(const struct gateway *g)
{
	return !g->held && !g->pausing && g->unproved_count < g->start.unauthenticated;
}

static void pause_receiver(struct receiver *r)
{
	r->paused = true;
	loop_io_close(&r->io);
}

/* Returns false if there is nothing to accept at the moment. */
static bool accept_one(struct receiver *r, unsigned *opened)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	int fd = accept4(r->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		*opened += visitor_open(r, fd, (struct sockaddr *)&from);
		return true;
	}
	if (errno == ECONNABORTED || errno == EINTR)
		return true;
	if (errno != EAGAIN && errno != EWOULDBLOCK) {
		pause_receiver(r);
		loop_timer_set(&r->gateway->accept_again, AGAIN_MS);
	}
	return false;
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct receiver *r = container_of(io, struct receiver, io);
	struct gateway *g = r->gateway;
	const bool tight = pace_is_tight(g, clock_monotonic_ms());
	const unsigned batch = tight ? PACE_BATCH : BATCH, most = tight ? PACE_MOST : BATCH;
	unsigned n = 0, opened = 0;

	(void)events;
	while (n++ < most && opened < batch && may_accept(g) && accept_one(r, &opened))
		;
	if (tight) {
		g->pausing = true;
		loop_timer_set(&g->accept_again, PACE_MS);
	}
	if (!may_accept(g) && r->io.watch)
		pause_receiver(r);
}

static int watch(struct receiver *r)
{
	return loop_io_open_level(r->gateway->loop, &r->io, r->fd, LOOP_READ, on_ready);
}

void receivers_resume(struct gateway *g)
{
	if (!may_accept(g))
		return;
	for (size_t i = 0; i < g->receiver_count; i++) {
		struct receiver *r = &g->receivers[i];

		if (!r->paused)
			continue;
		r->paused = watch(r) != 0;
		if (r->paused)
			loop_timer_set(&g->accept_again, AGAIN_MS);
	}
}

void receivers_end_pause(struct gateway *g)
{
	g->pausing = false;
	receivers_resume(g);
}

int receiver_open(struct gateway *g, int fd, enum config_gateway_kind kind)
{
	struct receiver *r = &g->receivers[g->receiver_count];

	*r = (struct receiver){.gateway = g, .fd = fd, .kind = kind};
	g->receiver_count++;
	return watch(r);
}

void receivers_close(struct gateway *g)
{
	for (size_t i = 0; i < g->receiver_count; i++) {
		loop_io_close(&g->receivers[i].io);
		close(g->receivers[i].fd);
	}
	g->receiver_count = 0;
}
