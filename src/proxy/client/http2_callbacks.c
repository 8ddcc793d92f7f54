/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nghttp2's callbacks for an HTTP/2 connection from the sandbox: what was read becomes calls of
 * http2_stream.c, what is to be sent goes into the socket. If nghttp2 finds a protocol error in one
 * stream, that stream ends with a finding; a flood ends the connection.
 */
#include "proxy/client/http2.h"
#include "vethguard/wire/http2_frames.h"

static struct client_http2_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int too_much(struct client_http2 *h, const char *why)
{
	if (!why)
		return 0;
	client_http2_violated(h, NGHTTP2_ENHANCE_YOUR_CALM, why);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* --- what nghttp2 has read --- */

static void begin_settings(struct client_http2 *h, nghttp2_session *session)
{
	http2_rules_settings_begin(&h->rules);
	for (const struct list *l = h->streams.next; l != &h->streams; l = l->next)
		http2_rules_widen(
		        &h->rules, session, container_of(l, struct client_http2_stream, list)->id);
}

static int take_settings(struct client_http2 *h, const nghttp2_settings *settings)
{
	uint32_t code;
	const char *wrong;

	if (settings->hd.flags & NGHTTP2_FLAG_ACK) {
		h->settled = true;
		return 0;
	}
	wrong = http2_rules_settings(&h->rules, settings, &code);
	if (!wrong)
		return 0;
	client_http2_violated(h, code, wrong);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *context)
{
	struct client_http2 *h = context;

	const char *wrong;
	uint32_t code = NGHTTP2_PROTOCOL_ERROR;

	if (hd->type == NGHTTP2_SETTINGS)
		begin_settings(h, session);
	wrong = http2_rules_frame(hd, &code);
	if (!wrong)
		wrong = http2_rules_stream(&h->rules, hd, &code);
	/* Priorities are not used, so nghttp2 does not check them (RFC 9113 section 6.3). */
	if (hd->type == NGHTTP2_PRIORITY && !hd->stream_id)
		wrong = "HTTP/2: a priority of the connection";
	if (wrong) {
		client_http2_violated(h, code, wrong);
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return too_much(h, client_http2_limits_frame(&h->guard, h->client->proxy->config.loop, hd));
}

/* Beyond these bounds a stream is refused; the client may take this as "try again" (RFC 9113
 * section 8.7). */
static bool has_room(const struct client_http2 *h)
{
	const struct proxy *proxy = h->client->proxy;

	return h->stream_count < HTTP2_EXCHANGES_MAX &&
	       proxy->stream_count < proxy->config.limits.streams;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct client_http2 *h = context;
	int32_t id = frame->hd.stream_id;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		h->heading = stream_of(session, id);
		return 0;
	}
	h->heading = has_room(h) ? client_http2_stream_new(h, id) : NULL;
	if (h->heading && nghttp2_session_set_stream_user_data(session, id, h->heading) == 0)
		return 0;
	if (h->heading)
		client_http2_stream_free(h->heading);
	h->heading = NULL;
	nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
        size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *context)
{
	struct client_http2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)flags;
	if (!s)
		return 0;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		client_http2_stream_trailer(s, slice_of(name, name_n), slice_of(value, value_n));
		return 0;
	}
	http2_block_add(&s->block, slice_of(name, name_n), slice_of(value, value_n));
	/* A head that is too large is answered with 431; one that decompresses to many times the
	 * bound is an attack. */
	if (s->block.size > 4 * s->block.limit)
		return too_much(context, "HTTP/2: a header block that unpacks without end");
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct client_http2 *h = context;
	struct client_http2_stream *s = stream_of(session, frame->hd.stream_id);
	bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		h->heading = NULL;
		if (!s)
			return 0;
		s->request_whole = ended;
		if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			client_http2_stream_begin(s);
		else if (ended)
			client_http2_stream_ended(s);
		else /* RFC 9113 section 8.1 */
			client_http2_stream_refused(
			        s, "a trailer section that does not end the stream");
		return 0;
	case NGHTTP2_DATA:
		if (s && ended)
			client_http2_stream_ended(s);
		return 0;
	case NGHTTP2_RST_STREAM:
		if (s)
			s->peer_reset = true;
		return too_much(
		        h, client_http2_limits_reset(&h->guard, h->client->proxy->config.loop));
	case NGHTTP2_SETTINGS:
		return take_settings(h, &frame->settings);
	default:
		return 0;
	}
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
        void *context)
{
	struct client_http2 *h = context;
	struct client_http2_stream *s = stream_of(session, id);

	(void)flags;
	client_http2_limits_progress(&h->guard, n);
	nghttp2_session_consume_connection(session, n);
	if (s)
		client_http2_stream_data(s, p, n);
	return 0;
}

