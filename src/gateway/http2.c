/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection: bytes from the client go to nghttp2, and nghttp2's frames go to the client while
 * the client takes them. Sending waits for the end of the turn, so nghttp2 is never asked to send
 * from inside its callbacks.
 *
 * Until a stream has proved a session, the connection counts among those without a proof, and has
 * their deadline, which is extended EXTENDED_MAX times while it has streams. Afterwards it may be
 * without a stream for WAIT_IDLE. Streams have deadlines of their own.
 */
#include <stdlib.h>

#include "gateway/http2.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/secret.h"

#define TURN_CHUNKS 4  /* reads in one turn of the loop */
#define EXTENDED_MAX 4 /* times WAIT_PROOF: a stream may wait for the supervisor */

/* --- sending --- */

/* Sends pending frames, several in one TLS record. Returns false if the connection is broken. */
static bool send_frames(struct http2 *h)
{
	struct front *f = &h->visitor->front;
	uint8_t *out = h->visitor->gateway->frames;

	while (front_is_clear(f)) {
		const uint8_t *p;
		size_t n = 0;
		ssize_t more = 1;

		while (n < GATEWAY_HTTP2_FRAME_DATA / 2 &&
		        (more = nghttp2_session_mem_send(h->session, &p)) > 0) {
			memcpy(out + n, p, (size_t)more);
			n += (size_t)more;
		}
		if (more < 0 || (n && !front_write(f, out, n)))
			return false;
		if (!more)
			return true;
	}
	return true;
}

static bool is_over(struct http2 *h)
{
	return h->broken ||
	       (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session));
}

static void on_send(struct loop_task *task)
{
	struct http2 *h = container_of(task, struct http2, send);
	struct visitor *c = h->visitor;

	if (!front_flush(&c->front) || !send_frames(h) || is_over(h))
		visitor_close(c);
}

void http2_send_soon(struct http2 *h)
{
	loop_task_queue(h->visitor->gateway->loop, &h->send);
}

/* --- receiving --- */

/* Returns false if the connection is over. */
static bool feed(struct http2 *h, const uint8_t *p, size_t n)
{
	ssize_t used;

	h->received += n;
	if (!h->proved && h->received > GATEWAY_HTTP2_FIRST) {
		nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
		return false;
	}
	used = nghttp2_session_mem_recv(h->session, p, n);
	return used == (ssize_t)n && !h->broken;
}

/* Sends the GOAWAY, as far as the client takes it at once, and closes the connection. */
static bool leave(struct http2 *h)
{
	struct visitor *c = h->visitor;

	(void)send_frames(h);
	front_end(&c->front);
	visitor_close(c);
	return false;
}

/* Feeds nghttp2 with a copy: streams use g->plain while nghttp2 reads. */
static bool take(struct http2 *h, struct slice input)
{
	struct gateway *g = h->visitor->gateway;
	bool good;

	memcpy(g->frames, input.p, input.n);
	secret_wipe(g->plain, input.n);
	good = feed(h, g->frames, input.n);
	secret_wipe(g->frames, input.n);
	return good;
}

bool visitor_http2(struct visitor *c)
{
	struct http2 *h = c->http2;
	struct slice input;

	if (!front_flush(&c->front)) {
		visitor_close(c);
		return false;
	}
	for (unsigned i = 0; i < TURN_CHUNKS; i++) {
		switch (front_read(&c->front, GATEWAY_CHUNK, &input)) {
		case FRONT_OK:
			if (!take(h, input))
				return leave(h);
			break;
		case FRONT_AGAIN:
			http2_send_soon(h);
			return false;
		case FRONT_EOF:
		case FRONT_ERROR:
			visitor_close(c);
			return false;
		}
	}
	loop_task_queue(c->gateway->loop, &c->wake);
	http2_send_soon(h);
	return false;
}

/* --- begin and end --- */

static bool submit_settings(struct http2 *h)
{
	const nghttp2_settings_entry settings[] = {
	        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GATEWAY_HTTP2_STREAMS_MAX},
	        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GATEWAY_HTTP2_WINDOW_FIRST},
	        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, PROXY_HEAD_MAX},
	        /* Heads have tokens, so no HPACK table keeps parts of them. */
	        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 0},
	        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};

	return nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
	               sizeof(settings) / sizeof(*settings)) == 0 &&
	       nghttp2_session_set_local_window_size(
	               h->session, NGHTTP2_FLAG_NONE, 0, GATEWAY_HTTP2_WINDOW_ALL) == 0;
}

/* Tells the client that no stream is taken beyond those that have begun (RFC 9113 section 6.8). */
static bool submit_goaway(struct http2 *h)
{
	return nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
	               nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR, NULL,
	               0) == 0;
}

bool http2_open(struct visitor *c)
{
	struct http2 *h = calloc(1, sizeof(*h));
	bool good;

	if (!h)
		return false;
	h->visitor = c;
	h->send.run = on_send;
	list_init(&h->streams);
	list_append(&c->gateway->http2, &h->of_gateway);
	http2_limits_init(&h->limits, clock_monotonic_ms());
	c->http2 = h;
	if (http2_open_session(h) != 0 || !submit_settings(h) ||
	        (c->gateway->held && !submit_goaway(h)))
		return false;
	good = feed(h, buf_bytes(&c->in), c->in.len);
	buf_fini(&c->in);
	return good ? good : leave(h);
}

void http2_close(struct visitor *c)
{
	struct http2 *h = c->http2;

	if (!h)
		return;
	c->http2 = NULL;
	while (!list_is_empty(&h->streams)) {
		struct http2_stream *s =
		        container_of(h->streams.next, struct http2_stream, of_connection);
		struct visitor *of_stream = s->visitor;

		http2_stream_gone(s);
		if (of_stream)
			visitor_close(of_stream);
	}
	loop_task_cancel(c->gateway->loop, &h->send);
	list_remove(&h->of_gateway);
	nghttp2_session_del(h->session);
	free(h);
}

void http2_proved(struct http2 *h)
{
	if (h->proved)
		return;
	h->proved = true;
	loop_deadline_clear(&h->visitor->deadline);
	visitor_count_proved(h->visitor);
}

void http2_left(struct http2 *h)
{
	if (!h->stream_count && h->proved)
		loop_deadline_set(&h->visitor->gateway->waits[WAIT_IDLE], &h->visitor->deadline);
}

void visitor_http2_on_deadline(struct visitor *c)
{
	struct http2 *h = c->http2;

	if (h->stream_count && (h->proved || h->extended++ < EXTENDED_MAX)) {
		if (!h->proved)
			loop_deadline_set(&c->gateway->waits[WAIT_PROOF], &c->deadline);
		return;
	}
	nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
	leave(h);
}

void http2_refuse_all(struct gateway *g)
{
	for (struct list *l = g->http2.next; l != &g->http2; l = l->next) {
		struct http2 *h = container_of(l, struct http2, of_gateway);

		h->broken |= !submit_goaway(h);
		http2_send_soon(h);
	}
}

void http2_close_all(struct gateway *g)
{
	while (!list_is_empty(&g->http2))
		visitor_close(container_of(g->http2.next, struct http2, of_gateway)->visitor);
}
