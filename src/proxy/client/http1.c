/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over HTTP/1: the states HTTP (waiting for a head, or reading it) and EXCHANGE (serving
 * one request, whose body goes to the exchange) of client.c. http1_response.c sends the responses.
 */
#include <errno.h>
#include <sys/socket.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"

/* --- the head --- */

/* Sets what the event and the answer of a request that cannot be served need. */
static void give_up_request(struct client *c)
{
	struct exchange *ex = c->exchange;

	c->keep_alive = false;
	exchange_introduce(ex, 11);
	exchange_request_is_whole(ex);
}

static enum client_state bad_request(struct client *c)
{
	struct exchange *ex = c->exchange;
	struct http_fault fault = http1_fault(&c->http1);
	bool other = fault.status == HTTP_MISDIRECTED;

	give_up_request(c);
	audit_finding(c->proxy, c, other ? EVENT_FINDING_BINDING_MISMATCH : EVENT_FINDING_SMUGGLING,
	        ex->id, SLICE(""), fault.why);
	exchange_refuse(ex, other ? 0 : fault.status,
	        other ? EVENT_CAUSE_BINDING : EVENT_CAUSE_CLIENT, fault.why);
	return CLIENT_EXCHANGE;
}

static enum client_state begin(struct client *c)
{
	struct exchange *ex = c->exchange;

	/* Check what has come of the body before anything leaves. */
	if (!http1_body_is_sound(&c->http1, buf_bytes(&c->input_buf), c->input_buf.len))
		return bad_request(c);
	c->keep_alive = ex->request.keep_alive && c->proxy->state == PROXY_SERVING;
	c->exchange_end = CLIENT_EXCHANGE_OPEN;
	if (c->form != MESSAGE_FORM_PROXY && ex->request.absolute)
		c->tls = ex->request.scheme == POLICY_HTTPS;
	if (!exchange_has_body(ex))
		socket_mark_complete(&c->socket);
	if (slice_equals(ex->request.method, SLICE("CONNECT")))
		return client_connect(c);
	exchange_start(ex);
	return CLIENT_EXCHANGE;
}

/* Records a connection that ended without asking for anything. */
static enum client_state ended_unasked(struct client *c, enum event_cause cause, const char *detail)
{
	const struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE};

	if (!c->answered)
		audit_connection(c, &none, EVENT_ALLOWED, cause, detail, 0, 0, NULL);
	return CLIENT_CLOSED;
}

enum client_state client_http1_input(struct client *c)
{
	/* Begin nothing new while the recorder is behind, or while the client does not take the
	 * responses given so far. */
	while (c->state == CLIENT_HTTP && !socket_is_congested(&c->socket) &&
	        !(c->proxy->held && !http1_busy(&c->http1))) {
		enum http1_status head;
		struct slice input;
		size_t used;
		enum socket_status status = client_input(c, &input);

		if (status == SOCKET_AGAIN)
			return CLIENT_HTTP;
		if (status != SOCKET_OK)
			return ended_unasked(c, EVENT_CAUSE_CLIENT,
			        "the sandbox closed the connection before its first request");
		if (!c->exchange) {
			c->exchange = exchange_new(c->proxy, c, NULL, &client_http1);
			if (!c->exchange)
				return CLIENT_CLOSED;
			loop_deadline_set(&c->proxy->waits[WAIT_HEADER], &c->deadline);
		}
		head = http1_request_head(
		        &c->http1, (const uint8_t *)input.p, input.n, &used, &c->exchange->request);
		if (head == HTTP1_BAD || head == HTTP1_TOO_LARGE)
			return bad_request(c);
		if (!client_used(c, input, used))
			return CLIENT_CLOSED;
		if (head == HTTP1_DONE)
			return begin(c);
	}
	return c->state;
}

enum client_state client_http1_timeout(struct client *c)
{
	if (!c->exchange)
		return ended_unasked(c, EVENT_CAUSE_TIMEOUT, "the sandbox sent no request");
	give_up_request(c);
	exchange_refuse(c->exchange, 408, EVENT_CAUSE_TIMEOUT, "the request head took too long");
	return CLIENT_EXCHANGE;
}

/* --- the body, and the wait for the response --- */

static void on_request_body(void *context, const uint8_t *p, size_t n)
{
	exchange_request_body(((struct client *)context)->exchange, p, n);
}

/* The client has ended its side. If it had sent a complete request, it may still want the
 * response. */
static enum client_state input_ended(struct client *c, enum socket_status status)
{
	if (status == SOCKET_ERROR ||
	        (!c->exchange->request_done && c->exchange->state != EXCHANGE_UPGRADED)) {
		exchange_abort(
		        c->exchange, EVENT_CAUSE_CLIENT, "the sandbox closed the connection");
		return CLIENT_CLOSED;
	}
	c->half_closed = true;
	c->keep_alive = false;
	if (c->exchange->state == EXCHANGE_UPGRADED)
		exchange_request_end(c->exchange, SLICE(""));
	return CLIENT_EXCHANGE;
}

/* Passes input on to the exchange. */
static enum client_state body_input(struct client *c, struct slice input)
{
	struct exchange *ex = c->exchange;
	enum http1_status status;
	size_t used;

