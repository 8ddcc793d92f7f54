/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nghttp2's session and callbacks. nghttp2 checks messages (RFC 9113 section 8): names, order of
 * pseudo-header fields, lengths of content. Its memory is wiped when it is given back, because
 * header blocks hold tokens.
 */
#include <errno.h>
#include <stdlib.h>

#include "gateway/http2.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/wiped.h"
#include "vethguard/wire/http2_frames.h"

#define ACKS_MAX 100                            /* PING and SETTINGS acknowledgments not sent yet */
#define SETTINGS_ENTRIES_MAX 32                 /* per SETTINGS frame */
#define BLOCK_MAX (4 * HTTP1_RESPONSE_HEAD_MAX) /* of a response, before it is compressed */

/* --- memory --- */

static void *take(size_t size, void *context)
{
	(void)context;
	return malloc(size);
}

static void *take_zeroed(size_t count, size_t size, void *context)
{
	(void)context;
	return calloc(count, size);
}

static void *resize(void *p, size_t size, void *context)
{
	(void)context;
	return wiped_realloc(p, size);
}

static void give_back(void *p, void *context)
{
	(void)context;
	wiped_free(p);
}

/* --- what nghttp2 has read --- */

static struct http2_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* Ends the connection: the client costs too much. */
static int too_much(struct http2 *h)
{
	h->broken = true;
	nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
	return 0;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *context)
{
	struct http2 *h = context;

	(void)session;
	return http2_limits_frame(&h->limits, hd, clock_monotonic_ms()) ? 0 : too_much(h);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *h = context;
	const int32_t id = frame->hd.stream_id;
	struct http2_stream *s;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = h->stream_count < 2 * (size_t)GATEWAY_HTTP2_STREAMS_MAX ? http2_stream_new(h, id)
	                                                            : NULL;
	if (s && nghttp2_session_set_stream_user_data(session, id, s) == 0)
		return 0;
	if (s)
		http2_stream_gone(s);
	nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
        size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *context)
{
	struct http2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)flags;
	if (!s || frame->headers.cat != NGHTTP2_HCAT_REQUEST) /* trailers are left out */
		return 0;
	http2_head_add(&s->head, slice_of(name, name_n), slice_of(value, value_n));
	/* A head that is too large is answered; one that unpacks to many times the bound is an
	 * attack. */
	return s->head.size > 4 * (size_t)PROXY_HEAD_MAX ? too_much(context) : 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *h = context;
	struct http2_stream *s = stream_of(session, frame->hd.stream_id);
	const bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		if (s && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			http2_stream_begin(s, ended);
		else if (s && ended)
			http2_stream_ended(s);
		return 0;
	case NGHTTP2_DATA:
		if (s && ended)
			http2_stream_ended(s);
		return 0;
	case NGHTTP2_RST_STREAM:
		return http2_limits_reset(&h->limits, clock_monotonic_ms()) ? 0 : too_much(h);
	default:
		return 0;
	}
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
        void *context)
{
	struct http2 *h = context;
	struct http2_stream *s = stream_of(session, id);

	(void)flags;
	http2_limits_progress(&h->limits);
	nghttp2_session_consume_connection(session, n);
	if (s)
		http2_stream_data(s, p, n);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct http2_stream *s = stream_of(session, id);

	(void)code, (void)context;
	if (s)
		http2_stream_gone(s);
	return 0;
}

/* --- what nghttp2 sends --- */

static ssize_t data_size(nghttp2_session *session, uint8_t type, int32_t id, int32_t connection,
        int32_t stream, uint32_t frame, void *context)
{
	(void)session, (void)type, (void)id, (void)context;
	return http2_data_size(GATEWAY_HTTP2_FRAME_DATA, connection, stream, frame);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *h = context;
	struct http2_stream *s = stream_of(session, frame->hd.stream_id);
	const bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (frame->hd.type == NGHTTP2_DATA)
		http2_limits_progress(&h->limits);
	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) && s && ended)
		http2_stream_sent(s);
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	        http2_is_clients_fault(frame->rst_stream.error_code) &&
	        !http2_limits_reset(&h->limits, clock_monotonic_ms()))
		return too_much(h);
	return 0;
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
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_data_source_read_length_callback(cb, data_size);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	return cb;
}

int http2_open_session(struct http2 *h)
{
	nghttp2_mem memory = {NULL, take, give_back, take_zeroed, resize};
	nghttp2_session_callbacks *callbacks = callbacks_new();
	nghttp2_option *options = NULL;
	int rc = -ENOMEM;

	if (callbacks && nghttp2_option_new(&options) == 0) {
		nghttp2_option_set_no_auto_window_update(options, 1);
		nghttp2_option_set_no_closed_streams(options, 1);
		nghttp2_option_set_max_outbound_ack(options, ACKS_MAX);
		nghttp2_option_set_max_settings(options, SETTINGS_ENTRIES_MAX);
		nghttp2_option_set_max_send_header_block_length(options, BLOCK_MAX);
		rc = nghttp2_session_server_new3(&h->session, callbacks, h, options, &memory);
		nghttp2_option_del(options);
	}
	nghttp2_session_callbacks_del(callbacks);
	return rc;
}
