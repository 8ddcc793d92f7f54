/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: sockets with or without TLS over the thread's shared buffers. A buffer is claimed before
 * it is touched; the claim pushes the last owner's bytes to where they belong. Order of a link's
 * bytes: what is in `out` was written first, then what is in the shared tx, then the stage.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/link.h"

static void send_tx(struct link_shared *s);

static void on_flush(struct loop_task *task)
{
	struct link_shared *s = container_of(task, struct link_shared, flush);

	if (s->stage_owner)
		link_flush(s->stage_owner);
	send_tx(s);
}

int link_shared_init(struct link_shared *s, struct loop *loop)
{
	memset(s, 0, sizeof *s);
	s->loop = loop;
	s->flush.run = on_flush;
	s->rx = malloc(LINK_CHUNK);
	buf_init(&s->tx, LINK_OUT_MAX);
	if (secret_alloc(&s->stage_memory, 2 * LINK_RECORD) == 0)
		s->stage = (struct buf){
		        .mem = s->stage_memory.p, .cap = 2 * LINK_RECORD, .max = 2 * LINK_RECORD};
	if (!s->rx || !buf_reserve(&s->tx, 2 * LINK_CHUNK) || !s->stage.mem) {
		link_shared_fini(s);
		return -ENOMEM;
	}
	return 0;
}

void link_shared_fini(struct link_shared *s)
{
	loop_task_cancel(s->loop, &s->flush);
	free(s->rx);
	s->rx = NULL;
	buf_fini(&s->tx);
	secret_free(&s->stage_memory);
}

/* --- sending --- */

/* A link that failed is shut down, so that epoll brings its owner to link_read(), which reports the
 * failure: no owner is ever called from inside one of its own writes. */
static void mark_broken(struct link *l)
{
	if (!l->broken)
		shutdown(l->fd, SHUT_RDWR);
	l->broken = true;
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
	if (n && buf_append(&l->out, p, n) < 0)
		mark_broken(l);
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
			mark_broken(l);
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

static void tx_claim(struct link *l)
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
	tx_claim(l);
	if (!l->broken && tls_write(l->tls, p, n) != TLS_OK)
		mark_broken(l);
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
		mark_broken(l);
		return;
	}
	s->stage_owner = l;
	loop_task_queue(s->loop, &s->flush);
}

void link_write(struct link *l, const void *p, size_t n)
{
	if (l->fd < 0 || l->broken || n == 0)
		return;
	if (l->tls) {
		write_tls(l, p, n);
		return;
	}
	tx_claim(l);
	if (l->shared->tx.len + n > 2 * LINK_CHUNK) {
		send_tx(l->shared);
		tx_claim(l);
	}
	if (buf_append(&l->shared->tx, p, n) < 0)
		mark_broken(l);
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
	tx_claim(l);
	if (l->tls)
		tls_close(l->tls);
}

size_t link_unsent(struct link *l)
{
	const struct link_shared *s = l->shared;

	return l->out.len + (s->tx_owner == l ? s->tx.len : 0) +
	       (s->stage_owner == l ? s->stage.len : 0);
}

static void drain_out(struct link *l)
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

/* --- receiving --- */

/* What TLS has not used up of the shared run moves to memory of the link's own. */
static void rx_park(struct link_shared *s)
{
	struct link *l = s->rx_owner;
	size_t left;

	if (!l)
		return;
	s->rx_owner = NULL;
	left = tls_input_left(l->tls);
	if (!left)
		return;
	if (buf_append(&l->parked, s->rx + s->rx_n - left, left) < 0) {
		mark_broken(l);
		tls_feed(l->tls, NULL, 0);
		return;
	}
	tls_feed(l->tls, buf_bytes(&l->parked), l->parked.len);
}

/* recv into p; LINK_OK with *n > 0. With edge-triggered readiness a short read means "nothing
 * left", except when a FIN or a reset had arrived before: then no further edge comes. epoll tells
 * of a FIN, so reading goes on to the end; of a reset it tells nothing that a readable socket does
 * not show as well, so whoever still wants more looks once again. */
static enum link_status receive(struct link *l, uint8_t *p, size_t cap, size_t *n)
{
	ssize_t r;

	if (l->broken)
		return LINK_ERROR;
	if (!l->readable && !l->doubtful)
		return LINK_AGAIN;
	l->doubtful = false;
	do
		r = recv(l->fd, p, cap, MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	if (r > 0) {
		*n = (size_t)r;
		if (*n < cap && !l->hung_up) {
			l->readable = false;
			l->doubtful = true;
		}
		return LINK_OK;
	}
	if (r == 0)
		return LINK_EOF;
	if (errno == EAGAIN || errno == EWOULDBLOCK) {
		l->readable = false;
		return LINK_AGAIN;
	}
	mark_broken(l);
	return LINK_ERROR;
}

/* Gives TLS more ciphertext. */
static enum link_status receive_tls(struct link *l)
{
	struct link_shared *s = l->shared;
	enum link_status status;
	size_t n;