static int on_invalid_frame(
        nghttp2_session *session, const nghttp2_frame *frame, int error, void *context)
{
	struct client_http2 *h = context;
	struct client_http2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)error;
	if (h->heading == s)
		h->heading = NULL;
	if (s)
		s->reset = true; /* nghttp2 has queued the reset */
	if (s)
		client_http2_stream_refused(s, "a header block that HTTP/2 does not allow");
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct client_http2 *h = context;
	struct client_http2_stream *s = stream_of(session, id);

	(void)code;
	if (!s)
		return 0;
	if (h->heading == s)
		h->heading = NULL;
	client_http2_stream_closed(s);
	return 0;
}

/* --- what nghttp2 sends --- */

static ssize_t on_send(
        nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *context)
{
	struct client_http2 *h = context;

	(void)session, (void)flags;
	if (socket_is_congested(&h->client->socket))
		return NGHTTP2_ERR_WOULDBLOCK;
	http2_memory_sent(&h->memory, p);
	socket_write(&h->client->socket, p, n);
	return (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
        size_t n, nghttp2_data_source *source, void *context)
{
	struct client_http2 *h = context;

	(void)session, (void)frame;
	if (socket_is_congested(&h->client->socket))
		return NGHTTP2_ERR_WOULDBLOCK;
	client_http2_limits_progress(&h->guard, 0);
	client_http2_stream_put(source->ptr, head, n);
	return 0;
}

static ssize_t data_size(nghttp2_session *session, uint8_t type, int32_t id, int32_t connection,
        int32_t stream, uint32_t frame, void *context)
{
	(void)session, (void)type, (void)id, (void)context;
	return http2_data_size(HTTP2_FRAME_DATA, connection, stream, frame);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct client_http2 *h = context;
	struct client_http2_stream *s = stream_of(session, frame->hd.stream_id);

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA:
		if (!s || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
			return 0;
		s->end_sent = true;
		client_http2_stream_watch(s);
		return 0;
	case NGHTTP2_RST_STREAM:
		if ((s && s->given_back) || !http2_is_clients_fault(frame->rst_stream.error_code))
			return 0;
		return too_much(
		        h, client_http2_limits_reset(&h->guard, h->client->proxy->config.loop));
	case NGHTTP2_GOAWAY:
		h->leaving = true;
		if (frame->goaway.error_code != NGHTTP2_NO_ERROR &&
		        frame->goaway.error_code != NGHTTP2_SETTINGS_TIMEOUT)
			client_http2_violated(h, frame->goaway.error_code,
			        "HTTP/2: a frame that the protocol does not allow");
		return 0;
	default:
		return 0;
	}
}

/* --- the session --- */

static nghttp2_session_callbacks *callbacks_new(void)
{
	nghttp2_session_callbacks *cb = NULL;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_send_callback(cb, on_send);
	nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
	nghttp2_session_callbacks_set_data_source_read_length_callback(cb, data_size);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	return cb;
}

#define ACKS_MAX 100            /* PING and SETTINGS acknowledgments not sent yet */
#define SETTINGS_ENTRIES_MAX 32 /* per SETTINGS frame */

int client_http2_open_session(struct client_http2 *h)
{
	nghttp2_session_callbacks *callbacks = callbacks_new();
	nghttp2_option *options = NULL;
	int rc = -1;

	http2_rules_init(&h->rules);
	http2_memory_init(&h->memory, &h->session);
	if (callbacks && nghttp2_option_new(&options) == 0) {
		nghttp2_option_set_no_auto_window_update(options, 1);
		nghttp2_option_set_no_closed_streams(options, 1);
		/* One reader parses messages for every version of HTTP (http/rules.c). */
		nghttp2_option_set_no_http_messaging(options, 1);
		nghttp2_option_set_max_outbound_ack(options, ACKS_MAX);
		nghttp2_option_set_max_settings(options, SETTINGS_ENTRIES_MAX);
		nghttp2_option_set_max_send_header_block_length(options, HTTP2_BLOCK_MAX);
		rc = nghttp2_session_server_new3(
		        &h->session, callbacks, h, options, &h->memory.functions);
		nghttp2_option_del(options);
	}
	nghttp2_session_callbacks_del(callbacks);
	return rc;
}
