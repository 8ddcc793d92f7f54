/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nghttp2's callbacks for an HTTP/2 connection to an upstream: what was read becomes calls of
 * http2_response.c, what is to be sent goes into the socket. A flood, or a frame beyond the bounds,
 * ends the connection.
 *
 * Nothing is sent from inside a callback: it goes out when the received bytes are used up. A head
 * is given to nghttp2 only when it can be written at once, so that its values are borrowed and a
 * credential is never copied; the written bytes are wiped.
 */
#include "proxy/upstream/http2.h"

#define NONE ((ssize_t)NGHTTP2_ERR_WOULDBLOCK)

static struct upstream_http2_stream *find(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

/* --- sending --- */

/* True if the socket has to drain first; but a head that has begun is not interrupted. */
static bool must_wait(const struct upstream_http2 *s)
{
	return socket_is_congested(&s->conn->socket) && !s->heading;
}

static bool is_head(const uint8_t *frame, size_t n)
{
	return n > 3 && (frame[3] == NGHTTP2_HEADERS || frame[3] == NGHTTP2_CONTINUATION);
}

static ssize_t on_send(
        nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *context)
{
	struct upstream_http2 *s = context;
	struct socket *socket = &s->conn->socket;

	(void)session;
	(void)flags;
	if (must_wait(s))
		return NONE;
	http2_memory_sent(&s->memory, p);
	if (s->secret && is_head(p, n)) {
		socket_write_secret(socket, p, n);
		/* nghttp2 does not use these bytes again. */
		secret_wipe((uint8_t *)(uintptr_t)p, n);
	} else {
		socket_write(socket, p, n);
	}
	return (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
        size_t n, nghttp2_data_source *source, void *context)
{
	struct upstream_http2 *s = context;
	struct socket *socket = &s->conn->socket;

	(void)session;
	(void)frame;
	if (must_wait(s))
		return NGHTTP2_ERR_WOULDBLOCK;
	s->empty = 0;
	socket_write(socket, header, HTTP2_FRAME_HEADER);
	upstream_http2_stream_write(source->ptr, socket, n);
	return 0;
}

static ssize_t data_length(nghttp2_session *session, uint8_t type, int32_t id,
        int32_t session_window, int32_t stream_window, uint32_t frame_max, void *context)
{
	ssize_t n = HTTP2_DATA_BYTES;

	(void)session;
	(void)type;
	(void)id;
	(void)context;
	if (n > session_window)
		n = session_window;
	if (n > stream_window)
		n = stream_window;
	return n > (ssize_t)frame_max ? (ssize_t)frame_max : n;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct upstream_http2 *s = context;
	struct upstream_http2_stream *st = find(session, frame->hd.stream_id);

	if (!st || frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	s->heading &= st->head_written; /* ends with the stream's first head */
	st->head_written = true;
	return 0;
}

/* --- receiving --- */

static void begin_settings(struct upstream_http2 *s, nghttp2_session *session)
{
	http2_rules_settings_begin(&s->rules);
	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		http2_rules_widen(&s->rules, session,
		        container_of(l, struct upstream_http2_stream, list)->id);
}

/* Counts PING, SETTINGS, WINDOW_UPDATE and empty DATA: few are needed, and each costs more here
 * than it costs the upstream. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *context)
{
	struct upstream_http2 *s = context;
	int64_t now = loop_now_ms(s->conn->proxy->config.loop);
	uint32_t code;

	if (hd->type == NGHTTP2_SETTINGS)
		begin_settings(s, session);
	if (http2_rules_frame(hd, &code)) {
		s->detail = "the upstream sent a CONTINUATION frame that is too large";
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	/* nghttp2 refuses a push only after our settings were acknowledged; but they were sent
	 * before any request. */
	if (hd->type == NGHTTP2_PUSH_PROMISE) {
		s->detail = "the upstream sent a PUSH_PROMISE";
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (now - s->empty_since_ms >= 1000) {
		s->empty = 0;
		s->empty_since_ms = now;
	}
	if (++s->empty <= UPSTREAM_HTTP2_EMPTY_FRAMES)
		return 0;
	s->detail = "the upstream sent a flood of frames without content";
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct upstream_http2_stream *st = find(session, frame->hd.stream_id);

	(void)context;
	if (!st)
		return 0;
	st->up.response_begun = true;
	if (st->up.exchange) /* the block holds a delayed head: send it */
		exchange_release_head(st->up.exchange);
	http2_block_reset(&st->block);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
        size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *context)
{
	struct upstream_http2_stream *st = find(session, frame->hd.stream_id);

	(void)flags;
	(void)context;
	if (!st || !st->up.exchange)
		return 0;
	if (st->final_head)
		upstream_http2_stream_trailer(st, slice_of((const char *)name, name_n),
		        slice_of((const char *)value, value_n));
	else
		http2_block_add(&st->block, slice_of((const char *)name, name_n),
		        slice_of((const char *)value, value_n));
	if (st->up.exchange && !st->block.too_large)
		return 0;
	upstream_http2_stream_fail(
	        st, EVENT_CAUSE_UPSTREAM, "the upstream's response head is too large");
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Opens no further streams on this connection. */
static void end_sharing(struct upstream_http2 *s)
{
	s->ending = true;
	pool_unshare(s->conn);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct upstream_http2 *s = context;
	struct upstream_http2_stream *st = find(session, frame->hd.stream_id);
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	uint32_t code;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		end_sharing(s);
	if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
	        http2_rules_settings(&s->rules, &frame->settings, &code)) {
		s->detail = "the upstream raised a window beyond its bound";
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (frame->hd.type == NGHTTP2_SETTINGS)
		s->greeted = true;
	if (!st || !st->up.exchange)
		return 0;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		st->reset = true;
	if (frame->hd.type == NGHTTP2_HEADERS)
		s->empty = 0;
	if (frame->hd.type == NGHTTP2_HEADERS && !upstream_http2_stream_head(st, ends)) {
		nghttp2_submit_rst_stream(
		        session, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_PROTOCOL_ERROR);
		return 0;
	}
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && ends &&
	        st->up.exchange && !upstream_http2_stream_end(st))
		nghttp2_submit_rst_stream(
		        session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
        void *context)
{
	struct upstream_http2 *s = context;
	struct upstream_http2_stream *st = find(session, id);

	(void)flags;
	s->empty = 0;
	nghttp2_session_consume_connection(session, n);
	if (st && st->up.exchange)
		upstream_http2_stream_data(st, p, n);
	return 0;
}

/* May be called while something is sent for an exchange, so exchanges are told at the end of the
 * turn. */
static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct upstream_http2_stream *st = find(session, id);

	if (!st)
		return 0;
	st->id = 0;
	st->closed = true;
	st->code = code;
	upstream_http2_later(context);
	return 0;
}

/* --- the session --- */

static nghttp2_session *session_new(struct upstream_http2 *s)
{
	nghttp2_session_callbacks *on;
	nghttp2_option *option = NULL;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&on) < 0)
		return NULL;
	nghttp2_session_callbacks_set_send_callback(on, on_send);
	nghttp2_session_callbacks_set_send_data_callback(on, on_send_data);
	nghttp2_session_callbacks_set_data_source_read_length_callback(on, data_length);
	nghttp2_session_callbacks_set_on_frame_send_callback(on, on_frame_sent);
	nghttp2_session_callbacks_set_on_begin_frame_callback(on, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(on, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(on, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(on, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(on, on_stream_close);
	if (nghttp2_option_new(&option) == 0) {
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_option_set_no_closed_streams(option, 1);
		/* One reader parses messages for every version of HTTP (http/rules.c). */
		nghttp2_option_set_no_http_messaging(option, 1);
		nghttp2_option_set_max_reserved_remote_streams(option, 0);
		nghttp2_option_set_peer_max_concurrent_streams(option, UPSTREAM_HTTP2_STREAMS);
		nghttp2_option_set_max_send_header_block_length(option, HTTP2_BLOCK_MAX);
		http2_rules_init(&s->rules);
		http2_memory_init(&s->memory, &s->session);
		nghttp2_session_client_new3(&session, on, s, option, &s->memory.functions);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(on);
	return session;
}

bool upstream_http2_open_session(struct upstream_http2 *s)
{
	const nghttp2_settings_entry settings[] = {
	        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX},
	};

	s->session = session_new(s);
	return s->session &&
	       nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, settings,
	               sizeof(settings) / sizeof(*settings)) == 0 &&
	       nghttp2_session_set_local_window_size(
	               s->session, NGHTTP2_FLAG_NONE, 0, UPSTREAM_HTTP2_WINDOW) == 0;
}
