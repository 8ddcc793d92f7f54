/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How links send. A shared buffer is claimed before it is touched; the claim pushes the last
 * owner's bytes to where they belong. Order of a link's bytes: what is in `out` was written first,
 * then what is in the shared tx, then the stage.
 */
#include <errno.h>
#include <sys/socket.h>

#include "proxy/transport/socket_send.h"

/* --- onto the socket --- */

/* A link that failed is shut down, so that epoll brings its owner to link_read(), which reports the
 * failure: no owner is ever called from inside one of its own writes. */
void link_break(struct link *l)
{
	if (!l->broken)
		shutdown(l->fd, SHUT_RDWR);
	l->broken = true;
	l->draining = false;
}

/* The socket takes no more. The error is told once, to whoever comes first, and that was send():
 * recv() will report an end after the last byte, which is none after a reset. Linux says EPIPE
 * instead where the FIN had come before the reset. */
static void sending_failed(struct link *l, int error)
{
	link_break(l);
	if (!l->reads_on)
		return;
	l->draining = l->readable = l->hung_up = true;
	l->fin_came = error == EPIPE;
}

static void mark_congestion(struct link *l)
{
	if (l->out.len >= LINK_HIGH)
		l->congested = true;
}

/* Appends to the link's own queue; a link that cannot queue any more is broken, never short of
 * bytes. */
static void queue_out(struct link *l, const uint8_t *p, size_t n)
{
	if (l->broken)
		return;
	if (n && buf_append(&l->out, p, n) < 0)
		link_break(l);
	mark_congestion(l);
}

/* Sends from p as much as the socket takes; the count. */
static size_t send_some(struct link *l, const uint8_t *p, size_t n)
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

/* Only when nothing of this link waits anywhere: what is still in a shared buffer would be lost. */
static bool shut_down_if_due(struct link *l)
{
	if (!l->end_after_flush || l->broken || link_unsent(l))
		return false;
	l->end_after_flush = false;
	shutdown(l->fd, SHUT_WR);
	return true;
}

static void send_tx(struct link_shared *s)
{
	struct link *l = s->tx_owner;
	size_t sent = 0;

	if (!l)
		return;
	s->tx_owner = NULL;
	if (l->out.len == 0)
		sent = send_some(l, buf_bytes(&s->tx), s->tx.len);
	queue_out(l, buf_bytes(&s->tx) + sent, s->tx.len - sent);
	buf_consume(&s->tx, s->tx.len);
	shut_down_if_due(l);
}

/* --- the shared buffers --- */

void link_claim_tx(struct link *l)
{
	struct link_shared *s = l->shared;

	if (s->tx_owner == l)
		return;
	send_tx(s);
	s->tx_owner = l;
	loop_task_queue(s->loop, &s->flush);
}

static void encrypt(struct link *l, const uint8_t *p, size_t n)
{
	link_claim_tx(l);
	if (!l->broken && tls_write(l->tls, p, n) != TLS_OK)
		link_break(l);
	if (l->shared->tx.len >= 2 * LINK_CHUNK - LINK_RECORD)
		send_tx(l->shared);
}

static void stage_empty(struct link_shared *s)
{
	if (s->stage_secret)
		secret_wipe(buf_bytes(&s->stage), s->stage.len);
	s->stage_secret = false;
	buf_consume(&s->stage, s->stage.len);
}

/* Turns what the stage holds into one record. */
static void stage_flush(struct link_shared *s)
{
	struct link *l = s->stage_owner;

	if (!l)
		return;
	s->stage_owner = NULL;
	encrypt(l, buf_bytes(&s->stage), s->stage.len);
	stage_empty(s);
}

static void write_tls(struct link *l, const uint8_t *p, size_t n)
{
	struct link_shared *s = l->shared;

	if (s->stage_owner && s->stage_owner != l)
		stage_flush(s);
	if (s->stage.len + n > LINK_RECORD)
		stage_flush(s);
	if (s->stage.len == 0 && n >= LINK_RECORD / 4) {
		encrypt(l, p, n);
		return;
	}
	if (buf_append(&s->stage, p, n) < 0) {
		link_break(l);
		return;
	}
	s->stage_owner = l;
	loop_task_queue(s->loop, &s->flush);
}

/* --- what owners of links do --- */

void link_write(struct link *l, const void *p, size_t n)
{
	if (l->fd < 0 || l->broken || n == 0)
		return;
	if (l->tls) {
		write_tls(l, p, n);
		return;
	}
	link_claim_tx(l);
	if (l->shared->tx.len + n > 2 * LINK_CHUNK) {
		send_tx(l->shared);
		link_claim_tx(l);
	}
	if (buf_append(&l->shared->tx, p, n) < 0)
		link_break(l);
}

void link_write_secret(struct link *l, const void *p, size_t n)
{
	if (l->fd < 0 || l->broken || !l->tls)
		return;
	write_tls(l, p, n);
	if (l->shared->stage_owner == l)
		l->shared->stage_secret = true;
}

void link_flush(struct link *l)
{
	struct link_shared *s = l->shared;

	if (s->stage_owner == l)
		stage_flush(s);
	if (s->tx_owner == l)
		send_tx(s);
}

void link_end(struct link *l)
{
	if (l->fd < 0 || l->broken)
		return;
	if (l->shared->stage_owner == l)
		stage_flush(l->shared);
	l->end_after_flush = true;
	link_claim_tx(l);
	if (l->tls)
		tls_close(l->tls);
}

size_t link_unsent(struct link *l)
{
	const struct link_shared *s = l->shared;

	return l->out.len + (s->tx_owner == l ? s->tx.len : 0) +
	       (s->stage_owner == l ? s->stage.len : 0);
}

/* --- what link.c needs --- */

void link_drain(struct link *l)
{
	size_t sent = send_some(l, buf_bytes(&l->out), l->out.len);
	bool drained = false;

	buf_consume(&l->out, sent);
	if (l->out.len == 0) {
		buf_fini(&l->out);
		drained = shut_down_if_due(l);
	}
	if (l->congested && l->out.len < LINK_HIGH / 2) {
		l->congested = false;
		drained = true;
	}
	if (drained)
		l->on_drained(l);
}

void link_on_flush(struct loop_task *task)
{
	struct link_shared *s = container_of(task, struct link_shared, flush);

	if (s->stage_owner)
		link_flush(s->stage_owner);
	send_tx(s);
}

void link_disown(struct link *l)
{
	struct link_shared *s = l->shared;

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
