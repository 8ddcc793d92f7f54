/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 to an upstream: the connection serves one exchange at a time. Bytes that come while it
 * is idle, or after a response's end, were never asked for: it is closed, never used again.
 */

#include "proxy/exchange/exchange.h"

static struct carrier *carrier_of(const struct upstream *u)
{
	return u->carrier;
}

static void silence_begins(struct carrier *c)
{
	carrier_wait(&c->own, c->own.raw ? WAIT_POOLED : WAIT_RESPONSE);
}

/* --- the request --- */

/* A request that is sent a second time, and whose body had ended without content. */
static void end_empty_body(struct link *link, const struct outgoing *head)
{
	if (head->ends && head->request->body == HTTP_BODY_CHUNKED)
		link_write(link, "0\r\n\r\n", 5);
}

static int send_head(struct upstream *u, const struct outgoing *head)
{
	struct carrier *c = carrier_of(u);
	struct proxy *proxy = c->proxy;
	struct buf *text = &proxy->text;
	struct buf locked;
	int r;

	if (!head->secret) {
		buf_consume(text, text->len);
		r = http1_write_request(text, head);
		if (r == 0)
			link_write(&c->link, buf_bytes(text), text->len);
		if (r == 0)
			end_empty_body(&c->link, head);
		return r;
	}
	locked = proxy_secret_text(proxy, SECRET_HEAD);
	r = http1_write_request(&locked, head);
	if (r == 0)
		link_write_secret(&c->link, buf_bytes(&locked), locked.len);
	if (r == 0)
		end_empty_body(&c->link, head);
	secret_wipe(locked.mem, locked.len);
	return r;
}

static bool is_chunked(const struct upstream *u)
{
	return !u->raw && u->exchange->request.body == HTTP_BODY_CHUNKED;
}

static void send_body(struct upstream *u, const uint8_t *p, size_t n)
{
	struct link *link = &carrier_of(u)->link;
	char head[20];
	size_t head_n;

	if (!is_chunked(u)) {
		link_write(link, p, n);
		return;
	}
	head_n = http1_chunk_head(head, n);
	link_write(link, head, head_n);
	link_write(link, p, n);
	link_write(link, "\r\n", 2);
}

static void send_end(struct upstream *u, struct slice trailers)
{
	struct link *link = &carrier_of(u)->link;

	if (u->raw) {
		link_end(link);
	} else if (is_chunked(u)) {
		link_write(link, "0\r\n", 3);
		link_write(link, trailers.p, trailers.n);
		link_write(link, "\r\n", 2);
	}
}

static bool congested(const struct upstream *u)
{
	return link_is_congested(&carrier_of(u)->link);
}

static void on_drained(struct carrier *c)
{
	if (c->own.exchange)
		exchange_upstream_drained(c->own.exchange);
}

/* --- the response --- */

static void on_body(void *context, const uint8_t *p, size_t n)
{
	struct carrier *c = context;

	if (c->own.exchange)
		exchange_response_body(c->own.exchange, p, n);
}

/* What is left after a response must be nothing. */
static bool end_response(struct carrier *c, size_t left)
{
	if (left)
		c->own.response.keep_alive = false;
	link_settle(&c->link);
	exchange_response_end(c->own.exchange, http1_trailers(&c->http1));
	return false;
}

static bool serves(const struct carrier *c)
{
	return c->state == CARRIER_BUSY && c->own.exchange;
}

