/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets with or without TLS over the thread's shared buffers: receiving, and a socket's life.
 * socket_send.c sends.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/transport/socket_send.h"

/* --- the shared buffers --- */

int socket_shared_init(struct socket_shared *s, struct loop *loop)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	s->flush.run = socket_on_flush;
	s->rx = malloc(SOCKET_RX);
	buf_init(&s->tx, SOCKET_OUT_MAX);
	buf_init(&s->answer, SOCKET_CHUNK);
	outer_shared_init(&s->outer);
	if (secret_alloc(&s->stage_memory, 2 * SOCKET_RECORD) == 0)
		s->stage = (struct buf){.mem = s->stage_memory.p,
		        .cap = 2 * SOCKET_RECORD,
		        .max = 2 * SOCKET_RECORD};
	if (!s->rx || !buf_reserve(&s->tx, SOCKET_TX) || !s->stage.mem) {
		socket_shared_fini(s);
		return -ENOMEM;
	}
	return 0;
}

void socket_shared_fini(struct socket_shared *s)
{
	loop_task_cancel(s->loop, &s->flush);
	free(s->rx);
	s->rx = NULL;
	buf_fini(&s->tx);
	buf_fini(&s->answer);
	outer_shared_fini(&s->outer);
	secret_free(&s->stage_memory);
}

/* --- receiving --- */

/* Moves what TLS has not used of the shared input to memory of the socket's own. */
static void rx_park(struct socket_shared *s)
{
	struct socket *l = s->rx_owner;
	size_t left;

	if (!l)
		return;
	s->rx_owner = NULL;
	left = tls_input_left(l->tls);
	if (!left)
		return;
	if (buf_append(&l->parked, s->rx + s->rx_n - left, left) < 0) {
		socket_break(l);
		tls_feed(l->tls, NULL, 0);
		return;
	}
	tls_feed(l->tls, buf_bytes(&l->parked), l->parked.len);
}

/* As recv(2), through the outer TLS if there is one. *emptied: nothing is left to receive now. */
static ssize_t receive_plain(struct socket *l, uint8_t *p, size_t cap, bool *emptied)
{
	ssize_t r;

	if (l->outer) {
		r = outer_receive(l->outer, l->fd, p, cap);
		l->received += outer_take_received(l->outer);
		*emptied = outer_is_emptied(l->outer);
		return r;
	}
	do
		r = recv(l->fd, p, cap, MSG_DONTWAIT);
	while (r < 0 && errno == EINTR);
	l->received += r > 0 ? (size_t)r : 0;
	*emptied = r < (ssize_t)cap;
	return r;
}

/* Receives into p; SOCKET_OK with *n > 0. With edge-triggered readiness a short read means "nothing
 * left", unless a FIN or a reset had arrived before: then no further edge comes. epoll reports a
 * FIN, so reading goes on to the end. A reset looks to epoll like a readable socket, so a caller
 * that still wants more looks once again (doubtful). */
static enum socket_status receive(struct socket *l, uint8_t *p, size_t cap, size_t *n)
{
	bool emptied;
	ssize_t r;

	if (l->broken && !l->draining)
		return SOCKET_ERROR;
	if (!l->readable && !l->doubtful)
		return SOCKET_AGAIN;
	l->doubtful = false;
	r = receive_plain(l, p, cap, &emptied);
	if (r > 0) {
		*n = (size_t)r;
		if (emptied && !l->hung_up) {
			l->readable = false;
			l->doubtful = true;
		}
		return SOCKET_OK;
	}
	if (r == 0)
		return l->draining && !l->fin_came ? SOCKET_ERROR : SOCKET_EOF;
	if ((errno == EAGAIN || errno == EWOULDBLOCK) && !l->draining) {
		l->readable = false;
		return SOCKET_AGAIN;
	}
	socket_break(l);
	return SOCKET_ERROR;
}

/* Gives TLS more ciphertext. */
static enum socket_status receive_tls(struct socket *l)
{
	struct socket_shared *s = l->shared;
	enum socket_status status;
	size_t n;

	buf_fini(&l->parked);
	if (s->rx_owner != l)
		rx_park(s);
	status = receive(l, s->rx, SOCKET_RX, &n);
	if (status != SOCKET_OK)
		return status;
	s->rx_owner = l;
	s->rx_n = n;
	tls_feed(l->tls, s->rx, n);
	return SOCKET_OK;
}

enum socket_status socket_handshake(struct socket *l)
{
	socket_claim_tx(l);
	for (;;) {
		enum socket_status status;

		switch (tls_handshake(l->tls)) {
		case TLS_OK:
			return SOCKET_OK;
		case TLS_WANT_READ:
			break;
		case TLS_WANT_SIGNATURE:
			return SOCKET_AGAIN;
		default:
			return SOCKET_ERROR;
		}
		status = receive_tls(l);
		if (status != SOCKET_OK)
			return status;
		socket_claim_tx(l);
	}
}

