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

#define BATCH 32     /* connections accepted per turn */
#define AGAIN_MS 200 /* pause after descriptors or memory ran out */

static bool may_accept(const struct gateway *g)
{
	return !g->held && g->unproved_count < g->start.unauthenticated;
}

static void pause_receiver(struct receiver *r)
{
	r->paused = true;
	loop_io_close(&r->io);
}

/* Returns false if there is nothing to accept at the moment. */
static bool accept_one(struct receiver *r)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	int fd = accept4(r->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		visitor_open(r, fd, (struct sockaddr *)&from);
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
	unsigned n = 0;

	(void)events;
	while (n++ < BATCH && may_accept(r->gateway) && accept_one(r))
		;
	if (!may_accept(r->gateway) && r->io.watch)
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
