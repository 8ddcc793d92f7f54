/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are signed, through a whole proxy: bodies that are held until they are whole, or
 * signed chunk by chunk, beside an upstream or a client that goes away. Whether the signatures are
 * right is for tests/integration/test_signing.py and the units of sign/.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"
#include "proxy/exchange/holding.h"
#include "proxy/signing/signing.h"

#define KEYS "AKIDEXAMPLE:s3cr3t-TOKEN-value/0123456789"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define CHUNKED                                                        \
	"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n" \
	"x-amz-decoded-content-length: 3\r\nContent-Length: 175\r\n"
#define CHUNK "3;chunk-signature=" ZEROS "\r\nabc\r\n"
#define LAST "0;chunk-signature=" ZEROS "\r\n\r\n"

static const char fine[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static int set_up_signing(void **state)
{
	static const struct world_options options = {
	        .policy = "vethguard: 1\nname: test\ncredentials:\n"
	                  "  db: {source: \"env:KEY\", inject: sigv4, region: us-east-1, "
	                  "service: dynamodb}\n"
	                  "  s3: {source: \"env:KEY\", inject: sigv4, region: us-east-1, "
	                  "service: s3}\n"
	                  "allow:\n  - {to: \"https://c.test:%1$u\", credential: db}\n"
	                  "  - {to: \"https://q.test:%1$u\", credential: s3}\n",
	        .timeouts = PATIENT_TIMEOUTS,
	        .limits = USUAL_LIMITS,
	        .send_bytes = 8192};

	(void)state;
	world_open(&w, &options);
	w.value = KEYS;
	return 0;
}
#define SIGNING(name) cmocka_unit_test_setup_teardown(name, set_up_signing, tear_down)

static void leave(struct peer *c, struct peer *o)
{
	assert_false(has(c, "TOKEN", 5));
	hang_up(c, false);
	if (o)
		hang_up(o, false);
	pump(&w, 5);
	assert_int_equal(w.proxy->body_held, 0);
}

static void test_head(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "GET /x?b=1&a", "c.test",
	        "Authorization: mine\r\nX-Amz-Date: 1\r\nX_Amz_Date: 2\r\n");
	o = origin(&w, true);
	expect_head(o, "GET /x?b=1&a HTTP/1.1\r\n");
	assert_true(head_has(o, "authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20"));
	assert_true(head_has(o, "/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, "
	                        "Signature="));
	assert_false(head_has(o, "mine"));
	assert_null(strcasestr(strcasestr(o->head, "x-amz-date") + 1, "x-amz-date: "));
	assert_false(head_has(o, "TOKEN"));
	assert_false(head_has(o, "accept-encoding"));
	say(o, "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "abc");
	assert_true(slice_equals(find_event(&w, EVENT_HTTP)->credential, SLICE("db")));
	leave(c, o);
}

static void test_held_body(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "POST /x", "c.test", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n");
	expect_head(c, "HTTP/1.1 100 ");
	say(c, "3\r\nabc\r\n");
	UNTIL(&w, w.proxy->body_held == 3);
	assert_int_equal(w.proxy->upstream_count, 0);
	assert_int_equal(w.asked, 0);
	say(c, "2\r\nde\r\n0\r\nX-T: y\r\n\r\n");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	assert_true(head_has(o, "content-length: 5\r\n"));
	assert_false(head_has(o, "Expect"));
	expect(o, "abcde");
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_out, 5);
	leave(c, o);
}

/* A connection that ends under it: the held body goes out again, whole and signed anew. */
static void test_held_body_goes_again(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o, *again_o;

	(void)state;
	ask(c, "GET /first", "c.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /first ");
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, w.proxy->idle_count == 1);
	ask(c, "PUT /x", "c.test", "Content-Length: 5\r\n");
	say(c, "abcde");
	expect_head(o, "PUT /x ");
	expect(o, "abcde");
	hang_up(o, false);
	again_o = origin(&w, true);
	expect_head(again_o, "PUT /x ");
	assert_true(head_has(again_o, "content-length: 5\r\n"));
	expect(again_o, "abcde");
	say(again_o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	leave(c, again_o);
}

/* More than a socket takes at once. */
static void test_large_held_body(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;
	size_t n = 3 << 20;
	char *body = malloc(n + 1);

	(void)state;
	assert_non_null(body);
	memset(body, 'x', n);
	body[n] = '\0';
	ask(c, "POST /x", "c.test", "Content-Length: 3145728\r\n");
	for (size_t at = 0; at < n; at += 65536) {
		say_n(c, body + at, 65536);
		UNTIL(&w, w.proxy->body_held == at + 65536);
	}
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	UNTIL(&w, o->in.len == n);
	assert_memory_equal(buf_bytes(&o->in), body, n);
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	free(body);
	leave(c, o);
}

