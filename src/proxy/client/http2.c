/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/2 connection from the sandbox (RFC 9113). nghttp2 handles frames, HPACK, flow control and
 * the states of streams. This file feeds it from the socket, lets it send while the socket has
 * room, and ends the connection when it is over. http2_callbacks.c has its callbacks.
 *
 * nghttp2 must not be asked to send from inside its callbacks: sending then waits for the end of
 * the reading or of the loop's turn. The session's memory is freed with the client
 * (client_http2_free()), never from inside a callback.
 *
 * The connection's deadline: WAIT_HEADER for settings to be acknowledged and for a header block to
 * end; WAIT_IDLE for something to be asked for or to be taken. Each stream has its own deadline.
 */
#include <stdlib.h>

#include "proxy/client/http2.h"

void client_http2_violated(struct client_http2 *h, uint32_t code, const char *detail)
{
	if (h->violation)
		return;
	h->violation = detail;
	h->violation_code = code;
	loop_task_queue(h->client->proxy->config.loop, &h->flush);
}

/* Sends all pending frames for which the socket has room. */
static void send_frames(struct client_http2 *h)
{
	if (h->broken || !socket_is_open(&h->client->socket))
		return;
	h->sending = true;
	if (nghttp2_session_send(h->session) < 0)
		h->broken = true;
	h->sending = false;
}

static bool is_over(struct client_http2 *h)
{
	return h->violation || h->broken ||
	       (!nghttp2_session_want_read(h->session) &&
	               !nghttp2_session_want_write(h->session)) ||
	       (h->leaving && !h->stream_count && !nghttp2_session_want_write(h->session));
}

/* Tells the upstreams whose clients take bytes again. What these upstreams give now waits in the
 * streams' buffers, because `sending` is set. */
static bool tell_drained(struct client_http2 *h)
{
	bool told = false;
	struct list *next;

	if (!h->paused || socket_is_congested(&h->client->socket))
		return false;
	h->sending = true;
	for (struct list *l = h->streams.next; l != &h->streams; l = next) {
		next = l->next;
		told |= client_http2_stream_tell_drained(
		        container_of(l, struct client_http2_stream, list));
	}
	h->sending = false;
	return told;
}

/* Sets the deadline that counts now. One that already runs goes on, so that small things coming in
 * do not move it. */
static void watch(struct client_http2 *h)
{
	struct client *c = h->client;
	enum proxy_wait wait = WAIT_IDLE;

	if (!h->settled || h->heading) {
		wait = WAIT_HEADER;
	} else if (h->stream_count && !socket_is_congested(&c->socket)) {
		loop_deadline_clear(&c->deadline);
		return;
	}
	if (!h->stream_count)
		http2_memory_idle(&h->memory, &c->proxy->waits[WAIT_REST]);
	if (c->deadline.list == &c->proxy->waits[wait])
		return;
	c->sent_seen = c->socket.sent;
	loop_deadline_set(&c->proxy->waits[wait], &c->deadline);
}

static void on_flush(struct loop_task *task)
{
	struct client_http2 *h = container_of(task, struct client_http2, flush);

	if (h->client->state != CLIENT_HTTP2)
		return;
	send_frames(h);
	if (tell_drained(h))
		send_frames(h);
	if (is_over(h))
		client_wake(h->client); /* the client leaves this state */
	else
		watch(h);
}

void client_http2_send(struct client_http2 *h)
{
	if (h->client->state != CLIENT_HTTP2)
		return;
	if (!h->sending && !h->receiving) {
		send_frames(h);
		watch(h);
	}
	if (h->sending || h->receiving || h->paused || is_over(h))
		loop_task_queue(h->client->proxy->config.loop, &h->flush);
}

/* --- the connection --- */

static int send_settings(struct client_http2 *h)
{
	const nghttp2_settings_entry settings[] = {
	        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, CLIENT_HTTP2_STREAMS_MAX},
	        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CLIENT_HTTP2_STREAM_WINDOW},
	        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
	                h->client->proxy->config.limits.header_bytes},
	        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
	        /* All streams are served in turn: no priority tree is kept. */
	        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};

	if (nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
	            sizeof(settings) / sizeof(*settings)) != 0)
		return -1;
	return nghttp2_session_set_local_window_size(
	        h->session, NGHTTP2_FLAG_NONE, 0, HTTP2_CONNECTION_WINDOW);
}

