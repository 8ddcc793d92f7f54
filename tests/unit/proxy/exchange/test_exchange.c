/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and responses through a real proxy: framing both ways, origins that lie, retries, what
 * is recorded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"

static const struct event *last_request(void)
{
	const struct event *e = find_event(&w, EVENT_HTTP);

	assert_non_null(e);
	return e;
}

static void test_keep_alive_and_the_pool(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = NULL;

	(void)state;
	for (int i = 0; i < 3; i++) {
		ask(c, "GET /x?q=1", "a.test",
		        "X-One: 1\r\nConnection: x-gone\r\nX-Gone: 1\r\nUpgrade: h2c\r\n");
		if (!o)
			o = origin(&w, true);
		expect_head(o, "GET /x?q=1 HTTP/1.1\r\n");
		assert_true(head_has(o, "\r\nX-One: 1\r\n"));
		assert_false(head_has(o, "x-gone"));
		assert_false(head_has(o, "upgrade"));
		assert_false(head_has(o, "via") || head_has(o, "forwarded"));
		say(o, "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nX-Two: "
		       "2\r\n\r\nok");
		expect_head(c, "HTTP/1.1 200 Fine\r\n");
		assert_true(head_has(c, "\r\nX-Two: 2\r\n"));
		assert_false(head_has(c, "keep-alive"));
		expect(c, "ok");
	}
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
	assert_int_equal(last_request()->status, 200);
	assert_int_equal(last_request()->bytes_in, 2);
	assert_true(slice_equals(last_request()->target, SLICE("/x?q=1")));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_pipelining_is_judged_one_by_one(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;
	char text[1000];

	(void)state;
	snprintf(text, sizeof(text),
	        "GET /1 HTTP/1.1\r\nHost: a.test:%1$u\r\n\r\nDELETE /2 HTTP/1.1\r\nHost: "
	        "a.test:%1$u\r\n\r\n"
	        "POST /3 HTTP/1.1\r\nHost: a.test:%1$u\r\nContent-Length: 3\r\n\r\nabc"
	        "GET /4 HTTP/1.1\r\nHost: other.test\r\n\r\n",
	        w.port);
	say(c, text);
	o = origin(&w, true);
	expect_head(o, "GET /1 ");
	say(o, "HTTP/1.1 204 No\r\n\r\n");
	expect_head(c, "HTTP/1.1 204 ");
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, has(c, "never", 5));
	buf_consume(&c->in, c->in.len);
	expect_head(o, "POST /3 ");
	expect(o, "abc");
	say(o, "HTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 201 ");
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, count_events(&w, EVENT_HTTP) == 4);
	assert_non_null(find_finding(&w, EVENT_FINDING_BINDING_MISMATCH));
	assert_int_equal(last_request()->cause, EVENT_CAUSE_BINDING);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_an_empty_body_keeps_the_connection(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		ask(c, "POST /x", "a.test", "Content-Length: 0\r\n");
		if (!o)
			o = origin(&w, true);
		expect_head(o, "POST /x ");
		assert_true(head_has(o, "content-length: 0\r\n"));
		say(o, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
		expect_head(c, "HTTP/1.1 200 ");
		expect(c, "x");
		pump(&w, 20);
		assert_false(c->eof);
	}
	hang_up(c, false);
	hang_up(o, false);
}

