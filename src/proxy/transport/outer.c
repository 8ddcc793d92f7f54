/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While it reads, TLS writes two things: its answer to a peer that asks for new keys, and an alert
 * if the bytes are wrong. The answer has to precede our next data (RFC 8446 section 4.6.3), so it
 * waits until then. The alert is not sent: the connection is over.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "proxy/transport/outer.h"

#define ANSWER_MAX 4096 /* some 150 answers; a peer that asks more often meanwhile is cut off */

void outer_shared_init(struct outer_shared *s)
{
	s->rx = NULL;
	buf_init(&s->tx, OUTER_TX_MAX);
}

void outer_shared_fini(struct outer_shared *s)
{
	free(s->rx);
	s->rx = NULL;
	buf_fini(&s->tx);
}

struct outer *outer_new(
        struct outer_shared *shared, struct tls_server *server, const struct tls_state *state)
{
	struct outer *o;

	if (!shared->rx)
		shared->rx = malloc(OUTER_CHUNK);
	o = shared->rx ? calloc(1, sizeof(*o)) : NULL;
	if (!o)
		return NULL;
	o->shared = shared;
	buf_init(&o->parked, OUTER_CHUNK);
	buf_init(&o->answer, ANSWER_MAX);
	o->tls = tls_state_go_on(server, state, &o->answer);
	if (o->tls)
		return o;
	free(o);
	return NULL;
}

void outer_free(struct outer *o)
{
	if (!o)
		return;
	tls_free(o->tls);
	buf_fini(&o->parked);
	buf_fini(&o->answer);
	free(o);
}

/* --- receiving --- */

/* Keeps the bytes that TLS was fed last and has not used. Returns false without memory. */
static bool park(struct outer *o, bool fed_rx, size_t fed_n)
{
	const size_t left = tls_input_left(o->tls);
	bool good = true;

	if (fed_rx)
		good = !left || buf_append(&o->parked, o->shared->rx + fed_n - left, left) == 0;
	else
		buf_consume(&o->parked, o->parked.len - left);
	if (!o->parked.len)
		buf_fini(&o->parked);
	tls_feed(o->tls, NULL, 0);
	return good;
}

static ssize_t receive(struct outer *o, int fd)
{
	ssize_t got;

	do
		got = recv(fd, o->shared->rx, OUTER_CHUNK, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		o->received += (uint64_t)got;
	return got;
}

ssize_t outer_receive(struct outer *o, int fd, uint8_t *p, size_t cap)
{
	bool fed_rx = false, kernel_emptied = false;
	size_t fed_n = o->parked.len, n;
	ssize_t got;

	o->emptied = false;
	tls_set_output(o->tls, &o->answer);
	tls_feed(o->tls, buf_bytes(&o->parked), fed_n);
	for (;;) {
		const enum tls_status status = tls_read(o->tls, p, cap, &n);

		if (status != TLS_WANT_READ) {
			const bool good = park(o, fed_rx, fed_n);

			o->emptied = kernel_emptied && n < cap && !o->parked.len;
			if (status == TLS_OK && good)
				return (ssize_t)n;
			errno = EPROTO;
			return status == TLS_CLOSED ? 0 : -1;
		}
		buf_fini(&o->parked);
		got = receive(o, fd);
		if (got <= 0) {
			tls_feed(o->tls, NULL, 0);
			return got;
		}
		fed_rx = true;
		fed_n = (size_t)got;
		kernel_emptied = fed_n < OUTER_CHUNK;
		tls_feed(o->tls, o->shared->rx, fed_n);
	}
}

bool outer_is_emptied(const struct outer *o)
{
	return o->emptied;
}

uint64_t outer_take_received(struct outer *o)
{
	const uint64_t n = o->received;

	o->received = 0;
	return n;
}

/* --- sending --- */

bool outer_seal(struct outer *o, const void *p, size_t n, bool ends, struct slice *wire)
{
	struct buf *tx = &o->shared->tx;
	bool good = true;

	buf_consume(tx, tx->len);
	tls_set_output(o->tls, tx);
	if (o->answer.len)
		good = buf_append_slice(tx, buf_slice(&o->answer)) == 0;
	buf_fini(&o->answer);
	if (good && n)
		good = tls_write(o->tls, p, n) == TLS_OK;
	if (good && ends && !o->closed)
		tls_close(o->tls);
	o->closed = o->closed || ends;
	*wire = buf_slice(tx);
	return good;
}
