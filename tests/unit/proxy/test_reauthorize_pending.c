/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy that is narrowed while something is only half done: a body that has not come, a
 * connection that is being dialed, one that is kept for the next request, a WebSocket, a flow of
 * datagrams. Nothing that the new policy denies reaches an upstream any more.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/http/websocket.h"
#include "http2_origin.h"

static const char wide[] = "vethguard: 1\n"
                           "name: test\n"
                           "credentials:\n"
                           "  key: {source: \"env:KEY\", inject: bearer}\n"
                           "allow:\n"
                           "  - {name: a, to: \"https://a.test:%1$u\", methods: [GET, POST]}\n"
                           "  - {name: c, to: \"https://c.test:%1$u\", credential: key}\n"
                           "  - {name: p, to: \"http://p.test:%1$u\"}\n"
                           "  - {name: q, to: \"https://q.test:%1$u\"}\n"
                           "  - {name: s, to: \"https://s.test:%1$u\", tls: passthrough}\n"
                           "  - {name: u, to: \"udp://d.test:%1$u\"}\n";

/* Nobody may POST to a.test any more, c.test has another credential, p.test, d.test are gone,
 * q.test is passed through and s.test opened. */
static const char narrow[] = "vethguard: 1\n"
                             "name: test\n"
                             "credentials:\n"
                             "  other: {source: \"env:OTHER\", inject: bearer}\n"
                             "allow:\n"
                             "  - {name: a, to: \"https://a.test:%1$u\", methods: [GET]}\n"
                             "  - {name: c, to: \"https://c.test:%1$u\", credential: other}\n"
                             "  - {name: q, to: \"https://q.test:%1$u\", tls: passthrough}\n"
                             "  - {name: s, to: \"https://s.test:%1$u\"}\n"
                             "  - {name: raw, to: \"tcp://s.test:%1$u\"}\n";

static const struct world_options begun = {
        .policy = wide, .timeouts = PATIENT_TIMEOUTS, .limits = USUAL_LIMITS, .send_bytes = 8192};
static struct policy next;
static uint32_t same = POLICY_NONE; /* the number in the old policy of the new one's credential */

static int set_up_wide(void **state)
{
	(void)state;
	world_open(&w, &begun);
	return 0;
}
#define WIDE(name) cmocka_unit_test_setup_teardown(name, set_up_wide, tear_down)

static void change(void *context)
{
	(void)context;
	assert_int_equal(
	        credential_store_renumber(w.store, &same, policy_credential_count(&next)), 0);
	w.policy = next;
}

/* How much has ended. */
static size_t change_to(const char *text)
{
	uint8_t *image = w.image;
	struct policy policy = w.policy;
	size_t ended;

	world_load_policy(&w, text, false);
	next = w.policy;
	w.policy = policy;
	ended = proxy_reauthorize(w.proxy, &next, change, NULL);
	free(image);
	return ended;
}

static size_t narrow_down(void)
{
	return change_to(narrow);
}

static void expect_nothing_more(struct peer *o)
{
	o->in.len = 0;
	pump(&w, 20);
	UNTIL(&w, o->eof || o->failed);
	assert_int_equal(o->in.len, 0);
}

/* --- bodies that have not come --- */

static void test_an_expected_body_never_leaves(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 5\r\nExpect: 100-continue\r\n");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	say(o, "HTTP/1.1 100 Continue\r\n\r\n");
	expect_head(c, "HTTP/1.1 100 ");
	assert_int_equal(narrow_down(), 1);
	say(c, "hello");
	expect_head(c, "HTTP/1.1 403 ");
	expect_nothing_more(o);
	hang_up(c, false);
	hang_up(o, false);
}

