/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the response of a stream of an HTTP/2 connection: struct exchange_client over frames.
 *
 * The body goes into frames from the upstream's memory (`direct`) while the client's window and the
 * socket have room. Otherwise it waits in `out`, and the exchange is told that the client is
 * congested. nghttp2 asks for the bytes when it is their turn.
 */

#include "proxy/client/http2.h"

/* --- called by nghttp2 --- */

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *p, size_t n,
        uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct client_http2_stream *s = source->ptr;
	size_t have = s->out.len ? s->out.len : s->direct_n;
	bool last = s->whole && have <= n;
	nghttp2_nv nv[HTTP_TRAILERS_MAX];

	(void)p, (void)context;
	if (!have && !last)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (last)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (last && s->last.len) {
		size_t count = http2_put_lines(buf_slice(&s->last), nv, HTTP_TRAILERS_MAX);

		if (count && nghttp2_submit_trailer(session, id, nv, count) == 0)
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	}
	return (ssize_t)(have < n ? have : n);
}

void client_http2_stream_put(struct client_http2_stream *s, const uint8_t *frame_head, size_t n)
{
	struct socket *socket = &s->server->client->socket;

	socket_write(socket, frame_head, HTTP2_FRAME_HEAD);
	if (s->out.len) {
		socket_write(socket, buf_bytes(&s->out), n);
		buf_consume(&s->out, n);
		if (!s->out.len)
			buf_fini(&s->out);
	} else {
		socket_write(socket, s->direct, n);
		s->direct += n;
		s->direct_n -= n;
	}
	client_http2_stream_watch(s);
}

void client_http2_stream_set_paused(struct client_http2_stream *s, bool paused)
{
	if (s->paused == paused)
		return;
	s->paused = paused;
	if (paused)
		s->server->paused++;
	else
		s->server->paused--;
}

/* Tells nghttp2 that the stream has bytes to ask for. */
static void offer(struct client_http2_stream *s)
{
	nghttp2_session_resume_data(s->server->session, s->id);
	client_http2_send(s->server);
}

bool client_http2_stream_tell_drained(struct client_http2_stream *s)
{
	if (!s->paused || s->out.len >= SOCKET_HIGH / 2)
		return false;
	client_http2_stream_set_paused(s, false);
	if (s->exchange)
		exchange_client_drained(s->exchange);
	return true;
}

/* --- struct exchange_client --- */

static bool has_no_content(const struct exchange *ex, const struct http_response *r)
{
	return ex->head_request || r->status == 304 || r->body == HTTP_BODY_NONE ||
	       (r->body == HTTP_BODY_LENGTH && !r->content_length);
}

/* Answers an extended CONNECT that the upstream has agreed to: with 200 in HTTP/2. False: the
 * upstream has not agreed, or its answer is wrong. */
static bool switch_protocols(struct client_http2_stream *s, const struct http_response *r)
{
	static const struct slice name = {"sec-websocket-accept", 20};
	nghttp2_nv nv[HTTP2_NV_MAX];
	const nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_body};
	bool accepted = false;
	size_t n = 0;

	nv[n++] = http2_nv(SLICE(":status"), SLICE("200"));
	for (size_t i = 0; i < r->fields.count; i++) {
		const struct http_field *f = &r->fields.items[i];

		if (slice_equals_ignoring_case(f->name, name))
			accepted = websocket_accepts(s->websocket_key, f->value);
		else if (!f->dropped)
			nv[n++] = http2_nv(f->name, f->value);
	}
	if (!accepted || nghttp2_submit_response(s->server->session, s->id, nv, n, &body) != 0)
		return false;
	client_http2_send(s->server);
	return true;
}

/* A success status would tell the client that it may send frames now. */
static uint16_t status_of(const struct exchange *ex, const struct http_response *r)
{
	return ex->request.wants_websocket && r->status / 100 == 2 ? 502 : r->status;
}