static bool open_server(struct client *c)
{
	struct client_http2 *h = calloc(1, sizeof(*h));

	if (!h)
		return false;
	c->http2 = h;
	h->client = c;
	h->flush.run = on_flush;
	list_init(&h->streams);
	client_http2_limits_init(&h->guard, c->proxy->config.loop);
	if (client_http2_open_session(h) != 0 || send_settings(h) != 0)
		return false;
	return true;
}

void client_http2_free(struct client *c)
{
	struct client_http2 *h = c->http2;

	if (!h)
		return;
	loop_task_cancel(c->proxy->config.loop, &h->flush);
	nghttp2_session_del(h->session);
	http2_memory_fini(&h->memory);
	free(h);
	c->http2 = NULL;
}

/* Aborts all exchanges without telling the client. The end of one exchange may end others that
 * waited for its upstream. Marked closed, each stream is freed after its turn. */
static void abort_all(struct client_http2 *h, enum event_cause cause, const char *detail)
{
	for (struct list *l = h->streams.next; l != &h->streams; l = l->next)
		container_of(l, struct client_http2_stream, list)->closed = true;
	while (!list_is_empty(&h->streams))
		client_http2_stream_abort(
		        container_of(h->streams.next, struct client_http2_stream, list), cause,
		        detail);
	h->heading = NULL;
}

void client_http2_close(struct client *c)
{
	if (!c->http2)
		return;
	abort_all(c->http2, EVENT_CAUSE_CLIENT, "the sandbox closed the connection");
	loop_task_cancel(c->proxy->config.loop, &c->http2->flush);
}

/* Says why, then lingers so that the client may take what is there. */
static enum client_state leave(struct client *c)
{
	struct client_http2 *h = c->http2;

	if (h->violation) {
		audit_finding(c->proxy, c,
		        h->violation_code == NGHTTP2_ENHANCE_YOUR_CALM ? EVENT_FINDING_FLOOD
		                                                       : EVENT_FINDING_SMUGGLING,
		        0, SLICE(""), h->violation);
		h->broken = false;
		if (!h->leaving)
			nghttp2_session_terminate_session(h->session, h->violation_code);
		send_frames(h); /* while the streams whose frames it sends still exist */
		abort_all(h, EVENT_CAUSE_CLIENT, h->violation);
		c->answered = true;
	}
	abort_all(h, EVENT_CAUSE_CLIENT, "the connection has ended");
	socket_end(&c->socket);
	socket_flush(&c->socket);
	c->sent_seen = c->socket.sent;
	return CLIENT_LINGER;
}

static enum client_state next_state(struct client *c)
{
	struct client_http2 *h = c->http2;

	if (is_over(h))
		return leave(c);
	watch(h);
	return CLIENT_HTTP2;
}

static enum client_state ended(struct client *c)
{
	const struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE};

	if (!c->answered && list_is_empty(&c->http2->streams))
		audit_connection(c, &none, EVENT_ALLOWED, EVENT_CAUSE_CLIENT,
		        "the sandbox closed the connection before its first request", 0, 0, NULL);
	return CLIENT_CLOSED;
}

static void receive(struct client_http2 *h, struct slice input)
{
	const char *flood =
	        client_http2_limits_bytes(&h->guard, h->client->proxy->config.loop, input.n);
	ssize_t r;

	if (flood) {
		client_http2_violated(h, NGHTTP2_ENHANCE_YOUR_CALM, flood);
		return;
	}
	h->receiving = true;
	r = nghttp2_session_mem_recv(h->session, (const uint8_t *)input.p, input.n);
	h->receiving = false;
	if (r < 0)
		client_http2_violated(h,
		        r == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM
		        : r == NGHTTP2_ERR_NOMEM ? NGHTTP2_INTERNAL_ERROR
		                                 : NGHTTP2_PROTOCOL_ERROR,
		        r == NGHTTP2_ERR_FLOODED ? "HTTP/2: a flood of frames that want an answer"
		                                 : "HTTP/2: bytes that are not the protocol");
}

