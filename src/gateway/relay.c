/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays a connection. A side is read only while the other side has taken everything read before:
 * that is the whole back-pressure. When one side ends its sending, this is passed on to the other
 * side; when both have ended, or the worker has closed, the connection is over.
 *
 * Requests of a kept connection go through c->in, where each body is measured so that the next head
 * is found.
 */
#include <errno.h>
#include <sys/socket.h>

#include "gateway/visitor.h"
#include "vethguard/base/secret.h"

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

/* The worker answers the requests that it has; then the head in c->in begins a new connection. */
static void begin_turning(struct visitor *c)
{
	c->back.ended = true;
	shutdown(c->back.fd, SHUT_WR);
	visitor_enter(c, VISITOR_TURNING);
}

/* Passes on what is in c->in, while the worker takes it. Returns false if the connection is over.
 */
static bool pass_requests(struct visitor *c)
{
	struct buf *in = &c->in;

	while (in->len && !c->back.unsent.len && c->state == VISITOR_RELAY) {
		const size_t n = body_meter_take(&c->meter, buf_bytes(in), in->len);

		if (c->meter.state == BODY_METER_BAD || !back_put(&c->back, buf_bytes(in), n))
			return false;
		buf_consume(in, n);
		if (!in->len || c->back.unsent.len || c->meter.state != BODY_METER_DONE)
			continue;
		if (c->carry == CARRY_LAST) {
			buf_consume(in, in->len);
			continue;
		}
		switch (visitor_next_request(c)) {
		case NEXT_SENT:
			if (!back_flush(&c->back))
				return false;
			/* The bytes of an upgrade can be anything. */
			if (c->carry == CARRY_TUNNEL) {
				const bool good = back_put(&c->back, buf_bytes(in), in->len);

				buf_fini(in);
				return good;
			}
			break;
		case NEXT_MORE:
			return true;
		case NEXT_ANEW:
			begin_turning(c);
			break;
		}
	}
	return true;
}

/* Takes what the client has sent. Returns false if the connection is over. */
static bool take(struct visitor *c, struct slice input)
{
	bool good;

	if (c->carry == CARRY_TUNNEL)
		return back_put(&c->back, input.p, input.n);
	good = buf_append_slice(&c->in, input) == 0;
	secret_wipe(c->gateway->plain, input.n); /* it may hold a token */
	good = good && pass_requests(c);
	if (!c->in.len)
		buf_fini(&c->in);
	return good;
}

/* Moves bytes from the client to the worker. Returns false if the connection is over. */
static bool pump_in(struct visitor *c, bool *more)
{
	struct back *b = &c->back;
	struct slice input;

	*more = false;
	if (!back_flush(b))
		return false;
	if (!b->unsent.len)
		visitor_forget_body(c);
	if (c->carry != CARRY_TUNNEL && !pass_requests(c))
		return false;
	for (unsigned i = 0; !b->unsent.len && !c->front_over && c->state == VISITOR_RELAY; i++) {
		if (i == TURN_CHUNKS)
			return *more = true;
		switch (front_read(&c->front, GATEWAY_CHUNK, &input)) {
		case FRONT_OK:
			c->doubtful = true;
			if (!take(c, input))
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
	for (unsigned i = 0; front_is_clear(&c->front) && !b->over && b->readable; i++) {
		ssize_t got;
		size_t skip;
		bool good;

		if (i == TURN_CHUNKS)
			return *more = true;
		got = recv(b->fd, plain, GATEWAY_CHUNK, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			return false;
		/* As in front.c: a short read has emptied the socket. */
		b->readable = b->hung_up || got == GATEWAY_CHUNK;
		if (got < 0)
			return true;
		b->over = got == 0;
		c->doubtful = true;
		if (c->tls_inside && b->swallow && got)
			visitor_hello_answered(c, plain, (size_t)got);
		skip = swallow(b, (size_t)got);
		good = (size_t)got <= skip ||
		       front_write(&c->front, plain + skip, (size_t)got - skip);
		if (message_form_is_asked(c->form) && got) /* the answer may hold a credential */
			secret_wipe(plain, (size_t)got);
		if (!good)
			return false;
	}
	return true;
}

void visitor_look_again(struct visitor *c)
{
	front_look_again(&c->front);
	c->back.readable = true;
}

/* A reset that came with the bytes that were read is reported by the loop as bytes, and a read that
 * gets less than it asked for does not see it. Looks for one after a second of silence. */
static void doubt(struct visitor *c)
{
	if (c->doubtful)
		loop_deadline_set(&c->gateway->waits[WAIT_DOUBT], &c->deadline);
	c->doubtful = false;
}

bool visitor_drain(struct visitor *c)
{
	bool more;

	if (!back_flush(&c->back) || !pump_out(c, &more))
		return false;
	doubt(c);
	if (more)
		loop_task_queue(c->gateway->loop, &c->wake);
	return true;
}

bool visitor_relay(struct visitor *c)
{
	bool more_in, more_out;

	if (!pump_out(c, &more_out) || !pump_in(c, &more_in))
		return false;
	if (c->state == VISITOR_TURNING)
		return true;
	doubt(c);
	if (c->back.over) {
		front_end(&c->front);
		return false;
	}
	if (more_in || more_out)
		loop_task_queue(c->gateway->loop, &c->wake);
	return true;
}
