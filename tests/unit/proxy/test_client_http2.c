/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 from the sandbox through a real proxy to an origin that speaks HTTP/1.1: streams, bodies,
 * trailers, refusals, flow control, and whoever breaks the rules. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http2_peer.h"
#include "vethguard/tls/digest.h"

static void test_requests_one_after_the_other(void **state)
{
	struct h2 *h = h2_client();
	struct peer *o = NULL;

	(void)state;
	for (int i = 0; i < 3; i++) {
		nghttp2_nv more[] = {nv("x-one", "1"), nv("cookie", "a=b"), nv("cookie", "c=d"),
		        nv("te", "trailers")};
		int32_t id = h2_ask_with(h, "GET", "a.test", "/x?q=1", more, 4, NULL);
		struct answer *a = answer(h, id);

		if (!o)
			o = origin(&w, true);
		expect_head(o, "GET /x?q=1 HTTP/1.1\r\nHost: a.test:");
		assert_true(head_has(o, "\r\nx-one: 1\r\n"));
		assert_true(head_has(o, "\r\ncookie: a=b; c=d\r\n"));
		assert_false(head_has(o, "te:") || head_has(o, ":method"));
		assert_false(head_has(o, "content-length") || head_has(o, "transfer-encoding"));
		say(o, "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n"
		       "X-Two: 2\r\n\r\nok");
		H2_UNTIL(h, a->closed);
		assert_int_equal(a->code, NGHTTP2_NO_ERROR);
		assert_int_equal(a->status, 200);
		assert_string_equal(a->fields, ":status: 200\nx-two: 2\ncontent-length: 2\n");
		assert_true(body_is(a, "ok"));
	}
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
	assert_int_equal(find_event(&w, EVENT_HTTP)->http_version, 20);
	assert_int_equal(find_event(&w, EVENT_HTTP)->status, 200);
	assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_in, 2);
	assert_true(slice_equals(find_event(&w, EVENT_HTTP)->target, SLICE("/x?q=1")));
	assert_int_equal(count_events(&w, EVENT_FINDING), 0);
	h2_hang_up(h, false);
	hang_up(o, false);
}

static void test_streams_side_by_side(void **state)
{
	struct h2 *h = h2_client();
	struct peer *o[5];
	int32_t id[5];

	(void)state;
	for (int i = 0; i < 5; i++) {
		id[i] = h2_ask(h, "GET", "/x");
		o[i] = origin(&w, true);
		expect_head(o[i], "GET /x ");
	}
	for (int i = 4; i >= 0; i--) {
		say(o[i], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
		H2_UNTIL(h, body_is(answer(h, id[i]), "abc"));
		assert_false(answer(h, id[i])->ended);
	}
	for (int i = 0; i < 5; i++) {
		say(o[i], "0\r\nX-End: 1\r\nSet-Cookie: no\r\n\r\n");
		H2_UNTIL(h, answer(h, id[i])->closed);
		assert_string_equal(answer(h, id[i])->fields, ":status: 200\n--\nx-end: 1\n");
		hang_up(o[i], false);
	}
	h2_hang_up(h, false);
}

static void test_a_body_with_trailers(void **state)
{
	struct h2 *h = h2_client();
	const nghttp2_nv trailers[] = {nv("x-sum", "7"), nv("authorization", "no")};
	struct upload up = {.trailers = trailers, .trailer_count = 2};
	struct peer *o;
	int32_t id;

	(void)state;
	buf_init(&up.bytes, 1u << 20);
	buf_append(&up.bytes, "hello", 5);
	id = h2_ask_with(h, "POST", "a.test", "/up", NULL, 0, &up);
	o = origin(&w, true);
	expect_head(o, "POST /up ");
	assert_true(head_has(o, "transfer-encoding: chunked"));
	UNTIL(&w, o->in.len);
	expect(o, "5\r\nhello\r\n");
	up.ended = true;
	nghttp2_session_resume_data(h->session, id);
	h2_run(h);
	expect(o, "0\r\nx-sum: 7\r\n\r\n");
	say(o, "HTTP/1.1 204 Done\r\n\r\n");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->status, 204);
	assert_int_equal(only(EVENT_HTTP)->bytes_out, 5);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

static void test_a_large_body_both_ways(void **state)
{
	enum { SIZE = 3000000 };
	static uint8_t bytes[SIZE];
	struct h2 *h = h2_client();
	struct upload up = {.ended = true};
	char length[32];
	struct peer *o;
	int32_t id;

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 11));
	snprintf(length, sizeof length, "%d", SIZE);
	buf_init(&up.bytes, SIZE);
	buf_append(&up.bytes, bytes, SIZE);
	const nghttp2_nv more[] = {nv("content-length", length)};

	id = h2_ask_with(h, "PUT", "a.test", "/up", more, 1, &up);
	o = origin(&w, true);
	expect_head(o, "PUT /up ");
	assert_true(head_has(o, "content-length: 3000000\r\n"));
	H2_UNTIL(h, o->in.len == SIZE);
	assert_memory_equal(buf_bytes(&o->in), bytes, SIZE);
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
	for (size_t at = 0; at < SIZE;) {
		size_t n = SIZE - at < 50000 ? SIZE - at : 50000;

		say_n(o, bytes + at, n);
		at += n;
		H2_UNTIL(h, !link_is_congested(&o->link));
	}
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, 0);
	assert_int_equal(answer(h, id)->body.len, SIZE);
	assert_memory_equal(buf_bytes(&answer(h, id)->body), bytes, SIZE);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

