/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners. Connections are accepted as they come, up to the bound on their number.
 *
 * A flood is many connections for which nothing is let out: the sandbox closes them without a byte,
 * asks for what is denied, or sends what is not a request. During a flood a few connections are
 * accepted a hundred times a second, instead of each one when it comes: being woken is most of what
 * such a connection costs, and the neighbors pay for that time. The others wait in the kernel's
 * backlog. If the backlog is full, the kernel drops their first packets, at this sandbox's expense
 * only.
 *
 * No fence protects a Unix socket or a vsock port, so this file bounds their connections per
 * second. Those beyond the bound wait in the kernel's backlog.
 *
 * Every virtual machine of the host can connect to a vsock port. The kernel tells which machine a
 * connection comes from: only connections of the sandbox's own machine are served, and not a byte
 * is read from others.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Must follow sys/socket.h: older versions need it and do not include it. */
#include <linux/vm_sockets.h>

#include "proxy/client/client.h"
#include "proxy/exchange/audit.h"
#include "vethguard/base/clock.h"

#define ACCEPT_BATCH 64       /* further connections per turn of the loop */
#define ACCEPT_AGAIN_MS 200   /* after running out of descriptors or memory */
#define ACCEPT_PACE_MS 10     /* between two looks at a listener during a flood */
#define ACCEPT_PACE_BATCH 4   /* connections per look */
#define UNPRODUCTIVE_PER_S 50 /* connections for which nothing was let out; more is a flood */
#define LOCAL_BURST_S 2       /* as on a link (fence/rules_inet.c) */
#define STRANGERS_PER_S 1     /* findings; the next one counts those in between */
#define STRANGERS_BURST_S 10

static bool may_accept(const struct proxy *p)
{
	return p->state == PROXY_SERVING && !p->held &&
	       p->client_count < p->config.limits.connections;
}

void accept_was_unproductive(struct proxy *p)
{
	rate_take(&p->unproductive, clock_monotonic_ms());
}

static bool is_flooded(struct proxy *p)
{
	return !rate_has(&p->unproductive, clock_monotonic_ms());
}

static bool is_stranger(const struct listener *l, const struct sockaddr_storage *from)
{
	struct sockaddr_vm vm;

	if (!l->cid)
		return false;
	memcpy(&vm, from, sizeof(vm));
	return vm.svm_family != AF_VSOCK || vm.svm_cid != l->cid;
}

static void tell_stranger(struct listener *l, const struct sockaddr_storage *from)
{
	struct proxy *p = l->proxy;
	struct sockaddr_vm vm;
	char text[160];

	accept_was_unproductive(p);
	p->strangers_untold++;
	if (!rate_take(&p->strangers, clock_monotonic_ms()))
		return;
	memcpy(&vm, from, sizeof(vm));
	snprintf(text, sizeof(text),
	        "CID %u connected to the vsock port of CID %u and was refused (connections since "
	        "the "
	        "last such finding: %llu)",
	        vm.svm_cid, l->cid, (unsigned long long)p->strangers_untold);
	p->strangers_untold = 0;
	audit_foreign_peer(p, text);
}

enum taken {
	TAKEN_ALL,   /* none is left */
	TAKEN_SOME,  /* as many as were wanted; more may wait */
	TAKEN_PAUSE, /* accepting is paused */
	TAKEN_PACED, /* no more at present: the bound on connections in a second is reached */
};

/* Accepts up to `most` connections. Beyond the bound, a connection waits in the kernel's backlog
 * until another one ends. */
