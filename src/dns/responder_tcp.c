/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS over TCP (RFC 7766): each message has a two-byte length before it, queries may be pipelined,
 * and answers go out in the order of the queries. A connection is one buffer in and one out. Only
 * advance() reads and writes; it returns whether the connection lives on. Only its three callers
 * (descriptor, task, deadline) close a connection. A client that does not read its answers is not
 * read from. The idle time restarts with every complete query, not with every byte.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "dns/private.h"

#define LENGTH_BYTES 2
#define IN_MAX (LENGTH_BYTES + DNS_TCP_MAX)
#define OUT_MAX 65536
#define READ_BYTES 4096
#define PAUSE_MS 1000 /* before accepting again after descriptors have run out */
/* More connections than this in a second are accepted a few at a time: being woken is most of a
 * connection's cost. */
#define PER_S 50
#define PACE_MS 10
#define PACE_BATCH 4

enum advance { ADVANCE_WAIT, ADVANCE_AGAIN, ADVANCE_CLOSE };

static void connection_close(struct responder_connection *c)
{
	struct responder *r = c->responder;
	int fd = c->io.fd;

	loop_task_cancel(r->config.loop, &c->again);
	loop_deadline_clear(&c->idle);
	loop_io_close(&c->io);
	close(fd);
	DL_DELETE(r->connections, c);
	r->connection_count--;
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
}