static void test_client_leaves_while_held(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	ask(c, "POST /x", "c.test", "Content-Length: 5\r\n");
	say(c, "abc");
	UNTIL(&w, w.proxy->body_held == 3);
	hang_up(c, false);
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	UNTIL(&w, w.proxy->body_held == 0);
	assert_int_equal(w.proxy->upstream_count, 0);
	assert_int_equal(w.asked, 0);
}

static void test_too_much_is_held(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	ask(c, "POST /x", "c.test", "Content-Length: 16777217\r\n");
	expect_head(c, "HTTP/1.1 413 ");
	hang_up(c, false);
	c = client(&w, NAME_C, "c.test");
	ask(c, "POST /x", "c.test", "Content-Length: 5\r\n");
	pump(&w, 5);
	w.proxy->body_held += HOLDING_ALL_MAX - 2;
	say(c, "abc");
	expect_head(c, "HTTP/1.1 503 ");
	w.proxy->body_held -= HOLDING_ALL_MAX - 2;
	assert_int_equal(w.asked, 0);
	leave(c, NULL);
}

static void test_chunks(void **state)
{
	struct peer *c = client(&w, NAME_Q, "q.test"), *o;

	(void)state;
	ask(c, "PUT /x", "q.test", CHUNKED);
	o = origin(&w, true);
	expect_head(o, "PUT /x ");
	assert_true(head_has(o, "content-length: 175\r\n"));
	say(c, "3;chunk-signature=" ZEROS "\r\nab");
	UNTIL(&w, w.proxy->body_held > 80);
	assert_int_equal(o->in.len, 0);
	say(c, "c\r\n" LAST);
	UNTIL(&w, o->in.len == 175);
	assert_false(has(o, ZEROS, 64));
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	leave(c, o);
}

/* A fault of a body is reported, and the part of it that has left ends with the connection. */
static void test_chunks_that_are_none(void **state)
{
	static const char *const bodies[] = {"abc\r\n", CHUNK "x\r\n", CHUNK CHUNK "3;\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		struct peer *c = client(&w, NAME_Q, "q.test"), *o;

		ask(c, "PUT /x", "q.test", CHUNKED);
		o = origin(&w, true);
		expect_head(o, "PUT /x ");
		say(c, bodies[i]);
		expect_head(c, "HTTP/1.1 400 ");
		UNTIL(&w, o->eof || o->failed);
		leave(c, o);
	}
}

/* An upstream that closes after the first chunk: the rest cannot be sent anywhere else. */
static void test_chunks_do_not_go_again(void **state)
{
	struct peer *c = client(&w, NAME_Q, "q.test"), *o;

	(void)state;
	ask(c, "PUT /x", "q.test", CHUNKED);
	o = origin(&w, true);
	expect_head(o, "PUT /x ");
	say(c, CHUNK);
	UNTIL(&w, o->in.len > 80);
	hang_up(o, false);
	expect_head(c, "HTTP/1.1 502 ");
	leave(c, NULL);
}

/* An answer before the body is whole. */
static void test_early_answer(void **state)
{
	struct peer *c = client(&w, NAME_Q, "q.test"), *o;

	(void)state;
	ask(c, "PUT /x", "q.test", CHUNKED);
	o = origin(&w, true);
	expect_head(o, "PUT /x ");
	say(c, CHUNK);
	say(o, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
	expect_head(c, "HTTP/1.1 403 ");
	expect(c, "no");
	UNTIL(&w, w.proxy->upstream_count == 0); /* it is not used again */
	leave(c, o);
}

static void test_values_that_are_no_keys(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	w.value = "s3cr3t-TOKEN-value";
	ask(c, "GET /x", "c.test", "");
	expect_head(c, "HTTP/1.1 502 ");
	leave(c, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        SIGNING(test_head),
	        SIGNING(test_held_body),
	        SIGNING(test_held_body_goes_again),
	        SIGNING(test_large_held_body),
	        SIGNING(test_client_leaves_while_held),
	        SIGNING(test_too_much_is_held),
	        SIGNING(test_chunks),
	        SIGNING(test_chunks_that_are_none),
	        SIGNING(test_chunks_do_not_go_again),
	        SIGNING(test_early_answer),
	        SIGNING(test_values_that_are_no_keys),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
