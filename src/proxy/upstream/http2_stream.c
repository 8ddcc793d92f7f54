/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream of an HTTP/2 connection to an upstream, from its opening to its end. It outlives its
 * exchange until nghttp2 has closed it. Functions that an exchange calls never call the exchange
 * back: what a write reveals is told in a later turn.
 */
#include <stdlib.h>

#include "proxy/upstream/http2.h"

/* Takes memory for a stream, if possible of an earlier one; most of it, and its grown header block,
 * is not cleared. */
static struct upstream_http2_stream *take_free(struct proxy *proxy)
{
	struct upstream_http2_stream *st = proxy->free_upstreams;
	struct http2_block block;

	if (st) {
		proxy->free_upstreams = st->next_free;
		proxy->free_upstream_count--;
		block = st->block;
	} else {
		st = malloc(sizeof(*st));
		if (!st)
			return NULL;
		http2_block_init(&block, HTTP_HEAD_MAX);
	}
	memset(st, 0,
	        offsetof(struct upstream_http2_stream, up) +
	                offsetof(struct upstream_stream, response) +
	                offsetof(struct http_response, fields));
	st->block = block;
	return st;
}

static void give_free(struct proxy *proxy, struct upstream_http2_stream *st, bool secret)
{
	if (secret) { /* an upstream may have echoed the credential */
		secret_wipe(buf_bytes(&st->block.text), st->block.text.len);
		secret_wipe(buf_bytes(&st->block.cookies), st->block.cookies.len);
	}
	if (proxy->free_upstream_count == STREAMS_KEPT) {
		http2_block_fini(&st->block);
		free(st);
		return;
	}
	http2_block_reset(&st->block);
	st->next_free = proxy->free_upstreams;
	proxy->free_upstreams = st;
	proxy->free_upstream_count++;
}

void upstream_http2_free_kept(struct proxy *proxy)
{
	while (proxy->free_upstreams) {
		struct upstream_http2_stream *st = proxy->free_upstreams;

		proxy->free_upstreams = st->next_free;
		http2_block_fini(&st->block);
		free(st);
	}
}

struct upstream_stream *upstream_http2_stream_open(struct upstream_conn *c, struct exchange *ex)
{
	struct upstream_http2 *s = c->http2;
	struct upstream_http2_stream *st = take_free(c->proxy);

	if (!st)
		return NULL;
	st->session = s;
	http_trailers_init(&st->trailers);
	buf_init(&st->input_buf, UPSTREAM_HTTP2_WIDEST_WINDOW);
	buf_init(&st->out, 4 * SOCKET_CHUNK);
	buf_init(&st->last, HTTP_HEAD_MAX);
	st->up.ops = &upstream_http2;
	st->up.conn = c;
	st->up.exchange = ex;
	st->up.reused = s->served;
	st->up.ready = !s->inside && !socket_is_congested(&c->socket);
	s->served = true;
	s->open++;
	list_append(&s->streams, &st->list);
	pool_mark_busy(c);
	loop_deadline_clear(&c->own.deadline);
	upstream_conn_wait(&st->up, WAIT_RESPONSE);
	if (!st->up.ready)
		upstream_http2_later(s);
	return &st->up;
}

/* Frees what was kept of the response. */
static void drop_input_buf(struct upstream_http2_stream *st)
{
	struct upstream_http2 *s = st->session;

	if (s->secret)
		secret_wipe(buf_bytes(&st->input_buf), st->input_buf.len);
	buf_fini(&st->input_buf);
}

void upstream_http2_stream_free(struct upstream_http2_stream *st)
{
	struct upstream_http2 *s = st->session;

	if (st->id && s->session)
		nghttp2_session_set_stream_user_data(s->session, st->id, NULL);
	drop_input_buf(st);
	s->wide -= st->window != 0;
	if (st->window > UPSTREAM_HTTP2_WIDE_WINDOW)
		s->conn->proxy->grown -= st->window - UPSTREAM_HTTP2_WIDE_WINDOW;
	loop_deadline_clear(&st->up.deadline);
	list_remove(&st->list);
	s->open--;
	s->changed = true;
	http_trailers_free(&st->trailers);
	buf_fini(&st->out);
	buf_fini(&st->last);
	give_free(s->conn->proxy, st, s->secret);
}

/* The exchange has let go: the stream is freed in a later turn, when nghttp2 has closed it. */
static void let_go(struct upstream_http2_stream *st, uint32_t code)
{
	struct upstream_http2 *s = st->session;
	bool whole = st->response_ended && st->request_ended && !st->out.len;

	st->up.exchange = NULL;
	st->up.ready = false;
	loop_deadline_clear(&st->up.deadline);
	drop_input_buf(st);
	buf_fini(&st->out);
	/* A body that was cut off must not look complete. */
	st->cut = !whole;
	if (!st->id)
		st->closed = true;
	else if (s->session && !whole)
		nghttp2_submit_rst_stream(s->session, NGHTTP2_FLAG_NONE, st->id, code);
	upstream_http2_later(s);
}