static void test_a_refused_stream_leaves_the_others(void **state)
{
	struct h2 *h = h2_client();
	int32_t good = h2_ask(h, "GET", "/good"), bad, other;
	struct peer *o = origin(&w, true);

	(void)state;
	expect_head(o, "GET /good ");
	bad = h2_ask(h, "DELETE", "/bad");
	other = h2_ask_with(h, "GET", "c.test", "/", NULL, 0, NULL);
	H2_UNTIL(h, answer(h, bad)->closed && answer(h, other)->closed);
	assert_int_equal(answer(h, bad)->status, 403);
	assert_int_equal(answer(h, bad)->code, 0);
	assert_non_null(
	        memmem(buf_bytes(&answer(h, bad)->body), answer(h, bad)->body.len, "never", 5));
	assert_int_equal(answer(h, other)->status, 421);
	assert_non_null(find_finding(&w, EVENT_FINDING_BINDING_MISMATCH));
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	H2_UNTIL(h, answer(h, good)->closed);
	assert_int_equal(answer(h, good)->status, 200);
	assert_false(origin_is_asked(&w));
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
	h2_hang_up(h, false);
	hang_up(o, false);
}

static void test_bodyless_responses(void **state)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask(h, "HEAD", "/");
	struct peer *o = origin(&w, true);

	(void)state;
	expect_head(o, "HEAD / ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_string_equal(answer(h, id)->fields, ":status: 200\ncontent-length: 77\n");
	id = h2_ask(h, "GET", "/");
	expect_head(o, "GET / ");
	say(o, "HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 304 Not\r\nETag: x\r\n\r\n");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_string_equal(
	        answer(h, id)->fields, ":status: 103\nlink: </a>\n:status: 304\netag: x\n");
	id = h2_ask(h, "POST", "/");
	expect_head(o, "POST / ");
	assert_true(head_has(o, "content-length: 0\r\n"));
	say(o, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
	link_end(&o->link);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_true(body_is(answer(h, id), "until the end"));
	h2_hang_up(h, false);
	hang_up(o, false);
}

static void test_a_broken_response_is_not_whole(void **state)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask(h, "GET", "/");
	struct peer *o = origin(&w, true);

	(void)state;
	expect_head(o, "GET / ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
	H2_UNTIL(h, body_is(answer(h, id), "half"));
	hang_up(o, false);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, NGHTTP2_INTERNAL_ERROR);
	assert_false(answer(h, id)->ended);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
	/* The connection lives on. */
	id = h2_ask(h, "DELETE", "/");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->status, 403);
	h2_hang_up(h, false);
}

