/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream of an HTTP/2 connection from the sandbox: its head becomes a request, and the request
 * an exchange.
 *
 * The request's body goes to the upstream from where it was received. What the upstream does not
 * take waits in the input buffer. The stream's window opens only for what was taken, so the buffer
 * never holds more than the window.
 *
 * A stream is freed when nghttp2 has closed it and its exchange is over.
 */
#include <stdlib.h>

#include "proxy/client/http2.h"
#include "proxy/deny/deny.h"

/* --- life --- */

static void on_task(struct loop_task *task);

struct client_http2_stream *client_http2_stream_new(struct client_http2 *h, int32_t id)
{
	struct proxy *proxy = h->client->proxy;
	struct client_http2_stream *s = proxy->free_streams;

	if (s) {
		proxy->free_streams = s->next_free;
		proxy->free_stream_count--;
		memset(s, 0, offsetof(struct client_http2_stream, block));
	} else {
		s = calloc(1, sizeof(*s));
		if (!s)
			return NULL;
		http2_block_init(&s->block, proxy->config.limits.header_bytes);
	}
	memset(&s->input_buf, 0, sizeof(*s) - offsetof(struct client_http2_stream, input_buf));
	buf_init(&s->input_buf, CLIENT_HTTP2_STREAM_WINDOW);
	http_trailers_init(&s->trailers);
	buf_init(&s->out, SOCKET_OUT_MAX);
	buf_init(&s->last, HTTP_HEAD_MAX);
	s->server = h;
	s->id = id;
	s->code = NGHTTP2_INTERNAL_ERROR;
	s->task.run = on_task;
	list_append(&h->streams, &s->list);
	h->stream_count++;
	h->client->proxy->stream_count++;
	return s;
}

void client_http2_stream_free(struct client_http2_stream *s)
{
	struct proxy *proxy = s->server->client->proxy;

	client_http2_stream_set_paused(s, false);
	loop_deadline_clear(&s->deadline);
	loop_task_cancel(proxy->config.loop, &s->task);
	list_remove(&s->list);
	if (!--s->server->stream_count) /* the connection is idle from now on, or over */
		loop_task_queue(proxy->config.loop, &s->server->flush);
	proxy->stream_count--;
	http2_block_reset(&s->block);
	buf_fini(&s->input_buf);
	http_trailers_free(&s->trailers);
	buf_fini(&s->out);
	buf_fini(&s->last);
	if (proxy->free_stream_count < CLIENT_HTTP2_STREAMS_KEPT) {
		s->next_free = proxy->free_streams;
		proxy->free_streams = s;
		proxy->free_stream_count++;
		return;
	}
	http2_block_fini(&s->block);
	free(s);
}

void client_http2_streams_forget(struct proxy *proxy)
{
	while (proxy->free_streams) {
		struct client_http2_stream *s = proxy->free_streams;

		proxy->free_streams = s->next_free;
		http2_block_fini(&s->block);
		free(s);
	}
}

void client_http2_stream_reset(struct client_http2_stream *s, uint32_t code)
{
	if (s->closed || s->reset)
		return;
	s->reset = true;
	nghttp2_submit_rst_stream(s->server->session, NGHTTP2_FLAG_NONE, s->id, code);
	client_http2_send(s->server);
}

void client_http2_stream_abort(
        struct client_http2_stream *s, enum event_cause cause, const char *detail)
{
	struct exchange *ex = s->exchange;

	if (ex && ex->state != EXCHANGE_NEW) {
		exchange_abort(ex, cause, detail); /* done() follows */
		return;
	}
	if (ex)
		exchange_drop(ex);
	s->exchange = NULL;
	if (s->closed)
		client_http2_stream_free(s);
}

/* Ends the exchange of a closed stream, unless its response was completely sent: then it ends by
 * itself. */
static void end_closed(struct client_http2_stream *s)
{
	if (s->end_sent)
		return;
	if (s->peer_reset)
		client_http2_stream_abort(s, EVENT_CAUSE_CLIENT, "the sandbox reset the stream");
	else if (s->failure)
		client_http2_stream_abort(s, EVENT_CAUSE_UPSTREAM, s->failure);
	else if (s->reset)
		client_http2_stream_abort(s, EVENT_CAUSE_LIMIT, "no memory for the response");
	else
		client_http2_stream_refused(s, "a body that HTTP/2 does not allow");
}

