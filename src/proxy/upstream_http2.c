/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 to an upstream (RFC 9113): the session of one connection, over nghttp2. Every exchange has
 * a stream of its own; a client that does not read stops its own stream only, by that stream's
 * window.
 *
 * Nothing is sent from inside a callback of nghttp2: what arises there goes out when the bytes that
 * came are used up. A head is given to nghttp2 only when it can be written at once, so that its
 * values are borrowed and a credential is never copied; the bytes written are wiped.
 */
#include <errno.h>
#include <stdlib.h>

#include "proxy/upstream_http2.h"

#define NONE ((ssize_t)NGHTTP2_ERR_WOULDBLOCK)

static struct upstream_stream *find(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

/* --- sending --- */

static bool is_head(const uint8_t *frame, size_t n)
{
	return n > 3 && (frame[3] == NGHTTP2_HEADERS || frame[3] == NGHTTP2_CONTINUATION);
}

static ssize_t on_send(
        nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *context)
{
	struct http2_upstream *s = context;
	struct link *link = &s->carrier->link;

	(void)session;
	(void)flags;
	if (link_is_congested(link))
		return NONE;
	if (s->secret && is_head(p, n)) {
		link_write_secret(link, p, n);
		/* nghttp2 is done with these bytes, and has no further use for them. */
		secret_wipe((uint8_t *)(uintptr_t)p, n);
	} else {
		link_write(link, p, n);
	}
	return (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
        size_t n, nghttp2_data_source *source, void *context)
{
	struct http2_upstream *s = context;
	struct link *link = &s->carrier->link;

	(void)session;
	(void)frame;
	if (link_is_congested(link))
		return NGHTTP2_ERR_WOULDBLOCK;
	s->empty = 0;
	link_write(link, header, HTTP2_FRAME_HEADER);
	upstream_stream_write(source->ptr, link, n);
	return 0;
}

static ssize_t data_length(nghttp2_session *session, uint8_t type, int32_t id,
        int32_t session_window, int32_t stream_window, uint32_t frame_max, void *context)
{
	ssize_t n = HTTP2_DATA_BYTES;

	(void)session;
	(void)type;
	(void)id;
	(void)context;
	if (n > session_window)
		n = session_window;
	if (n > stream_window)
		n = stream_window;
	return n > (ssize_t)frame_max ? (ssize_t)frame_max : n;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct upstream_stream *st = find(session, frame->hd.stream_id);

	(void)context;
	if (st && frame->hd.type == NGHTTP2_HEADERS)
		st->head_written = true;
	return 0;
}

void http2_upstream_later(struct http2_upstream *s)
{
	loop_task_queue(s->carrier->proxy->config.loop, &s->carrier->go_on);
}

void http2_upstream_flush(struct http2_upstream *s)
{
	if (s->inside || !s->session) {
		http2_upstream_later(s);
		return;
	}
	s->inside = true;
	if (nghttp2_session_send(s->session) < 0) {
		nghttp2_session_del(s->session);
		s->session = NULL;
		http2_upstream_later(s);
	}
	s->inside = false;
}

/* --- receiving --- */

static void begin_settings(struct http2_upstream *s, nghttp2_session *session)
{
	http2_rules_settings_begin(&s->rules);
	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		http2_rules_widen(
		        &s->rules, session, container_of(l, struct upstream_stream, list)->id);
}

/* PING, SETTINGS, WINDOW_UPDATE, empty DATA: few are needed, and each costs more than its sender.
 */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *context)
{
	struct http2_upstream *s = context;
	int64_t now = loop_now_ms(s->carrier->proxy->config.loop);
	uint32_t code;

	if (hd->type == NGHTTP2_SETTINGS)
		begin_settings(s, session);
	if (http2_rules_frame(hd, &code)) {
		s->detail = "the upstream sent a CONTINUATION frame that is too large";
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (now - s->empty_since_ms >= 1000) {
		s->empty = 0;
		s->empty_since_ms = now;
	}
	if (++s->empty <= HTTP2_UPSTREAM_EMPTY_FRAMES)
		return 0;
	s->detail = "the upstream sent a flood of frames without content";
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct upstream_stream *st = find(session, frame->hd.stream_id);

	(void)context;
	if (st)
		http2_block_reset(&st->block);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
        size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *context)
{
	struct upstream_stream *st = find(session, frame->hd.stream_id);

	(void)flags;
	(void)context;
	if (!st || !st->up.exchange)
		return 0;
	st->up.response_begun = true;
	if (st->final_head)
		upstream_stream_trailer(st, slice_of((const char *)name, name_n),
		        slice_of((const char *)value, value_n));
	else
		http2_block_add(&st->block, slice_of((const char *)name, name_n),
		        slice_of((const char *)value, value_n));
	if (st->up.exchange && !st->block.too_large)
		return 0;
	upstream_stream_fail(st, EVENT_CAUSE_UPSTREAM, "the upstream's response head is too large");
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* nghttp2 would leave such a field out and go on. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
        const uint8_t *name, size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags,
        void *context)
{
	struct upstream_stream *st = find(session, frame->hd.stream_id);

	(void)name;
	(void)name_n;
	(void)value;
	(void)value_n;
	(void)flags;
	(void)context;
	if (st) {
		st->up.response_begun = true;
		upstream_stream_fail(
		        st, EVENT_CAUSE_UPSTREAM, "the upstream sent a malformed field");
	}
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* No stream begins here any more. */
static void end_sharing(struct http2_upstream *s)
{
	s->ending = true;
	pool_unshare(s->carrier);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2_upstream *s = context;
	struct upstream_stream *st = find(session, frame->hd.stream_id);
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	uint32_t code;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		end_sharing(s);
	if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) &&
	        http2_rules_settings(&s->rules, &frame->settings, &code)) {
		s->detail = "the upstream lifted a window beyond its bound";
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (!st || !st->up.exchange)
		return 0;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		st->reset = true;
	if (frame->hd.type == NGHTTP2_HEADERS)
		s->empty = 0;
	if (frame->hd.type == NGHTTP2_HEADERS && !upstream_stream_head(st, ends)) {
		nghttp2_submit_rst_stream(
		        session, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_PROTOCOL_ERROR);
		return 0;
	}
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) && ends &&
	        st->up.exchange)
		upstream_stream_end(st);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
        void *context)
{
	struct http2_upstream *s = context;
	struct upstream_stream *st = find(session, id);

	(void)flags;
	s->empty = 0;
	nghttp2_session_consume_connection(session, n);
	if (st && st->up.exchange)
		upstream_stream_data(st, p, n);
	return 0;
}