static void test_a_reset_stream_ends_its_exchange_only(void **state)
{
	struct h2 *h = h2_client();
	int32_t first = h2_ask(h, "GET", "/1"), second;
	struct peer *o = origin(&w, true), *o2;

	(void)state;
	second = h2_ask(h, "GET", "/2");
	o2 = origin(&w, true);
	expect_head(o, "GET /1 ");
	expect_head(o2, "GET /2 ");
	nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, first, NGHTTP2_CANCEL);
	h2_run(h);
	UNTIL(&w, o->eof || o->failed);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_CLIENT);
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
	H2_UNTIL(h, answer(h, second)->closed);
	assert_true(body_is(answer(h, second), "x"));
	h2_hang_up(h, true);
	hang_up(o, false);
	hang_up(o2, false);
}

/* --- what must not reach the upstream --- */

static void refused_by_stream_error(const nghttp2_nv *more, size_t n)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask_with(h, "GET", "a.test", "/", more, n, NULL), next;

	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, NGHTTP2_PROTOCOL_ERROR);
	assert_int_equal(answer(h, id)->status, 0);
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
	        {":status", "200"}, {":path", "/2"}, {":unknown", "1"}, {"content-length", "x"},
	        {"content-length", "5"}, {"content-length", "-1"}};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const nghttp2_nv more[] = {nv(bad[i][0], bad[i][1])};

		refused_by_stream_error(more, 1);
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
	static char long_value[9000];
	nghttp2_nv many[200];
	const nghttp2_nv host[] = {nv("host", "b.test")}, hope[] = {nv("expect", "much")};
	nghttp2_nv large[1];

	(void)state;
	memset(long_value, 'a', sizeof long_value - 1);
	large[0] = nv("x-a", long_value);
	for (size_t i = 0; i < 200; i++)
		many[i] = nv("x-a", "");
	refused_with(421, "GET", "b.test", "/", NULL, 0);
	refused_with(421, "GET", "a.test:1", "/", NULL, 0);
	refused_with(421, "GET", "a.test", "/", host, 1);
	refused_with(400, "GET", "u@a.test:1", "/", NULL, 0);
	refused_with(400, "GET", "a.test", "/%00", NULL, 0);
	refused_with(400, "GET", "a.test", "/../x", NULL, 0);
	refused_with(400, "GET", "a.test", "/", hope, 1);
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

/* --- without TLS, gRPC, WebSocket --- */

static void test_prior_knowledge_is_judged_as_http(void **state)
{
	struct h2 *h = h2_over(client(&w, NAME_P, NULL), true);
	struct peer *o;
	int32_t id = h2_ask_with(h, "GET", "p.test", "/x", NULL, 0, NULL), other, lie;
	const nghttp2_nv https[] = {nv(":method", "GET"), nv(":scheme", "https"),
	        nv(":authority", "p.test"), nv(":path", "/")};

	(void)state;
	o = origin(&w, false);
	expect_head(o, "GET /x HTTP/1.1\r\n");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_true(body_is(answer(h, id), "hi"));
	other = h2_ask_with(h, "GET", "a.test", "/x", NULL, 0, NULL);
	lie = nghttp2_submit_request(h->session, NULL, https, 4, NULL, NULL);
	H2_UNTIL(h, answer(h, other)->closed && answer(h, lie)->closed);
	assert_int_equal(answer(h, other)->status, 421);
	assert_int_equal(answer(h, lie)->status, 421);
	h2_hang_up(h, false);
	hang_up(o, false);
}

