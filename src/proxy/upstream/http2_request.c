/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request sent over a stream. Its head is lent to nghttp2 and written at once. Its body goes out
 * without copying as far as the upstream's window reaches; the rest waits in `out`.
 */
#include <errno.h>

#include "proxy/upstream/http2.h"

static nghttp2_session *session_of(const struct upstream_http2_stream *st)
{
	return st->session->session;
}

/* Joins the path and the query, because nghttp2 needs ":path" as one run of bytes. out is locked
 * memory if they hold the credential. */
static int write_path(struct buf *out, const struct outgoing *head)
{
	int rc = buf_append_slice(out, http_outgoing_path(head));

	if (rc == 0 && head->has_query)
		rc = buf_append(out, "?", 1);
	if (rc == 0 && head->has_query)
		rc = buf_append_slice(out, head->query);
	return rc;
}

struct field_list {
	size_t n;
	nghttp2_nv nv[HTTP2_NV_MAX];
};

/* Lends the value to nghttp2. A secret never enters a compression table (RFC 7541 section
 * 7.1.3). */
static void add(struct field_list *list, struct slice name, struct slice value, bool secret)
{
	nghttp2_nv nv = http2_nv(name, value);

	nv.flags = NGHTTP2_NV_FLAG_NO_COPY_VALUE | (secret ? NGHTTP2_NV_FLAG_NO_INDEX : 0);
	list->nv[list->n++] = nv;
}

static bool is_websocket_key(const struct http_field *f)
{
	return slice_equals_ignoring_case(f->name, SLICE("sec-websocket-key"));
}

/* Puts the pseudo-header fields first (RFC 9113 section 8.3). */
static void build(struct field_list *list, const struct outgoing *head, struct slice authority,
        struct slice path, struct slice length)
{
	const struct http_request *r = head->request;

	list->n = 0;
	add(list, SLICE(":method"), r->wants_websocket ? SLICE("CONNECT") : r->method, false);
	if (r->wants_websocket) /* RFC 8441: the stream is the connection, and needs no key */
		add(list, SLICE(":protocol"), SLICE("websocket"), false);
	add(list, SLICE(":scheme"), r->scheme == POLICY_HTTP ? SLICE("http") : SLICE("https"),
	        false);
	add(list, SLICE(":authority"), authority, false);
	add(list, SLICE(":path"), path, head->secret);
	for (size_t i = 0; i < r->fields.count; i++) {
		const struct http_field *f = &r->fields.items[i];

		/* The sandbox's own credentials do not go into a table either. */
		if (!f->dropped && !(r->wants_websocket && is_websocket_key(f)) &&
		        !http_is_replaced(head, f))
			add(list, f->name, f->value, f->secret || f->known == HTTP_AUTHORIZATION);
	}
	if (r->body == HTTP_BODY_LENGTH)
		add(list, SLICE("content-length"), length, false);
	if (r->te_trailers)
		add(list, SLICE("te"), SLICE("trailers"), false);
	for (size_t i = 0; i < head->field_count; i++)
		add(list, head->fields[i].name, head->fields[i].value, true);
}

/* Called only with the last byte of the body on its way, because nghttp2 sends a head before
 * content that waits. False: there are no trailers. */
static bool submit_trailers(nghttp2_session *session, int32_t id, struct upstream_http2_stream *st)
{
	nghttp2_nv nv[HTTP_TRAILERS_MAX];
	size_t n = http2_put_lines(buf_slice(&st->last), nv, HTTP_TRAILERS_MAX);

	return n && nghttp2_submit_trailer(session, id, nv, n) == 0;
}

/* Tells nghttp2 how much of the body may go into the next frame, without copying it. */
static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t n,
        uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct upstream_http2_stream *st = source->ptr;
	size_t left = st->direct.n ? st->direct.n : st->out.len;

	(void)buf;
	(void)context;
	if (st->cut || (!left && !st->request_ended))
		return NGHTTP2_ERR_DEFERRED;
	if (n > left)
		n = left;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (n == left && st->request_ended) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (submit_trailers(session, id, st))
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	}
	return (ssize_t)n;
}

/* Everything given to nghttp2 is borrowed, so it has to be written before this returns, even if the
 * socket becomes full meanwhile. */