static void put(struct upstream_stream *u, bool reusable)
{
	let_go(stream_of(u), reusable ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
}

void upstream_http2_stream_fail(
        struct upstream_http2_stream *st, enum event_cause cause, const char *detail)
{
	struct exchange *ex = st->up.exchange;

	if (!ex)
		return;
	loop_deadline_clear(&st->up.deadline);
	st->up.ready = false;
	exchange_upstream_failed(ex, cause, detail);
	st->up.exchange = NULL;
	drop_input_buf(st);
}

/* The meaning of an upstream's reset (RFC 9113 section 7), in words. */
static const char *reset_text(uint32_t code)
{
	static const char *const texts[] = {
	        [NGHTTP2_NO_ERROR] = "the upstream reset the stream",
	        [NGHTTP2_PROTOCOL_ERROR] = "the upstream reset the stream: PROTOCOL_ERROR",
	        [NGHTTP2_INTERNAL_ERROR] = "the upstream reset the stream: INTERNAL_ERROR",
	        [NGHTTP2_FLOW_CONTROL_ERROR] = "the upstream reset the stream: FLOW_CONTROL_ERROR",
	        [NGHTTP2_SETTINGS_TIMEOUT] = "the upstream reset the stream: SETTINGS_TIMEOUT",
	        [NGHTTP2_STREAM_CLOSED] = "the upstream reset the stream: STREAM_CLOSED",
	        [NGHTTP2_FRAME_SIZE_ERROR] = "the upstream reset the stream: FRAME_SIZE_ERROR",
	        [NGHTTP2_REFUSED_STREAM] = "the upstream refused the stream",
	        [NGHTTP2_CANCEL] = "the upstream reset the stream: CANCEL",
	        [NGHTTP2_COMPRESSION_ERROR] = "the upstream reset the stream: COMPRESSION_ERROR",
	        [NGHTTP2_CONNECT_ERROR] = "the upstream reset the stream: CONNECT_ERROR",
	        [NGHTTP2_ENHANCE_YOUR_CALM] = "the upstream reset the stream: ENHANCE_YOUR_CALM",
	        [NGHTTP2_INADEQUATE_SECURITY] =
	                "the upstream reset the stream: INADEQUATE_SECURITY",
	        [NGHTTP2_HTTP_1_1_REQUIRED] = "the upstream reset the stream: HTTP_1_1_REQUIRED",
	};

	return code < sizeof(texts) / sizeof(*texts) ? texts[code]
	                                             : "the upstream reset the stream";
}

static const char *why_closed(const struct upstream_http2_stream *st)
{
	if (st->reset)
		return reset_text(st->code);
	switch (st->code) {
	case NGHTTP2_REFUSED_STREAM:
		return "the upstream ended the connection before this request";
	case NGHTTP2_FLOW_CONTROL_ERROR:
		return "the upstream broke the flow control of HTTP/2";
	default:
		return "the upstream's response is malformed";
	}
}

/* Opens no further streams on this connection. */
static void end_sharing(struct upstream_http2 *s)
{
	s->ending = true;
	pool_unshare(s->conn);
}

void upstream_http2_stream_tell_closed(struct upstream_http2_stream *st)
{
	struct exchange *ex = st->up.exchange;
	bool calm;

	if (!ex || st->response_ended)
		return;
	st->up.untouched =
	        st->code == NGHTTP2_REFUSED_STREAM || st->code == NGHTTP2_HTTP_1_1_REQUIRED;
	/* A reset is an answer, unlike the end of a pooled connection. But ENHANCE_YOUR_CALM
	 * concerns the connection, which many clients share, and no other client has to suffer for
	 * one of them (node sends it for a client that has stopped reading): the connection gets no
	 * further streams. */
	calm = st->reset && st->code == NGHTTP2_ENHANCE_YOUR_CALM;
	if (calm)
		end_sharing(st->session);
	exchange_note_reset(ex, st->code == NGHTTP2_HTTP_1_1_REQUIRED, !calm && !st->up.untouched);
	upstream_http2_stream_fail(st, EVENT_CAUSE_UPSTREAM, why_closed(st));
}

static void end_closed(struct upstream_http2_stream *st)
{
	upstream_http2_stream_tell_closed(st);
	if (!st->up.exchange)
		upstream_http2_stream_free(st);
}

void upstream_http2_stream_go_on(struct upstream_http2_stream *st)
{
	if (st->up.exchange && st->input_buf.len) {
		struct upstream_http2 *s = st->session;

		upstream_http2_stream_deliver(st);
		if (s->changed)
			return;
	}
	if (st->closed && (!st->input_buf.len || !st->response_ended)) {
		end_closed(st);
		return;
	}
	if (st->congested && st->out.len < SOCKET_HIGH / 2 &&
	        !socket_is_congested(&st->up.conn->socket)) {
		st->congested = false;
		if (st->up.exchange)
			exchange_upstream_drained(st->up.exchange);
	}
}

static void touch(struct upstream_stream *u)
{
	u->sent_seen = u->conn->socket.sent;
	if (!stream_of(u)->response_ended)
		upstream_conn_wait(u, u->upgraded ? WAIT_POOLED : WAIT_RESPONSE);
}

static void resume(struct upstream_stream *u)
{
	touch(u);
	upstream_http2_later(stream_of(u)->session);
}

static struct slice trailers(struct upstream_stream *u)
{
	return buf_slice(&stream_of(u)->trailers.lines);
}

/* A connection on which one stream gets nothing may be dead: it gets no further streams. */
static void on_deadline(struct upstream_stream *u, int wait)
{
	struct upstream_http2_stream *st = stream_of(u);
	struct upstream_http2 *s = st->session;

	if (socket_unsent(&u->conn->socket) && u->conn->socket.sent != u->sent_seen) {
		touch(u);
		return;
	}
	(void)wait;
	end_sharing(s);
	upstream_http2_stream_fail(st, EVENT_CAUSE_TIMEOUT, "the upstream was silent for too long");
	let_go(st, NGHTTP2_CANCEL);
}

const struct upstream_stream_ops upstream_http2 = {
        .send_head = upstream_http2_stream_send_head,
        .send_body = upstream_http2_stream_send_body,
        .send_end = upstream_http2_stream_send_end,
        .congested = upstream_http2_stream_congested,
        .touch = touch,
        .resume = resume,
        .trailers = trailers,
        .put = put,
        .on_deadline = on_deadline,
};
