/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that are held because a rule asks for them, through a whole proxy: no upstream is
 * contacted before they are whole, and their memory is bounded.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"
#include "proxy/exchange/holding.h"

#define JSON "Content-Type: application/json\r\n"

static const char fine[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static int set_up_holding(void **state)
{
	static const struct world_options options = {
	        .policy = "vethguard: 1\nname: test\ninspect: 1KiB\n"
	                  "allow:\n  - {to: \"https://c.test:%1$u\", json: {a: b}}\n"
	                  "  - {to: \"https://c.test:%1$u\", paths: [/free/**]}\n",
	        .timeouts = PATIENT_TIMEOUTS,
	        .limits = USUAL_LIMITS,
	        .send_bytes = 8192};

	(void)state;
	world_open(&w, &options);
	return 0;
}
#define HOLDING(name) cmocka_unit_test_setup_teardown(name, set_up_holding, tear_down)

static void leave(struct peer *c, struct peer *o)
{
	hang_up(c, false);
	if (o)
		hang_up(o, false);
	pump(&w, 5);
	assert_int_equal(w.proxy->body_held, 0);
}

static void test_held(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "POST /x", "c.test", JSON "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n");
	expect_head(c, "HTTP/1.1 100 ");
	say(c, "8\r\n{\"a\":\"b\"\r\n");
	UNTIL(&w, w.proxy->body_held == 8);
	assert_int_equal(w.proxy->upstream_count, 0);
	say(c, "1\r\n}\r\n0\r\nX-T: y\r\n\r\n");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	assert_true(head_has(o, "content-length: 9\r\n"));
	assert_false(head_has(o, "expect"));
	expect(o, "{\"a\":\"b\"}");
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_out, 9);
	leave(c, o);
}

static void refused(const char *fields, const char *body, const char *head)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	ask(c, "POST /x", "c.test", fields);
	say(c, body);
	expect_head(c, head);
	assert_int_equal(w.proxy->upstream_count, 0);
	leave(c, NULL);
}

static void test_refused(void **state)
{
	(void)state;
	refused(JSON "Content-Length: 9\r\n", "{\"a\":\"c\"}", "HTTP/1.1 403 ");
	refused(JSON "Content-Length: 17\r\n", "{\"a\":\"b\",\"a\":\"b\"}", "HTTP/1.1 403 ");
	refused("Content-Length: 9\r\n", "{\"a\":\"b\"}", "HTTP/1.1 403 ");
	refused(JSON "Content-Encoding: gzip\r\nContent-Length: 9\r\n", "{\"a\":\"b\"}",
	        "HTTP/1.1 403 ");
	refused(JSON "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "HTTP/1.1 403 ");
	refused(JSON "Content-Length: 1025\r\n", "", "HTTP/1.1 413 ");
	refused(JSON "Content-Length: 1025\r\nExpect: 100-continue\r\n", "", "HTTP/1.1 413 ");
}

static void test_client_leaves_while_held(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	ask(c, "POST /x", "c.test", JSON "Content-Length: 9\r\n");
	say(c, "{\"a\"");
	UNTIL(&w, w.proxy->body_held == 4);
	hang_up(c, false);
	UNTIL(&w, find_event(&w, EVENT_HTTP));
	UNTIL(&w, w.proxy->body_held == 0);
	assert_int_equal(w.proxy->upstream_count, 0);
}

static void test_too_much_is_held(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	ask(c, "POST /x", "c.test", JSON "Content-Length: 9\r\n");
	pump(&w, 5);
	w.proxy->body_held += HOLDING_ALL_MAX - 2;
	say(c, "{\"a\":");
	expect_head(c, "HTTP/1.1 503 ");
	w.proxy->body_held -= HOLDING_ALL_MAX - 2;
	leave(c, NULL);
}

/* A rule that decides whatever the body says: the body passes as it comes. */
static void test_not_held(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "POST /free/x", "c.test", "Content-Length: 2000\r\n");
	say(c, "abc");
	o = origin(&w, true);
	expect_head(o, "POST /free/x ");
	expect(o, "abc");
	assert_int_equal(w.proxy->body_held, 0);
	leave(c, o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        HOLDING(test_held),
	        HOLDING(test_refused),
	        HOLDING(test_client_leaves_while_held),
	        HOLDING(test_too_much_is_held),
	        HOLDING(test_not_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