/* It may come while something is sent for an exchange, so nobody is told before the turn's end. */
static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct upstream_stream *st = find(session, id);

	if (!st)
		return 0;
	st->id = 0;
	st->closed = true;
	st->code = code;
	http2_upstream_later(context);
	return 0;
}

/* --- the session --- */

bool upstream_http2_has_room(const struct carrier *c)
{
	const struct http2_upstream *s = c->http2;
	uint32_t most;

	if (!s || !s->session || s->ending || c->link.broken || c->link.hung_up)
		return false;
	most = nghttp2_session_get_remote_settings(
	        s->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	return s->open < HTTP2_UPSTREAM_STREAMS && s->open < most &&
	       nghttp2_session_check_request_allowed(s->session);
}

/* What the upstream permits may have changed since a stream was opened: nghttp2 would keep its head
 * back, and has only borrowed it. */
static bool may_begin(const struct http2_upstream *s)
{
	uint32_t begun = 0, most = nghttp2_session_get_remote_settings(
	                            s->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		begun += container_of(l, struct upstream_stream, list)->id != 0;
	return begun < most && nghttp2_session_check_request_allowed(s->session);
}

static void send_elsewhere(struct upstream_stream *st)
{
	st->up.untouched = true;
	st->closed = true;
	upstream_stream_fail(st, EVENT_CAUSE_UPSTREAM, "the upstream takes no further streams");
	http2_upstream_later(st->session);
}

bool upstream_http2_connects(const struct carrier *c)
{
	return upstream_http2_has_room(c) && nghttp2_session_get_remote_settings(c->http2->session,
	                                             NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
}

/* Heads that could not be written when their streams were opened. */
static void send_heads(struct http2_upstream *s)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams && s->session; l = next) {
		struct upstream_stream *st = container_of(l, struct upstream_stream, list);

		next = l->next;
		if (st->head_begun || !st->up.exchange || link_is_congested(&s->carrier->link))
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

static void go_on_with_streams(struct http2_upstream *s)
{
	struct list *next;

	for (struct list *l = s->streams.next; l != &s->streams; l = next) {
		next = l->next;
		s->changed = false;
		upstream_stream_go_on(container_of(l, struct upstream_stream, list));
		if (s->changed)
			next = s->streams.next;
	}
}

/* The connection is lost; every exchange on it is told. */
static void lost(struct carrier *c, enum event_cause cause, const char *detail)
{
	c->http2->cause = cause;
	c->http2->detail = detail;
	carrier_close(c);
}

/* Streams are left whose exchanges are over: what ends them has still to be sent. */
static bool is_orphaned(const struct http2_upstream *s)
{
	for (const struct list *l = s->streams.next; l != &s->streams; l = l->next)
		if (container_of(l, struct upstream_stream, list)->up.exchange)
			return false;
	return s->open > 0;
}

/* After each turn: what arose is sent, what waited goes on, and the connection is idle or ends. */
static void look_after(struct carrier *c)
{
	struct http2_upstream *s = c->http2;

	if (s->session)
		http2_upstream_flush(s);
	go_on_with_streams(s);
	send_heads(s);
	if (s->session)
		http2_upstream_flush(s);
	if (c->state != CARRIER_BUSY && c->state != CARRIER_IDLE)
		return;
	if (!s->session ||
	        (!nghttp2_session_want_read(s->session) && !nghttp2_session_want_write(s->session)))
		lost(c, EVENT_CAUSE_UPSTREAM, "the upstream broke the HTTP/2 protocol");
	else if (!s->open && (s->ending || c->proxy->draining))
		carrier_close(c);
	else if (!s->open && c->state == CARRIER_BUSY) {
		carrier_wait(&c->own, WAIT_POOLED);
		pool_mark_idle(c);
	} else if (c->state == CARRIER_BUSY && !c->own.deadline.list && is_orphaned(s)) {
		carrier_wait(&c->own, WAIT_RESPONSE); /* nobody else's deadline counts */
	}
}

/* Takes one run of bytes. False: the connection is lost. */
static bool receive(struct carrier *c, const uint8_t *p, size_t n)
{
	struct http2_upstream *s = c->http2;
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

static void on_event(struct carrier *c)
{
	size_t moved = 0;

	while (c->http2->session) {
		size_t n;
		enum link_status status = link_read(&c->link, c->proxy->plain, LINK_CHUNK, &n);

		if (status == LINK_AGAIN)
			break;
		if (status != LINK_OK) {
			lost(c, EVENT_CAUSE_UPSTREAM, "the upstream ended the connection");
			return;
		}
		if (!receive(c, c->proxy->plain, n))
			return;
		moved += n;
		if (moved >= LINK_TURN_BYTES) {
			http2_upstream_later(c->http2);
			break;
		}
	}
	look_after(c);
}

static nghttp2_session *session_new(struct http2_upstream *s)
{
	nghttp2_session_callbacks *on;
	nghttp2_option *option = NULL;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&on) < 0)
		return NULL;
	nghttp2_session_callbacks_set_send_callback(on, on_send);
	nghttp2_session_callbacks_set_send_data_callback(on, on_send_data);
	nghttp2_session_callbacks_set_data_source_read_length_callback(on, data_length);
	nghttp2_session_callbacks_set_on_frame_send_callback(on, on_frame_sent);
	nghttp2_session_callbacks_set_on_begin_frame_callback(on, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(on, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(on, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(on, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(on, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(on, on_stream_close);
	if (nghttp2_option_new(&option) == 0) {
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_option_set_no_closed_streams(option, 1);
		nghttp2_option_set_max_reserved_remote_streams(option, 0);
		nghttp2_option_set_peer_max_concurrent_streams(option, HTTP2_UPSTREAM_STREAMS);
		http2_rules_init(&s->rules);
		nghttp2_session_client_new2(&session, on, s, option);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(on);
	return session;
}

static bool open_session(struct http2_upstream *s)
{
	const nghttp2_settings_entry settings[] = {
	        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_UPSTREAM_STREAM_WINDOW},
	        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX},
	};

	s->session = session_new(s);
	return s->session &&
	       nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, settings,
	               sizeof settings / sizeof *settings) == 0 &&
	       nghttp2_session_set_local_window_size(
	               s->session, NGHTTP2_FLAG_NONE, 0, HTTP2_UPSTREAM_WINDOW) == 0;
}

static void begin(struct carrier *c)
{
	struct exchange *ex = c->own.exchange;
	struct http2_upstream *s = calloc(1, sizeof *s);
	struct upstream *u = NULL;

	c->http2 = s;
	if (s) {
		s->carrier = c;
		s->secret = ex->credential != NULL;
		list_init(&s->streams);
		if (open_session(s))
			u = upstream_http2_open(c, ex);
	}
	if (!u) {
		carrier_failed(c, EVENT_CAUSE_LIMIT, "no memory for a connection");
		return;
	}
	c->own.exchange = NULL;
	loop_deadline_clear(&c->own.deadline);
	pool_share(c);
	ex->upstream = u;
	exchange_upstream_ready(ex);
	http2_upstream_later(s);
}

/* Whoever closes tells why before; what is told to exchanges may close others' streams. */
static void close_http2(struct carrier *c)
{
	struct http2_upstream *s = c->http2;

	if (!s)
		return;
	s->ending = true;
	s->inside = true; /* nothing is sent of streams that go */
	/* A polite end only where nothing is under way: what waits to be sent belongs to streams.
	 */
	if (s->session && list_is_empty(&s->streams)) {
		nghttp2_session_terminate_session(s->session, NGHTTP2_NO_ERROR);
		nghttp2_session_send(s->session);
	}
	while (!list_is_empty(&s->streams)) {
		struct upstream_stream *st =
		        container_of(s->streams.next, struct upstream_stream, list);

		st->id = 0;
		if (st->up.exchange)
			upstream_stream_fail(st, s->detail ? s->cause : EVENT_CAUSE_CLOSING,
			        s->detail ? s->detail : "vethguard closed the connection");
		upstream_stream_free(st);
	}
	c->http2 = NULL;
	nghttp2_session_del(s->session);
	free(s);
}

const struct carrier_protocol carrier_http2 = {
        .begin = begin,
        .on_event = on_event,
        .on_drained = look_after,
        .go_on = on_event,
        .close = close_http2,
};
