/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 from a sandbox that breaks the rules: heads that must not reach the upstream, floods, too
 * many streams. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_peer.h"

/* --- what must not reach the upstream --- */

static void refused_as_malformed(const nghttp2_nv *more, size_t n)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask_with(h, "GET", "a.test", "/", more, n, NULL), next;

	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, NGHTTP2_NO_ERROR);
	assert_int_equal(answer(h, id)->status, 400);
	assert_int_equal(only(EVENT_FINDING)->finding, EVENT_FINDING_SMUGGLING);
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_DENIED);
	assert_int_equal(only(EVENT_HTTP)->http_version, 20);
	next = h2_ask(h, "DELETE", "/");
	H2_UNTIL(h, answer(h, next)->closed);
	assert_int_equal(answer(h, next)->status, 403);
	assert_false(origin_is_asked(&w));
	h2_hang_up(h, false);
}

static void test_fields_against_the_rules(void **state)
{
	static const char *const bad[][2] = {{"connection", "close"}, {"keep-alive", "1"},
	        {"proxy-connection", "x"}, {"transfer-encoding", "chunked"}, {"upgrade", "h2c"},
	        {"te", "gzip"}, {"x-a", "b\r\nx: y"}, {"x-a", "b\nc"}, {"x-a", "b\rc"},
	        {"x-a", " b"}, {"X-Upper", "1"}, {"x a", "1"}, {"x:a", "1"}, {"", "1"},
	        {"x-a", "b "}, {"x-a", "\x7f"}, {":status", "200"}, {":path", "/2"},
	        {":unknown", "1"}, {"content-length", "x"}, {"content-length", "5"},
	        {"content-length", "-1"}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const nghttp2_nv more[] = {nv(bad[i][0], bad[i][1])};

		refused_as_malformed(more, 1);
		tear_down(NULL);
		set_up(NULL);
	}
}

static void refused_with(int status, const char *method, const char *authority, const char *path,
        const nghttp2_nv *more, size_t n)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask_with(h, method, authority, path, more, n, NULL);

	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->status, status);
	assert_int_equal(answer(h, id)->code, 0);
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_DENIED);
	assert_false(origin_is_asked(&w));
	h2_hang_up(h, false);
	tear_down(NULL);
	set_up(NULL);
}

static void test_heads_that_are_answered(void **state)
{
	static char long_value[9000], long_path[HTTP_TARGET_MAX + 2];
	nghttp2_nv many[200];
	const nghttp2_nv host[] = {nv("host", "b.test")}, hope[] = {nv("expect", "much")};
	nghttp2_nv large[1];

	(void)state;
	memset(long_value, 'a', sizeof(long_value) - 1);
	memset(long_path, '/', HTTP_TARGET_MAX + 1);
	large[0] = nv("x-a", long_value);
	for (size_t i = 0; i < 200; i++)
		many[i] = nv("x-a", "");
	refused_with(421, "GET", "b.test", "/", NULL, 0);
	refused_with(421, "GET", "a.test:1", "/", NULL, 0);
	refused_with(421, "GET", "a.test", "/", host, 1);
	refused_with(400, "GET", "u@a.test:1", "/", NULL, 0);
	refused_with(400, "GET", "a.test", "/%00", NULL, 0);
	refused_with(400, "GET", "a.test", "/../x", NULL, 0);
	refused_with(417, "GET", "a.test", "/", hope, 1);
	refused_with(414, "GET", "a.test", long_path, NULL, 0);
	refused_with(501, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "a.test", "/", NULL, 0);
	refused_with(400, "PRI", "a.test", "/", NULL, 0);
	refused_with(400, "head", "a.test", "/", NULL, 0);
	refused_with(400, "G T", "a.test", "/", NULL, 0);
	refused_with(431, "GET", "a.test", "/", large, 1);
	refused_with(431, "GET", "a.test", "/", many, 200);
	refused_with(405, "TRACE", "a.test", "/", NULL, 0);
}

