/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin that speaks HTTP/2: nghttp2's server side over a scripted peer. What it was asked is
 * kept as a client's answers are (struct answer): its fields, its body, how it ended. Everybody in
 * `live` gets a turn while the test waits for something.
 */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_HTTP2_ORIGIN_H
#define VETHGUARD_TESTS_UNIT_PROXY_HTTP2_ORIGIN_H

#include "http2_peer.h"

#define LIVE_MAX 16
#define LAST_OF_ALL INT32_MAX

static struct h2 *live[LIVE_MAX];
static bool deaf_origins; /* the accepting side reads nothing after the handshake */

/* Small frames are sent at once, as HTTP/2 endpoints do. */
static struct h2 *enliven(struct h2 *h)
{
	int one = 1;

	setsockopt(h->peer->socket.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (size_t i = 0; i < LIVE_MAX; i++)
		if (!live[i])
			return live[i] = h;
	fail_msg("too many at once");
	return NULL;
}

static void leave(struct h2 *h, bool reset)
{
	for (size_t i = 0; i < LIVE_MAX; i++)
		if (live[i] == h)
			live[i] = NULL;
	h2_hang_up(h, reset);
}

static void run_all(void)
{
	for (size_t i = 0; i < LIVE_MAX; i++)
		if (live[i])
			h2_run(live[i]);
}

#define ALL_UNTIL(condition)                                                                    \
	do {                                                                                    \
		int64_t until_end = clock_monotonic_ms() + PATIENCE_MS;                         \
		while (run_all(), !(condition)) {                                               \
			if (clock_monotonic_ms() > until_end)                                   \
				fail_msg("%s:%d: in vain: %s", __FILE__, __LINE__, #condition); \
			pump(&w, 1);                                                            \
		}                                                                               \
	} while (0)

MAY_BE_UNUSED static void run_for(int ms)
{
	for (int64_t end = clock_monotonic_ms() + ms; clock_monotonic_ms() < end; pump(&w, 1))
		run_all();
}

/* The next connection of the proxy, with TLS and the protocol that it and alpn agree on. */
static struct peer *accept_tls(const char *alpn)
{
	struct peer *p;
	int fd = -1;

	ALL_UNTIL((fd = accept4(w.origin_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	p = peer_new(&w, fd);
	socket_start_tls(&p->socket,
	        tls_accept_new(w.origin_tls, slice_from_string(alpn), &w.sockets.tx), SLICE(""));
	p->shaking = true;
	p->deaf = deaf_origins;
	ALL_UNTIL(!p->shaking);
	assert_false(p->failed);
	return p;
}

/* slow: windows are given back only where the test does so. */
static struct h2 *h2_origin_over(struct peer *peer, bool slow)
{
	struct h2 *h = calloc(1, sizeof(*h));
	nghttp2_session_callbacks *cb;
	nghttp2_option *option;

	h->peer = peer;
	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_header_callback(cb, h2_on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, h2_on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, h2_on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, h2_on_close);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_no_auto_window_update(option, slow);
	nghttp2_option_set_max_send_header_block_length(option, 1u << 20);
	assert_int_equal(nghttp2_session_server_new2(&h->session, cb, h, option), 0);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, NULL, 0);
	return enliven(h);
}

static inline struct h2 *h2_origin(void)
{
	struct peer *p = accept_tls("\x02h2\x08http/1.1");

	assert_true(slice_equals(tls_alpn(p->socket.tls), SLICE("h2")));
	return h2_origin_over(p, false);
}

/* Expects that no connection is dialed, whoever waits. */
MAY_BE_UNUSED static bool nobody_dials(void)
{
	run_for(20);
	return !origin_is_asked(&w);
}

/* The n-th request whose head has come (from 0), once it is there. */
static inline struct answer *request_of(struct h2 *o, size_t n)
{
	ALL_UNTIL(o->count > n && strstr(o->answers[n]->fields, ":path: "));
	return o->answers[n];
}

MAY_BE_UNUSED static bool asked_for(const struct answer *a, const char *path)
{
	char line[128];

	snprintf(line, sizeof(line), ":path: %s\n", path);
	return strstr(a->fields, line) != NULL;
}

/* A response of these fields (the first one :status), and of a body where one is given. */
static void respond_with(
        struct h2 *o, int32_t id, const nghttp2_nv *fields, size_t n, struct upload *body)
{
	const nghttp2_data_provider from = {.source.ptr = body, .read_callback = h2_read_upload};

	assert_int_equal(
	        nghttp2_submit_response(o->session, id, fields, n, body ? &from : NULL), 0);
	h2_run(o);
}

MAY_BE_UNUSED static void respond(struct h2 *o, int32_t id)
{
	const nghttp2_nv fields[] = {nv(":status", "200"), nv("x-from", "origin")};

	respond_with(o, id, fields, 2, NULL);
}

MAY_BE_UNUSED static void reset_stream(struct h2 *o, int32_t id, uint32_t code)
{
	nghttp2_submit_rst_stream(o->session, NGHTTP2_FLAG_NONE, id, code);
	h2_run(o);
}

MAY_BE_UNUSED static void say_goaway(struct h2 *o, int32_t last, uint32_t code)
{
	nghttp2_submit_goaway(o->session, NGHTTP2_FLAG_NONE, last, code, NULL, 0);
	h2_run(o);
}

MAY_BE_UNUSED static void set_max_streams(struct h2 *o, uint32_t n)
{
	const nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, n};

	nghttp2_submit_settings(o->session, NGHTTP2_FLAG_NONE, &entry, 1);
	h2_run(o);
}

MAY_BE_UNUSED static void expect_detail(const char *text)
{
	const struct event *e = find_event(&w, EVENT_HTTP);

	if (!e || !slice_equals(e->detail, slice_from_string(text)))
		fail_msg("\"%.*s\" instead of \"%s\"", e ? (int)e->detail.n : 0,
		        e ? e->detail.p : "", text);
}

#endif
