/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed ports. The worker accepts at the host's listener and authorizes the source. It cannot
 * connect into the sandbox itself: for each visit the supervisor makes a socket in the gate and
 * connects it. One message asks for all visits that wait at a port, so that a busy port needs few
 * of the messages that a worker may send.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/inbound/inbound.h"
#include "proxy/tunnel/tunnel.h"
#include "vethguard/base/clock.h"

#define ACCEPT_BATCH 32
#define ACCEPT_AGAIN_MS 200

/* --- accepting --- */

bool inbound_is_full(const struct inbound_port *port)
{
	const struct inbound *in = port->inbound;
	const struct policy *policy = in->proxy->config.policy;
	struct policy_expose expose;

	policy_expose(policy, policy_expose_find(policy, port->port), &expose);
	return port->open >= expose.connections ||
	       in->count >= in->proxy->config.limits.connections;
}

static bool may_accept(const struct inbound_port *port)
{
	const struct proxy *p = port->inbound->proxy;

	return p->state == PROXY_SERVING && !p->held && !inbound_is_full(port);
}

/* Accepts visitors. Returns true if more may be waiting. Beyond a bound, visitors wait in the
 * kernel's backlog. */
static bool take(struct inbound_port *port)
{
	for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
		struct sockaddr_storage from;
		socklen_t n = sizeof(from);
		int fd;

		port->paused = !may_accept(port);
		if (port->paused)
			return false;
		fd = accept4(port->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			visit_open(port, fd, (struct sockaddr *)&from);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return false;
		port->paused = true;
		loop_timer_set(&port->inbound->accept_again, ACCEPT_AGAIN_MS);
		return false;
	}
	return true;
}

/* Asks the supervisor for the sockets that are missing, if it may be asked now. */
static void ask_for_sockets(struct inbound *in)
{
	const struct proxy_config *config = &in->proxy->config;

	for (size_t i = 0; i < in->port_count; i++) {
		struct inbound_port *port = &in->ports[i];
		uint32_t count = port->waiting < MESSAGE_REACH_MAX ? (uint32_t)port->waiting
		                                                   : MESSAGE_REACH_MAX;

		if (count == 0 || port->asked)
			continue;
		if (!rate_take(&in->asks, clock_monotonic_ms())) {
			loop_timer_set(&in->ask_again, INBOUND_ASK_AGAIN_MS);
			return;
		}
		if (config->reach(config->context, port->port, count) == 0)
			port->asked = count;
	}
}

static void accept_some(struct inbound_port *port)
{
	if (port->fd < 0)
		return;
	if (take(port))
		loop_task_queue(port->inbound->proxy->config.loop, &port->more);
	ask_for_sockets(port->inbound);
}

static void on_accept(struct loop_io *io, unsigned events)
{
	(void)events;
	accept_some(container_of(io, struct inbound_port, io));
}

static void on_more(struct loop_task *task)
{
	accept_some(container_of(task, struct inbound_port, more));
}

void inbound_resume(struct inbound *in)
{
	for (size_t i = 0; i < in->port_count; i++)
		if (in->ports[i].paused && in->ports[i].fd >= 0)
			loop_task_queue(in->proxy->config.loop, &in->ports[i].more);
}

static void on_again(struct loop_timer *timer)
{
	inbound_resume(container_of(timer, struct inbound, accept_again));
}

/* --- sockets into the sandbox --- */

static void on_ask_again(struct loop_timer *timer)
{
	ask_for_sockets(container_of(timer, struct inbound, ask_again));
}

static struct inbound_port *find(struct inbound *in, uint16_t number)
{
	for (size_t i = 0; i < in->port_count; i++)
		if (in->ports[i].port == number)
			return &in->ports[i];
	return NULL;
}

/* Some of the visits that the sockets are for may have ended meanwhile. */
int proxy_reached(struct proxy *p, uint16_t number, const struct ip *address, int *fds,
        size_t count, const char *why)
{
	struct inbound_port *port = p->inbound ? find(p->inbound, number) : NULL;
	size_t missing;

	if (!port || count > port->asked)
		return -EBADMSG;
	missing = port->asked - count;
	port->asked = 0;
	port->address = *address;
	for (size_t i = 0; i < count && !list_is_empty(&port->visitors); i++) {
		int fd = fds[i];

		fds[i] = -1;
		visit_connect(container_of(port->visitors.next, struct visit, waiting), fd, NULL);
	}
	for (size_t i = 0; i < missing && !list_is_empty(&port->visitors); i++)
		visit_connect(container_of(port->visitors.next, struct visit, waiting), -1, why);
	ask_for_sockets(p->inbound);
	return 0;
}

