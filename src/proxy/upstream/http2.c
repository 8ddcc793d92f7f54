/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 to an upstream (RFC 9113): the session of one connection, over nghttp2. Every exchange has
 * its own stream. A client that does not read stops only its own stream, by that stream's window.
 * After each turn, look_after() decides whether the connection goes on, is idle or ends.
 */
#include <stdlib.h>

#include "proxy/upstream/http2.h"

/* --- streams of one connection --- */

void upstream_http2_later(struct upstream_http2 *s)
{
	loop_task_queue(s->conn->proxy->config.loop, &s->conn->go_on);
}

void upstream_http2_flush(struct upstream_http2 *s)
{
	if (s->inside || !s->session) {
		upstream_http2_later(s);
		return;
	}
	s->inside = true;
	if (nghttp2_session_send(s->session) < 0) {
		nghttp2_session_del(s->session);
		s->session = NULL;
		upstream_http2_later(s);
	}
	s->inside = false;
}

bool upstream_http2_has_room(const struct upstream_conn *c)
{
	const struct upstream_http2 *s = c->http2;
	uint32_t most;

	if (!s || !s->session || s->ending || c->socket.broken || c->socket.hung_up)
		return false;
	most = nghttp2_session_get_remote_settings(
	        s->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	return s->open < UPSTREAM_HTTP2_STREAMS && s->open < most &&
	       nghttp2_session_check_request_allowed(s->session);
}

/* False if the upstream no longer permits the stream. Its limits may have changed since the stream
 * was opened, and nghttp2 would keep back a head that it has only borrowed. */
static bool may_begin(const struct upstream_http2 *s)
{
	uint32_t begun = 0, most = nghttp2_session_get_remote_settings(
	                            s->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		begun += container_of(l, struct upstream_http2_stream, list)->id != 0;
	return begun < most && nghttp2_session_check_request_allowed(s->session);
}

static void send_elsewhere(struct upstream_http2_stream *st)
{
	st->up.untouched = true;
	st->closed = true;
	upstream_http2_stream_fail(
	        st, EVENT_CAUSE_UPSTREAM, "the upstream takes no further streams");
	upstream_http2_later(st->session);
}

bool upstream_http2_connects(const struct upstream_conn *c)
{
	return upstream_http2_has_room(c) && nghttp2_session_get_remote_settings(c->http2->session,
	                                             NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
}

/* Sends heads that could not be written when their streams were opened. */
static void send_heads(struct upstream_http2 *s)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams && s->session; l = next) {
		struct upstream_http2_stream *st =
		        container_of(l, struct upstream_http2_stream, list);

		next = l->next;
		if (st->head_begun || !st->up.exchange || socket_is_congested(&s->conn->socket))
			continue;
		if (!may_begin(s)) {
			send_elsewhere(st);
		} else {
			st->up.ready = true;
			s->changed = false;
			exchange_upstream_ready(st->up.exchange);
			if (s->changed)
				next = s->streams.next;
		}
	}
}

static void go_on_with_streams(struct upstream_http2 *s)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams; l = next) {
		next = l->next;
		s->changed = false;
		upstream_http2_stream_go_on(container_of(l, struct upstream_http2_stream, list));
		if (s->changed)
			next = s->streams.next;
	}
}

/* --- the connection --- */

/* True if the whole response is here and waits for a slow client: the connection is no longer
 * needed for it. */
static bool is_whole(const struct upstream_http2_stream *st)
{
	return st->up.exchange && st->response_ended;
}

static bool any_whole(const struct upstream_http2 *s)
{
	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		if (is_whole(container_of(l, struct upstream_http2_stream, list)))
			return true;
	return false;
}

/* True if nothing of the request has left: its head was not written, or the socket has taken
 * nothing since. */
static bool never_asked(const struct upstream_http2_stream *st)
{
	return !st->head_begun || st->up.conn->socket.sent == st->up.sent_before;
}

/* Ends the streams; with keep, all except those with complete responses. Telling exchanges may end
 * the streams of others. */