static void test_a_body_of_another_length(void **state)
{
	for (int longer = 0; longer < 2; longer++) {
		struct h2 *h = h2_client();
		struct upload up = {.ended = true};
		const nghttp2_nv more[] = {nv("content-length", longer ? "3" : "7")};
		int32_t id;

		(void)state;
		buf_init(&up.bytes, 100);
		buf_append(&up.bytes, "hello", 5);
		id = h2_ask_with(h, "POST", "a.test", "/up", more, 1, &up);
		H2_UNTIL(h, answer(h, id)->closed);
		assert_int_equal(answer(h, id)->code, NGHTTP2_PROTOCOL_ERROR);
		assert_int_equal(only(EVENT_FINDING)->finding, EVENT_FINDING_SMUGGLING);
		buf_fini(&up.bytes);
		h2_hang_up(h, false);
		tear_down(NULL);
		set_up(NULL);
	}
}

/* --- floods --- */

/* This side's nghttp2 does not know the frames written by hand, so it is left out from here on. */
static void expect_calm(struct h2 *h)
{
	static const uint8_t calm[] = {7, 0, 0, 0, 0, 0};
	const uint8_t *p;

	UNTIL(&w, h->peer->eof || h->peer->failed);
	if (w.event_total < EVENTS_MAX && !find_finding(&w, EVENT_FINDING_FLOOD)) {
		const struct event *e = find_event(&w, EVENT_FINDING);

		fail_msg("another finding: %.*s", e ? (int)e->detail.n : 0, e ? e->detail.p : "");
	}
	p = h->peer->in.len ? memmem(buf_bytes(&h->peer->in), h->peer->in.len, calm, sizeof(calm))
	                    : NULL;
	if (p)
		assert_int_equal(p[13], NGHTTP2_ENHANCE_YOUR_CALM);
	else
		assert_int_equal(h->goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
	h2_hang_up(h, true);
}

/* The same frame again and again, until the connection ends. */
static void flood_with(const void *frame, size_t n, unsigned times)
{
	struct h2 *h = h2_client();
	struct buf many;

	buf_init(&many, 32u << 20);
	H2_UNTIL(h, h->settings[NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS]);
	assert_int_equal(h->settings[NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS], 100);
	for (unsigned i = 0; i < times; i++)
		assert_int_equal(buf_append(&many, frame, n), 0);
	while (many.len && !h->peer->eof && !h->peer->failed) {
		size_t piece = many.len < 50000 ? many.len : 50000;

		say_n(h->peer, buf_bytes(&many), piece);
		buf_consume(&many, piece);
		UNTIL(&w, !socket_unsent(&h->peer->socket) || h->peer->eof || h->peer->failed);
	}
	buf_fini(&many);
	expect_calm(h);
	tear_down(NULL);
	set_up(NULL);
}

#define FRAME(bytes) bytes, sizeof(bytes) - 1

static void test_floods_of_frames(void **state)
{
	(void)state;
	flood_with(FRAME("\0\0\x08\6\0\0\0\0\0abcdefgh"), 5000); /* PING */
	flood_with(FRAME("\0\0\0\4\0\0\0\0\0"), 5000);           /* SETTINGS */
	flood_with(FRAME("\0\0\5\2\0\0\0\0\5\0\0\0\0\1"), 5000); /* PRIORITY */
	flood_with(FRAME("\0\0\4\x08\0\0\0\0\0\0\0\0\1"), 5000); /* WINDOW_UPDATE */
	/* Of an unknown type: ignored one by one, but not for ever. */
	static uint8_t ignored[9 + 16384] = {0, 0x40, 0, 0xfa};

	flood_with(ignored, sizeof(ignored), 1000);
}

static void test_a_header_block_without_end(void **state)
{
	static uint8_t block[8 * 16384];
	struct h2 *h = h2_client();

	(void)state;
	memcpy(block, "\x82\x87\x84\x41\6a.test", 11);
	for (size_t at = 11; at + 4 <= sizeof(block); at += 4)
		memcpy(block + at, "\0\1x\0", 4);
	h2_run(h);
	for (uint8_t i = 0; i < 8; i++) {
		const uint8_t head[9] = {0, 0x40, 0, i ? 9 : 1, 0, 0, 0, 0, 1};

		say_n(h->peer, head, 9);
		say_n(h->peer, block + (size_t)i * 16384, 16384);
	}
	expect_calm(h);
	assert_false(origin_is_asked(&w));
}

/* A field of 4000 bytes put into the table once, then named by one byte each. */
static void test_an_hpack_bomb(void **state)
{
	static uint8_t frame[17000];
	struct h2 *h = h2_client();
	size_t n = 9;

	(void)state;
	memcpy(frame + n, "\x82\x87\x84\x41\6a.test", 11);
	n += 11;
	memcpy(frame + n, "\x40\1x\x7f\xa1\x1e", 6); /* literal, indexed; 4000 bytes */
	n += 6;
	memset(frame + n, 'a', 4000);
	n += 4000;
	memset(frame + n, 0xbe, 12000);
	n += 12000;
	frame[1] = (uint8_t)((n - 9) >> 8);
	frame[2] = (uint8_t)(n - 9);
	frame[3] = 1;
	frame[4] = 5;
	frame[8] = 1;
	h2_run(h);
	say_n(h->peer, frame, n);
	expect_calm(h);
	assert_false(origin_is_asked(&w));
}

static void test_rapid_resets(void **state)
{
	struct h2 *h = h2_client();
	int32_t id;

	(void)state;
	for (int i = 0; i < 400 && !h->goaway; i++) {
		id = h2_ask(h, "GET", "/x");
		nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		h2_run(h);
		assert_true(w.proxy->exchanges <= 100);
		if (i % 20 == 19)
			pump(&w, 1);
	}
	expect_calm(h);
}

static void test_more_streams_than_allowed(void **state)
{
	struct h2 *h = h2_client();
	struct world_options o = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192};

	(void)state;
	h2_hang_up(h, false);
	o.limits.upstream_connections = 200;
	again(o);
	h = h2_client();
	nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, 1 << 20);
	for (int i = 0; i < 100; i++)
		h2_ask(h, "GET", "/x");
	UNTIL(&w, w.proxy->exchanges == 100);
	/* Opens one stream more by hand, whatever nghttp2 thinks of it. */
	const uint8_t request[] = "\0\0\x0b\1\5\0\0\0\xc9\x82\x87\x84\x41\6a.test";

	say_n(h->peer, request, sizeof(request) - 1);
	pump(&w, 50);
	assert_true(w.proxy->exchanges <= 100);
	h2_hang_up(h, true);
}

