/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays a connection. A side is read only while the other side has taken everything read before:
 * that is the whole back-pressure. When one side ends its sending, the other side is told so; when
 * both have ended, or the worker has closed, the connection is over.
 */
#include <errno.h>
#include <sys/socket.h>

#include "gateway/visitor.h"

#define TURN_CHUNKS 4 /* chunks read from one side in one turn of the loop */

/* Returns false if the worker is gone. */
static bool back_put(struct back *b, const void *p, size_t n)
{
	const uint8_t *bytes = p;

	while (n && !b->unsent.len) {
		ssize_t did = send(b->fd, bytes, n, MSG_NOSIGNAL);

		if (did < 0 && errno == EINTR)
			continue;
		if (did < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (did < 0)
			return false;
		bytes += did;
		n -= (size_t)did;
	}
	return buf_append(&b->unsent, bytes, n) == 0;
}

static bool back_flush(struct back *b)
{
	while (b->unsent.len) {
		ssize_t did = send(b->fd, buf_bytes(&b->unsent), b->unsent.len, MSG_NOSIGNAL);

		if (did < 0 && errno == EINTR)
			continue;
		if (did < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		buf_consume(&b->unsent, (size_t)did);
	}
	buf_fini(&b->unsent);
	return true;
}

/* Moves bytes from the client to the worker. Returns false if the connection is over. */
static bool pump_in(struct visitor *c, bool *more)
{
	struct back *b = &c->back;
	struct slice input;

	*more = false;
	if (!back_flush(b))
		return false;
	for (unsigned i = 0; !b->unsent.len && !c->front_over; i++) {
		if (i == TURN_CHUNKS)
			return *more = true;
		switch (front_read(&c->front, GATEWAY_CHUNK, &input)) {
		case FRONT_OK:
			if (!back_put(b, input.p, input.n))
				return false;
			break;
		case FRONT_AGAIN:
			return true;
		case FRONT_EOF:
			c->front_over = true;
			break;
		case FRONT_ERROR:
			return false;
		}
	}
	if (c->front_over && !b->unsent.len && !b->ended) {
		b->ended = true;
		shutdown(b->fd, SHUT_WR);
	}
	return true;
}

/* Drops the worker's answer to the greeting that the gateway wrote itself. */
static size_t swallow(struct back *b, size_t n)
{
	size_t take = b->swallow < n ? (size_t)b->swallow : n;

	b->swallow -= take;
	return take;
}

/* Moves bytes from the worker to the client. */
static bool pump_out(struct visitor *c, bool *more)
{
	struct back *b = &c->back;
	uint8_t *plain = c->gateway->plain;

	*more = false;
	if (!front_flush(&c->front))
		return false;
	for (unsigned i = 0; front_is_clear(&c->front) && !b->over; i++) {
		ssize_t got;
		size_t skip;

		if (i == TURN_CHUNKS)
			return *more = true;
		got = recv(b->fd, plain, GATEWAY_CHUNK, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		b->over = got == 0;
		skip = swallow(b, (size_t)got);
		if ((size_t)got > skip && !front_write(&c->front, plain + skip, (size_t)got - skip))
			return false;
	}
	return true;
}

bool visitor_relay(struct visitor *c)
{
	bool more_in, more_out;

	if (!pump_out(c, &more_out) || !pump_in(c, &more_in))
		return false;
	if (c->back.over) {
		front_end(&c->front);
		return false;
	}
	if (more_in || more_out)
		loop_task_queue(c->gateway->loop, &c->wake);
	return true;
}
