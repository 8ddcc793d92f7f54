/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From addresses to a connected socket, in the manner of RFC 8305: the addresses in turn, a further
 * attempt whenever the last one failed or has taken STAGGER_MS, the first to connect wins.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/dial/private.h"

#define STAGGER_MS 250

void dial_attempt_close(struct attempt *a)
{
	if (a->fd < 0)
		return;
	loop_io_close(&a->io);
	close(a->fd);
	a->fd = -1;
	a->dial->running--;
}

static void won(struct attempt *a, unsigned events)
{
	struct dial *d = a->dial;

	loop_io_move(&a->io, &d->io, dial_on_early);
	d->result.fd = a->fd;
	d->result.address = a->address;
	d->result.events = events;
	a->fd = -1;
	d->running--;
	for (size_t i = 0; i < d->count; i++)
		dial_attempt_close(&d->attempts[i]);
	if (d->stagger.event)
		loop_timer_cancel(&d->stagger);
	if (d->through)
		dial_ask_proxy(d);
	else
		dial_finish(d);
}

static const char *connect_error_text(const struct dial *d, int error)
{
	if (d->through)
		return "the egress proxy cannot be reached";
	switch (error) {
	case ECONNREFUSED:
		return "the destination refused the connection";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "there is no route to the destination";
	case ETIMEDOUT:
		return "the destination did not answer";
	case EACCES:
	case EPERM:
		return "this worker is not permitted to connect to that port";
	default:
		return "the connection could not be made";
	}
}

static void on_connect(struct loop_io *io, unsigned events)
{
	struct attempt *a = container_of(io, struct attempt, io);
	struct dial *d = a->dial;
	int rc = 0;
	socklen_t n = sizeof(rc);

	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &rc, &n) < 0)
		rc = errno;
	if (rc == 0) {
		won(a, events);
		return;
	}
	dial_fail(d, EVENT_CAUSE_CONNECT, connect_error_text(d, rc));
	dial_attempt_close(a);
	dial_try_next(d);
}

/* Nothing is held back for a fuller segment, and a peer that vanished is noticed though both sides
 * are silent. */
static void set_options(int fd)
{
	const int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

/* Starts one attempt; false: it failed at once. */
static bool attempt_start(struct dial *d, struct attempt *a)
{
	struct sockaddr_storage to;
	const struct config_egress *egress = d->proxy->config.egress;
	socklen_t n = ip_to_sockaddr(
	        &a->address, d->through ? egress->proxy_port : d->destination.port, &to);
	const char *why;
	int rc;

	if (!d->through && !dial_may_connect(d->proxy, &d->decision, &a->address)) {
		dial_refuse_address(
		        d, &a->address, "the name resolves to an address of this host itself");
		return false;
	}
	a->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (a->fd < 0) {
		dial_fail(d, EVENT_CAUSE_LIMIT, "no descriptor is left for a connection");
		return false;
	}
	d->running++;
	set_options(a->fd);
	why = egress ? egress_bind(egress, a->fd, a->address.family) : NULL;
	if (why) {
		dial_fail(d, EVENT_CAUSE_CONNECT, why);
		dial_attempt_close(a);
		return false;
	}
	rc = connect(a->fd, (struct sockaddr *)&to, n);
	if (rc < 0 && errno != EINPROGRESS)
		dial_fail(d, EVENT_CAUSE_CONNECT, connect_error_text(d, errno));
	else if (loop_io_open(d->proxy->config.loop, &a->io, a->fd, SOCKET_EVENTS, on_connect) == 0)
		return true; /* an established connection is reported by the loop */
	else
		dial_fail(d, EVENT_CAUSE_LIMIT, "no memory for a connection");
	dial_attempt_close(a);
	return false;
}

static void on_stagger(struct loop_timer *timer)
{
	dial_try_next(container_of(timer, struct dial, stagger));
}

/* A further address has its turn if this one takes too long; without memory for that, only if it
 * fails. Most names have one, and need no timer. */
static void stagger(struct dial *d)
{
	if (d->next < d->count && (d->stagger.event || loop_timer_open(d->proxy->config.loop,
	                                                       &d->stagger, on_stagger) == 0))
		loop_timer_set(&d->stagger, STAGGER_MS);
}

void dial_try_next(struct dial *d)
{
	if (d->result.fd >= 0)
		return;
	while (d->next < d->count) {
		struct attempt *a = &d->attempts[d->next];

		a->address = d->addresses[d->next++];
		if (!attempt_start(d, a))
			continue;
		stagger(d);
		return;
	}
	if (d->running == 0)
		dial_finish(d);
}