/* Byte by byte; and what only begins like the preface is no HTTP at all. */
static void test_the_preface_in_pieces(void **state)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	struct peer *c = client(&w, NAME_P, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof preface - 1; i++) {
		say_n(c, preface + i, 1);
		pump(&w, 1);
	}
	UNTIL(&w, c->in.len >= 9);
	assert_int_equal(buf_bytes(&c->in)[3], NGHTTP2_SETTINGS);
	hang_up(c, false);
	c = client(&w, NAME_P, NULL);
	say(c, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
	c = client(&w, NAME_A, "a.test");
	say(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
	assert_false(origin_is_asked(&w));
}

static void test_a_refused_grpc_call(void **state)
{
	struct h2 *h = h2_client();
	const nghttp2_nv more[] = {
	        nv("content-type", "application/grpc+proto"), nv("te", "trailers")};
	int32_t id = h2_ask_with(h, "DELETE", "a.test", "/pkg.Service/Call", more, 2, NULL);
	struct answer *a = answer(h, id);

	(void)state;
	H2_UNTIL(h, a->closed);
	assert_int_equal(a->status, 200);
	assert_int_equal(a->body.len, 0);
	assert_null(strstr(a->fields, "--\n"));
	assert_non_null(strstr(a->fields, "content-type: application/grpc\n"));
	assert_non_null(strstr(a->fields, "grpc-status: 7\n"));
	assert_non_null(strstr(a->fields, "grpc-message: vethguard: DELETE https://a.test:"));
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_DENIED);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_POLICY);
	h2_hang_up(h, false);
}

static void test_a_grpc_call_whose_upstream_fails(void **state)
{
	struct h2 *h = h2_client();
	const nghttp2_nv more[] = {nv("content-type", "application/grpc")};
	int32_t id = h2_ask_with(h, "POST", "a.test", "/p.S/C", more, 1, NULL);
	struct peer *o = origin(&w, true);

	(void)state;
	expect_head(o, "POST /p.S/C ");
	hang_up(o, true);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_non_null(strstr(answer(h, id)->fields, "grpc-status: 14\n"));
	h2_hang_up(h, false);
}

static int32_t ask_websocket(struct h2 *h, struct upload *up, const char *protocol)
{
	char authority[64];
	const nghttp2_data_provider body = {.source.ptr = up, .read_callback = h2_read_upload};

	snprintf(authority, sizeof authority, "a.test:%u", w.port);
	const nghttp2_nv fields[] = {nv(":method", "CONNECT"), nv(":protocol", protocol),
	        nv(":scheme", "https"), nv(":authority", authority), nv(":path", "/ws?x=1"),
	        nv("sec-websocket-version", "13"), nv("sec-websocket-protocol", "chat")};

	H2_UNTIL(h, h->settings[NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL] == 1);
	return nghttp2_submit_request(h->session, NULL, fields, 7, &body, NULL);
}

static void say_accepted(struct peer *o, const char *key_of)
{
	const char *at = strcasestr(key_of, "Sec-WebSocket-Key: ");
	char accept[DIGEST_SHA1_BASE64 + 1], text[512];

	assert_non_null(at);
	const struct slice parts[] = {{at + 19, 24}, SLICE("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")};

	assert_int_equal(digest_sha1_base64(parts, 2, accept), 0);
	snprintf(text, sizeof text,
	        "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	        "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
	        accept);
	say(o, text);
}

