/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 to an upstream: the connection serves one exchange at a time. If bytes come while it is
 * idle, or after a response's end, nobody asked for them: the connection is closed and not used
 * again.
 */

#include "proxy/exchange/exchange.h"
#include "proxy/inject/filling.h"
#include "proxy/websocket/websocket_fill.h"

static struct upstream_conn *upstream_conn_of(const struct upstream_stream *u)
{
	return u->conn;
}

static void silence_begins(struct upstream_conn *c)
{
	upstream_conn_wait(&c->own, c->own.upgraded ? WAIT_POOLED : WAIT_RESPONSE);
}

/* --- the request --- */

/* Ends the body of a request that is sent a second time and whose chunked body had no content. */
static void end_empty_body(struct socket *socket, const struct outgoing *head)
{
	if (head->ends && head->request->body == HTTP_BODY_CHUNKED)
		socket_write(socket, "0\r\n\r\n", 5);
}

static int send_head(struct upstream_stream *u, const struct outgoing *head)
{
	struct upstream_conn *c = upstream_conn_of(u);
	struct proxy *proxy = c->proxy;
	struct buf *text = &proxy->text;
	struct buf locked;
	int rc;

	if (!head->secret) {
		buf_consume(text, text->len);
		rc = http1_write_request(text, head);
		if (rc == 0)
			socket_write(&c->socket, buf_bytes(text), text->len);
		if (rc == 0)
			end_empty_body(&c->socket, head);
		return rc;
	}
	locked = proxy_secret_text(proxy, SECRET_HEAD);
	rc = http1_write_request(&locked, head);
	if (rc == 0)
		socket_write_secret(&c->socket, buf_bytes(&locked), locked.len);
	if (rc == 0)
		end_empty_body(&c->socket, head);
	secret_wipe(locked.mem, locked.len);
	return rc;
}

static bool is_chunked(const struct upstream_stream *u)
{
	return !u->upgraded && u->exchange->request.body == HTTP_BODY_CHUNKED;
}

static void send_body(struct upstream_stream *u, const uint8_t *p, size_t n)
{
	struct socket *socket = &upstream_conn_of(u)->socket;
	char head[20];
	size_t head_n;

	if (u->upgraded ? websocket_fill_is_wanted(u->exchange) : filling_is_secret(u->exchange)) {
		socket_write_secret(socket, p, n);
		return;
	}
	if (!is_chunked(u)) {
		socket_write(socket, p, n);
		return;
	}
	head_n = http1_chunk_head(head, n);
	socket_write(socket, head, head_n);
	socket_write(socket, p, n);
	socket_write(socket, "\r\n", 2);
}

static void send_end(struct upstream_stream *u, struct slice trailers)
{
	struct socket *socket = &upstream_conn_of(u)->socket;

	if (u->upgraded) {
		socket_end(socket);
	} else if (is_chunked(u)) {
		socket_write(socket, "0\r\n", 3);
		socket_write(socket, trailers.p, trailers.n);
		socket_write(socket, "\r\n", 2);
	}
}

static bool congested(const struct upstream_stream *u)
{
	return socket_is_congested(&upstream_conn_of(u)->socket);
}

static void on_drained(struct upstream_conn *c)
{
	if (c->own.exchange)
		exchange_upstream_drained(c->own.exchange);
}

/* --- the response --- */

static void on_body(void *context, const uint8_t *p, size_t n)
{
	struct upstream_conn *c = context;

	if (c->own.exchange)
		exchange_response_body(c->own.exchange, p, n);
}

/* Ends the response. If bytes are left after it, the connection is not reused. */
static bool end_response(struct upstream_conn *c, size_t left)
{
	if (left)
		c->own.response.keep_alive = false;
	socket_mark_complete(&c->socket);
	exchange_response_end(c->own.exchange, http1_trailers(&c->http1));
	return false;
}

static bool serves(const struct upstream_conn *c)
{
	return c->state == UPSTREAM_CONN_BUSY && c->own.exchange;
}

/* Takes one step in reading the message. False: the exchange has let go of the connection. */
static bool step(struct upstream_conn *c, const uint8_t *p, size_t n, size_t *used,
        enum http1_status *status)
{
	struct upstream_stream *u = &c->own;

	if (c->http1.head_done) {
		*status = http1_body(&c->http1, p, n, used, on_body, c);
		return true;
	}
	*status =
	        http1_response_head(&c->http1, p, n, used, u->exchange->head_request, &u->response);
	if (*status == HTTP1_DONE && !exchange_response_head(u->exchange, &u->response))
		return false;
	if (*status == HTTP1_DONE && u->response.status / 100 == 1 && u->response.status != 101) {
		http1_reset(&c->http1);
		*status = HTTP1_MORE;
	}
	return true;
}

/* Uses up p. False: nothing more is to be read now, because the exchange or the connection is
 * over. */
static bool take(struct upstream_conn *c, const uint8_t *p, size_t n)
{
	enum http1_status status;
	size_t used;

	c->own.response_begun = true;
	while (serves(c)) {
		if (c->own.upgraded) {
			if (n)
				exchange_response_body(c->own.exchange, p, n);
			return true;
		}
		if (!step(c, p, n, &used, &status) || !serves(c))
			return false;
		if (c->own.exchange->redacting.undecodable) {
			upstream_conn_failed(
			        c, EVENT_CAUSE_UNREADABLE, c->own.exchange->redacting.undecodable);
			return false;
		}
		if (status == HTTP1_BAD || status == HTTP1_TOO_LARGE) {
			upstream_conn_failed(c, EVENT_CAUSE_UPSTREAM, http1_fault(&c->http1).why);
			return false;
		}
		p += used;
		n -= used;
		if (!c->own.upgraded && c->http1.message_done && c->http1.head_done)
			return end_response(c, n);
		if (n == 0)
			return true;
	}
	return false;
}

