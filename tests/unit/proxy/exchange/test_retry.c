/* SPDX-License-Identifier: Apache-2.0 */
/* When a request goes out again, with what, and which requests never meet a connection that may be
 * about to end. HTTP/2's refusals are in upstream/test_http2.c and upstream/test_http2_streams.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_origin.h"

static const char fine[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/* A connection in the pool; the client that asked over it goes. */
static struct peer *pooled(void)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	ask(c, "GET /first", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /first ");
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, w.proxy->idle_count == 1);
	hang_up(c, false);
	return o;
}

/* The idle connection has been so for that long, however slow the machine is. */
static void idle_for(int64_t ms)
{
	struct upstream_conn *c = NULL;

	for (struct list *l = w.proxy->upstreams.next; l != &w.proxy->upstreams; l = l->next)
		if (container_of(l, struct upstream_conn, all)->state == UPSTREAM_CONN_IDLE)
			c = container_of(l, struct upstream_conn, all);
	assert_non_null(c);
	c->idle_since_ms = loop_now_ms(w.loop) - ms;
}

/* One that has just been used; its client stays, and has been answered. */
static struct peer *pooled_for(struct peer *c)
{
	struct peer *o;

	ask(c, "GET /first", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /first ");
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, w.proxy->idle_count == 1);
	idle_for(-PATIENCE_MS);
	return o;
}

static void answered(struct peer *c, struct peer *o)
{
	say(o, fine);
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(w.proxy->kept, 0);
}

/* The origin whose connection the next request uses. */
static void expect_fresh(struct peer *c, const char *line, const char *fields, const char *body)
{
	size_t idle = w.proxy->idle_count;
	struct peer *o;

	ask(c, line, "a.test", fields);
	say(c, body);
	o = origin(&w, true);
	expect_head(o, line);
	if (*body) /* a connection that is answered before that is not kept */
		expect(o, body);
	answered(c, o);
	UNTIL(&w, w.proxy->idle_count == idle + 1);
	hang_up(o, false);
	UNTIL(&w, w.proxy->idle_count == idle); /* else the next request may go there */
}

