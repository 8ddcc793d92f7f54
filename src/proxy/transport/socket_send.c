/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sockets send. A shared buffer is claimed before it is touched; the claim moves the last
 * owner's bytes to where they belong. A socket's bytes are in this order: first those in `out`,
 * then those in the shared tx, then those in the stage.
 */
#include <errno.h>
#include <sys/socket.h>

#include "proxy/transport/socket_send.h"

/* --- onto the socket --- */

/* Shuts down a socket that failed, so that epoll brings its owner to socket_read(), which reports
 * the failure: no owner is called back from inside its own write. */
void socket_break(struct socket *l)
{
	if (!l->broken)
		shutdown(l->fd, SHUT_RDWR);
	l->broken = true;
	l->draining = false;
}

/* Sending has failed. The kernel reports the error once, here to send(), so recv() will report an
 * end after the last byte even after a reset. Linux reports EPIPE instead if a FIN came before the
 * reset. */
static void sending_failed(struct socket *l, int error)
{
	socket_break(l);
	if (!l->reads_on)
		return;
	l->draining = l->readable = l->hung_up = true;
	l->fin_came = error == EPIPE;
}

static void mark_congestion(struct socket *l)
{
	if (l->out.len >= SOCKET_HIGH)
		l->congested = true;
}

/* Appends to the socket's own queue. If there is no room, the socket is broken: bytes are never
 * lost silently. */
static void queue_out(struct socket *l, const uint8_t *p, size_t n)
{
	if (l->broken)
		return;
	if (n && buf_append(&l->out, p, n) < 0)
		socket_break(l);
	mark_congestion(l);
}

/* Sends from p as much as the socket takes; returns the count. */
static size_t send_some(struct socket *l, const uint8_t *p, size_t n)
{
	size_t sent = 0;

	while (sent < n && l->writable && !l->broken) {
		ssize_t r = send(l->fd, p + sent, n - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r > 0)
			sent += (size_t)r;
		else if (r < 0 && errno == EINTR)
			continue;
		else if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			l->writable = false;
		else
			sending_failed(l, errno);
	}
	l->sent += sent;
	return sent;
}

/* Shuts down only if no bytes of this socket wait anywhere: those in a shared buffer would be
 * lost. */
static bool shut_down_if_due(struct socket *l)
{
	if (!l->end_after_flush || l->broken || socket_unsent(l))
		return false;
	l->end_after_flush = false;
	shutdown(l->fd, SHUT_WR);
	return true;
}

static void put_out(struct socket *l, struct slice wire)
{
	const uint8_t *p = (const uint8_t *)wire.p;
	const size_t sent = l->out.len == 0 ? send_some(l, p, wire.n) : 0;

	queue_out(l, p + sent, wire.n - sent);
}

/* Sends plain bytes inside of the outer TLS; with `ends` also its close_notify. */
static void put_outer(struct socket *l, struct slice plain, bool ends)
{
	struct slice wire;

	if (l->broken)
		return;
	if (outer_seal(l->outer, plain.p, plain.n, ends, &wire))
		put_out(l, wire);
	else
		socket_break(l);
}

static void send_tx(struct socket_shared *s)
{
	struct socket *l = s->tx_owner;

	if (!l)
		return;
	s->tx_owner = NULL;
	if (l->outer)
		put_outer(l, buf_slice(&s->tx), l->end_after_flush);
	else
		put_out(l, buf_slice(&s->tx));
	buf_consume(&s->tx, s->tx.len);
	shut_down_if_due(l);
}

/* --- the shared buffers --- */

/* Queues the task, unless it is running: then it sends what it encrypts itself, and queued once
 * more it would cost another turn of the loop. */
static void flush_later(struct socket_shared *s)
{
	if (!s->flushing)
		loop_task_queue(s->loop, &s->flush);
}

void socket_claim_tx(struct socket *l)
{
	struct socket_shared *s = l->shared;

	if (s->tx_owner == l)
		return;
	send_tx(s);
	s->tx_owner = l;
	flush_later(s);
}

static void encrypt(struct socket *l, const uint8_t *p, size_t n)
{
	socket_claim_tx(l);
	if (!l->broken && tls_write(l->tls, p, n) != TLS_OK)
		socket_break(l);
	if (l->shared->tx.len >= SOCKET_TX - SOCKET_RECORD)
		send_tx(l->shared);
}

