/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: sockets with or without TLS over the thread's shared buffers: what is received, and a
 * link's life. How bytes are sent is transport/socket_send.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/transport/socket_send.h"

/* --- the shared buffers --- */

int link_shared_init(struct link_shared *s, struct loop *loop)
{
	memset(s, 0, sizeof *s);
	s->loop = loop;
	s->flush.run = link_on_flush;
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
		link_break(l);
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

	if (l->broken && !l->draining)
		return LINK_ERROR;
	if (!l->readable && !l->doubtful)
		return LINK_AGAIN;
	l->doubtful = false;
	do
		r = recv(l->fd, p, cap, MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	if (r > 0) {
		*n = (size_t)r;
		l->received += (size_t)r;
		if (*n < cap && !l->hung_up) {
			l->readable = false;
			l->doubtful = true;
		}
		return LINK_OK;
	}
	if (r == 0)
		return l->draining && !l->fin_came ? LINK_ERROR : LINK_EOF;
	if ((errno == EAGAIN || errno == EWOULDBLOCK) && !l->draining) {
		l->readable = false;
		return LINK_AGAIN;
	}
	link_break(l);
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
	link_claim_tx(l);
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
		link_claim_tx(l);
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
			link_claim_tx(l); /* TLS may answer a key update or send an alert */
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
			link_drain(l);
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

void link_reset_socket(int fd)
{
	const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

	(void)connect(fd, &nowhere, sizeof nowhere);
}

void link_close(struct link *l, bool reset)
{
	if (!l->shared || l->fd < 0)
		return;
	if (!reset)
		link_flush(l);
	link_disown(l);
	loop_io_close(&l->io);
	if (reset)
		link_reset_socket(l->fd);
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

void link_drop_tls(struct link *l)
{
	link_flush(l);
	if (l->shared->rx_owner == l)
		l->shared->rx_owner = NULL;
	buf_fini(&l->parked);
	tls_free(l->tls);
	l->tls = NULL;
}

int link_release(struct link *l, struct buf *left, struct loop_io *io,
        void (*handler)(struct loop_io *io, unsigned events))
{
	int fd = l->fd;

	link_flush(l);
	*left = l->out;
	buf_init(&l->out, LINK_OUT_MAX);
	link_disown(l);
	loop_io_move(&l->io, io, handler);
	buf_fini(&l->parked);
	l->fd = -1;
	return fd;
}
