/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A response received over a stream: heads, body and trailers go to the exchange as they come. What
 * the client has no room for is kept, at most a stream's window of it.
 */
#include "proxy/upstream/http2.h"

static nghttp2_session *session_of(const struct upstream_http2_stream *st)
{
	return st->session->session;
}

static bool malformed(struct upstream_http2_stream *st, const char *detail)
{
	upstream_http2_stream_fail(st, EVENT_CAUSE_UPSTREAM, detail);
	return false;
}

void upstream_http2_stream_trailer(
        struct upstream_http2_stream *st, struct slice name, struct slice value)
{
	const char *why = http2_check_trailer(name, value);

	if (!why && !http_trailers_add(&st->trailers, name, value))
		why = "the upstream's trailers are too large";
	if (why)
		malformed(st, why);
}

/* An extended CONNECT was accepted (RFC 8441 section 5): makes it a 101 of HTTP/1.1 for the
 * exchange, with the answer to its key. */
static bool switched(struct upstream_http2_stream *st)
{
	struct exchange *ex = st->up.exchange;
	struct http_response *r = &st->up.response;
	char accept[WEBSOCKET_ACCEPT_MAX + 1] = "";

	for (size_t i = 0; i < ex->request.fields.count; i++) {
		const struct http_field *f = &ex->request.fields.items[i];

		if (slice_equals_ignoring_case(f->name, SLICE("sec-websocket-key")) &&
		        websocket_accept(f->value, accept) < 0)
			return malformed(st, "no memory for a WebSocket");
	}
	st->counted = false;
	r->status = 101;
	r->reason = SLICE("Switching Protocols");
	if (!http_add(&r->fields, SLICE("Upgrade"), SLICE("websocket")) ||
	        !http_add(&r->fields, SLICE("Sec-WebSocket-Accept"), slice_from_string(accept)))
		return malformed(st, "the upstream's response head is too large");
	exchange_response_head(ex, r);
	if (st->up.exchange)
		upstream_conn_wait(&st->up, WAIT_POOLED);
	return true;
}

/* Notes how much content has to come; the exchange may frame it anew for its client. */
static void expect_content(struct upstream_http2_stream *st, const struct http_response *r)
{
	bool none = st->up.exchange->head_request || r->status == 304 || r->body == HTTP_BODY_NONE;

	st->counted = none || r->body == HTTP_BODY_LENGTH;
	st->left = none ? 0 : r->content_length;
}

bool upstream_http2_stream_head(struct upstream_http2_stream *st, bool ends)
{
	struct http_response *r = &st->up.response;
	const char *why;

	upstream_conn_wait(&st->up, WAIT_RESPONSE);
	if (st->final_head) /* RFC 9113 section 8.1 */
		return ends || malformed(st, "a trailer section that does not end the stream");
	why = http2_read_response(&st->block, ends, st->up.exchange->head_request, r);
	if (why)
		return malformed(st, why);
	if (r->status == 101 || (r->status / 100 == 1 && ends))
		return malformed(st, "the upstream sent an interim response out of place");
	st->final_head = r->status / 100 != 1;
	expect_content(st, r);
	if (r->status / 100 == 2 && st->up.exchange->request.wants_websocket)
		return ends ? malformed(st, "the upstream ended a WebSocket that it accepted")
		            : switched(st);
	exchange_response_head(st->up.exchange, r);
	return true;
}

/* Passes bytes to the exchange. False: the exchange is over. */
static bool give(struct upstream_http2_stream *st, const uint8_t *p, size_t n)
{
	struct exchange *ex = st->up.exchange; /* may let go of the stream meanwhile */

	if (!ex)
		return false;
	exchange_response_body(ex, p, n);
	if (st->up.exchange && st->up.exchange->redacting.undecodable) {
		upstream_http2_stream_fail(
		        st, EVENT_CAUSE_UNREADABLE, st->up.exchange->redacting.undecodable);
		if (st->id && session_of(st))
			nghttp2_submit_rst_stream(
			        session_of(st), NGHTTP2_FLAG_NONE, st->id, NGHTTP2_CANCEL);
	}
	return st->up.exchange != NULL;
}

static bool client_has_room(const struct upstream_http2_stream *st)
{
	struct exchange *ex = st->up.exchange;

	return ex && !redacting_has_ended(&ex->redacting) && !ex->ops->congested(ex);
}