static void test_an_extended_connect(void **state)
{
	struct h2 *h = h2_client();
	struct upload up = {0};
	struct peer *o;
	int32_t id;

	(void)state;
	buf_init(&up.bytes, 1000);
	buf_append(&up.bytes, "\x82\x81\0\0\0\0a", 7); /* before there is an answer */
	id = ask_websocket(h, &up, "websocket");
	h2_run(h);
	o = origin(&w, true);
	expect_head(o, "GET /ws?x=1 HTTP/1.1\r\n");
	assert_true(
	        head_has(o, "connection: upgrade\r\n") && head_has(o, "upgrade: websocket\r\n"));
	assert_true(head_has(o, "sec-websocket-version: 13\r\n"));
	pump(&w, 20);
	assert_int_equal(o->in.len, 0);
	say_accepted(o, o->head);
	H2_UNTIL(h, answer(h, id)->status && o->in.len == 7);
	assert_string_equal(answer(h, id)->fields, ":status: 200\nsec-websocket-protocol: chat\n");
	buf_consume(&o->in, 7);
	say_n(o, "\x82\1b", 3);
	H2_UNTIL(h, answer(h, id)->body.len == 3);
	buf_append(&up.bytes, "\x82\x81\0\0\0\0c", 7);
	nghttp2_session_resume_data(h->session, id);
	H2_UNTIL(h, o->in.len == 7);
	up.ended = true;
	nghttp2_session_resume_data(h->session, id);
	H2_UNTIL(h, o->eof);
	link_end(&o->link);
	link_flush(&o->link);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, 0);
	assert_true(answer(h, id)->ended);
	assert_int_equal(only(EVENT_HTTP)->status, 101);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

/* Frames that are wrong, and the stream's end behind them, wait for the upstream's consent: then
 * the exchange ends while its own bytes are passed on. Streams are freed at once, so that it shows.
 */
static void test_an_extended_connect_that_ends_at_once(void **state)
{
	struct h2 *h = h2_client();
	struct upload up = {.ended = true};
	struct peer *o;
	int32_t id;

	(void)state;
	w.proxy->free_stream_count = STREAMS_KEPT;
	buf_init(&up.bytes, 1000);
	buf_append(&up.bytes, "\x82\1x", 3); /* not masked */
	id = ask_websocket(h, &up, "websocket");
	h2_run(h);
	o = origin(&w, true);
	expect_head(o, "GET /ws?x=1 HTTP/1.1\r\n");
	pump(&w, 20);
	say_accepted(o, o->head);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_CLIENT);
	UNTIL(&w, !w.proxy->stream_count);
	w.proxy->free_stream_count = 0;
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

/* Another key's answer, no switch at all, another protocol: never 200. */
static void test_an_extended_connect_that_fails(void **state)
{
	static const char *const answers[] = {
	        "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
	        "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"};
	struct upload up = {0};

	(void)state;
	buf_init(&up.bytes, 1000);
	for (size_t i = 0; i < 3; i++) {
		struct h2 *h = h2_client();
		int32_t id = ask_websocket(h, &up, "websocket");
		struct peer *o;

		h2_run(h);
		o = origin(&w, true);
		expect_head(o, "GET /ws");
		say(o, answers[i]);
		H2_UNTIL(h, answer(h, id)->closed);
		assert_int_equal(answer(h, id)->status, 502);
		h2_hang_up(h, false);
		hang_up(o, false);
	}
	struct h2 *h = h2_client();
	int32_t id = ask_websocket(h, &up, "connect-udp");

	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->status, 400);
	assert_false(origin_is_asked(&w));
	h2_hang_up(h, false);
}

/* --- floods --- */

/* What was said by hand is unknown to this side's nghttp2, so it is kept out from here on. */
static void expect_calm(struct h2 *h)
{
	static const uint8_t calm[] = {7, 0, 0, 0, 0, 0};
	const uint8_t *p;

	UNTIL(&w, h->peer->eof || h->peer->failed);
	if (w.event_total < EVENTS_MAX && !find_finding(&w, EVENT_FINDING_FLOOD)) {
		const struct event *e = find_event(&w, EVENT_FINDING);

		fail_msg("another finding: %.*s", e ? (int)e->detail.n : 0, e ? e->detail.p : "");
	}
	p = h->peer->in.len ? memmem(buf_bytes(&h->peer->in), h->peer->in.len, calm, sizeof calm)
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
		UNTIL(&w, !link_unsent(&h->peer->link) || h->peer->eof || h->peer->failed);
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

	flood_with(ignored, sizeof ignored, 1000);
}