/* The head has come, and what is to follow it waits for an upstream that is not there yet. */
static void test_a_body_that_waits_for_its_upstream_never_leaves(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "POST /x", "a.test", "Content-Length: 5\r\n");
	say(c, "hello");
	UNTIL(&w, w.proxy->upstream_count == 1);
	o = origin(&w, false); /* and says nothing */
	UNTIL(&w, o->in.len);  /* a ClientHello */
	assert_int_equal(narrow_down(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	expect_nothing_more(o);
	hang_up(c, false);
	hang_up(o, false);
}

/* A request that has begun to leave ends with its connection, and gets no byte that would make it
 * whole. */
static void test_a_chunked_body_stays_open(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "POST /x", "a.test", "Transfer-Encoding: chunked\r\n");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	say(c, "5\r\nhello\r\n");
	expect(o, "5\r\nhello\r\n");
	assert_int_equal(narrow_down(), 1);
	say(c, "0\r\n\r\n");
	expect_head(c, "HTTP/1.1 403 ");
	expect_nothing_more(o);
	hang_up(c, false);
	hang_up(o, false);
}

/* --- many streams --- */

#define UPLOAD_BYTES 60000 /* less than the window */

static void test_uploads_beside_what_goes_on(void **state)
{
	struct h2 *c = enliven(h2_client()), *o;
	struct upload ups[8] = {0};
	int32_t uploads[8], kept;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		buf_init(&ups[i].bytes, 100);
		buf_append(&ups[i].bytes, "begun", 5);
		uploads[i] = h2_ask_with(c, "POST", "a.test", "/up", NULL, 0, &ups[i]);
	}
	kept = h2_ask(c, "GET", "/kept");
	o = h2_origin();
	for (size_t i = 0; i < 9; i++)
		request_of(o, i);
	ALL_UNTIL(body_is(o->answers[7], "begun"));
	assert_int_equal(narrow_down(), 8);
	for (size_t i = 0; i < 8; i++) {
		buf_append(&ups[i].bytes, "more", 4);
		ups[i].ended = true;
		nghttp2_session_resume_data(c->session, uploads[i]);
	}
	respond(o, request_of(o, 8)->id);
	ALL_UNTIL(answer(c, kept)->closed);
	assert_int_equal(answer(c, kept)->status, 200);
	run_for(20);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(answer(c, uploads[i])->status, 403);
		assert_true(body_is(o->answers[i], "begun"));
		assert_false(o->answers[i]->ended);
		assert_true(o->answers[i]->closed);
		buf_fini(&ups[i].bytes);
	}
	leave(c, false);
	leave(o, false);
}

/* All that has been written of a request may still lie in the kernel: where nothing else goes on
 * over the connection, it stays there. */
static void test_a_whole_upload_that_has_not_left(void **state)
{
	static char body[UPLOAD_BYTES];
	struct h2 *c = enliven(h2_client()), *o;
	struct upload up = {.ended = true};
	int32_t id;
	int bytes = 4096;

	(void)state;
	setsockopt(w.origin_fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	id = h2_ask(c, "GET", "/first");
	o = h2_origin();
	respond(o, request_of(o, 0)->id);
	ALL_UNTIL(answer(c, id)->closed);
	o->peer->deaf = true;
	buf_init(&up.bytes, sizeof(body));
	buf_append(&up.bytes, body, sizeof(body));
	id = h2_ask_with(c, "POST", "a.test", "/up", NULL, 0, &up);
	ALL_UNTIL(!up.bytes.len);
	run_for(20);
	assert_int_equal(narrow_down(), 1);
	ALL_UNTIL(answer(c, id)->closed);
	assert_int_equal(answer(c, id)->status, 403);
	o->peer->deaf = false;
	peer_read(o->peer);
	ALL_UNTIL(o->peer->eof || o->peer->failed || (o->count == 2 && o->answers[1]->closed));
	assert_true(o->count == 1 || !o->answers[1]->ended);
	buf_fini(&up.bytes);
	leave(c, false);
	leave(o, false);
}

/* One was to use the connection that another had begun to dial. */
static void test_one_that_waits_for_the_dial_of_one_that_ends(void **state)
{
	struct h2 *c = enliven(h2_client()), *o;
	int32_t gone = h2_ask(c, "POST", "/x"), kept = h2_ask(c, "GET", "/kept");

	(void)state;
	ALL_UNTIL(w.proxy->exchanges == 2 && w.proxy->upstream_count == 1);
	assert_int_equal(narrow_down(), 1);
	ALL_UNTIL(answer(c, gone)->closed);
	assert_int_equal(answer(c, gone)->status, 403);
	hang_up(origin(&w, false), false); /* of the one that was given up */
	o = h2_origin();
	assert_true(asked_for(request_of(o, 0), "/kept"));
	respond(o, request_of(o, 0)->id);
	ALL_UNTIL(answer(c, kept)->closed);
	assert_int_equal(answer(c, kept)->status, 200);
	assert_int_equal(o->count, 1);
	leave(c, false);
	leave(o, false);
}

/* --- connections that are kept --- */

static void serve(struct peer *c, struct peer *o)
{
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "ok");
}