static bool set_window(struct upstream_http2_stream *st, uint32_t window)
{
	if (nghttp2_session_set_local_window_size(
	            session_of(st), NGHTTP2_FLAG_NONE, st->id, (int32_t)window) != 0)
		return false;
	st->window = window;
	return true;
}

static void grow(struct upstream_http2_stream *st, int64_t took_ms)
{
	struct proxy *proxy = st->session->conn->proxy;
	uint32_t more = (UPSTREAM_HTTP2_GROWTH - 1) * st->window;

	if (took_ms < UPSTREAM_HTTP2_QUICK_MS || more > UPSTREAM_HTTP2_WIDEST_WINDOW - st->window ||
	        more > UPSTREAM_HTTP2_GROWN_MAX - proxy->grown)
		return;
	if (set_window(st, st->window + more))
		proxy->grown += more;
}

/* Widens the window of a client that takes what comes (long distances need it). */
static void widen(struct upstream_http2_stream *st, size_t n)
{
	struct upstream_http2 *s = st->session;
	int64_t now_ms;

	st->taken += n;
	if (st->taken < (st->window ? st->window : UPSTREAM_HTTP2_PROVEN))
		return;
	now_ms = loop_now_ms(s->conn->proxy->config.loop);
	if (st->window)
		grow(st, now_ms - st->taken_ms);
	else if (s->wide < UPSTREAM_HTTP2_WIDE_STREAMS &&
	         set_window(st, UPSTREAM_HTTP2_WIDE_WINDOW))
		s->wide++;
	st->taken = 0;
	st->taken_ms = now_ms;
}

void upstream_http2_stream_data(struct upstream_http2_stream *st, const uint8_t *p, size_t n)
{
	struct upstream_http2 *s = st->session;

	if (!st->final_head || (st->counted && n > st->left)) {
		malformed(st, st->final_head ? "the upstream sent more content than its length"
		                             : "the upstream sent content before a response");
		nghttp2_submit_rst_stream(
		        s->session, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	st->left -= st->counted ? n : 0;
	if (!st->input_buf.len && client_has_room(st)) {
		upstream_conn_wait(&st->up, st->up.upgraded ? WAIT_POOLED : WAIT_RESPONSE);
		nghttp2_session_consume_stream(s->session, st->id, n);
		widen(st, n);
		give(st, p, n);
		return;
	}
	st->taken = 0;
	/* The client's turn: the upstream's silence does not count. */
	loop_deadline_clear(&st->up.deadline);
	if (buf_append(&st->input_buf, p, n) < 0) {
		upstream_http2_stream_fail(st, EVENT_CAUSE_LIMIT, "no memory for the response");
		nghttp2_submit_rst_stream(s->session, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_CANCEL);
		return;
	}
}

bool upstream_http2_stream_end(struct upstream_http2_stream *st)
{
	if (!st->final_head || (st->counted && st->left))
		return malformed(st, st->final_head
		                             ? "the upstream sent less content than its length"
		                             : "the upstream ended a stream without a response");
	st->response_ended = true;
	loop_deadline_clear(&st->up.deadline);
	if (!st->input_buf.len)
		exchange_response_end(st->up.exchange, buf_slice(&st->trailers.lines));
	return true;
}

void upstream_http2_stream_deliver(struct upstream_http2_stream *st)
{
	struct upstream_http2 *s = st->session;
	size_t moved = 0;

	while (st->input_buf.len && client_has_room(st)) {
		size_t n =
		        st->input_buf.len < SOCKET_CHUNK / 4 ? st->input_buf.len : SOCKET_CHUNK / 4;
		bool goes_on = give(st, buf_bytes(&st->input_buf), n);

		if (!goes_on) /* the input buffer was freed with the exchange */
			return;
		if (s->secret)
			secret_wipe(buf_bytes(&st->input_buf), n);
		buf_consume(&st->input_buf, n);
		moved += n;
	}
	if (!moved)
		return;
	if (st->id && s->session)
		nghttp2_session_consume_stream(s->session, st->id, moved);
	if (!st->input_buf.len && st->response_ended)
		exchange_response_end(st->up.exchange, buf_slice(&st->trailers.lines));
	else if (!st->input_buf.len)
		upstream_conn_wait(&st->up, st->up.upgraded ? WAIT_POOLED : WAIT_RESPONSE);
}