void client_http2_stream_closed(struct client_http2_stream *s)
{
	s->closed = true;
	loop_deadline_clear(&s->deadline);
	if (!s->exchange)
		client_http2_stream_free(s);
	else if (s->server->receiving)
		end_closed(s);
	else /* bytes of another stream may be on their way out of a shared buffer */
		loop_task_queue(client_http2_stream_loop(s), &s->task);
}

/* --- deadline --- */

/* Bounds the time without progress while the client owes bytes of its request or has to take bytes
 * of the response. */
void client_http2_stream_watch(struct client_http2_stream *s)
{
	const struct exchange *ex = s->exchange;
	bool owes = ex && !s->request_whole && !s->input_buf.len &&
	            ex->state != EXCHANGE_UPGRADED && exchange_takes_body(ex);

	if (!s->closed && s->end_sent && !s->request_whole) {
		struct loop_deadlines *linger =
		        &s->server->client->proxy->waits[WAIT_STREAM_LINGER];

		if (s->deadline.list != linger)
			loop_deadline_set(linger, &s->deadline);
	} else if (!s->closed && (owes || s->out.len))
		loop_deadline_set(&s->server->client->proxy->waits[WAIT_STREAM], &s->deadline);
	else
		loop_deadline_clear(&s->deadline);
}

void client_http2_stream_on_deadline(struct loop_deadline *deadline)
{
	struct client_http2_stream *s =
	        container_of(deadline, struct client_http2_stream, deadline);
	static const char why[] = "the sandbox made no progress for too long";

	if (s->end_sent) {
		client_http2_stream_reset(s, NGHTTP2_NO_ERROR);
		return;
	}
	s->code = NGHTTP2_CANCEL;
	if (s->exchange)
		client_http2_stream_abort(s, EVENT_CAUSE_TIMEOUT, why);
	else
		client_http2_stream_reset(s, NGHTTP2_CANCEL);
}

/* --- the request --- */

static struct exchange *open_exchange(struct client_http2_stream *s)
{
	struct client *c = s->server->client;
	struct exchange *ex = exchange_new(c->proxy, c, s, &client_http2);

	if (!ex)
		return NULL;
	exchange_introduce(ex, 20);
	s->exchange = ex;
	s->asked = true;
	return ex;
}