/* The bound over all connections: streams beyond it may be tried again. */
static void test_more_streams_than_the_sandbox_may_have(void **state)
{
	struct h2 *h = h2_client(), *other;
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	int32_t id;

	(void)state;
	h2_hang_up(h, false);
	o.limits.streams = 5;
	o.timeouts.response_ms = o.timeouts.idle_ms = 60000;
	again(o);
	h = h2_client();
	other = h2_client();
	for (int i = 0; i < 5; i++)
		h2_ask(h, "GET", "/x");
	UNTIL(&w, w.proxy->exchanges == 5);
	id = h2_ask(other, "GET", "/y");
	H2_UNTIL(other, answer(other, id)->closed);
	assert_int_equal(answer(other, id)->code, NGHTTP2_REFUSED_STREAM);
	assert_int_equal(w.proxy->exchanges, 5);
	h2_hang_up(h, true);
	UNTIL(&w, w.proxy->stream_count == 0);
	h2_ask(other, "GET", "/z");
	UNTIL(&w, w.proxy->exchanges == 1);
	h2_hang_up(other, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        TEST(test_fields_against_the_rules),
	        TEST(test_heads_that_are_answered),
	        TEST(test_a_body_of_another_length),
	        TEST(test_floods_of_frames),
	        TEST(test_a_header_block_without_end),
	        TEST(test_an_hpack_bomb),
	        TEST(test_rapid_resets),
	        TEST(test_more_streams_than_allowed),
	        TEST(test_more_streams_than_the_sandbox_may_have),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