/* Reads without claiming the shared output, because a claim sends what another socket has there.
 * The little that TLS writes while it reads (the answer to a key update, an alert) goes to
 * s->answer. */
static enum tls_status read_tls(struct socket *l, uint8_t *out, size_t cap, size_t *n)
{
	struct socket_shared *s = l->shared;
	enum tls_status status;

	tls_set_output(l->tls, &s->answer);
	status = tls_read(l->tls, out, cap, n);
	tls_set_output(l->tls, &s->tx);
	if (s->answer.len) {
		socket_claim_tx(l);
		if (buf_append_slice(&s->tx, buf_slice(&s->answer)) < 0)
			socket_break(l);
		buf_consume(&s->answer, s->answer.len);
	}
	return status;
}

enum socket_status socket_read(struct socket *l, uint8_t *out, size_t cap, size_t *n)
{
	*n = 0;
	if (l->fd < 0)
		return SOCKET_ERROR;
	if (!l->tls)
		return receive(l, out, cap, n);
	for (;;) {
		enum socket_status status;

		/* Read also without input: TLS may hold the rest of a record, or remember that the
		 * end has come. */
		switch (read_tls(l, out, cap, n)) {
		case TLS_OK:
			return SOCKET_OK;
		case TLS_WANT_READ:
			break;
		case TLS_CLOSED:
			return SOCKET_EOF;
		default:
			return SOCKET_ERROR;
		}
		status = receive_tls(l);
		if (status == SOCKET_EOF)
			l->truncated = true; /* FIN without close_notify */
		if (status != SOCKET_OK)
			return status;
	}
}

/* --- life --- */

static void on_ready(struct loop_io *io, unsigned events)
{
	struct socket *l = container_of(io, struct socket, io);

	if (events & LOOP_CLOSED)
		l->hung_up = true;
	if (events & (LOOP_READ | LOOP_CLOSED))
		l->readable = true;
	if (events & LOOP_WRITE) {
		l->writable = true;
		if (l->out.len || l->end_after_flush)
			socket_drain(l);
	}
	if (l->fd >= 0 && (l->readable || l->broken))
		l->on_event(l);
}

int socket_open(struct socket_shared *shared, struct socket *l, int fd, struct loop_io *watched,
        void (*on_event)(struct socket *), void (*on_drained)(struct socket *))
{
	int rc = 0;

	memset(l, 0, sizeof(*l));
	l->shared = shared;
	l->fd = fd;
	l->on_event = on_event;
	l->on_drained = on_drained;
	l->readable = l->writable = true; /* try first, ask epoll later */
	buf_init(&l->parked, SOCKET_RX);
	buf_init(&l->out, SOCKET_OUT_MAX);
	if (watched)
		loop_io_move(watched, &l->io, on_ready);
	else
		rc = loop_io_open(shared->loop, &l->io, fd, SOCKET_EVENTS, on_ready);
	if (rc < 0) {
		close(fd);
		l->fd = -1;
	}
	return rc;
}

void socket_reset_socket(int fd)
{
	const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

	(void)connect(fd, &nowhere, sizeof(nowhere));
}

void socket_close(struct socket *l, bool reset)
{
	if (!l->shared || l->fd < 0)
		return;
	if (!reset) {
		socket_flush(l);
		socket_end_outer(l);
	}
	socket_disown(l);
	loop_io_close(&l->io);
	if (reset)
		socket_reset_socket(l->fd);
	close(l->fd);
	l->fd = -1;
	tls_free(l->tls);
	l->tls = NULL;
	outer_free(l->outer);
	l->outer = NULL;
	buf_fini(&l->parked);
	buf_fini(&l->out);
}

void socket_start_outer(struct socket *l, struct outer *outer)
{
	l->outer = outer;
}

struct outer *socket_take_outer(struct socket *l)
{
	struct outer *outer = l->outer;

	l->outer = NULL;
	return outer;
}

int socket_start_tls(struct socket *l, struct tls *tls, struct slice first)
{
	l->tls = tls;
	if (first.n && buf_append_slice(&l->parked, first) < 0)
		return -ENOMEM;
	tls_feed(tls, buf_bytes(&l->parked), l->parked.len);
	return 0;
}

void socket_drop_tls(struct socket *l)
{
	socket_flush(l);
	if (l->shared->rx_owner == l)
		l->shared->rx_owner = NULL;
	buf_fini(&l->parked);
	tls_free(l->tls);
	l->tls = NULL;
}

int socket_release(struct socket *l, struct buf *left, struct loop_io *io,
        void (*handler)(struct loop_io *io, unsigned events))
{
	int fd = l->fd;

	socket_flush(l);
	*left = l->out;
	buf_init(&l->out, SOCKET_OUT_MAX);
	socket_disown(l);
	loop_io_move(&l->io, io, handler);
	buf_fini(&l->parked);
	l->fd = -1;
	return fd;
}