static void test_a_clients_first_request_takes_no_chances(void **state)
{
	static const struct {
		const char *line, *fields, *body;
	} risky[] = {
	        {"POST /x", "Content-Length: 3\r\n", "abc"},
	        {"POST /x", "Content-Length: 0\r\n", ""},
	        {"POST /x", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"},
	        {"PUT /x", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"},
	};
	struct peer *o = pooled(), *c;

	(void)state;
	for (size_t i = 0; i < sizeof(risky) / sizeof(*risky); i++) {
		c = client(&w, NAME_A, "a.test");
		expect_fresh(c, risky[i].line, risky[i].fields, risky[i].body);
		hang_up(c, false);
	}
	c = client(&w, NAME_A, "a.test");
	ask(c, "PUT /x", "a.test", "Content-Length: 3\r\n");
	say(c, "abc");
	expect_head(o, "PUT /x "); /* it could be sent again */
	expect(o, "abc");
	assert_int_equal(w.proxy->kept, 3);
	answered(c, o);
	hang_up(c, false);
	hang_up(o, false);
}

/* The bound is on the length that is told. */
static void test_a_body_that_is_too_long_to_keep(void **state)
{
	static const char *const lengths[] = {"65536", "65537"};
	struct peer *o = pooled();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct peer *c = client(&w, NAME_A, "a.test"), *fresh;
		char fields[64];

		snprintf(fields, sizeof(fields), "Content-Length: %s\r\n", lengths[i]);
		ask(c, "PUT /x", "a.test", fields);
		fresh = i ? origin(&w, true) : o;
		expect_head(fresh, "PUT /x ");
		hang_up(c, true);
		UNTIL(&w, (peer_read(fresh), fresh->eof || fresh->failed));
		hang_up(fresh, false);
	}
}

static void test_later_ones_take_what_was_just_used(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled_for(c);

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 3\r\n");
	say(c, "abc");
	expect_head(o, "POST /x ");
	expect(o, "abc");
	answered(c, o);
	UNTIL(&w, w.proxy->idle_count == 1);
	idle_for(EXCHANGE_RISK_MS);
	expect_fresh(c, "POST /y", "Content-Length: 3\r\n", "abc");
	ask(c, "GET /z", "a.test", "");
	expect_head(o, "GET /z ");
	answered(c, o);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_body_goes_out_again(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(), *o2;

	(void)state;
	ask(c, "PUT /x", "a.test", "Content-Length: 9\r\n");
	say(c, "some");
	expect_head(o, "PUT /x ");
	expect(o, "some");
	hang_up(o, true);
	o2 = origin(&w, true);
	expect_head(o2, "PUT /x ");
	assert_true(head_has(o2, "\r\ncontent-length: 9\r\n"));
	expect(o2, "some");
	say(c, " more");
	expect(o2, " more");
	answered(c, o2);
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_out, 9);
	hang_up(c, false);
	hang_up(o2, false);
}

static void test_chunks_and_trailers_go_out_again(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled_for(c), *o2;

	(void)state;
	ask(c, "PUT /x", "a.test", "Transfer-Encoding: chunked\r\n");
	say(c, "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 7\r\n\r\n");
	expect_head(o, "PUT /x ");
	UNTIL(&w, has(o, "X-Sum: 7\r\n\r\n", 12));
	hang_up(o, false);
	o2 = origin(&w, true);
	expect_head(o2, "PUT /x ");
	expect(o2, "5\r\nabcde\r\n0\r\nX-Sum: 7\r\n\r\n");
	answered(c, o2);
	hang_up(c, false);
	hang_up(o2, false);
}

/* Nobody knows whether the request was carried out. */
static void test_once_where_it_may_have_been_done(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled(), *o2;

	(void)state;
	ask(c, "PUT /x", "a.test", "Content-Length: 3\r\n");
	say(c, "abc");
	expect_head(o, "PUT /x ");
	hang_up(o, true);
	o2 = origin(&w, true);
	expect_head(o2, "PUT /x ");
	expect(o2, "abc");
	hang_up(o2, true);
	expect_head(c, "HTTP/1.1 502 ");
	assert_false(origin_is_asked(&w));
	assert_int_equal(w.proxy->kept, 0);
	hang_up(c, false);
}

static void test_never_after_a_byte_of_a_response(void **state)
{
	static const char *const beginnings[] = {
	        "H", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++) {
		struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled();

		ask(c, "PUT /x", "a.test", "Content-Length: 3\r\n");
		say(c, "abc");
		expect_head(o, "PUT /x ");
		expect(o, "abc");
		say(o, beginnings[i]);
		hang_up(o, false);
		if (i == 1)
			expect_head(c, "HTTP/1.1 100 ");
		expect_head(c, "HTTP/1.1 502 ");
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

/* The reset comes between the choice of the connection and the first byte. */
static void test_before_a_byte_has_left_any_method_goes_again(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o = pooled_for(c), *o2;
	struct client *proxied = container_of(w.proxy->clients.next, struct client, list);
	struct upstream_conn *conn =
	        container_of(w.proxy->upstreams.next, struct upstream_conn, all);
	char text[200];

	(void)state;
	snprintf(text, sizeof(text),
	        "POST /x HTTP/1.1\r\nHost: a.test:%u\r\nContent-Length: 3\r\n\r\nabc", w.port);
	say_at_once(c, text);
	socket_flush(&c->socket);
	usleep(20000);
	proxied->socket.io.on_ready(&proxied->socket.io, LOOP_READ);
	assert_int_equal(w.proxy->idle_count, 0);
	assert_int_equal(w.proxy->kept, 3);
	hang_up(o, true);
	usleep(20000);
	socket_flush(&conn->socket);
	assert_true(conn->socket.broken);
	o2 = origin(&w, true);
	expect_head(o2, "POST /x ");
	expect(o2, "abc");
	answered(c, o2);
	hang_up(c, false);
	hang_up(o2, false);
}

/* The bodies that all requests keep together are bounded: the next request is sent once. */
static void test_memory_for_all_is_bounded(void **state)
{
	struct h2 *c = enliven(h2_client()), *o;
	struct upload part = {.ended = true};
	int32_t id;

	(void)state;
	buf_init(&part.bytes, 100);
	buf_append(&part.bytes, "some", 4);
	w.proxy->kept = EXCHANGE_KEPT_ALL_MAX - 3;
	id = h2_ask_with(c, "POST", "a.test", "/x", NULL, 0, &part);
	o = h2_origin();
	request_of(o, 0);
	ALL_UNTIL(o->answers[0]->ended);
	assert_int_equal(w.proxy->kept, EXCHANGE_KEPT_ALL_MAX - 3);
	say_goaway(o, 0, NGHTTP2_NO_ERROR);
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->code, NGHTTP2_REFUSED_STREAM);
	assert_true(nobody_dials());
	w.proxy->kept = 0;
	buf_fini(&part.bytes);
	leave(c, false);
	leave(o, false);
}

/* A client of HTTP/1 learns it by an answer. */
static void test_a_client_of_http1_is_told(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	struct h2 *o = NULL, *next;

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 3\r\n");
	say(c, "abc");
	for (unsigned i = 0; i <= EXCHANGE_RETRIES_MAX; i++) {
		next = h2_origin();
		if (o)
			leave(o, false);
		o = next;
		request_of(o, 0);
		ALL_UNTIL(body_is(o->answers[0], "abc"));
		say_goaway(o, 0, NGHTTP2_NO_ERROR);
	}
	expect_head(c, "HTTP/1.1 502 ");
	assert_true(nobody_dials());
	assert_int_equal(only(EVENT_HTTP)->status, 502);
	hang_up(c, false);
	leave(o, false);
}

/* The client gets one 100 Continue, when the request goes out. */
static void test_expect_is_answered_once(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");
	struct h2 *o, *o2;

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 3\r\nExpect: 100-continue\r\n");
	o = h2_origin();
	request_of(o, 0);
	expect_head(c, "HTTP/1.1 100 ");
	say_goaway(o, 0, NGHTTP2_NO_ERROR);
	o2 = h2_origin();
	request_of(o2, 0);
	say(c, "abc");
	ALL_UNTIL(o2->answers[0]->ended);
	assert_true(body_is(o2->answers[0], "abc"));
	respond(o2, o2->answers[0]->id);
	ALL_UNTIL(c->in.len);
	expect_head(c, "HTTP/1.1 200 ");
	hang_up(c, false);
	leave(o, false);
	leave(o2, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_clients_first_request_takes_no_chances),
	        TEST(test_a_body_that_is_too_long_to_keep),
	        TEST(test_later_ones_take_what_was_just_used),
	        TEST(test_a_body_goes_out_again),
	        TEST(test_chunks_and_trailers_go_out_again),
	        TEST(test_once_where_it_may_have_been_done),
	        TEST(test_never_after_a_byte_of_a_response),
	        TEST(test_before_a_byte_has_left_any_method_goes_again),
	        TEST(test_memory_for_all_is_bounded),
	        TEST(test_a_client_of_http1_is_told),
	        TEST(test_expect_is_answered_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