	if (ex->state == EXCHANGE_UPGRADED) {
		exchange_request_body(ex, (const uint8_t *)input.p, input.n);
		return client_used(c, input, input.n) ? CLIENT_EXCHANGE : CLIENT_CLOSED;
	}
	status =
	        http1_body(&c->http1, (const uint8_t *)input.p, input.n, &used, on_request_body, c);
	if (status == HTTP1_BAD) {
		struct http_fault fault = http1_fault(&c->http1);

		audit_finding(c->proxy, c, EVENT_FINDING_SMUGGLING, ex->id, SLICE(""), fault.why);
		if (!responding_has_begun(&ex->responding)) { /* the upstream's connection ends
			                                         within the request */
			exchange_refuse(ex, fault.status, EVENT_CAUSE_CLIENT, fault.why);
			return CLIENT_EXCHANGE;
		}
		exchange_abort(ex, EVENT_CAUSE_CLIENT, fault.why);
		return CLIENT_CLOSED;
	}
	if (!client_used(c, input, used)) {
		exchange_abort(ex, EVENT_CAUSE_LIMIT, "no memory");
		return CLIENT_CLOSED;
	}
	if (status == HTTP1_DONE) {
		socket_mark_complete(&c->socket);
		exchange_request_end(ex, http1_trailers(&c->http1));
	}
	return CLIENT_EXCHANGE;
}

/* A reset that follows a FIN shows only here, not in recv(). */
static bool was_reset(const struct client *c)
{
	int rc = 0;
	socklen_t n = sizeof(rc);

	return getsockopt(c->socket.fd, SOL_SOCKET, SO_ERROR, &rc, &n) < 0 || rc;
}

/* Checks whether a client that has sent everything is still there. */
static enum client_state still_there(struct client *c)
{
	char byte;
	ssize_t r;

	/* Nothing has come since the last short read: the kernel need not be asked. */
	if (!c->socket.readable && !c->socket.broken)
		return CLIENT_EXCHANGE;
	r = recv(c->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (c->socket.broken ||
	        (r < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) ||
	        (r == 0 && c->half_closed && was_reset(c))) {
		exchange_abort(c->exchange, EVENT_CAUSE_CLIENT, "the sandbox reset the connection");
		return CLIENT_CLOSED;
	}
	if (r == 0 && !c->half_closed)
		return input_ended(c, SOCKET_EOF);
	return CLIENT_EXCHANGE;
}

/* Bounds the silence of a sandbox that owes bytes of its request. After an upgrade the sandbox owes
 * nothing: then the upstream's deadline counts, which traffic in either direction moves. */
static void expect_body(struct client *c)
{
	if (c->exchange->state != EXCHANGE_UPGRADED)
		loop_deadline_set(&c->proxy->waits[WAIT_IDLE], &c->deadline);
}

enum client_state client_exchange_input(struct client *c)
{
	uint64_t before = c->socket.received;

	while (c->exchange && !c->exchange->request_done && exchange_takes_body(c->exchange) &&
	        !c->half_closed) {
		struct slice input;
		enum socket_status status = client_input(c, &input);
		enum client_state next;

		if (status == SOCKET_AGAIN) {
			if (!c->deadline.list)
				expect_body(c);
			return CLIENT_EXCHANGE;
		}
		if (status != SOCKET_OK)
			return input_ended(c, status);
		expect_body(c);
		next = body_input(c, input);
		if (next != CLIENT_EXCHANGE)
			return next;
		if (socket_turn_is_over(&c->socket, before)) {
			client_wake(c);
			return CLIENT_EXCHANGE;
		}
	}
	/* The sandbox now only has to read. */
	if (!socket_is_congested(&c->socket))
		loop_deadline_clear(&c->deadline);
	if (c->exchange && (c->exchange->request_done || c->socket.broken))
		return still_there(c);
	return CLIENT_EXCHANGE;
}

enum client_state client_exchange_timeout(struct client *c)
{
	if (!c->exchange) /* the exchange has just ended: ON_OVER follows */
		return CLIENT_EXCHANGE;
	if (socket_is_congested(&c->socket) && client_takes_bytes(c)) {
		loop_deadline_set(&c->proxy->waits[WAIT_IDLE], &c->deadline);
		return CLIENT_EXCHANGE;
	}
	exchange_abort(
	        c->exchange, EVENT_CAUSE_TIMEOUT, "the sandbox made no progress for too long");
	c->reset = true;
	return CLIENT_CLOSED;
}

/* --- the end of an exchange --- */

enum client_state client_exchange_over(struct client *c)
{
	enum client_exchange_end end = c->exchange_end;

	c->exchange_end = CLIENT_EXCHANGE_OPEN;
	c->answered = true;
	if (end == CLIENT_EXCHANGE_INCOMPLETE) {
		c->reset = true;
		return CLIENT_CLOSED;
	}
	if (c->keep_alive && end == CLIENT_EXCHANGE_COMPLETE && !c->half_closed &&
	        c->proxy->state == PROXY_SERVING) {
		http1_reset(&c->http1);
		return CLIENT_HTTP;
	}
	return client_end(c);
}