void client_http2_stream_refused(struct client_http2_stream *s, const char *detail)
{
	struct exchange *ex = s->asked ? s->exchange : open_exchange(s);
	struct client *c = s->server->client;

	s->code = NGHTTP2_PROTOCOL_ERROR;
	c->answered = true;
	if (!ex) {
		client_http2_stream_reset(s, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	audit_finding(c->proxy, c, EVENT_FINDING_SMUGGLING, ex->id, SLICE(""), detail);
	exchange_abort_malformed(ex, detail);
}

static void refuse_head(struct client_http2_stream *s, struct http_fault fault)
{
	struct exchange *ex = s->exchange;
	struct client *c = s->server->client;
	bool other = fault.status == HTTP_MISDIRECTED;

	exchange_request_is_whole(ex);
	audit_finding(c->proxy, c, other ? EVENT_FINDING_BINDING_MISMATCH : EVENT_FINDING_SMUGGLING,
	        ex->id, SLICE(""), fault.why);
	exchange_refuse(ex, other ? 0 : fault.status,
	        other ? EVENT_CAUSE_BINDING : EVENT_CAUSE_CLIENT, fault.why);
}

/* Adds the fields that HTTP/1.1 needs and HTTP/2 does without (RFC 8441 section 5). */
static bool ask_for_websocket(struct client_http2_stream *s)
{
	struct http_fields *fields = &s->exchange->request.fields;

	websocket_key(s->websocket_key);
	http_drop(fields, SLICE("sec-websocket-key"));
	http_drop(fields, SLICE("sec-websocket-version"));
	return http_add(fields, SLICE("Sec-WebSocket-Version"), SLICE("13")) &&
	       http_add(fields, SLICE("Sec-WebSocket-Key"), slice_from_string(s->websocket_key));
}

void client_http2_stream_begin(struct client_http2_stream *s)
{
	struct exchange *ex = open_exchange(s);
	struct http_fault fault;

	if (!ex) {
		client_http2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	fault = http2_read_request(&s->block, s->request_whole, &ex->request);
	if (fault.why) {
		refuse_head(s, fault);
		return;
	}
	if (slice_equals(ex->request.method, SLICE("CONNECT"))) {
		exchange_request_is_whole(ex);
		exchange_refuse(ex, 400, EVENT_CAUSE_CLIENT, "CONNECT is for the proxy port only");
		return;
	}
	if (ex->request.wants_websocket && !ask_for_websocket(s)) {
		refuse_head(
		        s, (struct http_fault){HTTP_FIELDS_TOO_LARGE, "too many header fields"});
		return;
	}
	s->owes = ex->request.body == HTTP_BODY_LENGTH;
	s->owed = ex->request.content_length;
	/* Begin nothing new while the recorder is behind. */
	s->waiting = true;
	if (!s->server->client->proxy->held)
		client_http2_stream_start(s);
}

void client_http2_stream_start(struct client_http2_stream *s)
{
	if (!s->waiting || !s->exchange)
		return;
	s->waiting = false;
	exchange_start(s->exchange);
}

/* Passes waiting body bytes on as far as the upstream takes them. The exchange of a WebSocket may
 * end meanwhile; `sending` delays what it says, so that the stream still exists. */
static void forward(struct client_http2_stream *s)
{
	struct client_http2 *h = s->server;
	bool sending = h->sending;

	h->sending = true;
	while (s->exchange && !s->closed && !s->waiting && !s->exchange->request_done &&
	        exchange_takes_body(s->exchange)) {
		size_t n = s->input_buf.len;

		if (n) {
			exchange_request_body(s->exchange, buf_bytes(&s->input_buf), n);
			buf_fini(&s->input_buf);
			nghttp2_session_consume_stream(s->server->session, s->id, n);
			continue;
		}
		if (s->request_whole)
			exchange_request_end(s->exchange, buf_slice(&s->trailers.lines));
		break;
	}
	h->sending = sending;
	client_http2_stream_watch(s);
}

static void on_task(struct loop_task *task)
{
	struct client_http2_stream *s = container_of(task, struct client_http2_stream, task);

	if (s->closed) {
		if (s->exchange)
			end_closed(s);
		return;
	}
	forward(s);
	client_http2_send(s->server);
}

/* Discards body bytes after the response. Some clients read no response before they have sent
 * everything; they may do so for a while, then the stream is reset (RFC 9113 section 8.1). */
static void discard(struct client_http2_stream *s, size_t n)
{
	nghttp2_session_consume_stream(s->server->session, s->id, n);
	s->discarded += n;
	if (s->end_sent && s->discarded > LINGER_BYTES)
		client_http2_stream_reset(s, NGHTTP2_NO_ERROR);
}

void client_http2_stream_data(struct client_http2_stream *s, const uint8_t *p, size_t n)
{
	struct exchange *ex = s->exchange;

	if (s->owes && n > s->owed) {
		client_http2_stream_refused(s, "more content than its length");
		return;
	}
	s->owed -= s->owes ? n : 0;
	/* Frames of a WebSocket may come before the upstream has agreed. */
	if (!ex || (ex->request_done &&
	                   !(ex->request.wants_websocket && ex->state != EXCHANGE_UPGRADED))) {
		discard(s, n);
		return;
	}
	if (!s->input_buf.len && !ex->request_done && exchange_takes_body(ex)) {
		exchange_request_body(ex, p, n);
		nghttp2_session_consume_stream(s->server->session, s->id, n);
	} else if (buf_append(&s->input_buf, p, n) < 0) {
		client_http2_stream_abort(s, EVENT_CAUSE_LIMIT, "no memory for the request's body");
		return;
	}
	client_http2_stream_watch(s);
}

void client_http2_stream_trailer(
        struct client_http2_stream *s, struct slice name, struct slice value)
{
	const char *why = http2_check_trailer(name, value);

	if (!why && !http_trailers_add(&s->trailers, name, value))
		why = "request trailers too large";
	if (why)
		client_http2_stream_refused(s, why);
}

void client_http2_stream_ended(struct client_http2_stream *s)
{
	s->request_whole = true;
	if (s->owes && s->owed) {
		client_http2_stream_refused(s, "less content than its length");
		return;
	}
	forward(s);
}