/* True if nothing more is expected of the client now. */
static bool is_quiet(const struct client_http2 *h)
{
	if (h->heading)
		return false;
	for (const struct list *l = h->streams.next; l != &h->streams; l = l->next)
		if (!container_of(l, struct client_http2_stream, list)->request_whole)
			return false;
	return true;
}

/* Starts the streams that waited. A request that is refused at once is answered at once, and its
 * answer may end other streams. */
static void start_waiting(struct client_http2 *h)
{
	struct list *l = h->streams.next;

	while (l != &h->streams && !h->client->proxy->held) {
		struct client_http2_stream *s = container_of(l, struct client_http2_stream, list);
		bool starts = s->waiting && s->exchange;

		if (starts)
			client_http2_stream_start(s);
		l = starts ? h->streams.next : l->next;
	}
}

enum client_state client_http2_input(struct client *c)
{
	struct client_http2 *h;
	uint64_t before = c->socket.received;
	bool any = false;

	if (!c->http2 && !open_server(c))
		return CLIENT_CLOSED;
	h = c->http2;
	start_waiting(h);
	while (!is_over(h)) {
		struct slice input;
		enum socket_status status = client_input(c, &input);

		if (status == SOCKET_AGAIN)
			break;
		if (status != SOCKET_OK)
			return ended(c);
		receive(h, input);
		if (c->proxy->state != PROXY_SERVING && client_http2_has_asked(c))
			client_http2_drain(c); /* it was opened while the worker retired */
		any = true;
		client_used(c, input, input.n);
		client_http2_send(h);
		if (is_quiet(h))
			socket_mark_complete(&c->socket);
		if (socket_turn_is_over(&c->socket, before)) {
			client_wake(c);
			break;
		}
	}
	if (!any)
		client_http2_send(h);
	return next_state(c);
}

void client_http2_drained(struct client *c)
{
	loop_task_queue(c->proxy->config.loop, &c->http2->flush);
}

/* Settings were not acknowledged, a head has no end, nothing was asked for, or nothing was
 * taken. */
enum client_state client_http2_timeout(struct client *c)
{
	struct client_http2 *h = c->http2;

	if (socket_is_congested(&c->socket)) {
		if (c->socket.sent != c->sent_seen) {
			c->sent_seen = c->socket.sent;
			loop_deadline_set(&c->proxy->waits[WAIT_IDLE], &c->deadline);
			return CLIENT_HTTP2;
		}
		abort_all(h, EVENT_CAUSE_TIMEOUT, "the sandbox made no progress for too long");
		c->reset = true;
		return CLIENT_CLOSED;
	}
	if (h->settled && !h->heading && h->stream_count) { /* the client just took what waited */
		watch(h);
		return CLIENT_HTTP2;
	}
	if (h->heading)
		client_http2_stream_refused(h->heading, "the request head took too long");
	if (!c->answered && !h->heading)
		audit_connection(c,
		        &(const struct policy_decision){
		                .rule = POLICY_NONE, .credential = POLICY_NONE},
		        EVENT_ALLOWED, EVENT_CAUSE_TIMEOUT, "the sandbox sent no request", 0, 0,
		        NULL);
	nghttp2_session_terminate_session(
	        h->session, h->settled ? NGHTTP2_NO_ERROR : NGHTTP2_SETTINGS_TIMEOUT);
	send_frames(h);
	abort_all(h, EVENT_CAUSE_TIMEOUT, "the sandbox made no progress for too long");
	return leave(c);
}

bool client_http2_has_asked(const struct client *c)
{
	return c->answered || (c->http2 && c->http2->stream_count);
}

bool client_http2_drain(struct client *c)
{
	struct client_http2 *h = c->http2;

	if (!h || h->leaving || h->drained)
		return !h || !h->stream_count;
	h->drained = true;
	nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
	        nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR, NULL, 0);
	client_http2_send(h);
	return !h->stream_count;
}