static void test_a_header_block_without_end(void **state)
{
	static uint8_t block[8 * 16384];
	struct h2 *h = h2_client();

	(void)state;
	memcpy(block, "\x82\x87\x84\x41\6a.test", 11);
	for (size_t at = 11; at + 4 <= sizeof block; at += 4)
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
	        .timeouts = usual_timeouts, .limits = usual_limits, .send_bytes = 8192};

	(void)state;
	h2_hang_up(h, false);
	o.limits.upstream_connections = 200;
	again(o);
	h = h2_client();
	nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, 1 << 20);
	for (int i = 0; i < 100; i++)
		h2_ask(h, "GET", "/x");
	UNTIL(&w, w.proxy->exchanges == 100);
	/* One more, whatever nghttp2 thinks of it: by hand. */
	const uint8_t request[] = "\0\0\x0b\1\5\0\0\0\xc9\x82\x87\x84\x41\6a.test";

	say_n(h->peer, request, sizeof request - 1);
	pump(&w, 50);
	assert_true(w.proxy->exchanges <= 100);
	h2_hang_up(h, true);
}

/* The bound over all connections: what is beyond may be tried again. */
static void test_more_streams_than_the_sandbox_may_have(void **state)
{
	struct h2 *h = h2_client(), *other;
	struct world_options o = {.timeouts = usual_timeouts, .limits = usual_limits};
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

/* --- flow control --- */

/* A world in which nobody is impatient, however busy the machine is. */
static void unhurried(void)
{
	struct world_options o = {.timeouts = usual_timeouts, .limits = usual_limits};

	o.timeouts.response_ms = o.timeouts.idle_ms = o.timeouts.header_ms = 60000;
	again(o);
}

/* A slow upstream keeps its own stream only. */
static void test_a_slow_upstream_slows_its_stream(void **state)
{
	struct h2 *h;
	struct upload up = {0};
	struct peer *slow, *o;
	int32_t stuck, id;
	static uint8_t bytes[1 << 20];

	(void)state;
	unhurried();
	h = h2_client();
	buf_init(&up.bytes, 8 << 20);
	for (int i = 0; i < 8; i++)
		buf_append(&up.bytes, bytes, sizeof bytes);
	stuck = h2_ask_with(h, "PUT", "a.test", "/slow", NULL, 0, &up);
	slow = origin(&w, true);
	expect_head(slow, "PUT /slow ");
	slow->deaf = true;
	for (int i = 0; i < 50; i++) {
		h2_run(h);
		pump(&w, 1);
	}
	assert_true(up.bytes.len > 0);
	for (int i = 0; i < 3; i++) {
		struct upload small = {.ended = true};

		buf_init(&small.bytes, 60000);
		buf_append(&small.bytes, bytes, 60000);
		id = h2_ask_with(h, "PUT", "a.test", "/fast", NULL, 0, &small);
		o = origin(&w, true);
		expect_head(o, "PUT /fast ");
		say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
		H2_UNTIL(h, answer(h, id)->closed);
		assert_int_equal(answer(h, id)->status, 200);
		hang_up(o, false);
		buf_fini(&small.bytes);
	}
	assert_false(answer(h, stuck)->closed);
	buf_fini(&up.bytes);
	h2_hang_up(h, true);
	hang_up(slow, true);
}

/* A client that opens no window keeps its own stream only, and the upstream is not read on. */
static void test_a_stream_without_window(void **state)
{
	struct world_options options = {.timeouts = usual_timeouts, .limits = usual_limits};
	struct h2 *h;
	static uint8_t bytes[1 << 20];
	struct peer *o, *o2;
	int32_t stuck, id;

	(void)state;
	options.timeouts.response_ms = 60000;
	options.timeouts.idle_ms = 2000;
	again(options);
	h = h2_client();
	const nghttp2_settings_entry none = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};

	nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, &none, 1);
	stuck = h2_ask(h, "GET", "/big");
	o = origin(&w, true);
	expect_head(o, "GET /big ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
	for (int i = 0; i < 100 && !link_is_congested(&o->link); i++) {
		say_n(o, bytes, 80000);
		pump(&w, 2);
	}
	assert_true(link_is_congested(&o->link));
	id = h2_ask(h, "GET", "/small");
	nghttp2_submit_window_update(h->session, NGHTTP2_FLAG_NONE, id, 100);
	o2 = origin(&w, true);
	expect_head(o2, "GET /small ");
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_true(body_is(answer(h, id), "ok"));
	/* No progress for too long: that stream ends. */
	H2_UNTIL(h, answer(h, stuck)->closed);
	assert_int_equal(answer(h, stuck)->code, NGHTTP2_CANCEL);
	h2_hang_up(h, true);
	hang_up(o, true);
	hang_up(o2, true);
}