/* The same connection of the sandbox asks again: the credential is another one, so is the
 * connection it goes over. */
static void test_the_next_request_gets_the_new_credential(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o, *fresh;

	(void)state;
	ask(c, "GET /x", "c.test", "");
	o = origin(&w, true);
	serve(c, o);
	assert_int_equal(w.asked, 1);
	assert_int_equal(narrow_down(), 0);
	expect_end(o);
	ask(c, "GET /x", "c.test", "");
	fresh = origin(&w, true);
	serve(c, fresh);
	assert_int_equal(w.asked, 2);
	hang_up(c, false);
	hang_up(o, false);
	hang_up(fresh, false);
}

/* The same over HTTP/2 on both sides, while a stream of the old verdict keeps its connection
 * open. */
/* The policy is the same, the value another one: requests not sent yet get the present value. */
static void test_one_that_dials_gets_the_value_of_now(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct peer *c = NULL, *o, *o2;
		struct h2 *h = NULL;

		again(begun);
		same = 0;
		if (i) {
			h = enliven(h2_client_of(NAME_C, "c.test"));
			h2_ask_with(h, "GET", "c.test", "/x", NULL, 0, NULL);
		} else {
			c = client(&w, NAME_C, "c.test");
			ask(c, "GET /x", "c.test", "");
		}
		UNTIL(&w, w.proxy->upstream_count == 1);
		o = origin(&w, false); /* and says nothing */
		UNTIL(&w, o->in.len);  /* a ClientHello */
		assert_int_equal(w.asked, 1);
		w.value = "the-value-of-now-0123456789";
		assert_int_equal(change_to(wide), 0);
		same = POLICY_NONE;
		expect_nothing_more(o);
		o2 = origin(&w, true);
		expect_head(o2, "GET /x ");
		assert_true(
		        head_has(o2, "\r\nauthorization: Bearer the-value-of-now-0123456789\r\n"));
		assert_int_equal(w.asked, 2);
		if (i) {
			say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
			ALL_UNTIL(answer(h, 1)->ended);
			assert_int_equal(answer(h, 1)->status, 200);
			leave(h, false);
		} else {
			say(o2, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
			expect_head(c, "HTTP/1.1 200 ");
			hang_up(c, false);
		}
		assert_int_equal(only(EVENT_HTTP)->status, 200);
		hang_up(o, false);
		hang_up(o2, false);
	}
}

static void test_new_streams_leave_the_old_connection(void **state)
{
	struct h2 *c = enliven(h2_client()), *o, *fresh;
	int32_t first = h2_ask(c, "GET", "/first"), second, third;

	(void)state;
	o = h2_origin();
	request_of(o, 0);
	assert_int_equal(narrow_down(), 0);
	second = h2_ask(c, "GET", "/second");
	third = h2_ask(c, "POST", "/third");
	fresh = h2_origin();
	assert_true(asked_for(request_of(fresh, 0), "/second"));
	ALL_UNTIL(answer(c, third)->closed);
	assert_int_equal(answer(c, third)->status, 403);
	respond(fresh, request_of(fresh, 0)->id);
	respond(o, request_of(o, 0)->id);
	ALL_UNTIL(answer(c, first)->closed && answer(c, second)->closed);
	assert_int_equal(answer(c, first)->status, 200);
	assert_int_equal(answer(c, second)->status, 200);
	assert_int_equal(o->count, 1);
	assert_int_equal(fresh->count, 1);
	leave(c, false);
	leave(o, false);
	leave(fresh, false);
}

