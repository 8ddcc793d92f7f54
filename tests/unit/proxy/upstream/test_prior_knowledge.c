/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 without TLS: how requests go on to an upstream, what leaves before it has agreed, and
 * what becomes of requests if it does not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_origin.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NOT_SPOKEN "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

static struct h2 *plain_client(void)
{
	return enliven(h2_over(client(&w, NAME_P, NULL), true));
}

static int32_t ask_p(struct h2 *c, const char *method, const char *path, struct upload *up)
{
	return h2_ask_with(c, method, "p.test", path, NULL, 0, up);
}

static int32_t ask_grpc(struct h2 *c, struct upload *up)
{
	const nghttp2_nv fields[] = {
	        nv("content-type", "application/grpc+proto"), nv("te", "trailers")};

	return h2_ask_with(c, "POST", "p.test", "/x.Y/Call", fields, 2, up);
}

/* A connection without TLS; nothing but the beginning of HTTP/2 has come. */
static struct peer *greeted(void)
{
	struct peer *o;
	int fd = -1;

	ALL_UNTIL((fd = accept4(w.origin_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	o = peer_new(&w, fd);
	ALL_UNTIL(o->in.len > sizeof(PREFACE) + 8);
	run_for(20);
	assert_memory_equal(buf_bytes(&o->in), PREFACE, sizeof(PREFACE) - 1);
	for (size_t at = sizeof(PREFACE) - 1; at < o->in.len;) {
		const uint8_t *frame = buf_bytes(&o->in) + at;

		assert_true(frame[3] == NGHTTP2_SETTINGS || frame[3] == NGHTTP2_WINDOW_UPDATE);
		at += 9 + ((size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2]);
	}
	return o;
}

/* One that is asked in HTTP/1.1. */
static struct peer *asked_in_http1(const char *line)
{
	struct peer *o;
	int fd = -1;

	ALL_UNTIL((fd = accept4(w.origin_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	o = peer_new(&w, fd);
	ALL_UNTIL(o->in.len);
	expect_head(o, line);
	return o;
}

static void expect_status(struct h2 *c, int32_t id, int status)
{
	ALL_UNTIL(answer(c, id)->ended || answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, status);
}

static void test_it_goes_on_as_it_came(void **state)
{
	struct h2 *c = plain_client(), *o;
	struct upload up = {0};
	int32_t id, second;

	(void)state;
	buf_init(&up.bytes, 100);
	buf_append(&up.bytes, "one", 3);
	id = ask_grpc(c, &up);
	o = h2_origin_over(greeted(), false);
	request_of(o, 0);
	assert_non_null(strstr(o->answers[0]->fields, ":scheme: http\n"));
	assert_non_null(strstr(o->answers[0]->fields, "te: trailers\n"));
	ALL_UNTIL(body_is(o->answers[0], "one"));
	/* Both ways at the same time. */
	struct upload down = {
	        .trailers = (const nghttp2_nv[]){nv("grpc-status", "0")}, .trailer_count = 1};
	const nghttp2_nv fields[] = {nv(":status", "200"), nv("content-type", "application/grpc")};
	buf_init(&down.bytes, 100);
	buf_append(&down.bytes, "uno", 3);
	respond_with(o, o->answers[0]->id, fields, 2, &down);
	ALL_UNTIL(body_is(answer(c, id), "uno"));
	buf_append(&up.bytes, "two", 3);
	up.ended = true;
	nghttp2_session_resume_data(c->session, id);
	ALL_UNTIL(body_is(o->answers[0], "onetwo") && o->answers[0]->ended);
	buf_append(&down.bytes, "due", 3);
	down.ended = true;
	nghttp2_session_resume_data(o->session, o->answers[0]->id);
	expect_status(c, id, 200);
	assert_true(body_is(answer(c, id), "unodue"));
	assert_non_null(strstr(answer(c, id)->fields, "--\ngrpc-status: 0\n"));
	second = ask_p(c, "GET", "/second", NULL);
	assert_true(asked_for(request_of(o, 1), "/second"));
	respond(o, o->answers[1]->id);
	expect_status(c, second, 200);
	assert_true(nobody_dials());
	buf_fini(&up.bytes);
	buf_fini(&down.bytes);
	leave(c, false);
	leave(o, false);
}

/* A hundred do not make a hundred connections. */
static void test_others_wait_for_the_first(void **state)
{
	struct h2 *c = plain_client(), *o;
	int32_t ids[20];

	(void)state;
	for (size_t i = 0; i < 20; i++)
		ids[i] = ask_p(c, "GET", "/x", NULL);
	o = h2_origin_over(greeted(), false);
	request_of(o, 19);
	for (size_t i = 0; i < 20; i++)
		respond(o, o->answers[i]->id);
	for (size_t i = 0; i < 20; i++)
		expect_status(c, ids[i], 200);
	assert_true(nobody_dials());
	leave(c, false);
	leave(o, false);
}

/* Nothing is lost, and the next one is not tried in vain. */
static void test_an_origin_that_speaks_http1_only(void **state)
{
	static const char *const words[] = {
	        NOT_SPOKEN, "HTTP/1.1 505 No\r\n\r\n", "\0\0\0\x6\0\0\0\0\0", "220 smtp ready\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct upload up = {.ended = true};
		struct peer *o, *o1;
		struct h2 *c;
		int32_t id;

		tear_down(NULL);
		set_up(NULL);
		c = plain_client();
		buf_init(&up.bytes, 100);
		buf_append(&up.bytes, "body", 4);
		id = ask_p(c, "POST", "/x", &up);
		o = greeted();
		say_n(o, words[i], i == 2 ? 9 : strlen(words[i]));
		o1 = asked_in_http1("POST /x HTTP/1.1\r\n");
		expect(o1, "4\r\nbody\r\n0\r\n\r\n");
		say(o1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		expect_status(c, id, 200);
		assert_true(body_is(answer(c, id), "ok"));
		id = ask_p(c, "GET", "/y", NULL);
		ALL_UNTIL(o1->in.len);
		expect_head(o1, "GET /y ");
		say(o1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		expect_status(c, id, 200);
		assert_int_equal(count_events(&w, EVENT_HTTP), 2);
		buf_fini(&up.bytes);
		leave(c, false);
		hang_up(o, false);
		hang_up(o1, false);
	}
}

/* All that waited for its answer. */
static void test_all_that_waited_go_on(void **state)
{
	struct h2 *c = plain_client();
	struct peer *o, *o1[5];
	int32_t ids[5];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		ids[i] = ask_p(c, "GET", "/x", NULL);
	o = greeted();
	say(o, NOT_SPOKEN);
	for (size_t i = 0; i < 5; i++)
		o1[i] = asked_in_http1("GET /x ");
	for (size_t i = 0; i < 5; i++)
		say(o1[i], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	for (size_t i = 0; i < 5; i++)
		expect_status(c, ids[i], 200);
	leave(c, false);
	hang_up(o, false);
	for (size_t i = 0; i < 5; i++)
		hang_up(o1[i], false);
}

/* An upstream that closes may have another reason: the next request offers HTTP/2 again. */
static void test_an_origin_that_closes(void **state)
{
	struct h2 *c = plain_client(), *o2;
	struct peer *o, *o1;
	int32_t id;

	(void)state;
	for (int i = 0; i < 2; i++) {
		id = ask_p(c, "GET", "/x", NULL);
		o = greeted();
		hang_up(o, i);
		o1 = asked_in_http1("GET /x ");
		say(o1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
		expect_status(c, id, 200);
		hang_up(o1, false);
	}
	id = ask_p(c, "GET", "/x", NULL);
	o2 = h2_origin_over(greeted(), false);
	request_of(o2, 0);
	respond(o2, o2->answers[0]->id);
	expect_status(c, id, 200);
	leave(c, false);
	leave(o2, false);
}

static void test_a_silent_origin(void **state)
{
	struct h2 *c = plain_client();
	struct peer *o, *o1;
	int64_t began = clock_monotonic_ms();
	int32_t id = ask_p(c, "GET", "/x", NULL);

	(void)state;
	o = greeted();
	o1 = asked_in_http1("GET /x ");
	assert_in_range(clock_monotonic_ms() - began, PRIOR_MS - 50, PATIENCE_MS);
	say(o1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_status(c, id, 200);
	leave(c, false);
	hang_up(o, false);
	hang_up(o1, false);
}

/* A call is told why, in its own words, and tried again with the next one. */
static void test_grpc_needs_it(void **state)
{
	struct h2 *c = plain_client();

	(void)state;
	for (int i = 0; i < 2; i++) {
		int32_t id = ask_grpc(c, NULL);
		struct peer *o = greeted();

		say(o, NOT_SPOKEN);
		expect_status(c, id, 200);
		assert_non_null(strstr(answer(c, id)->fields, "grpc-status: 14\n"));
		assert_non_null(strstr(answer(c, id)->fields, "does not speak HTTP/2 without TLS"));
		assert_true(nobody_dials());
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_UPSTREAM);
		hang_up(o, false);
	}
	leave(c, false);
}

/* A request in HTTP/1.1 goes on in HTTP/1.1, whatever others have used. */
static void test_http1_stays_http1(void **state)
{
	struct h2 *c = plain_client(), *o;
	struct peer *c1 = client(&w, NAME_P, NULL), *o1;
	int32_t id = ask_p(c, "GET", "/x", NULL);

	(void)state;
	o = h2_origin_over(greeted(), false);
	request_of(o, 0);
	respond(o, o->answers[0]->id);
	expect_status(c, id, 200);
	ask(c1, "GET /y", "p.test", "");
	o1 = asked_in_http1("GET /y ");
	say(o1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	ALL_UNTIL(c1->in.len);
	expect_head(c1, "HTTP/1.1 200 ");
	leave(c, false);
	leave(o, false);
	hang_up(c1, false);
	hang_up(o1, false);
}

/* A client that goes meanwhile. */
static void test_the_client_goes(void **state)
{
	struct h2 *c = plain_client();
	struct peer *o;

	(void)state;
	ask_p(c, "GET", "/x", NULL);
	o = greeted();
	leave(c, true);
	UNTIL(&w, o->eof || o->failed);
	UNTIL(&w, w.proxy->upstream_count == 0);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_CLIENT);
	hang_up(o, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_it_goes_on_as_it_came),
	        TEST(test_others_wait_for_the_first),
	        TEST(test_an_origin_that_speaks_http1_only),
	        TEST(test_all_that_waited_go_on),
	        TEST(test_an_origin_that_closes),
	        TEST(test_a_silent_origin),
	        TEST(test_grpc_needs_it),
	        TEST(test_http1_stays_http1),
	        TEST(test_the_client_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