static void ended(struct upstream_conn *c, enum socket_status status)
{
	struct upstream_stream *u = &c->own;

	if (u->upgraded && status == SOCKET_EOF) {
		exchange_response_end(u->exchange, SLICE(""));
		return;
	}
	if (!u->upgraded && status == SOCKET_EOF && c->http1.head_done && !c->socket.truncated &&
	        http1_end(&c->http1) == HTTP1_DONE) {
		u->response.keep_alive = false;
		exchange_response_end(u->exchange, SLICE(""));
		return;
	}
	upstream_conn_failed(c, EVENT_CAUSE_UPSTREAM,
	        u->response_begun ? "the upstream ended the connection inside a response"
	                          : upstream_conn_end_text(c, status,
	                                    "the upstream closed the connection without a "
	                                    "response"));
}

/* True if an idle connection was reset before a byte of the request left: anything that can be read
 * answers something else. */
static bool never_asked(const struct upstream_conn *c)
{
	return c->socket.broken && c->own.reused && c->socket.sent == c->own.sent_before;
}

/* *secret is raised to the bytes of proxy->plain that may hold the unmasked credential. */
static void read_some(struct upstream_conn *c, size_t *secret)
{
	struct proxy *proxy = c->proxy;
	uint64_t before = c->socket.received;

	if (serves(c) && never_asked(c)) {
		c->own.untouched = true;
		ended(c, SOCKET_ERROR);
		return;
	}
	while (serves(c) && !redacting_has_ended(&c->own.exchange->redacting) &&
	        !c->own.exchange->ops->congested(c->own.exchange)) {
		size_t n;
		enum socket_status status = socket_read(&c->socket, proxy->plain, SOCKET_CHUNK, &n);

		if (status == SOCKET_AGAIN)
			return;
		if (status != SOCKET_OK) {
			ended(c, status);
			return;
		}
		silence_begins(c);
		if (c->own.exchange->credential && n > *secret)
			*secret = n;
		if (!take(c, proxy->plain, n))
			break;
		if (socket_turn_is_over(&c->socket, before)) {
			loop_task_queue(proxy->config.loop, &c->go_on);
			return;
		}
	}
	/* The whole response is here, or there is no room for more: only the client's deadline
	 * counts now. */
	if (serves(c))
		loop_deadline_clear(&c->own.deadline);
}

static void read_response(struct upstream_conn *c)
{
	size_t secret = 0;

	read_some(c, &secret);
	if (secret)
		secret_wipe(c->proxy->plain, secret);
}

static void on_event(struct upstream_conn *c)
{
	size_t n;

	if (c->state == UPSTREAM_CONN_BUSY)
		read_response(c);
	/* Session tickets come here too, but give no bytes. */
	else if (socket_read(&c->socket, c->proxy->plain, SOCKET_CHUNK, &n) != SOCKET_AGAIN)
		upstream_conn_close(c);
}

static void touch(struct upstream_stream *u)
{
	if (u->conn->state != UPSTREAM_CONN_BUSY)
		return;
	u->sent_seen = u->conn->socket.sent;
	silence_begins(u->conn);
}

static void resume(struct upstream_stream *u)
{
	if (u->conn->state != UPSTREAM_CONN_BUSY)
		return;
	touch(u);
	loop_task_queue(u->conn->proxy->config.loop, &u->conn->go_on);
}

static struct slice trailers(struct upstream_stream *u)
{
	return http1_trailers(&u->conn->http1);
}

/* --- between exchanges --- */

static void put(struct upstream_stream *u, bool reusable)
{
	struct upstream_conn *c = upstream_conn_of(u);

	c->cut = u->exchange && u->exchange->marking.state == MARKING_CUT;
	u->exchange = NULL;
	u->ready = false;
	if (!reusable || c->state != UPSTREAM_CONN_BUSY || !u->response.keep_alive || u->upgraded ||
	        c->socket.broken || c->socket.hung_up || c->proxy->state != PROXY_SERVING ||
	        c->socket.out.len) {
		upstream_conn_close(c);
		return;
	}
	http1_reset(&c->http1);
	upstream_conn_wait(u, WAIT_POOLED);
	pool_add_idle(c);
}

static void on_deadline(struct upstream_stream *u, int wait)
{
	upstream_conn_on_deadline(u->conn, wait);
}

static void begin(struct upstream_conn *c)
{
	c->own.ready = true;
	upstream_conn_wait(&c->own, WAIT_RESPONSE);
	exchange_upstream_ready(c->own.exchange);
}

static void close_http1(struct upstream_conn *c)
{
	(void)c;
}

const struct upstream_conn_protocol upstream_conn_http1 = {
        .begin = begin,
        .on_event = on_event,
        .on_drained = on_drained,
        .go_on = read_response,
        .close = close_http1,
};

const struct upstream_stream_ops upstream_http1 = {
        .send_head = send_head,
        .send_body = send_body,
        .send_end = send_end,
        .congested = congested,
        .touch = touch,
        .resume = resume,
        .trailers = trailers,
        .put = put,
        .on_deadline = on_deadline,
};
