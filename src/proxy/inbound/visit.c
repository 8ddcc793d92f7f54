/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One visit. It is accepted and authorized by its source; it waits for a socket into the sandbox,
 * which the supervisor makes and connects; then both sockets become a tunnel. No byte of the
 * visitor is read before the sandbox's program has accepted the connection, and none is interpreted
 * later.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/inbound/inbound.h"
#include "proxy/tunnel/tunnel.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define VISIT_LABELS_MAX 32 /* as many as an attachment may have */

static const char *const state_names[] = {
        [VISIT_WAITING] = "WAITING",
        [VISIT_CONNECTING] = "CONNECTING",
        [VISIT_OPEN] = "OPEN",
        [VISIT_CLOSED] = "CLOSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == VISIT_STATE_COUNT, "a name per state");

static void enter(struct visit *v, enum visit_state state)
{
	log_debug("visit :%u to port %u: %s -> %s", v->src_port, v->port->port,
	        state_names[v->state], state_names[state]);
	v->state = state;
}

static struct proxy *proxy_of(const struct visit *v)
{
	return v->port->inbound->proxy;
}

static struct event event_of(const struct visit *v, enum event_decision decision,
        enum event_cause cause, const char *detail)
{
	const struct policy *policy = proxy_of(v)->config.policy;
	struct policy_expose expose;

	policy_expose(policy, policy_expose_find(policy, v->port->port), &expose);
	return (struct event){.id = v->id,
	        .kind = EVENT_INBOUND,
	        .time_ms = v->start_ms,
	        .duration_us = audit_duration_us((clock_real_ms() - v->start_ms) * 1000),
	        .decision = decision,
	        .cause = cause,
	        .policy_reason =
	                decision == EVENT_DENIED ? POLICY_REASON_DEFAULT : POLICY_REASON_RULE,
	        .rule = expose.name,
	        .detail = slice_from_string(detail),
	        .src = v->src,
	        .src_port = v->src_port,
	        .dst = v->dst,
	        .dst_port = v->dst_port,
	        .upstream = v->port->address,
	        .upstream_port = v->port->port,
	        .protocol = IPPROTO_TCP,
	        .user = slice_of(v->caller, v->caller_n)};
}

void visit_record(struct visit *v, enum event_decision decision, enum event_cause cause,
        const char *detail, uint64_t from_sandbox, uint64_t to_sandbox)
{
	struct event e = event_of(v, decision, cause, detail);

	e.bytes_out = from_sandbox;
	e.bytes_in = to_sandbox;
	proxy_of(v)->config.record(proxy_of(v)->config.context, &e);
}

/* --- the tunnel's owner --- */

static void record(void *context, enum event_cause cause, const char *detail, uint64_t from_sandbox,
        uint64_t to_sandbox)
{
	visit_record(context, EVENT_ALLOWED, cause, detail, from_sandbox, to_sandbox);
}

static void leave(struct visit *v)
{
	struct inbound *in = v->port->inbound;

	enter(v, VISIT_CLOSED);
	v->port->open--;
	in->count--;
	list_remove(&v->list);
	loop_task_queue(in->proxy->config.loop, &v->deferred_free);
	inbound_resume(in);
	proxy_maybe_idle(in->proxy);
}

static void closed(void *context)
{
	leave(context);
}

static const struct tunnel_owner owner = {.record = record, .closed = closed};

static void on_deferred_free(struct loop_task *task)
{
	struct visit *v = container_of(task, struct visit, deferred_free);

	tunnel_free(v->tunnel);
	free(v->caller);
	free(v);
}

/* --- the end --- */

/* Closes the sockets that the tunnel has not taken. The visitor gets a reset, because nothing was
 * answered. */
static void close_sockets(struct visit *v)
{
	loop_io_close(&v->inner_io);
	loop_deadline_clear(&v->deadline);
	if (v->inner >= 0) {
		socket_reset_socket(v->inner);
		close(v->inner);
	}
	if (v->fd >= 0) {
		socket_reset_socket(v->fd);
		close(v->fd);
	}
	v->inner = v->fd = -1;
}

void visit_end(struct visit *v, enum event_cause cause, const char *detail)
{
	if (v->state == VISIT_CLOSED)
		return;
	if (v->state == VISIT_OPEN) {
		tunnel_close(v->tunnel, cause, detail);
		return;
	}
	if (v->state == VISIT_WAITING) {
		list_remove(&v->waiting);
		v->port->waiting--;
	}
	if (!v->cut)
		visit_record(v, EVENT_DENIED, cause, detail, 0, 0);
	close_sockets(v);
	leave(v);
}

void visit_on_deadline(struct loop_deadline *deadline)
{
	struct visit *v = container_of(deadline, struct visit, deadline);

	visit_end(v, EVENT_CAUSE_TIMEOUT,
	        v->state == VISIT_WAITING ? "no socket into the sandbox was made in time"
	                                  : "the sandbox did not accept the connection in time");
}

/* --- the way into the sandbox --- */

static void begin(struct visit *v, struct loop_io *inner_io, unsigned events)
{
	struct proxy *p = proxy_of(v);
	struct loop_io io = {0};
	struct tunnel_side sides[2] = {{.fd = v->inner, .io = inner_io, .events = events},
	        {.fd = v->fd, .io = &io, .events = LOOP_READ}};

	v->tunnel = tunnel_new(p, &owner, v);
	if (!v->tunnel || loop_io_open(p->config.loop, &io, v->fd, SOCKET_EVENTS, NULL) < 0) {
		visit_end(v, EVENT_CAUSE_LIMIT, "no memory");
		return;
	}
	buf_init(&sides[0].first, 2 * SOCKET_CHUNK);
	buf_init(&sides[1].first, 2 * SOCKET_CHUNK);
	loop_deadline_clear(&v->deadline);
	enter(v, VISIT_OPEN);
	v->fd = v->inner = -1;
	tunnel_run(v->tunnel, sides);
}

static const char *connect_failure(int error)
{
	if (error == ECONNREFUSED)
		return "nothing in the sandbox listens on that port at its address (a program that "
		       "listens on 127.0.0.1 is not reached: let it listen on 0.0.0.0)";
	return "the sandbox cannot be reached";
}

static void on_connect(struct loop_io *io, unsigned events)
{
	struct visit *v = container_of(io, struct visit, inner_io);
	socklen_t n = sizeof(int);
	int error = 0;

	if (!(events & (LOOP_WRITE | LOOP_CLOSED)))
		return;
	if (getsockopt(v->inner, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		error = errno;
	if (error)
		visit_end(v, EVENT_CAUSE_CONNECT, connect_failure(error));
	else
		begin(v, &v->inner_io, events);
}

void visit_connect(struct visit *v, int inner, const char *why)
{
	struct proxy *p = proxy_of(v);

	if (inner < 0) {
		visit_end(v, EVENT_CAUSE_CONNECT, why);
		return;
	}
	list_remove(&v->waiting);
	v->port->waiting--;
	v->inner = inner;
	enter(v, VISIT_CONNECTING);
	loop_deadline_set(&p->waits[WAIT_VISIT], &v->deadline);
	if (loop_io_open(p->config.loop, &v->inner_io, inner, SOCKET_EVENTS, on_connect) < 0)
		visit_end(v, EVENT_CAUSE_LIMIT, "no memory");
}

/* --- the beginning --- */

/* True if the visitor came to the listener that the policy has for the port. */
static bool is_place(const struct policy_expose *expose, const struct visit *v)
{
	return expose->at_port == v->dst_port &&
	       (ip_classify(&expose->at) == IP_UNSPECIFIED || ip_equals(&expose->at, &v->dst));
}

static size_t split_labels(const struct visit *v, struct slice labels[VISIT_LABELS_MAX])
{
	struct slice rest = slice_of(v->caller + v->caller_n, v->labels_n);
	size_t count = 0;

	while (rest.n && count < VISIT_LABELS_MAX) {
		ptrdiff_t end = slice_find_byte(rest, '\n');
		size_t n = end < 0 ? rest.n : (size_t)end;

		labels[count++] = slice_of(rest.p, n);
		n += end >= 0;
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return count;
}

bool visit_passes(const struct visit *v, const struct policy *policy)
{
	struct policy_peer peer = {.address = v->src, .own = v->own};
	uint32_t index = policy_expose_find(policy, v->port->port);
	struct slice labels[VISIT_LABELS_MAX];
	struct policy_expose expose;

	if (index == POLICY_NONE)
		return false;
	policy_expose(policy, index, &expose);
	if (!v->caller)
		return is_place(&expose, v) && policy_expose_admits(policy, index, &peer);
	peer = (struct policy_peer){.sandbox = slice_of(v->caller, v->caller_n), .labels = labels};
	peer.label_count = split_labels(v, labels);
	return policy_expose_admits(policy, index, &peer);
}

static void refuse(struct visit *v, enum event_cause cause, const char *detail)
{
	struct event e = event_of(v, EVENT_DENIED, cause, detail);

	inbound_record_refused(v->port->inbound, &e);
	close_sockets(v);
	free(v->caller);
	free(v);
}

/* A connection from this machine has a loopback address as its source, or the same address as its
 * destination. */
static void find_addresses(struct visit *v, const struct sockaddr *from)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);

	v->src = ip_from_sockaddr(from, &v->src_port);
	if (getsockname(v->fd, (struct sockaddr *)&at, &n) == 0)
		v->dst = ip_from_sockaddr((struct sockaddr *)&at, &v->dst_port);
	v->own = ip_classify(&v->src) == IP_LOOPBACK ||
	         (v->src.family && ip_equals(&v->src, &v->dst));
}

static struct visit *visit_new(struct inbound_port *port, int fd)
{
	struct visit *v = calloc(1, sizeof(*v));

	if (!v) {
		close(fd);
		return NULL;
	}
	v->port = port;
	v->fd = fd;
	v->inner = -1;
	v->id = proxy_event_id(port->inbound->proxy);
	v->start_ms = clock_real_ms();
	v->deferred_free.run = on_deferred_free;
	return v;
}

/* Admits or refuses the visitor. */
static void authorize(struct visit *v)
{
	struct inbound_port *port = v->port;
	struct inbound *in = port->inbound;
	struct proxy *p = in->proxy;

	if (p->paused) {
		refuse(v, p->pause_cause, p->pause_text);
		return;
	}
	if (!visit_passes(v, p->config.policy)) {
		refuse(v, EVENT_CAUSE_POLICY, "no entry of from: names this source");
		return;
	}
	in->came++;
	in->count++;
	port->open++;
	port->waiting++;
	list_append(&in->visits, &v->list);
	list_append(&port->visitors, &v->waiting);
	loop_deadline_set(&p->waits[WAIT_VISIT], &v->deadline);
}

void visit_open(struct inbound_port *port, int fd, const struct sockaddr *from)
{
	struct visit *v = visit_new(port, fd);
	const int one = 1;

	if (!v)
		return;
	find_addresses(v, from);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	authorize(v);
}

void visit_call(struct inbound_port *port, int fd, struct slice sandbox, struct slice labels)
{
	struct visit *v = visit_new(port, fd);

	if (!v)
		return;
	v->caller_n = sandbox.n;
	v->labels_n = labels.n;
	v->caller = malloc(sandbox.n + labels.n + 1);
	if (!v->caller) {
		close_sockets(v);
		free(v);
		return;
	}
	memcpy(v->caller, sandbox.p, sandbox.n);
	if (labels.n)
		memcpy(v->caller + sandbox.n, labels.p, labels.n);
	if (port->inbound->proxy->held)
		refuse(v, EVENT_CAUSE_LIMIT, "the audit log cannot be written at present");
	else if (policy_expose_find(port->inbound->proxy->config.policy, port->port) !=
	                 POLICY_NONE &&
	         inbound_is_full(port)) /* a call has no backlog to wait in */
		refuse(v, EVENT_CAUSE_LIMIT, "as many connections as the port may have are open");
	else
		authorize(v);
}