static int submit(struct upstream_http2_stream *st, const struct field_list *list, bool ends)
{
	struct upstream_http2 *s = st->session;
	nghttp2_data_provider body = {.source.ptr = st, .read_callback = read_body};
	int32_t id = nghttp2_submit_request(
	        s->session, NULL, list->nv, list->n, ends ? NULL : &body, st);

	if (id < 0)
		return -ENOBUFS;
	st->id = id;
	st->request_ended = ends;
	s->heading = true;
	upstream_http2_flush(s);
	s->heading = false;
	if (st->head_written)
		return 0;
	/* This never happens, but nghttp2 must not come back to what it has borrowed. */
	nghttp2_session_del(s->session);
	s->session = NULL;
	st->id = 0;
	return -EIO;
}

int upstream_http2_stream_send_head(struct upstream_stream *u, const struct outgoing *head)
{
	struct upstream_http2_stream *st = stream_of(u);
	struct proxy *proxy = u->conn->proxy;
	char host[HTTP_AUTHORITY_MAX], digits[24];
	struct buf locked = proxy_secret_text(proxy, SECRET_HEAD);
	struct buf *text = head->secret ? &locked : &proxy->text;
	struct field_list list;
	int rc;

	if (!session_of(st))
		return -EIO;
	st->head_begun = true;
	u->sent_before = u->conn->socket.sent;
	buf_consume(text, text->len);
	rc = write_path(text, head);
	if (rc == 0) {
		build(&list, head, http_authority_text(head->request, host), buf_slice(text),
		        http_decimal(head->request->content_length, digits));
		rc = submit(st, &list, head->ends && !head->request->wants_websocket);
	}
	if (head->secret)
		secret_wipe(locked.mem, locked.len);
	/* Few servers answer "Expect" over HTTP/2, and flow control makes the answer
	 * unnecessary. */
	if (rc == 0 && head->request->expects_continue)
		exchange_continue(u->exchange);
	return rc;
}

void upstream_http2_stream_write(struct upstream_http2_stream *st, struct socket *socket, size_t n)
{
	if (st->direct.n) {
		socket_write(socket, st->direct.p, n);
		st->direct = slice_of(st->direct.p + n, st->direct.n - n);
		return;
	}
	socket_write(socket, buf_bytes(&st->out), n);
	buf_consume(&st->out, n);
}

void upstream_http2_stream_send_body(struct upstream_stream *u, const uint8_t *p, size_t n)
{
	struct upstream_http2_stream *st = stream_of(u);

	if (!st->id || !session_of(st))
		return;
	if (!st->out.len && !st->session->inside) {
		st->direct = slice_of((const char *)p, n);
		nghttp2_session_resume_data(session_of(st), st->id);
		upstream_http2_flush(st->session);
		p = (const uint8_t *)st->direct.p;
		n = st->direct.n;
		st->direct = slice_of(NULL, 0);
		if (!n)
			return;
	} else {
		nghttp2_session_resume_data(session_of(st), st->id);
		upstream_http2_later(st->session);
	}
	if (buf_append(&st->out, p, n) < 0) { /* only if the caller ignores congested() */
		nghttp2_submit_rst_stream(
		        session_of(st), NGHTTP2_FLAG_NONE, st->id, NGHTTP2_INTERNAL_ERROR);
		upstream_http2_later(st->session);
	}
	if (session_of(st) && st->id)
		nghttp2_session_resume_data(session_of(st), st->id);
	if (st->out.len >= SOCKET_HIGH)
		st->congested = true;
}

void upstream_http2_stream_send_end(struct upstream_stream *u, struct slice trailers)
{
	struct upstream_http2_stream *st = stream_of(u);

	if (!st->id || !session_of(st) || st->request_ended)
		return;
	st->request_ended = true;
	if (trailers.n && buf_append_slice(&st->last, trailers) < 0) {
		st->cut = true;
		nghttp2_submit_rst_stream(
		        session_of(st), NGHTTP2_FLAG_NONE, st->id, NGHTTP2_INTERNAL_ERROR);
	}
	nghttp2_session_resume_data(session_of(st), st->id);
	upstream_http2_flush(st->session);
}

bool upstream_http2_stream_congested(const struct upstream_stream *u)
{
	struct upstream_http2_stream *st = stream_of(u);

	st->congested |= socket_is_congested(&u->conn->socket); /* the caller waits to be told */
	return st->congested;
}