/* --- life --- */

/* The inbound part of the proxy, made at the first call; NULL: no memory. */
static struct inbound *inbound_of(struct proxy *p)
{
	struct inbound *in = p->inbound ? NULL : calloc(1, sizeof(*in));

	if (!in)
		return p->inbound;
	in->proxy = p;
	list_init(&in->visits);
	rate_init(&in->asks, INBOUND_ASKS_PER_S, INBOUND_ASKS_BURST_S, clock_monotonic_ms());
	if (loop_timer_open(p->config.loop, &in->ask_again, on_ask_again) < 0 ||
	        loop_timer_open(p->config.loop, &in->accept_again, on_again) < 0 ||
	        loop_timer_open(p->config.loop, &in->second, inbound_on_second) < 0) {
		inbound_free(in);
		return NULL;
	}
	p->inbound = in;
	return in;
}

static struct inbound_port *port_of(struct inbound *in, uint16_t number)
{
	struct inbound_port *port = find(in, number);

	if (port || in->port_count == INBOUND_PORTS_MAX)
		return port;
	port = &in->ports[in->port_count++];
	port->inbound = in;
	port->port = number;
	port->fd = -1;
	port->more.run = on_more;
	list_init(&port->visitors);
	return port;
}

void proxy_visited(
        struct proxy *p, uint16_t number, int fd, struct slice sandbox, struct slice labels)
{
	struct inbound *in = inbound_of(p);
	struct inbound_port *port = in ? port_of(in, number) : NULL;

	if (!port || p->state != PROXY_SERVING) {
		close(fd);
		return;
	}
	visit_call(port, fd, sandbox, labels);
	ask_for_sockets(in);
}

int proxy_serve_exposed(struct proxy *p, int fd, uint16_t number)
{
	struct inbound *in = inbound_of(p);
	struct inbound_port *port = in ? port_of(in, number) : NULL;
	int rc = !port ? -ENOMEM : port->fd >= 0 ? -EEXIST : 0;

	if (!rc && p->state == PROXY_SERVING)
		rc = loop_io_open(p->config.loop, &port->io, fd, LOOP_READ, on_accept);
	if (rc || p->state != PROXY_SERVING) {
		close(fd);
		return rc;
	}
	port->fd = fd;
	return 0;
}

void inbound_retire(struct inbound *in)
{
	for (size_t i = 0; i < in->port_count; i++) {
		struct inbound_port *port = &in->ports[i];

		loop_io_close(&port->io);
		loop_task_cancel(in->proxy->config.loop, &port->more);
		if (port->fd >= 0)
			close(port->fd);
		port->fd = -1;
	}
}

void inbound_end(struct inbound *in, enum event_cause cause, const char *detail)
{
	while (!list_is_empty(&in->visits))
		visit_end(container_of(in->visits.next, struct visit, list), cause, detail);
}

size_t inbound_reauthorize(
        struct inbound *in, const struct policy *next, enum event_cause cause, const char *detail)
{
	size_t cut = 0;

	for (struct list *l = in->visits.next; l != &in->visits; l = l->next) {
		struct visit *v = container_of(l, struct visit, list);

		if (next && visit_passes(v, next))
			continue;
		v->cut = true;
		cut++;
		if (v->state == VISIT_OPEN)
			tunnel_record(v->tunnel, cause, detail);
		else
			visit_record(v, EVENT_DENIED, cause, detail, 0, 0);
	}
	return cut;
}

void inbound_end_marked(struct inbound *in)
{
	struct list *next;

	for (struct list *l = in->visits.next; l != &in->visits; l = next) {
		struct visit *v = container_of(l, struct visit, list);

		next = l->next;
		if (v->cut)
			visit_end(v, EVENT_CAUSE_POLICY_CHANGED, NULL);
	}
}

void inbound_free(struct inbound *in)
{
	if (!in)
		return;
	inbound_retire(in);
	while (!list_is_empty(&in->visits)) {
		struct visit *v = container_of(in->visits.next, struct visit, list);

		visit_end(v, EVENT_CAUSE_CLOSING, NULL);
		loop_task_cancel(in->proxy->config.loop, &v->deferred_free);
		v->deferred_free.run(&v->deferred_free);
	}
	inbound_on_second(&in->second);
	loop_timer_close(&in->ask_again);
	loop_timer_close(&in->accept_again);
	loop_timer_close(&in->second);
	in->proxy->inbound = NULL;
	free(in);
}
