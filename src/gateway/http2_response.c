/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the HTTP/1.1 responses that a visitor writes for a stream into HTTP/2 heads and content. */
#include "gateway/http2.h"

#define NV_MAX (HTTP1_RESPONSE_FIELDS_MAX + 1) /* with :status */

static nghttp2_nv nv_of(struct slice name, struct slice value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
	        value.n, NGHTTP2_NV_FLAG_NONE};
}

static ssize_t on_give(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
        nghttp2_data_source *source, void *context)
{
	struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)source, (void)context;
	return s && s->visitor ? http2_stream_give(s, p, n, flags)
	                       : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

ssize_t http2_stream_give(struct http2_stream *s, uint8_t *p, size_t n, uint32_t *flags)
{
	struct buf *unsent = &s->visitor->front.unsent;

	n = n < unsent->len ? n : unsent->len;
	if (n) {
		memcpy(p, buf_bytes(unsent), n);
		buf_consume(unsent, n);
	}
	if (unsent->len)
		return (ssize_t)n;
	buf_fini(unsent);
	if (s->content.state == HTTP1_CONTENT_OVER || s->ended)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	else if (!n)
		return NGHTTP2_ERR_DEFERRED;
	loop_task_queue(s->visitor->gateway->loop, &s->visitor->wake);
	return (ssize_t)n;
}

/* Returns the count of fields. */
static size_t put_fields(const uint8_t *p, const struct http1_response *head, bool tunnel,
        const char status[4], nghttp2_nv *nv)
{
	struct slice name, value;
	size_t at = 0, n = 0;

	nv[n++] = nv_of(SLICE(":status"), slice_of(status, 3));
	while (http1_response_next_field(p, head, &at, &name, &value))
		if (!http1_response_is_of_connection(name) &&
		        !(tunnel && slice_equals_ignoring_case(name, SLICE("content-length"))))
			nv[n++] = nv_of(name, value);
	return n;
}

static bool submit(struct http2_stream *s, const uint8_t *p, const struct http1_response *head)
{
	const bool tunnel = s->request == HTTP1_REQUEST_CONNECT && head->status / 100 == 2;
	const nghttp2_data_provider content = {.read_callback = on_give};
	const char status[4] = {(char)('0' + head->status / 100),
	        (char)('0' + head->status / 10 % 10), (char)('0' + head->status % 10), 0};
	nghttp2_nv nv[NV_MAX];
	const size_t n = put_fields(p, head, tunnel, status, nv);
	nghttp2_session *session = s->http2->session;

	if (head->status < 200)
		return nghttp2_submit_headers(
		               session, NGHTTP2_FLAG_NONE, s->id, NULL, nv, n, NULL) == 0;
	s->answered = true;
	http1_content_begin(&s->content, head);
	return nghttp2_submit_response(session, s->id, nv, n,
	               head->content == HTTP1_CONTENT_NONE ? NULL : &content) == 0;
}

/* Appends content to front.unsent. Drops what comes after it: the worker was asked to end the
 * connection there. Returns false if the content is malformed or too much. */
static bool put_content(struct front *f, const uint8_t *p, size_t n)
{
	struct http2_stream *s = f->stream;
	struct slice data;

	while (n) {
		const size_t used = http1_content_take(&s->content, p, n, &data);

		if (!used)
			return s->content.state != HTTP1_CONTENT_BAD;
		if (buf_append_slice(&f->unsent, data) != 0)
			return false;
		p += used;
		n -= used;
	}
	return s->content.state != HTTP1_CONTENT_BAD;
}

/* Submits the heads that are whole. Returns false if the response cannot be sent. */
static bool put_heads(struct front *f)
{
	struct http2_stream *s = f->stream;
	struct buf *early = &s->early;
	struct http1_response head;

	while (!s->answered && early->len) {
		switch (http1_response_parse(
		        buf_bytes(early), early->len, &s->looked, s->request, &head)) {
		case HTTP1_RESPONSE_MORE:
			return true;
		case HTTP1_RESPONSE_BAD:
			return false;
		case HTTP1_RESPONSE_DONE:
			break;
		}
		/* No request has Upgrade, so no other protocol may begin. */
		if (head.status == 101 || !submit(s, buf_bytes(early), &head))
			return false;
		buf_consume(early, head.used);
		s->looked = 0;
	}
	if (s->answered && !put_content(f, buf_bytes(early), early->len))
		return false;
	if (s->answered)
		buf_fini(early);
	return true;
}

bool http2_stream_write(struct front *f, const void *p, size_t n)
{
	struct http2_stream *s = f->stream;
	bool good;

	if (f->broken || !s->http2)
		return false;
	if (s->answered)
		good = put_content(f, p, n);
	else
		good = buf_append(&s->early, p, n) == 0 && put_heads(f);
	if (!good) {
		nghttp2_submit_rst_stream(
		        s->http2->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_INTERNAL_ERROR);
		f->broken = true;
	} else if (s->answered) {
		nghttp2_session_resume_data(s->http2->session, s->id);
	}
	http2_send_soon(s->http2);
	return good;
}
