/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream as the client's side of a visitor (front.h). What the visitor reads is a request in
 * HTTP/1.1, and what it writes is read as a response in HTTP/1.1. Bytes of the response wait in
 * front.unsent until nghttp2 takes them, so the visitor reads its worker no faster than the client
 * takes the stream.
 */
#include <errno.h>
#include <stdlib.h>

#include "gateway/http2.h"
#include "vethguard/base/secret.h"

#define RX_MAX                                                                            \
	(2 * PROXY_HEAD_MAX + 8 * GATEWAY_HTTP2_WINDOW) /* tiny chunks are mostly framing \
	                                                 */
#define EARLY_MAX (HTTP1_RESPONSE_HEAD_MAX + GATEWAY_CHUNK)

struct http2_stream *http2_stream_new(struct http2 *h, int32_t id)
{
	struct http2_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->http2 = h;
	s->id = id;
	http2_head_init(&s->head);
	buf_init_secret(&s->rx, RX_MAX);
	buf_init(&s->early, EARLY_MAX);
	list_append(&h->streams, &s->of_connection);
	h->stream_count++;
	return s;
}

static void leave_connection(struct http2_stream *s)
{
	struct http2 *h = s->http2;

	s->http2 = NULL;
	list_remove(&s->of_connection);
	h->stream_count--;
	http2_left(h);
}

static void stream_free(struct http2_stream *s)
{
	http2_head_fini(&s->head);
	buf_fini(&s->rx);
	buf_fini(&s->early);
	free(s);
}

static void wake(const struct http2_stream *s)
{
	loop_task_queue(s->visitor->gateway->loop, &s->visitor->wake);
}

void http2_stream_gone(struct http2_stream *s)
{
	nghttp2_session_set_stream_user_data(s->http2->session, s->id, NULL);
	leave_connection(s);
	if (!s->visitor) {
		stream_free(s);
		return;
	}
	s->visitor->front.broken = true;
	wake(s);
}

/* Resets the stream. nghttp2 knows the stream until the reset was sent. */
static void reset(struct http2_stream *s, uint32_t code)
{
	nghttp2_submit_rst_stream(s->http2->session, NGHTTP2_FLAG_NONE, s->id, code);
	http2_send_soon(s->http2);
}

/* --- the request --- */

/* Answers a head that is too large, without a visitor. */
static void answer_too_large(struct http2_stream *s)
{
	char status[] = ":status", value[] = "431";
	const nghttp2_nv nv = {(uint8_t *)status, (uint8_t *)value, sizeof(status) - 1,
	        sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE};

	nghttp2_submit_response(s->http2->session, s->id, &nv, 1, NULL);
	http2_send_soon(s->http2);
}

static enum http1_request_kind kind_of(const struct http2_head *head)
{
	return http2_head_method_is(head, SLICE("CONNECT")) ? HTTP1_REQUEST_CONNECT
	       : http2_head_method_is(head, SLICE("HEAD"))  ? HTTP1_REQUEST_HEAD
	                                                    : HTTP1_REQUEST_OTHER;
}

void http2_stream_begin(struct http2_stream *s, bool ended)
{
	int rc;

	s->request = kind_of(&s->head);
	s->rx_ended = ended;
	rc = http2_head_write(&s->head, ended, &s->chunked, &s->rx);
	if (!rc)
		s->visitor = visitor_open_stream(s->http2->visitor, s);
	if (rc == -EFBIG)
		answer_too_large(s);
	else if (!s->visitor)
		reset(s, rc ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_REFUSED_STREAM);
	http2_head_fini(&s->head);
	if (s->visitor)
		visitor_go_on(s->visitor);
	else
		http2_stream_gone(s);
}

void http2_stream_data(struct http2_stream *s, const uint8_t *p, size_t n)
{
	int rc = 0;

	if (!s->visitor || !n)
		return;
	if (s->chunked)
		rc = buf_printf(&s->rx, "%zx\r\n", n);
	if (!rc)
		rc = buf_append(&s->rx, p, n);
	if (!rc && s->chunked)
		rc = buf_append_slice(&s->rx, SLICE("\r\n"));
	s->owed += n;
	if (rc)
		reset(s, NGHTTP2_INTERNAL_ERROR);
	wake(s);
}

void http2_stream_ended(struct http2_stream *s)
{
	s->rx_ended = true;
	if (!s->visitor)
		return;
	if (s->chunked && buf_append_slice(&s->rx, SLICE("0\r\n\r\n")) != 0)
		reset(s, NGHTTP2_INTERNAL_ERROR);
	wake(s);
}

/* Lets the client send more, because the visitor has read everything. */
static void give_credit(struct http2_stream *s)
{
	if (!s->owed || !s->http2)
		return;
	nghttp2_session_consume_stream(s->http2->session, s->id, s->owed);
	s->owed = 0;
	http2_send_soon(s->http2);
}

/* Returns what the visitor reads when rx is empty. The end of a request's content is no FRONT_EOF,
 * which would end the connection to the worker before its answer. */
static enum front_status at_end(const struct http2_stream *s)
{
	if (s->visitor->front.broken)
		return FRONT_ERROR;
	if (s->ended)
		return s->end_sent ? FRONT_EOF : FRONT_AGAIN;
	return s->rx_ended && s->request == HTTP1_REQUEST_CONNECT ? FRONT_EOF : FRONT_AGAIN;
}

enum front_status http2_stream_read(struct front *f, size_t most, struct slice *out)
{
	struct http2_stream *s = f->stream;
	const size_t n = s->rx.len < most ? s->rx.len : most;

	*out = SLICE("");
	if (!n || f->broken)
		return at_end(s);
	memcpy(f->gateway->plain, buf_bytes(&s->rx), n);
	*out = slice_of(f->gateway->plain, n);
	buf_consume(&s->rx, n);
	if (!s->rx.len) {
		buf_fini(&s->rx);
		give_credit(s);
	}
	return FRONT_OK;
}

void http2_stream_proved(struct http2_stream *s)
{
	if (!s->http2)
		return;
	nghttp2_session_set_local_window_size(
	        s->http2->session, NGHTTP2_FLAG_NONE, s->id, GATEWAY_HTTP2_WINDOW);
	http2_send_soon(s->http2);
	http2_proved(s->http2);
}

/* --- the end --- */

void http2_stream_close(struct front *f)
{
	struct http2_stream *s = f->stream;
	struct http2 *h = s->http2;

	f->stream = NULL;
	buf_fini(&f->unsent);
	if (h) {
		reset(s, s->end_sent ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
		nghttp2_session_set_stream_user_data(h->session, s->id, NULL);
		leave_connection(s);
	}
	stream_free(s);
}

void http2_stream_sent(struct http2_stream *s)
{
	s->end_sent = true;
	if (s->visitor)
		wake(s);
}

void http2_stream_end(struct front *f)
{
	struct http2_stream *s = f->stream;

	if (s->ended || f->broken)
		return;
	s->ended = true;
	if (!s->answered || !http1_content_may_end(&s->content))
		reset(s, NGHTTP2_INTERNAL_ERROR); /* the worker's answer is cut off */
	else
		nghttp2_session_resume_data(s->http2->session, s->id);
	http2_send_soon(s->http2);
}
