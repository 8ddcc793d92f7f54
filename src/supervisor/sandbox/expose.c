/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a listener is opened before its worker is started. So an attachment, a claim
 * or a reload is refused, with nothing changed, if a listener cannot be opened. A sandbox that
 * exists already is served without such a listener: a program that takes a port while the daemon
 * restarts must not cut off its sandboxes.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

#define BACKLOG 128

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* --- listening --- */

struct listening {
	const struct policy_expose *expose;
};

static int set_options(int fd, int family)
{
	const int one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (family == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

static int listen_at(void *context)
{
	const struct policy_expose *e = ((struct listening *)context)->expose;
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&e->at, e->at_port, &ss);
	int fd, rc;

	fd = socket(e->at.family == 4 ? AF_INET : AF_INET6,
	        SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = set_options(fd, e->at.family);
	if (!rc && bind(fd, (struct sockaddr *)&ss, n) < 0)
		rc = -errno;
	if (!rc && listen(fd, BACKLOG) < 0)
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static bool is_at(const struct exposed *x, size_t i, const struct policy_expose *e)
{
	return x->listeners[i].port == e->at_port && ip_equals(&x->listeners[i].at, &e->at);
}

/* Returns the listener of an entry, or NULL. */
static int *find(struct exposed *x, const struct policy_expose *e)
{
	for (size_t i = 0; i < x->count; i++)
		if (is_at(x, i, e))
			return &x->listeners[i].fd;
	return NULL;
}

/* True if one of the listeners occupies the address and port. An address of zeros stands for all
 * addresses. */
static bool collides(const struct exposed *x, const struct policy_expose *e)
{
	for (size_t i = 0; i < x->count; i++) {
		const struct ip *at = &x->listeners[i].at;

		if (x->listeners[i].port == e->at_port && at->family == e->at.family &&
		        (ip_equals(at, &e->at) || ip_classify(at) == IP_UNSPECIFIED ||
		                ip_classify(&e->at) == IP_UNSPECIFIED))
			return true;
	}
	return false;
}

/* Returns the sandbox that listens there, or NULL. */
static const struct sandbox *taken_by(const struct sandbox *s, const struct policy_expose *e)
{
	if (collides(&s->exposed, e))
		return s;
	for (struct sandbox *other = s->supervisor->sandboxes; other; other = other->hh.next)
		if (other != s && collides(&other->exposed, e))
			return other;
	return NULL;
}

static const char *refusal(const struct sandbox *s, const struct policy_expose *e, int error,
        char out[MESSAGE_NAME_MAX + 64])
{
	const struct sandbox *other = error == -EADDRINUSE ? taken_by(s, e) : NULL;

	if (other == s)
		return "the earlier policy listens there in another way: remove that entry and "
		       "reload, then add this one and reload again";
	if (other) {
		snprintf(out, MESSAGE_NAME_MAX + 64, "sandbox %s listens there already",
		        other->name);
		return out;
	}
	switch (error) {
	case -EADDRINUSE:
		return "another program uses that port";
	case -EADDRNOTAVAIL:
		return "this machine does not have that address";
	case -EACCES:
		return "the user who named the policy may not use that port";
	default:
		return strerror(-error);
	}
}

/* Sets the failure and its kind. Returns error. */
static int refuse(struct sandbox *s, const struct policy_expose *e, int error)
{
	char at[POLICY_ENDPOINT_MAX], why[MESSAGE_NAME_MAX + 64];

	s->fault = GATE_FAULT_OWN;
	if (error == -EADDRINUSE)
		s->fault = GATE_FAULT_TAKEN;
	if (error == -EADDRNOTAVAIL || error == -EACCES)
		s->fault = GATE_FAULT_ASKED;
	snprintf(s->failure, sizeof(s->failure), "port %u cannot be exposed at %s: %s", e->port,
	        policy_endpoint_text(&e->at, e->at_port, at), refusal(s, e, error, why));
	return error;
}

static int open_one(struct sandbox *s, const struct generation *g, const struct policy_expose *e)
{
	struct listening l = {e};
	struct exposed *x = &s->exposed;
	int fd;

	if (find(x, e))
		return 0;
	if (x->count == EXPOSE_LISTENERS_MAX)
		return refuse(s, e, -ENOSPC);
	fd = taken_by(s, e)      ? -EADDRINUSE
	     : g->identity.lends ? listen_at(&l)
	                         : identity_run(&g->identity, listen_at, &l);
	if (fd < 0)
		return refuse(s, e, fd);
	x->listeners[x->count].at = e->at;
	x->listeners[x->count].port = e->at_port;
	x->listeners[x->count++].fd = fd;
	return 0;
}

/* A link that vethguard made always has addresses; the link of a claim does not belong to the
 * sandbox yet. */
static const char *cannot_expose(const struct sandbox *s)
{
	struct gate gate = s->gate;

	if (s->session)
		return "a session has no address to connect to: it comes from another machine";
	if (s->listen)
		gate.kind = GATE_SOCKET;
	if (s->shared_dns_port)
		gate.kind = GATE_SHARED;
	return gate.kind == GATE_VETH ? NULL : gate_cannot_reach(&gate);
}

int sandbox_expose(struct sandbox *s, const struct generation *g)
{
	const struct policy *policy = &g->settings->policy;
	const char *why = policy_expose_count(policy) ? cannot_expose(s) : NULL;
	struct policy_expose expose;
	int rc = 0;

	if (why) {
		s->fault = GATE_FAULT_ASKED;
		snprintf(s->failure, sizeof(s->failure),
		        "the policy exposes a port, which is not possible here: %s", why);
		return -EOPNOTSUPP;
	}
	for (uint32_t i = 0; i < policy_expose_count(policy) && !rc; i++) {
		policy_expose(policy, i, &expose);
		if (expose.at.family)
			rc = open_one(s, g, &expose);
	}
	return rc;
}

static bool is_exposed_by(const struct generation *g, const struct exposed *x, size_t i)
{
	struct policy_expose expose;

	for (uint32_t k = 0; g && k < policy_expose_count(&g->settings->policy); k++) {
		policy_expose(&g->settings->policy, k, &expose);
		if (is_at(x, i, &expose))
			return true;
	}
	return false;
}

void sandbox_expose_trim(struct sandbox *s)
{
	const struct generation *next = s->successor ? s->successor->generation : NULL;
	struct exposed *x = &s->exposed;

	for (size_t i = 0; i < x->count;) {
		if (is_exposed_by(s->generation, x, i) || is_exposed_by(next, x, i)) {
			i++;
			continue;
		}
		close(x->listeners[i].fd);
		x->listeners[i] = x->listeners[--x->count];
	}
}

void sandbox_expose_close(struct sandbox *s)
{
	struct exposed *x = &s->exposed;

	loop_timer_cancel(&x->again);
	x->pause_ms = 0;
	while (x->count)
		close(x->listeners[--x->count].fd);
}

/* --- trying again --- */

static void on_again(struct loop_timer *timer)
{
	struct sandbox *s =
	        container_of(container_of(timer, struct exposed, again), struct sandbox, exposed);

	sandbox_expose_again(s);
	if (s->current && s->current->worker_request && instance_tell_exposed(s->current) != 0)
		log_sandbox(LOG_LEVEL_ERROR, s->name, "its worker cannot be told of its ports");
}

/* Keeps s->failure, which is about the sandbox's start; a failure here is only logged. */
void sandbox_expose_again(struct sandbox *s)
{
	struct exposed *x = &s->exposed;
	char before[SANDBOX_FAILURE_MAX];

	memcpy(before, s->failure, sizeof(before));
	if (!s->generation)
		return;
	if (sandbox_expose(s, s->generation) == 0) {
		if (x->pause_ms)
			log_sandbox(LOG_LEVEL_INFO, s->name, "its ports are exposed again");
		x->pause_ms = 0;
	} else {
		if (!x->pause_ms)
			log_sandbox(LOG_LEVEL_ERROR, s->name,
			        "%s; it is served without, and tried again", s->failure);
		x->pause_ms = x->pause_ms ? 2 * x->pause_ms : EXPOSE_AGAIN_MS;
		if (x->pause_ms > EXPOSE_AGAIN_MAX_MS)
			x->pause_ms = EXPOSE_AGAIN_MAX_MS;
		if (!x->again.event && loop_timer_open(s->supervisor->loop, &x->again, on_again))
			return;
		loop_timer_set(&x->again, x->pause_ms);
	}
	memcpy(s->failure, before, sizeof(before));
}

/* --- the worker --- */

static int tell(struct instance *i, uint16_t port, int fd)
{
	const struct message_listen m = {port};
	size_t n = message_listen_encode(buffer, sizeof(buffer), MESSAGE_WORKER_LISTEN,
	        supervisor_next_id(i->supervisor), &m);

	return role_send(&i->worker, buffer, n, &fd, 1);
}

int instance_tell_exposed(struct instance *i)
{
	const struct policy *policy = &i->generation->settings->policy;
	struct policy_expose expose;
	int rc = 0;

	if (policy_expose_count(policy))
		role_bound(&i->worker, ROLE_WORKER_VISITS_BURST, ROLE_WORKER_VISITS_PER_S);
	for (uint32_t k = 0; k < policy_expose_count(policy) && !rc; k++) {
		const int *fd;

		policy_expose(policy, k, &expose);
		fd = expose.at.family ? find(&i->sandbox->exposed, &expose) : NULL;
		if (!fd || i->exposed >> k & 1)
			continue;
		rc = tell(i, expose.port, *fd);
		i->exposed |= UINT32_C(1) << k;
	}
	return rc;
}

/* True if the worker may have connections to the port: its own policy exposes it and, if the worker
 * is retired, the policy in force does too. */
static bool may_reach(const struct instance *i, uint16_t port)
{
	const struct sandbox *s = i->sandbox;
	const struct policy *own = &i->generation->settings->policy;
	const struct policy *now = &s->generation->settings->policy;

	return !s->paused && policy_expose_find(own, port) != POLICY_NONE &&
	       (i->state != INSTANCE_RETIRED || policy_expose_find(now, port) != POLICY_NONE);
}

int instance_on_reach(struct instance *i, struct ipc_message *message)
{
	int fds[MESSAGE_REACH_MAX], rc = -EACCES;
	struct message_reached reached = {0};
	struct message_reach m;
	size_t count = 0, n;

	if (message_reach_decode(&message->body, &m) != 0 || !i->generation)
		return -EBADMSG;
	if (may_reach(i, m.port))
		rc = gate_reach(&i->sandbox->gate, m.port, fds, m.count, &count);
	reached.port = m.port;
	reached.address = *gate_reached(&i->sandbox->gate);
	if (rc)
		reached.error = slice_from_string(strerror(-rc));
	n = message_reached_encode(
	        buffer, sizeof(buffer), MESSAGE_WORKER_REACHED, message->head.id, &reached);
	rc = role_send(&i->worker, buffer, n, fds, count);
	for (size_t k = 0; k < count; k++)
		close(fds[k]);
	if (rc)
		log_sandbox(LOG_LEVEL_WARN, i->sandbox->name, "its worker: %s", strerror(-rc));
	return 0;
}
