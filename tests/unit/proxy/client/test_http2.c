/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 from the sandbox through a real proxy to an origin that speaks HTTP/1.1: streams, bodies,
 * trailers, refusals, h2c, gRPC. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_peer.h"

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

/* The request is cut off, and never ends for the upstream. */
static void test_a_body_with_too_many_trailers(void **state)
{
	struct h2 *h = h2_client();
	nghttp2_nv trailers[HTTP_TRAILERS_MAX + 1];
	struct upload up = {.trailers = trailers, .trailer_count = HTTP_TRAILERS_MAX + 1};
	struct peer *o;
	int32_t id;

	(void)state;
	for (size_t i = 0; i <= HTTP_TRAILERS_MAX; i++)
		trailers[i] = nv("x-sum", "7");
	buf_init(&up.bytes, 1u << 20);
	buf_append(&up.bytes, "hello", 5);
	id = h2_ask_with(h, "POST", "a.test", "/up", NULL, 0, &up);
	o = origin(&w, true);
	expect_head(o, "POST /up ");
	UNTIL(&w, o->in.len);
	expect(o, "5\r\nhello\r\n");
	up.ended = true;
	nghttp2_session_resume_data(h->session, id);
	h2_run(h);
	UNTIL(&w, o->eof || o->failed);
	assert_int_equal(o->in.len, 0);
	H2_UNTIL(h, answer(h, id)->closed);
	assert_int_equal(answer(h, id)->status, 0);
	assert_int_equal(only(EVENT_FINDING)->finding, EVENT_FINDING_SMUGGLING);
	buf_fini(&up.bytes);
	h2_hang_up(h, false);
	hang_up(o, true);
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
	snprintf(length, sizeof(length), "%d", SIZE);
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
		H2_UNTIL(h, !socket_is_congested(&o->socket));
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
	socket_end(&o->socket);
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

/* --- without TLS, gRPC --- */

static void test_prior_knowledge_is_judged_as_http(void **state)
{
	struct h2 *h = h2_over(client(&w, NAME_P, NULL), true);
	struct peer *o;
	int32_t id = h2_ask_with(h, "GET", "p.test", "/x", NULL, 0, NULL), other, lie;
	const nghttp2_nv https[] = {nv(":method", "GET"), nv(":scheme", "https"),
	        nv(":authority", "p.test"), nv(":path", "/")};

	(void)state;
	hang_up(origin(&w, false),
	        true); /* it does not speak HTTP/2: upstream/test_prior_knowledge.c */
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
	for (size_t i = 0; i < sizeof(preface) - 1; i++) {
		say_n(c, preface + i, 1);
		pump(&w, 1);
	}
	UNTIL(&w, c->in.len >= 9);
	assert_int_equal(buf_bytes(&c->in)[3], NGHTTP2_SETTINGS);
	hang_up(c, false);
	c = client(&w, NAME_P, NULL);
	say(c, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
	expect_head(c, "HTTP/1.1 505 ");
	hang_up(c, false);
	c = client(&w, NAME_A, "a.test");
	say(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	expect_head(c, "HTTP/1.1 505 ");
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        TEST(test_requests_one_after_the_other),
	        TEST(test_streams_side_by_side),
	        TEST(test_a_body_with_trailers),
	        TEST(test_a_body_with_too_many_trailers),
	        TEST(test_a_large_body_both_ways),
	        TEST(test_a_refused_stream_leaves_the_others),
	        TEST(test_bodyless_responses),
	        TEST(test_a_broken_response_is_not_whole),
	        TEST(test_a_reset_stream_ends_its_exchange_only),
	        TEST(test_prior_knowledge_is_judged_as_http),
	        TEST(test_the_preface_in_pieces),
	        TEST(test_a_refused_grpc_call),
	        TEST(test_a_grpc_call_whose_upstream_fails),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