/* --- time --- */

/* A world whose upstreams may be silent for longer than its sandbox. */
static void patient(void)
{
	struct world_options o = {
	        .timeouts = usual_timeouts, .limits = usual_limits, .send_bytes = 8192};

	o.timeouts.response_ms = 5000;
	again(o);
}

static void test_an_idle_connection_is_sent_away(void **state)
{
	struct h2 *h = h2_client();
	int32_t id = h2_ask(h, "DELETE", "/");

	(void)state;
	H2_UNTIL(h, answer(h, id)->closed);
	H2_UNTIL(h, h->goaway && h->peer->eof);
	assert_int_equal(h->goaway_code, NGHTTP2_NO_ERROR);
	assert_int_equal(count_events(&w, EVENT_FINDING), 0);
	h2_hang_up(h, false);
}

static void test_a_stalled_body_ends_its_stream(void **state)
{
	struct h2 *h = h2_client();
	struct upload up = {0};
	struct peer *o;
	int32_t id;

	(void)state;
	h2_hang_up(h, false);
	patient();
	h = h2_client();
	buf_init(&up.bytes, 100);
	buf_append(&up.bytes, "hello", 5);
	id = h2_ask_with(h, "POST", "a.test", "/up", NULL, 0, &up);
	o = origin(&w, true);
	expect_head(o, "POST /up ");
	say(o, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->code, NGHTTP2_CANCEL);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, false);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        TEST(test_requests_one_after_the_other),
	        TEST(test_streams_side_by_side),
	        TEST(test_a_body_with_trailers),
	        TEST(test_a_large_body_both_ways),
	        TEST(test_a_refused_stream_leaves_the_others),
	        TEST(test_bodyless_responses),
	        TEST(test_a_broken_response_is_not_whole),
	        TEST(test_a_reset_stream_ends_its_exchange_only),
	        TEST(test_fields_against_the_rules),
	        TEST(test_heads_that_are_answered),
	        TEST(test_a_body_of_another_length),
	        TEST(test_prior_knowledge_is_judged_as_http),
	        TEST(test_the_preface_in_pieces),
	        TEST(test_a_refused_grpc_call),
	        TEST(test_a_grpc_call_whose_upstream_fails),
	        TEST(test_an_extended_connect),
	        TEST(test_an_extended_connect_that_ends_at_once),
	        TEST(test_an_extended_connect_that_fails),
	        TEST(test_floods_of_frames),
	        TEST(test_a_header_block_without_end),
	        TEST(test_an_hpack_bomb),
	        TEST(test_rapid_resets),
	        TEST(test_more_streams_than_allowed),
	        TEST(test_more_streams_than_the_sandbox_may_have),
	        TEST(test_a_slow_upstream_slows_its_stream),
	        TEST(test_a_stream_without_window),
	        TEST(test_an_idle_connection_is_sent_away),
	        TEST(test_a_stalled_body_ends_its_stream),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