/* Requests behind the one that is served are judged when their turn comes. */
static void test_pipelined_requests_are_judged_in_their_turn(void **state)
{
	struct peer *c = client(&w, NAME_P, NULL), *o;
	char text[400];

	(void)state;
	snprintf(text, sizeof(text),
	        "GET /x HTTP/1.1\r\nHost: p.test:%1$u\r\n\r\nGET /y HTTP/1.1\r\nHost: "
	        "p.test:%1$u\r\n\r\n",
	        w.port);
	say(c, text);
	o = origin(&w, false);
	serve(c, o);
	expect_head(o, "GET /y ");
	assert_int_equal(narrow_down(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	ask(c, "GET /z", "p.test", "");
	expect_nothing_more(o);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
	hang_up(o, false);
}

/* --- what carries other things --- */

static void test_a_websocket_ends(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "GET /ws", "c.test", SWITCH_ASKED);
	o = origin(&w, true);
	expect_head(o, "GET /ws ");
	say(o, SWITCHED);
	expect_head(c, "HTTP/1.1 101 ");
	say_n(c, "\x81\x82\0\0\0\0hi", 8);
	UNTIL(&w, o->in.len == 8);
	assert_int_equal(narrow_down(), 1);
	say_n(c, "\x81\x82\0\0\0\0ho", 8);
	expect_nothing_more(o);
	expect_reset(c);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_passthrough_that_is_to_be_opened(void **state)
{
	static const char alpn[] = "\x08http/1.1";
	struct sockaddr_in sin = loopback(77, 1, NAME_S, w.port);
	struct peer *c = peer_new(&w, connect_to(&sin)), *o;
	const struct ip none = {0};
	struct tls_client *trusting = tls_client_new(w.trust);

	(void)state;
	socket_start_tls(&c->socket,
	        tls_connect_new(
	                trusting, SLICE("s.test"), &none, SLICE(alpn), SLICE(""), &w.sockets.tx),
	        SLICE(""));
	c->shaking = true;
	peer_read(c);
	o = origin(&w, true);
	UNTIL(&w, !c->shaking);
	ask(c, "GET /x", "s.test", "");
	serve(c, o);
	assert_int_equal(narrow_down(), 1);
	ask(c, "GET /y", "s.test", "");
	expect_nothing_more(o);
	expect_reset(c);
	hang_up(c, false);
	hang_up(o, false);
	tls_client_free(trusting);
}

static void test_what_was_opened_and_is_to_be_passed_through(void **state)
{
	struct peer *c = client(&w, NAME_Q, "q.test"), *o;

	(void)state;
	ask(c, "GET /x", "q.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	assert_int_equal(narrow_down(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	expect_nothing_more(o);
	hang_up(c, false);
	hang_up(o, false);
}

/* --- what a tunnel carries --- */

#define T_RAW "vethguard: 1\nname: t\nallow:\n  - {name: raw, to: \"tcp://t.test:%1$u\"}\n"
static const char raw[] = T_RAW;
static const char raw_and_http[] = T_RAW "  - {name: web, to: \"http://t.test:%1$u\"}\n";
static const char raw_and_https[] = T_RAW "  - {name: web, to: \"https://t.test:%1$u\"}\n";
static const char raw_without_https[] =
        T_RAW "deny:\n  - {name: no, to: \"https://t.test:%1$u\", reason: never}\n";

/* A tunnel, begun under a policy, in which the sandbox has spoken first. */
static struct peer *tunnel(const char *policy, const void *first, size_t n, struct peer **o)
{
	struct world_options options = begun;
	struct peer *c;

	options.policy = policy;
	again(options);
	c = client(&w, NAME_T, NULL);
	say_n(c, first, n);
	*o = origin(&w, false);
	UNTIL(&w, (*o)->in.len == n);
	buf_consume(&(*o)->in, n);
	return c;
}

/* It may be TLS, since nobody has looked; a policy with an https rule there would have it opened.
 */
static void test_a_tunnel_that_nobody_looked_at(void **state)
{
	static const char *const policies[] = {raw_and_https, raw_without_https};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct peer *o, *c = tunnel(raw, "anything", 8, &o);

		assert_int_equal(change_to(raw), 0);
		say(c, "more");
		expect(o, "more");
		assert_int_equal(change_to(policies[i]), 1);
		say(c, "still more");
		expect_nothing_more(o);
		expect_reset(c);
		hang_up(c, false);
		hang_up(o, false);
	}
}

static void test_a_tunnel_that_is_no_tls(void **state)
{
	struct peer *o, *c = tunnel(raw_and_http, "SSH-2.0-x\r\n", 11, &o);

	(void)state;
	assert_int_equal(change_to(raw_and_https), 0);
	assert_int_equal(change_to(raw_without_https), 0);
	say(c, "more");
	expect(o, "more");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_tunnel_with_tls_in_it(void **state)
{
	/* A ClientHello for t.test, the shortest there may be. */
	static const uint8_t hello[] = {22, 3, 1, 0, 62, 1, 0, 0, 58, 3, 3, 1, 2, 3, 4, 5, 6, 7, 8,
	        9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
	        30, 31, 32, 0, 0, 2, 0x13, 1, 1, 0, 0, 15, 0, 0, 0, 11, 0, 9, 0, 0, 6, 't', '.',
	        't', 'e', 's', 't'};
	struct peer *o, *c = tunnel(raw_and_http, hello, sizeof(hello), &o);

	(void)state;
	assert_int_equal(change_to(raw), 0);
	assert_int_equal(change_to(raw_and_https), 1);
	expect_nothing_more(o);
	expect_reset(c);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_datagrams_end(void **state)
{
	struct sockaddr_in at = loopback(77, 1, NAME_D, w.port), out = loopback(0, 0, 1, w.port);
	int relay = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	int from = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int to = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(out);
	char byte;

	(void)state;
	setsockopt(relay, IPPROTO_IP, IP_RECVORIGDSTADDR, &one, sizeof(one));
	assert_int_equal(bind(relay, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(bind(to, (struct sockaddr *)&out, sizeof(out)), 0);
	assert_int_equal(proxy_serve_udp(w.proxy, relay, w.port), 0);
	assert_int_equal(connect(from, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(from, "1", 1, 0), 1);
	UNTIL(&w, recvfrom(to, &byte, 1, 0, (struct sockaddr *)&out, &n) == 1);
	assert_int_equal(narrow_down(), 1);
	assert_int_equal(send(from, "2", 1, 0), 1);
	pump(&w, 20);
	assert_int_equal(recv(to, &byte, 1, 0), -1);
	/* No answer comes back either. */
	assert_int_equal(sendto(to, "3", 1, 0, (struct sockaddr *)&out, n), 1);
	pump(&w, 20);
	assert_int_equal(recv(from, &byte, 1, 0), -1);
	close(from);
	close(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIDE(test_an_expected_body_never_leaves),
	        WIDE(test_a_body_that_waits_for_its_upstream_never_leaves),
	        WIDE(test_a_chunked_body_stays_open),
	        WIDE(test_uploads_beside_what_goes_on),
	        WIDE(test_a_whole_upload_that_has_not_left),
	        WIDE(test_one_that_waits_for_the_dial_of_one_that_ends),
	        WIDE(test_the_next_request_gets_the_new_credential),
	        WIDE(test_one_that_dials_gets_the_value_of_now),
	        WIDE(test_new_streams_leave_the_old_connection),
	        WIDE(test_pipelined_requests_are_judged_in_their_turn),
	        WIDE(test_a_websocket_ends),
	        WIDE(test_passthrough_that_is_to_be_opened),
	        WIDE(test_what_was_opened_and_is_to_be_passed_through),
	        WIDE(test_a_tunnel_that_nobody_looked_at),
	        WIDE(test_a_tunnel_that_is_no_tls),
	        WIDE(test_a_tunnel_with_tls_in_it),
	        WIDE(test_datagrams_end),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