static void fail_streams(struct upstream_http2 *s, bool keep)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams; l = next) {
		struct upstream_http2_stream *st =
		        container_of(l, struct upstream_http2_stream, list);

		next = l->next;
		if (st->closed) /* the stream was over before the connection was */
			upstream_http2_stream_tell_closed(st);
		st->id = 0;
		st->closed = true;
		if (keep && is_whole(st))
			continue;
		st->up.untouched = never_asked(st);
		if (st->up.exchange)
			upstream_http2_stream_fail(st, s->detail ? s->cause : EVENT_CAUSE_CLOSING,
			        s->detail ? s->detail : "vethguard closed the connection");
		upstream_http2_stream_free(st);
		next = s->streams.next;
	}
}

/* The connection is lost: tells every exchange that has not got its whole response. */
static void lost(struct upstream_conn *c, enum event_cause cause, const char *detail)
{
	struct upstream_http2 *s = c->http2;

	s->cause = cause;
	s->detail = detail;
	if (!any_whole(s)) {
		upstream_conn_close(c);
		return;
	}
	s->gone = s->ending = true;
	pool_remove(c);
	nghttp2_session_del(s->session);
	s->session = NULL;
	socket_close(&c->socket, false);
	fail_streams(s, true);
	upstream_http2_later(s);
}

/* True if streams are left and all their exchanges are over: what ends these streams has yet to be
 * sent. */
static bool is_orphaned(const struct upstream_http2 *s)
{
	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		if (container_of(l, struct upstream_http2_stream, list)->up.exchange)
			return false;
	return s->open > 0;
}

bool upstream_http2_is_orphaned(const struct upstream_conn *c)
{
	return c->http2 && is_orphaned(c->http2);
}

/* After each turn: sends what is pending, continues what waited, and makes the connection idle or
 * ends it. */
static void look_after(struct upstream_conn *c)
{
	struct upstream_http2 *s = c->http2;

	if (s->session)
		upstream_http2_flush(s);
	go_on_with_streams(s);
	send_heads(s);
	if (s->session)
		upstream_http2_flush(s);
	if (c->state != UPSTREAM_CONN_BUSY && c->state != UPSTREAM_CONN_IDLE)
		return;
	if (s->gone) {
		if (!s->open)
			upstream_conn_close(c);
		return;
	}
	if (!s->session ||
	        (!nghttp2_session_want_read(s->session) && !nghttp2_session_want_write(s->session)))
		lost(c, EVENT_CAUSE_UPSTREAM, "the upstream broke the HTTP/2 protocol");
	else if (!s->open && (s->ending || c->proxy->state != PROXY_SERVING))
		upstream_conn_close(c);
	else if (!s->open && c->state == UPSTREAM_CONN_BUSY) {
		upstream_conn_wait(&c->own, WAIT_POOLED);
		http2_memory_idle(&s->memory, &c->proxy->waits[WAIT_REST]);
		pool_mark_idle(c);
	} else if (c->state == UPSTREAM_CONN_BUSY && !c->own.deadline.list && is_orphaned(s)) {
		upstream_conn_wait(&c->own, WAIT_RESPONSE); /* no exchange's deadline counts */
	}
}

/* Takes received bytes. False: the connection is lost. */
static bool receive(struct upstream_conn *c, const uint8_t *p, size_t n)
{
	struct upstream_http2 *s = c->http2;
	ssize_t r;

	s->inside = true;
	r = nghttp2_session_mem_recv(s->session, p, n);
	s->inside = false;
	if (s->secret)
		secret_wipe((uint8_t *)(uintptr_t)p, n);
	if (r >= 0)
		return true;
	lost(c, EVENT_CAUSE_UPSTREAM,
	        s->detail ? s->detail : "the upstream broke the HTTP/2 protocol");
	return false;
}