	buf_fini(&l->parked);
	if (s->rx_owner != l)
		rx_park(s);
	status = receive(l, s->rx, LINK_CHUNK, &n);
	if (status != LINK_OK)
		return status;
	s->rx_owner = l;
	s->rx_n = n;
	tls_feed(l->tls, s->rx, n);
	return LINK_OK;
}

enum link_status link_handshake(struct link *l)
{
	tx_claim(l);
	for (;;) {
		enum link_status status;

		switch (tls_handshake(l->tls)) {
		case TLS_OK:
			return LINK_OK;
		case TLS_WANT_READ:
			break;
		default:
			return LINK_ERROR;
		}
		status = receive_tls(l);
		if (status != LINK_OK)
			return status;
		tx_claim(l);
	}
}

enum link_status link_read(struct link *l, uint8_t *out, size_t cap, size_t *n)
{
	*n = 0;
	if (l->fd < 0)
		return LINK_ERROR;
	if (!l->tls)
		return receive(l, out, cap, n);
	for (;;) {
		enum link_status status;

		if (tls_input_left(l->tls))
			tx_claim(l); /* TLS may answer a key update or send an alert */
		/* Without input too: it may hold the rest of a record, or remember that the end has
		 * come. */
		switch (tls_read(l->tls, out, cap, n)) {
		case TLS_OK:
			return LINK_OK;
		case TLS_WANT_READ:
			break;
		case TLS_CLOSED:
			return LINK_EOF;
		default:
			return LINK_ERROR;
		}
		status = receive_tls(l);
		if (status == LINK_EOF)
			l->truncated = true; /* FIN without close_notify */
		if (status != LINK_OK)
			return status;
	}
}

/* --- life --- */

static void on_ready(struct loop_io *io, unsigned events)
{
	struct link *l = container_of(io, struct link, io);

	if (events & LOOP_CLOSED)
		l->hung_up = true;
	if (events & (LOOP_READ | LOOP_CLOSED))
		l->readable = true;
	if (events & LOOP_WRITE) {
		l->writable = true;
		if (l->out.len || l->end_after_flush)
			drain_out(l);
	}
	if (l->fd >= 0 && (l->readable || l->broken))
		l->on_event(l);
}

int link_open(struct link_shared *shared, struct link *l, int fd, struct loop_io *watched,
        void (*on_event)(struct link *), void (*on_drained)(struct link *))
{
	int r = 0;

	memset(l, 0, sizeof *l);
	l->shared = shared;
	l->fd = fd;
	l->on_event = on_event;
	l->on_drained = on_drained;
	l->readable = l->writable = true; /* try first, ask epoll later */
	buf_init(&l->parked, 2 * LINK_CHUNK);
	buf_init(&l->out, LINK_OUT_MAX);
	if (watched)
		loop_io_move(watched, &l->io, on_ready);
	else
		r = loop_io_open(shared->loop, &l->io, fd, LINK_EVENTS, on_ready);
	if (r < 0) {
		close(fd);
		l->fd = -1;
	}
	return r;
}

/* Lets go of every shared buffer, sending nothing. */
static void disown(struct link *l)
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

void link_close(struct link *l, bool reset)
{
	if (!l->shared || l->fd < 0)
		return;
	if (!reset)
		link_flush(l);
	disown(l);
	loop_io_close(&l->io);
	if (reset) {
		struct linger linger = {.l_onoff = 1, .l_linger = 0};

		setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	}
	close(l->fd);
	l->fd = -1;
	tls_free(l->tls);
	l->tls = NULL;
	buf_fini(&l->parked);
	buf_fini(&l->out);
}

int link_start_tls(struct link *l, struct tls *tls, struct slice first)
{
	l->tls = tls;
	if (first.n && buf_append_slice(&l->parked, first) < 0)
		return -ENOMEM;
	tls_feed(tls, buf_bytes(&l->parked), l->parked.len);
	return 0;
}

int link_release(struct link *l, struct buf *left, struct loop_io *io,
        void (*handler)(struct loop_io *io, unsigned events))
{
	int fd = l->fd;

	link_flush(l);
	*left = l->out;
	buf_init(&l->out, LINK_OUT_MAX);
	disown(l);
	loop_io_move(&l->io, io, handler);
	buf_fini(&l->parked);
	l->fd = -1;
	return fd;
}