static void stage_empty(struct socket_shared *s)
{
	if (s->stage_secret)
		secret_wipe(buf_bytes(&s->stage), s->stage.len);
	s->stage_secret = false;
	buf_consume(&s->stage, s->stage.len);
}

/* Encrypts what the stage holds as one record. */
static void stage_flush(struct socket_shared *s)
{
	struct socket *l = s->stage_owner;

	if (!l)
		return;
	s->stage_owner = NULL;
	encrypt(l, buf_bytes(&s->stage), s->stage.len);
	stage_empty(s);
}

static void write_tls(struct socket *l, const uint8_t *p, size_t n)
{
	struct socket_shared *s = l->shared;

	if (s->stage_owner && s->stage_owner != l)
		stage_flush(s);
	if (s->stage.len + n > SOCKET_RECORD)
		stage_flush(s);
	if (s->stage.len == 0 && n >= SOCKET_RECORD / 4) {
		encrypt(l, p, n);
		return;
	}
	if (buf_append(&s->stage, p, n) < 0) {
		socket_break(l);
		return;
	}
	s->stage_owner = l;
	flush_later(s);
}

/* --- for owners of sockets --- */

void socket_write(struct socket *l, const void *p, size_t n)
{
	if (l->fd < 0 || l->broken || n == 0)
		return;
	if (l->tls) {
		write_tls(l, p, n);
		return;
	}
	socket_claim_tx(l);
	if (l->shared->tx.len + n > SOCKET_TX) {
		send_tx(l->shared);
		socket_claim_tx(l);
	}
	if (buf_append(&l->shared->tx, p, n) < 0)
		socket_break(l);
}

void socket_write_secret(struct socket *l, const void *p, size_t n)
{
	if (l->fd < 0 || l->broken || !l->tls)
		return;
	write_tls(l, p, n);
	if (l->shared->stage_owner == l)
		l->shared->stage_secret = true;
}

void socket_flush(struct socket *l)
{
	struct socket_shared *s = l->shared;

	if (s->stage_owner == l)
		stage_flush(s);
	if (s->tx_owner == l)
		send_tx(s);
}

void socket_flush_secret(struct socket *l)
{
	struct buf *tx = &l->shared->tx;
	uint8_t *p = l->shared->tx_owner == l ? buf_bytes(tx) : NULL;
	const size_t n = tx->len;

	socket_flush(l);
	if (p && tx->len == 0 && tx->mem)
		secret_wipe(p, n);
}

void socket_end(struct socket *l)
{
	if (l->fd < 0 || l->broken)
		return;
	if (l->shared->stage_owner == l)
		stage_flush(l->shared);
	l->end_after_flush = true;
	socket_claim_tx(l);
	if (l->tls)
		tls_close(l->tls);
}

size_t socket_unsent(struct socket *l)
{
	const struct socket_shared *s = l->shared;

	return l->out.len + (s->tx_owner == l ? s->tx.len : 0) +
	       (s->stage_owner == l ? s->stage.len : 0);
}

/* --- for socket.c --- */

void socket_end_outer(struct socket *l)
{
	if (l->outer)
		put_outer(l, SLICE(""), true);
}

void socket_drain(struct socket *l)
{
	size_t sent = send_some(l, buf_bytes(&l->out), l->out.len);
	bool drained = false;

	buf_consume(&l->out, sent);
	if (l->out.len == 0) {
		buf_fini(&l->out);
		drained = shut_down_if_due(l);
	}
	if (l->congested && l->out.len < SOCKET_HIGH / 2) {
		l->congested = false;
		drained = true;
	}
	if (drained)
		l->on_drained(l);
}

void socket_on_flush(struct loop_task *task)
{
	struct socket_shared *s = container_of(task, struct socket_shared, flush);

	s->flushing = true;
	if (s->stage_owner)
		socket_flush(s->stage_owner);
	send_tx(s);
	s->flushing = false;
}

void socket_disown(struct socket *l)
{
	struct socket_shared *s = l->shared;

	if (s->rx_owner == l)
		s->rx_owner = NULL;
	if (s->stage_owner == l) {
		s->stage_owner = NULL;
		stage_empty(s);
	}
	if (s->tx_owner == l) {
		s->tx_owner = NULL;
		buf_consume(&s->tx, s->tx.len);
	}
}