static enum taken take(struct listener *l, unsigned most)
{
	for (unsigned i = 0; i < most; i++) {
		struct sockaddr_storage from;
		socklen_t n = sizeof(from);
		int fd;

		l->paused = !may_accept(l->proxy);
		if (l->paused)
			return TAKEN_PAUSE;
		if (l->local && !rate_has(&l->proxy->local_connections, clock_monotonic_ms()))
			return TAKEN_PACED;
		fd = accept4(l->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0 && is_stranger(l, &from)) {
			close(fd);
			tell_stranger(l, &from);
			continue;
		}
		if (fd >= 0) {
			if (l->local)
				rate_take(&l->proxy->local_connections, clock_monotonic_ms());
			client_open(l, fd, (struct sockaddr *)&from);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return TAKEN_ALL;
		/* Try again when a connection ends, or soon. */
		l->paused = true;
		loop_timer_set(&l->proxy->accept_again, ACCEPT_AGAIN_MS);
		return TAKEN_PAUSE;
	}
	return TAKEN_SOME;
}

static void on_accept(struct loop_io *io, unsigned events)
{
	struct listener *l = container_of(io, struct listener, io);
	struct proxy *p = l->proxy;
	enum taken taken = take(l, ACCEPT_PACE_BATCH);

	(void)events;
	if (taken == TAKEN_SOME && !is_flooded(p))
		taken = take(l, ACCEPT_BATCH);
	if (taken == TAKEN_PACED || is_flooded(p)) {
		loop_io_close(&l->io);
		loop_timer_set(&p->accept_paced, ACCEPT_PACE_MS);
	} else if (taken == TAKEN_SOME) {
		loop_task_queue(p->config.loop, &l->more);
	}
}

/* A listener that is not watched now is looked at when it is watched again: otherwise, during a
 * flood, each connection that ends would make room for the next. */
static void on_more(struct loop_task *task)
{
	struct listener *l = container_of(task, struct listener, more);

	if (l->io.watch)
		on_accept(&l->io, LOOP_READ);
}

static int watch(struct listener *l)
{
	return loop_io_open(l->proxy->config.loop, &l->io, l->fd, LOOP_READ, on_accept);
}

/* The loop reports at once what came meanwhile or was left. */
static void on_paced(struct loop_timer *timer)
{
	struct proxy *p = container_of(timer, struct proxy, accept_paced);

	for (size_t i = 0; i < p->listener_count; i++)
		if (!p->listeners[i].io.watch && watch(&p->listeners[i]) < 0)
			loop_timer_set(&p->accept_paced, ACCEPT_AGAIN_MS);
}

void accept_resume(struct proxy *p)
{
	if (!may_accept(p))
		return;
	for (size_t i = 0; i < p->listener_count; i++)
		if (p->listeners[i].paused) {
			p->listeners[i].paused = false;
			loop_task_queue(p->config.loop, &p->listeners[i].more);
		}
}

static void on_again(struct loop_timer *timer)
{
	accept_resume(container_of(timer, struct proxy, accept_again));
}

int accept_open(struct proxy *p)
{
	int rc = loop_timer_open(p->config.loop, &p->accept_again, on_again);

	rate_init(&p->unproductive, UNPRODUCTIVE_PER_S, 1, clock_monotonic_ms());
	rate_init(&p->strangers, STRANGERS_PER_S, STRANGERS_BURST_S, clock_monotonic_ms());
	rate_init(&p->local_connections, p->config.limits.connections_per_s, LOCAL_BURST_S,
	        clock_monotonic_ms());
	return rc < 0 ? rc : loop_timer_open(p->config.loop, &p->accept_paced, on_paced);
}

void accept_close(struct proxy *p)
{
	accept_stop(p, false);
	loop_timer_close(&p->accept_again);
	loop_timer_close(&p->accept_paced);
}

static int serve(struct proxy *p, int fd, bool local, bool rewritten)
{
	struct listener *l;

	if (p->listener_count == PROXY_LISTENERS_MAX) {
		close(fd);
		return -ENOSPC;
	}
	l = &p->listeners[p->listener_count];
	l->proxy = p;
	l->fd = fd;
	l->local = local;
	l->more.run = on_more;
	l->rewritten = rewritten;
	if (watch(l) < 0) {
		close(fd);
		return -ENOMEM;
	}
	p->listener_count++;
	return 0;
}

static int serve_tcp(struct proxy *p, int fd, bool rewritten)
{
	const int one = 1;

	/* Accepted sockets inherit both options (tcp(7), socket(7)). */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	return serve(p, fd, false, rewritten);
}

int proxy_serve_tcp(struct proxy *p, int fd)
{
	return serve_tcp(p, fd, false);
}

int proxy_serve_rewritten(struct proxy *p, int fd)
{
	return serve_tcp(p, fd, true);
}

int proxy_serve_unix(struct proxy *p, int fd)
{
	return serve(p, fd, true, false);
}

int proxy_serve_vsock(struct proxy *p, int fd, uint32_t cid)
{
	int rc = serve(p, fd, true, false);

	if (rc == 0)
		p->listeners[p->listener_count - 1].cid = cid;
	return rc;
}

int proxy_enter(struct proxy *p, int fd, const struct message_worker_enter *enter)
{
	struct listener entered = {.proxy = p,
	        .fd = -1,
	        .local = true,
	        .form = enter->form,
	        .reached = enter->reached,
	        .handover = enter->handover.handed == MESSAGE_HANDED_NOT ? NULL : &enter->handover};
	struct sockaddr_storage from;

	if (!may_accept(p) || !rate_take(&p->local_connections, clock_monotonic_ms())) {
		close(fd);
		return -EBUSY;
	}
	ip_to_sockaddr(&enter->source, enter->source_port, &from);
	return client_open(&entered, fd, (struct sockaddr *)&from);
}

void proxy_cut(struct proxy *p)
{
	client_cut_handed(p);
}

void accept_stop(struct proxy *p, bool first)
{
	for (size_t i = 0; i < p->listener_count; i++) {
		struct listener *l = &p->listeners[i];

		while (first && take(l, ACCEPT_BATCH) == TAKEN_SOME)
			;
		loop_io_close(&l->io);
		loop_task_cancel(p->config.loop, &l->more);
		close(l->fd);
	}
	p->listener_count = 0;
}