/* One step of reading the message; false: the exchange has let go of the connection. */
static bool step(
        struct carrier *c, const uint8_t *p, size_t n, size_t *used, enum http1_status *status)
{
	struct upstream *u = &c->own;

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

/* Uses up p. False: nothing more is to be read now (the exchange is over, or the connection is). */
static bool take(struct carrier *c, const uint8_t *p, size_t n)
{
	enum http1_status status;
	size_t used;

	c->own.response_begun = true;
	while (serves(c)) {
		if (c->own.raw) {
			if (n)
				exchange_response_body(c->own.exchange, p, n);
			return true;
		}
		if (!step(c, p, n, &used, &status) || !serves(c))
			return false;
		if (c->own.exchange->damaged) {
			carrier_failed(c, EVENT_CAUSE_UNREADABLE, c->own.exchange->damage);
			return false;
		}
		if (status == HTTP1_BAD || status == HTTP1_TOO_LARGE) {
			carrier_failed(c, EVENT_CAUSE_UPSTREAM, http1_fault(&c->http1).why);
			return false;
		}
		p += used;
		n -= used;
		if (!c->own.raw && c->http1.message_done && c->http1.head_done)
			return end_response(c, n);
		if (n == 0)
			return true;
	}
	return false;
}

static void ended(struct carrier *c, enum link_status status)
{
	struct upstream *u = &c->own;

	if (u->raw && status == LINK_EOF) {
		exchange_response_end(u->exchange, SLICE(""));
		return;
	}
	if (!u->raw && status == LINK_EOF && c->http1.head_done && !c->link.truncated &&
	        http1_end(&c->http1) == HTTP1_DONE) {
		u->response.keep_alive = false;
		exchange_response_end(u->exchange, SLICE(""));
		return;
	}
	carrier_failed(c, EVENT_CAUSE_UPSTREAM,
	        u->response_begun ? "the upstream ended the connection inside a response"
	                          : "the upstream closed the connection without a response");
}

/* An idle connection was reset before a byte of the request left: what may be there to read answers
 * something else. */
static bool never_asked(const struct carrier *c)
{
	return c->link.broken && c->own.reused && c->link.sent == c->own.sent_before;
}

static void read_response(struct carrier *c)
{
	struct proxy *proxy = c->proxy;
	uint64_t before = c->link.received;

	if (serves(c) && never_asked(c)) {
		c->own.untouched = true;
		ended(c, LINK_ERROR);
		return;
	}
	while (serves(c) && !c->own.exchange->ending &&
	        !c->own.exchange->ops->congested(c->own.exchange)) {
		size_t n;
		enum link_status status = link_read(&c->link, proxy->plain, LINK_CHUNK, &n);

		if (status == LINK_AGAIN)
			return;
		if (status != LINK_OK) {
			ended(c, status);
			return;
		}
		silence_begins(c);
		bool may_hold_secret = c->own.exchange->credential != NULL;
		bool more = take(c, proxy->plain, n);

		if (may_hold_secret) /* before it was covered, the credential may have stood here */
			secret_wipe(proxy->plain, n);
		if (!more)
			break;
		if (link_turn_is_over(&c->link, before)) {
			loop_task_queue(proxy->config.loop, &c->go_on);
			return;
		}
	}
	/* All of the response is here, or there is no room for more: the client's turn, its
	 * deadline counts now. */
	if (serves(c))
		loop_deadline_clear(&c->own.deadline);
}

static void on_event(struct carrier *c)
{
	size_t n;

	if (c->state == CARRIER_BUSY)
		read_response(c);
	/* Session tickets come here too: they are no bytes to us. */
	else if (link_read(&c->link, c->proxy->plain, LINK_CHUNK, &n) != LINK_AGAIN)
		carrier_close(c);
}

static void touch(struct upstream *u)
{
	if (u->carrier->state != CARRIER_BUSY)
		return;
	u->sent_seen = u->carrier->link.sent;
	silence_begins(u->carrier);
}

static void resume(struct upstream *u)
{
	if (u->carrier->state != CARRIER_BUSY)
		return;
	touch(u);
	loop_task_queue(u->carrier->proxy->config.loop, &u->carrier->go_on);
}

static struct slice trailers(struct upstream *u)
{
	return http1_trailers(&u->carrier->http1);
}

/* --- between exchanges --- */

static void put(struct upstream *u, bool reusable)
{
	struct carrier *c = carrier_of(u);

	c->cut = u->exchange && u->exchange->cut;
	u->exchange = NULL;
	u->ready = false;
	if (!reusable || c->state != CARRIER_BUSY || !u->response.keep_alive || u->raw ||
	        c->link.broken || c->link.hung_up || c->proxy->draining || c->link.out.len) {
		carrier_close(c);
		return;
	}
	http1_reset(&c->http1);
	carrier_wait(u, WAIT_POOLED);
	pool_add_idle(c);
}

static void on_deadline(struct upstream *u, int wait)
{
	carrier_on_deadline(u->carrier, wait);
}

static void begin(struct carrier *c)
{
	c->own.ready = true;
	carrier_wait(&c->own, WAIT_RESPONSE);
	exchange_upstream_ready(c->own.exchange);
}

static void close_http1(struct carrier *c)
{
	(void)c;
}

const struct carrier_protocol carrier_http1 = {
        .begin = begin,
        .on_event = on_event,
        .on_drained = on_drained,
        .go_on = read_response,
        .close = close_http1,
};

const struct upstream_ops upstream_http1 = {
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