static void response_head(struct exchange *ex, const struct http_response *r, struct slice upgrade)
{
	struct client_http2_stream *s = ex->stream;
	nghttp2_session *session = s->server->session;
	const nghttp2_data_provider body = {.source.ptr = s, .read_callback = read_body};
	char status[24], length[24];
	size_t n = 0;
	nghttp2_nv nv[HTTP2_NV_MAX];

	if (s->closed)
		return;
	if (upgrade.n) {
		if (!switch_protocols(s, r)) {
			s->failure = "the upstream's answer to the WebSocket handshake is wrong";
			client_http2_stream_reset(s, NGHTTP2_CONNECT_ERROR);
		}
		return;
	}
	/* A status that was read from an upstream or made here has three digits. */
	nv[n++] = http2_nv(SLICE(":status"), http_decimal(status_of(ex, r), status));
	n += http2_put_fields(&r->fields, nv + n);
	if (r->body == HTTP_BODY_LENGTH)
		nv[n++] =
		        http2_nv(SLICE("content-length"), http_decimal(r->content_length, length));
	if (r->status < 200) {
		nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, s->id, NULL, nv, n, NULL);
		client_http2_send(s->server);
		return;
	}
	s->whole = has_no_content(ex, r);
	s->counted = r->body == HTTP_BODY_LENGTH;
	s->left = r->content_length;
	if (nghttp2_submit_response(session, s->id, nv, n, s->whole ? NULL : &body) != 0)
		client_http2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
	/* Send it together with what follows, or at the end of this turn. */
	loop_task_queue(client_http2_stream_loop(s), &s->server->flush);
}

static void response_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct client_http2_stream *s = ex->stream;
	struct client_http2 *h = s->server;

	if (s->closed || s->whole)
		return;
	if (s->counted) {
		s->left -= n < s->left ? n : s->left;
		s->whole = s->left == 0;
	}
	if (!s->out.len && !h->sending && !h->receiving) {
		s->direct = p;
		s->direct_n = n;
		offer(s);
		p = s->direct;
		n = s->direct_n;
		s->direct = NULL;
		s->direct_n = 0;
	}
	if (n && buf_append(&s->out, p, n) < 0) {
		s->whole = false;
		client_http2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	if (n) {
		client_http2_stream_watch(s);
		if (h->sending || h->receiving)
			offer(s);
	}
}

static void response_end(struct exchange *ex, struct slice trailers)
{
	struct client_http2_stream *s = ex->stream;

	if (s->closed)
		return;
	if (!s->whole && trailers.n && buf_append_slice(&s->last, trailers) < 0) {
		client_http2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	s->whole = true;
	offer(s);
}

static void request_resume(struct exchange *ex)
{
	loop_task_queue(client_http2_stream_loop(ex->stream), &ex->stream->task);
}

/* The caller stops if this is true, and is told when there is room again. */
static bool congested(struct exchange *ex)
{
	struct client_http2_stream *s = ex->stream;

	if (s->closed ||
	        (s->out.len < SOCKET_HIGH && !socket_is_congested(&s->server->client->socket)))
		return false;
	client_http2_stream_set_paused(s, true);
	/* Sets the connection's deadline if the connection is what is full. */
	loop_task_queue(client_http2_stream_loop(s), &s->server->flush);
	return true;
}

static void done(struct exchange *ex, bool complete)
{
	struct client_http2_stream *s = ex->stream;

	s->exchange = NULL;
	s->server->client->answered = true;
	client_http2_stream_set_paused(s, false);
	if (s->closed) {
		client_http2_stream_free(s);
		return;
	}
	buf_fini(&s->input_buf);
	s->given_back = !complete && ex->sending.unprocessed;
	if (!complete || !s->whole)
		client_http2_stream_reset(s, s->given_back ? NGHTTP2_REFUSED_STREAM : s->code);
	else
		client_http2_stream_watch(s);
}

const struct exchange_client client_http2 = {
        .response_head = response_head,
        .response_body = response_body,
        .response_end = response_end,
        .request_resume = request_resume,
        .congested = congested,
        .done = done,
};