static void test_chunked_both_ways_byte_by_byte(void **state)
{
	static const char body[] =
	        "3;x=y\r\nabc\r\n5\r\ndefgh\r\n0\r\nX-Sum: 1\r\nContent-Length: 3\r\n\r\n";
	static const char answer[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	                             "4\r\nWiki\r\n0\r\nX-End: 1\r\nSet-Cookie: a\r\n\r\n";
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "POST /x", "a.test", "Transfer-Encoding: chunked\r\n");
	for (size_t i = 0; i < sizeof(body) - 1; i++)
		say_n(c, body + i, 1);
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	assert_true(head_has(o, "transfer-encoding: chunked"));
	UNTIL(&w, has(o, "X-Sum: 1\r\n\r\n", 12));
	assert_false(has(o, "Content-Length", 14));
	assert_false(has(o, "x=y", 3));
	for (size_t i = 0; i < sizeof(answer) - 1; i++) {
		say_n(o, answer + i, 1);
		pump(&w, 0);
	}
	expect_head(c, "HTTP/1.1 200 OK\r\n");
	UNTIL(&w, c->in.len >= 5 && memcmp(buf_bytes(&c->in) + c->in.len - 4, "\r\n\r\n", 4) == 0);
	assert_true(has(c, "0\r\nX-End: 1\r\n\r\n", 15));
	assert_int_equal(last_request()->bytes_out, 8);
	assert_int_equal(last_request()->bytes_in, 4);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_interim_responses_and_expect(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "PUT /x", "a.test", "Expect: 100-continue\r\nContent-Length: 2\r\n");
	o = origin(&w, true);
	expect_head(o, "PUT /x ");
	assert_true(head_has(o, "expect: 100-continue"));
	say(o, "HTTP/1.1 100 Continue\r\n\r\n");
	expect_head(c, "HTTP/1.1 100 ");
	assert_false(head_has(c, "connection"));
	say(c, "hi");
	expect(o, "hi");
	say(o, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
	       "0\r\n\r\n");
	expect_head(c, "HTTP/1.1 103 ");
	assert_true(head_has(c, "link: </a>"));
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_no_continue_for_a_denied_request(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	ask(c, "DELETE /x", "a.test", "Expect: 100-continue\r\nContent-Length: 2\r\n");
	expect_head(c, "HTTP/1.1 403 ");
	assert_true(head_has(c, "connection: close"));
	assert_false(origin_is_asked(&w));
	UNTIL(&w, c->eof);
	hang_up(c, false);
}

static void test_bodyless_responses(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "HEAD /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "HEAD /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	assert_true(head_has(c, "content-length: 77"));
	ask(c, "GET /x", "a.test", "If-None-Match: x\r\n");
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
	expect_head(c, "HTTP/1.1 304 ");
	ask(c, "GET /x", "a.test", "");
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 204 ");
	assert_false(head_has(c, "content-length"));
	ask(c, "GET /x", "a.test", "");
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
	socket_end(&o->socket);
	expect_head(c, "HTTP/1.1 200 ");
	assert_true(head_has(c, "transfer-encoding: chunked"));
	expect(c, "d\r\nuntil the end\r\n0\r\n\r\n");
	assert_int_equal(count_events(&w, EVENT_HTTP), 4);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_an_old_client(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;
	char text[200];

	(void)state;
	snprintf(text, sizeof(text), "GET /x HTTP/1.0\r\nHost: a.test:%u\r\n\r\n", w.port);
	say(c, text);
	o = origin(&w, true);
	expect_head(o, "GET /x HTTP/1.1");
	say(o, "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
	       "chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	assert_false(head_has(c, "transfer-encoding"));
	expect(c, "hi");
	expect_end(c);
	assert_int_equal(last_request()->http_version, 10);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_an_early_answer_ends_the_connection(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 1000\r\n");
	say(c, "part");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	expect(o, "part");
	say(o, "HTTP/1.1 413 Too much\r\nContent-Length: 2\r\n\r\nno");
	expect_head(c, "HTTP/1.1 413 ");
	assert_true(head_has(c, "connection: close"));
	expect(c, "no");
	expect_end(c);
	UNTIL(&w, o->eof || o->failed); /* half a request: no other may follow on it */
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	hang_up(c, false);
	hang_up(o, false);
}

/* The origin has answered and closed with bytes unread, and the reset is found by sending more of
 * the request, before the answer was looked at. */
static void test_an_answer_before_a_reset(void **state)
{
	static const struct {
		const char *answer, *status, *body;
		bool whole;
	} cases[] = {
	        {"HTTP/1.1 413 Too much\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 413 ", "no",
	                true},
	        {"HTTP/1.1 413 Too much\r\nTransfer-Encoding: chunked\r\n\r\n"
	         "2\r\nno\r\n0\r\n\r\n",
	                "HTTP/1.1 413 ", "2\r\nno\r\n0\r\n\r\n", true},
	        {"HTTP/1.1 413 Too much\r\nContent-Length: 3\r\n\r\nno", "HTTP/1.1 413 ", "no",
	                false},
	        {"HTTP/1.1 413 Too much\r\n\r\nno", "HTTP/1.1 413 ", "2\r\nno\r\n", false},
	        {"HTTP/1.1 413 Too", "HTTP/1.1 502 ", "{", true},
	        {"", "HTTP/1.1 502 ", "{", true},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		bool tls = i & 1;
		const char *name = tls ? "a.test" : "p.test";
		struct peer *c = client(&w, tls ? NAME_A : NAME_P, tls ? name : NULL), *o;

		ask(c, "POST /x", name, "Content-Length: 1000\r\n");
		say(c, "part");
		o = origin(&w, tls);
		expect_head(o, "POST /x ");
		expect(o, "part");
		say_and_reset(o, cases[i / 2].answer);
		say(c, "more");
		only_the_client_is_ready();
		expect_head(c, cases[i / 2].status);
		expect(c, cases[i / 2].body);
		if (cases[i / 2].whole)
			UNTIL(&w, c->eof);
		else
			expect_reset(c);
		UNTIL(&w, count_events(&w, EVENT_HTTP) == i + 1);
		hang_up(c, false);
	}
}

static void test_origins_that_lie(void **state)
{
	static const char *const lies[] = {
	        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
	        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
	        "chunked\r\n\r\n0\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	        "HTTP/1.1 200 OK\r\n X: a\r\n\r\n",
	        "HTTP/1.1 200 OK\nX: a\n\n",
	        "HTTP/1.1 200 O\x01K\r\n\r\n",
	        "HTTP/1.1 99 Low\r\n\r\n",
	        "HTTP/1.1 000 Low\r\n\r\n",
	        "HTTP/2 200 OK\r\n\r\n",
	        "HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
	        "SSH-2.0-x\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct peer *c = client(&w, NAME_A, "a.test"), *o;

		ask(c, "POST /x", "a.test", "Content-Length: 0\r\n");
		o = origin(&w, true);
		expect_head(o, "POST /x ");
		say(o, lies[i]);
		take_head(c);
		if (strncmp(c->head, "HTTP/1.1 502 ", 13) != 0)
			fail_msg("taken: %s", lies[i]);
		assert_int_equal(last_request()->cause, EVENT_CAUSE_UPSTREAM);
		assert_int_equal(count_events(&w, EVENT_HTTP), i + 1);
		UNTIL(&w, o->eof || o->failed);
		hang_up(c, false);
		hang_up(o, false);
	}
}

static void test_a_cut_response_is_cut_visibly(void **state)
{
	static const char *const parts[] = {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct peer *c = client(&w, NAME_A, "a.test"), *o;

		ask(c, "GET /x", "a.test", "");
		o = origin(&w, true);
		expect_head(o, "GET /x ");
		say(o, parts[i]);
		socket_end(&o->socket);
		expect_reset(c);
		UNTIL(&w, count_events(&w, EVENT_HTTP) == i + 1);
		assert_int_equal(last_request()->cause, EVENT_CAUSE_UPSTREAM);
		hang_up(c, false);
		hang_up(o, false);
	}
}

/* Without close_notify nobody can tell whether a body that ends with the connection is whole. */
static void test_truncation_is_no_end(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\n\r\nsome");
	expect_head(c, "HTTP/1.1 200 ");
	shutdown(o->socket.fd, SHUT_WR);
	expect_reset(c);
	hang_up(c, false);
	hang_up(o, false);
}

/* Makes a pooled connection and returns its origin's end. */
static struct peer *pooled(struct peer *c, const char *name)
{
	struct peer *o;

	ask(c, "GET /first", name, "");
	o = origin(&w, true);
	expect_head(o, "GET /first ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	return o;
}

static void test_a_dead_pooled_connection_is_tried_again_once(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(c, "a.test"), *o2;

	(void)state;
	ask(c, "GET /x", "a.test", "");
	expect_head(o, "GET /x ");
	hang_up(o, true);
	o2 = origin(&w, true);
	expect_head(o2, "GET /x ");
	hang_up(o2, true);
	expect_head(c, "HTTP/1.1 502 ");
	assert_false(origin_is_asked(&w));
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	hang_up(c, false);
}

static void test_what_is_not_idempotent_is_not_tried_again(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(c, "a.test");

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 0\r\n");
	expect_head(o, "POST /x ");
	hang_up(o, false);
	expect_head(c, "HTTP/1.1 502 ");
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

static void test_unasked_bytes_end_a_pooled_connection(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(c, "a.test"), *o2;

	(void)state;
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
	UNTIL(&w, o->eof || o->failed);
	ask(c, "GET /x", "a.test", "");
	o2 = origin(&w, true);
	expect_head(o2, "GET /x ");
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngoodHTTP/1.1 200 "
	        "OK\r\nContent-Length: 4\r\n\r\nevil");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "good");
	UNTIL(&w, o2->eof || o2->failed);
	hang_up(c, false);
	hang_up(o, false);
	hang_up(o2, false);
}

/* The same on a connection that is reset before a byte of the request has left. */
static void test_unasked_bytes_before_a_reset(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(c, "a.test"), *o2;

	(void)state;
	say_and_reset(o, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
	ask(c, "GET /x", "a.test", "");
	only_the_client_is_ready();
	o2 = origin(&w, true);
	expect_head(o2, "GET /x ");
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "good");
	hang_up(c, false);
	hang_up(o2, false);
}

/* Behind a response that fills what is read at once to the last byte: no event tells of them. */
static void test_unasked_bytes_behind_a_full_read(void **state)
{
	struct peer *c = client(&w, NAME_P, NULL), *o, *o2;
	static char text[SOCKET_CHUNK + 100];
	int n;

	(void)state;
	ask(c, "GET /x", "p.test", "");
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n",
	        SOCKET_CHUNK - 42);
	assert_int_equal(n, 42);
	memset(text + n, 'a', SOCKET_CHUNK - 42);
	strcpy(text + SOCKET_CHUNK, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
	say_n(o, text, SOCKET_CHUNK + strlen(text + SOCKET_CHUNK));
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, c->in.len == SOCKET_CHUNK - 42);
	buf_consume(&c->in, c->in.len);
	ask(c, "GET /y", "p.test", "");
	o2 = origin(&w, false);
	expect_head(o2, "GET /y ");
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "good");
	hang_up(c, false);
	hang_up(o, false);
	hang_up(o2, false);
}

/* They come at the same time as the next request, and the loop hears of that first. */
static void test_unasked_bytes_beside_a_request(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(c, "a.test"), *o2;

	(void)state;
	ask(c, "GET /x", "a.test", "");
	say_at_once(o, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
	only_the_client_is_ready();
	o2 = origin(&w, true);
	expect_head(o2, "GET /x ");
	say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "good");
	hang_up(c, false);
	hang_up(o, false);
	hang_up(o2, false);
}

static void test_the_upstreams_wish_to_close(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	assert_false(head_has(c, "connection"));
	UNTIL(&w, o->eof || o->failed);
	hang_up(o, false);
	o = pooled(c, "a.test");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_trace_is_refused(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	ask(c, "TRACE /x", "a.test", "");
	expect_head(c, "HTTP/1.1 405 ");
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

/* What an unreadable head leaves behind does not belong to another request. */
static void test_a_bad_head_shows_nothing_of_an_earlier_request(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(c, "a.test");

	(void)state;
	ask(c, "GET /very-own", "a.test", "");
	expect_head(o, "GET /very-own ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	hang_up(c, false);
	c = client(&w, NAME_A, "a.test");
	say(c, "GET / HTTP/1.1\nHost: a.test\n\n");
	expect_head(c, "HTTP/1.1 400 ");
	UNTIL(&w, c->eof);
	assert_false(has(c, "very-own", 8));
	assert_int_equal(last_request()->status, 400);
	assert_int_equal(last_request()->method.n, 0);
	assert_int_equal(last_request()->target.n, 0);
	assert_non_null(find_finding(&w, EVENT_FINDING_SMUGGLING));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_body_of_a_request_that_breaks_the_protocol(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "POST /x", "a.test", "Transfer-Encoding: chunked\r\n");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	say(c, "zz\r\n");
	UNTIL(&w, (c->eof || c->failed) && (o->eof || o->failed));
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	assert_int_equal(last_request()->cause, EVENT_CAUSE_CLIENT);
	hang_up(c, false);
	hang_up(o, false);
}

/* Much of a response waits in the proxy when the upstream ends the connection. */
static void long_response(bool half_close, const char *fields)
{
	const size_t n = 400000;
	struct peer *c = client(&w, NAME_P, NULL), *o;
	uint8_t *big = calloc(1, n);

	c->deaf = true;
	ask(c, "GET /x", "p.test", fields);
	if (half_close)
		shutdown(c->socket.fd, SHUT_WR);
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n");
	say_n(o, big, n);
	socket_end(&o->socket);
	take_slowly(c);
	assert_true(c->eof);
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(c->in.len, n);
	assert_int_equal(last_request()->bytes_in, n);
	free(big);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_client_that_half_closes_gets_all(void **state)
{
	(void)state;
	long_response(true, "");
}

static void test_a_slow_client_gets_all(void **state)
{
	(void)state;
	long_response(false, "Connection: close\r\n");
}

static void test_websocket(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /ws", "a.test",
	        "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
	        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
	o = origin(&w, true);
	expect_head(o, "GET /ws ");
	assert_true(head_has(o, "connection: upgrade\r\nupgrade: websocket\r\n"));
	say(o, SWITCHED "\x81\x02hi");
	expect_head(c, "HTTP/1.1 101 ");
	assert_true(head_has(c, "upgrade: websocket") && head_has(c, "sec-websocket-accept: s3p"));
	expect(c, "\x81\x02hi");
	say(c, "\x81\x82....up");
	expect(o, "\x81\x82....up");
	for (int i = 0; i < 4;
	        i++) { /* only one side talks, for longer than a silent client is given */
		pump(&w, 200);
		say(o, "\x81\x01z");
		expect(c, "\x81\x01z");
	}
	assert_int_equal(count_events(&w, EVENT_HTTP), 0);
	socket_end(&o->socket);
	UNTIL(&w, c->eof);
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	assert_int_equal(last_request()->status, 101);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_other_upgrades_are_taken_out(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /x", "a.test",
	        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	assert_false(head_has(o, "upgrade") || head_has(o, "http2"));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_gone_client_leaves_one_record(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	hang_up(c, true);
	UNTIL(&w, o->eof || o->failed);
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	assert_int_equal(last_request()->cause, EVENT_CAUSE_CLIENT);
	hang_up(o, false);
	pump(&w, 5);
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
}

/* A client that first ends its side, and then closes, is noticed too. */
static void test_a_half_closed_client_that_goes(void **state)
{
	struct peer *c = client(&w, NAME_P, NULL), *o;

	(void)state;
	ask(c, "GET /x", "p.test", "");
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	shutdown(c->socket.fd, SHUT_WR);
	pump(&w, 10);
	assert_int_equal(count_events(&w, EVENT_HTTP), 0);
	hang_up(c, true);
	UNTIL(&w, o->eof || o->failed);
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	hang_up(o, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_keep_alive_and_the_pool),
	        TEST(test_pipelining_is_judged_one_by_one),
	        TEST(test_an_empty_body_keeps_the_connection),
	        TEST(test_chunked_both_ways_byte_by_byte),
	        TEST(test_interim_responses_and_expect),
	        TEST(test_no_continue_for_a_denied_request),
	        TEST(test_bodyless_responses),
	        TEST(test_an_old_client),
	        TEST(test_an_early_answer_ends_the_connection),
	        TEST(test_an_answer_before_a_reset),
	        TEST(test_origins_that_lie),
	        TEST(test_a_cut_response_is_cut_visibly),
	        TEST(test_truncation_is_no_end),
	        TEST(test_a_dead_pooled_connection_is_tried_again_once),
	        TEST(test_what_is_not_idempotent_is_not_tried_again),
	        TEST(test_unasked_bytes_end_a_pooled_connection),
	        TEST(test_unasked_bytes_behind_a_full_read),
	        TEST(test_unasked_bytes_beside_a_request),
	        TEST(test_unasked_bytes_before_a_reset),
	        TEST(test_the_upstreams_wish_to_close),
	        TEST(test_trace_is_refused),
	        TEST(test_a_bad_head_shows_nothing_of_an_earlier_request),
	        TEST(test_body_of_a_request_that_breaks_the_protocol),
	        TEST(test_a_client_that_half_closes_gets_all),
	        TEST(test_a_slow_client_gets_all),
	        TEST(test_websocket),
	        TEST(test_other_upgrades_are_taken_out),
	        TEST(test_a_gone_client_leaves_one_record),
	        TEST(test_a_half_closed_client_that_goes),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