static void on_event(struct upstream_conn *c)
{
	uint64_t before = c->socket.received;

	while (c->http2->session) {
		size_t n;
		enum socket_status status =
		        socket_read(&c->socket, c->proxy->plain, SOCKET_CHUNK, &n);

		if (status == SOCKET_AGAIN)
			break;
		if (status != SOCKET_OK) {
			lost(c, EVENT_CAUSE_UPSTREAM,
			        upstream_conn_end_text(
			                c, status, "the upstream ended the connection"));
			return;
		}
		if (!receive(c, c->proxy->plain, n))
			return;
		if (socket_turn_is_over(&c->socket, before)) {
			upstream_http2_later(c->http2);
			break;
		}
	}
	look_after(c);
}

/* Serves the exchange that the connection was dialed for, and from now on others too. */
static void serve(struct upstream_conn *c)
{
	struct exchange *ex = c->own.exchange;
	struct upstream_stream *u = upstream_http2_stream_open(c, ex);

	if (!u) {
		upstream_conn_failed(c, EVENT_CAUSE_LIMIT, "no memory for a connection");
		return;
	}
	c->own.exchange = NULL;
	loop_deadline_clear(&c->own.deadline);
	pool_share(c);
	exchange_move_upstream(ex, u);
	exchange_upstream_ready(ex);
	upstream_http2_later(c->http2);
}

static bool open_session(struct upstream_conn *c)
{
	struct upstream_http2 *s = calloc(1, sizeof(*s));

	c->http2 = s;
	if (!s)
		return false;
	s->conn = c;
	s->secret = c->own.exchange->credential != NULL;
	list_init(&s->streams);
	return upstream_http2_open_session(s);
}

static void begin(struct upstream_conn *c)
{
	if (!open_session(c)) {
		upstream_conn_failed(c, EVENT_CAUSE_LIMIT, "no memory for a connection");
	} else if (c->how == UPSTREAM_PRIOR) {
		upstream_conn_enter(c, UPSTREAM_CONN_PRIOR);
		upstream_conn_wait(&c->own, WAIT_PRIOR);
		upstream_http2_flush(c->http2);
	} else {
		serve(c);
	}
}

/* True if nghttp2 wants to answer something other than settings: the upstream does not speak
 * HTTP/2. */
static bool is_no_greeting(const struct upstream_http2 *s)
{
	return !s->greeted && nghttp2_session_want_write(s->session);
}

/* No byte of a request leaves before the upstream's settings have come (RFC 9113 section 3.4). */
void upstream_http2_on_greeting(struct upstream_conn *c)
{
	struct upstream_http2 *s = c->http2;

	while (s->session && !s->greeted) {
		size_t n;
		enum socket_status status =
		        socket_read(&c->socket, c->proxy->plain, SOCKET_CHUNK, &n);

		if (status == SOCKET_AGAIN)
			return;
		if (status != SOCKET_OK) {
			prior_failed(c, false);
			return;
		}
		s->inside = true;
		if (nghttp2_session_mem_recv(s->session, c->proxy->plain, n) < 0 ||
		        is_no_greeting(s)) {
			prior_failed(c, true);
			return;
		}
		s->inside = false;
	}
	if (!s->session) {
		prior_failed(c, false);
		return;
	}
	upstream_conn_enter(c, UPSTREAM_CONN_BUSY);
	serve(c);
	upstream_conn_told(c);
}

/* The caller has set the cause before. Telling exchanges may close the streams of others. */
static void close_http2(struct upstream_conn *c)
{
	struct upstream_http2 *s = c->http2;

	if (!s)
		return;
	s->ending = true;
	s->inside = true; /* send nothing for streams that end */
	/* Send GOAWAY only if nothing is under way: other pending frames belong to streams. */
	if (s->session && list_is_empty(&s->streams)) {
		nghttp2_session_terminate_session(s->session, NGHTTP2_NO_ERROR);
		nghttp2_session_send(s->session);
	}
	fail_streams(s, false);
	c->http2 = NULL;
	nghttp2_session_del(s->session);
	http2_memory_fini(&s->memory);
	free(s);
}

const struct upstream_conn_protocol upstream_conn_http2 = {
        .begin = begin,
        .on_event = on_event,
        .on_drained = look_after,
        .go_on = on_event,
        .close = close_http2,
};