/* Returns 0 if all was sent, -EAGAIN, or another -errno if the connection is broken. */
static int flush(struct responder_connection *c)
{
	while (c->out.len) {
		ssize_t n =
		        send(c->io.fd, buf_bytes(&c->out), c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf_consume(&c->out, (size_t)n);
	}
	return 0;
}

/* Returns 0 if bytes came or the client ended, -EAGAIN, or another -errno if the connection is
 * broken. */
static int fill(struct responder_connection *c)
{
	uint8_t *room = buf_reserve(&c->in, READ_BYTES);
	ssize_t n;

	if (!room)
		return -ENOMEM;
	do {
		n = recv(c->io.fd, room, READ_BYTES, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		c->ended = true;
	buf_commit(&c->in, (size_t)n);
	return 0;
}

/* Answers the query at the front of in. Returns 1 if done, 0 if the query is not complete yet, or
 * -errno to give the connection up. */
static int answer_next(struct responder_connection *c)
{
	struct reader r = reader_over(buf_bytes(&c->in), c->in.len);
	uint8_t framed[LENGTH_BYTES + DNS_ANSWER_MAX];
	struct slice query = reader_vector(&r, LENGTH_BYTES, DNS_TCP_MAX);
	size_t n;

	if (r.failed)
		return 0;
	n = responder_answer(c->responder, (const uint8_t *)query.p, query.n, &c->peer,
	        framed + LENGTH_BYTES, DNS_ANSWER_MAX);
	if (n == 0) /* not a query, or too many: end the connection */
		return -EBADMSG;
	framed[0] = (uint8_t)(n >> 8);
	framed[1] = (uint8_t)n;
	if (buf_append(&c->out, framed, LENGTH_BYTES + n) < 0)
		return -ENOBUFS;
	buf_consume(&c->in, LENGTH_BYTES + query.n);
	loop_deadline_set(&c->responder->idle, &c->idle);
	return 1;
}

static enum advance advance(struct responder_connection *c)
{
	for (int i = 0; i < RESPONDER_TURN_QUERIES; i++) {
		bool held = c->responder->held;
		bool room = OUT_MAX - c->out.len >= LENGTH_BYTES + DNS_ANSWER_MAX;
		int rc = room && !held ? answer_next(c) : 0;

		if (rc > 0)
			continue;
		if (rc == 0)
			rc = flush(c);
		if (rc == 0 && held)
			return ADVANCE_WAIT;
		if (rc == 0 && !room)
			continue;
		if (rc == 0)
			rc = c->ended ? -EPIPE : fill(c);
		if (rc < 0)
			return rc == -EAGAIN ? ADVANCE_WAIT : ADVANCE_CLOSE;
	}
	return ADVANCE_AGAIN;
}

static void run(struct responder_connection *c)
{
	switch (advance(c)) {
	case ADVANCE_WAIT:
		break;
	case ADVANCE_AGAIN:
		loop_task_queue(c->responder->config.loop, &c->again);
		break;
	case ADVANCE_CLOSE:
		connection_close(c);
		break;
	}
}

static void on_ready(struct loop_io *io, unsigned events)
{
	(void)events;
	run(container_of(io, struct responder_connection, io));
}

static void on_again(struct loop_task *task)
{
	run(container_of(task, struct responder_connection, again));
}

void responder_tcp_go_on(struct responder *responder)
{
	struct responder_connection *c;

	DL_FOREACH(responder->connections, c)
	loop_task_queue(responder->config.loop, &c->again);
}

static void on_idle(struct loop_deadline *deadline)
{
	connection_close(container_of(deadline, struct responder_connection, idle));
}

/* Takes fd in any case. */
static void connection_open(struct responder *r, int fd, const struct sockaddr_storage *from)
{
	struct responder_connection *c = NULL;
	struct sockaddr_storage self = {0};
	socklen_t self_n = sizeof(self);

	if (r->connection_count < RESPONDER_TCP_MAX &&
	        getsockname(fd, (struct sockaddr *)&self, &self_n) == 0)
		c = calloc(1, sizeof(*c));
	if (!c || loop_io_open(r->config.loop, &c->io, fd, LOOP_READ | LOOP_WRITE | LOOP_CLOSED,
	                  on_ready) < 0) {
		free(c);
		close(fd);
		return;
	}
	c->responder = r;
	c->again.run = on_again;
	c->peer.client = ip_from_sockaddr((const struct sockaddr *)from, &c->peer.client_port);
	c->peer.asked = ip_from_sockaddr((struct sockaddr *)&self, &c->peer.asked_port);
	c->peer.tcp = true;
	buf_init(&c->in, IN_MAX + READ_BYTES);
	buf_init(&c->out, OUT_MAX);
	DL_PREPEND(r->connections, c);
	r->connection_count++;
	loop_deadline_set(&r->idle, &c->idle);
}

static void on_accept(struct loop_io *io, unsigned events);

static int listener_watch(struct responder_listener *l, int fd)
{
	return loop_io_open_level(l->responder->config.loop, &l->io, fd, LOOP_READ, on_accept);
}

static void on_pause_over(struct loop_timer *timer)
{
	struct responder_listener *l = container_of(timer, struct responder_listener, pause);

	if (listener_watch(l, l->io.fd) < 0)
		loop_timer_set(timer, PAUSE_MS);
}

static void pause_listener(struct responder_listener *l, int64_t ms)
{
	int fd = l->io.fd;

	loop_io_close(&l->io);
	l->io.fd = fd;
	loop_timer_set(&l->pause, ms);
}

static void on_accept(struct loop_io *io, unsigned events)
{
	struct responder_listener *l = container_of(io, struct responder_listener, io);
	int64_t now_ms = loop_now_ms(l->responder->config.loop);

	(void)events;
	for (int i = 0; i < PACE_BATCH || (i < RESPONDER_TCP_MAX && rate_has(&l->rate, now_ms));
	        i++) {
		struct sockaddr_storage from = {0};
		socklen_t from_n = sizeof(from);
		int fd = accept4(
		        io->fd, (struct sockaddr *)&from, &from_n, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			rate_take(&l->rate, now_ms);
			connection_open(l->responder, fd, &from);
			continue;
		}
		/* The loop would report the connection again at once, forever. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			log_warn("DNS over TCP pauses: %s", strerror(errno));
			pause_listener(l, PAUSE_MS);
			return;
		}
		break; /* none left, or a connection went away while it waited */
	}
	if (!rate_has(&l->rate, now_ms))
		pause_listener(l, PACE_MS);
}

static int open_idle_list(struct responder *r)
{
	int rc = 0;

	if (!r->idle_open)
		rc = loop_deadlines_open(r->config.loop, &r->idle, RESPONDER_TCP_IDLE_MS, on_idle);
	r->idle_open = rc == 0;
	return rc;
}

int responder_serve_tcp(struct responder *responder, int fd)
{
	struct responder_listener *l = calloc(1, sizeof(*l));
	int rc = l ? open_idle_list(responder) : -ENOMEM;

	if (!rc) {
		l->responder = responder;
		rate_init(&l->rate, PER_S, 1, loop_now_ms(responder->config.loop));
		rc = loop_timer_open(responder->config.loop, &l->pause, on_pause_over);
	}
	if (!rc) {
		rc = listener_watch(l, fd);
		if (rc)
			loop_timer_close(&l->pause);
	}
	if (rc) {
		free(l);
		close(fd);
		return rc;
	}
	l->next = responder->listeners;
	responder->listeners = l;
	return 0;
}

void responder_tcp_free_all(struct responder *responder)
{
	while (responder->connections)
		connection_close(responder->connections);
	while (responder->listeners) {
		struct responder_listener *l = responder->listeners;
		int fd = l->io.fd;

		responder->listeners = l->next;
		loop_timer_close(&l->pause);
		loop_io_close(&l->io);
		close(fd);
		free(l);
	}
	if (responder->idle_open)
		loop_deadlines_close(&responder->idle);
	responder->idle_open = false;
}
