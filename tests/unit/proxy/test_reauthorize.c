/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new policy, the kill switch and retiring, while everything that can be under way is: what is
 * still allowed goes on, the rest ends at once, and the log says why. And: the event of a response
 * is recorded before the client has all of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "http2_origin.h"

/* Other numbers for the credentials; a.test has lost /gone, c.test its credential's name. */
static const char next_policy[] = "vethguard: 1\n"
                                  "name: test\n"
                                  "credentials:\n"
                                  "  first: {source: \"env:FIRST\", inject: bearer}\n"
                                  "  par: {source: \"env:PAR\", inject: query, query: api_key}\n"
                                  "allow:\n"
                                  "  - {name: a, to: \"https://a.test:%1$u\", paths: [/kept]}\n"
                                  "  - {name: c, to: \"https://c.test:%1$u\", credential: first}\n"
                                  "  - {name: q, to: \"https://q.test:%1$u\", credential: par}\n"
                                  "  - {name: s, to: \"https://s.test:%1$u\", tls: passthrough}\n";

static struct policy next;
static uint8_t *next_image;
static bool idle;

/* What the worker does when the proxy has re-examined everything. */
static void change(void *context)
{
	const uint32_t before[] = {POLICY_NONE, 1};

	(void)context;
	assert_int_equal(credential_store_renumber(w.store, before, 2), 0);
	w.policy = next;
}

static size_t reauthorize(void)
{
	uint8_t *image = w.image;
	struct policy policy = w.policy;
	size_t ended;

	world_load_policy(&w, next_policy, false);
	next_image = w.image;
	next = w.policy;
	w.image = image;
	w.policy = policy;
	ended = proxy_reauthorize(w.proxy, &next, change, NULL);
	free(w.image);
	w.image = next_image;
	return ended;
}

static void on_idle(void *context)
{
	*(bool *)context = true;
}

static void retire(void)
{
	idle = false;
	proxy_retire(w.proxy, on_idle, &idle);
}

static void expect_changed(enum event_kind kind, const char *rule)
{
	const struct event *e = only(kind);

	assert_int_equal(e->cause, EVENT_CAUSE_POLICY_CHANGED);
	assert_true(slice_equals(e->rule, slice_from_string(rule)));
}

/* --- requests --- */

#define UPLOAD_BYTES 200000

/* Bytes of the only request's body that were given to the upstream's connection. */
static size_t count_sent(void)
{
	struct client *c = container_of(w.proxy->clients.next, struct client, list);

	return c->exchange ? c->exchange->bytes_out : 0;
}

static void test_a_request_that_waits_is_refused(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /gone", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /gone ");
	assert_int_equal(reauthorize(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	assert_true(head_has(c, "application/problem+json"));
	expect_reset(o);
	expect_changed(EVENT_HTTP, "a");
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_DENIED);
	assert_int_equal(only(EVENT_HTTP)->status, 403);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_response_under_way_is_cut(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /gone", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /gone ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "begun");
	assert_int_equal(reauthorize(), 1);
	expect_reset(c);
	expect_reset(o);
	expect_changed(EVENT_HTTP, "a");
	assert_int_equal(only(EVENT_HTTP)->bytes_in, 5);
	hang_up(c, false);
	hang_up(o, false);
}

/* Much of an upload to a slow upstream lies in the kernel, here all of it: no more
 * leaves. */
static void test_the_rest_of_an_upload_stays(void **state)
{
	static char body[UPLOAD_BYTES];
	struct peer *c, *o;
	int bytes = 4096;

	(void)state;
	setsockopt(w.origin_fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	c = client(&w, NAME_A, "a.test");
	ask(c, "POST /gone", "a.test", "Content-Length: 200000\r\n");
	o = origin(&w, true);
	expect_head(o, "POST /gone ");
	o->deaf = true;
	say_n(c, body, sizeof(body));
	UNTIL(&w, count_sent());
	pump(&w, 50); /* as much of it as there is room for */
	assert_int_equal(reauthorize(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	o->deaf = false;
	peer_read(o);
	expect_reset(o);
	assert_true(o->in.len < sizeof(body));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_what_passes_is_finished(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *fresh, *o;

	(void)state;
	ask(c, "GET /kept", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /kept ");
	fresh = client(&w, NAME_A, "a.test"); /* not accepted yet */
	assert_int_equal(reauthorize(), 0);
	retire();
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_head(c, "HTTP/1.1 200 ");
	assert_true(head_has(c, "connection: close"));
	expect(c, "ok");
	expect_end(c);
	hang_up(c, false);
	hang_up(o, false);
	assert_false(idle);
	/* Connections that had waited at the listener are served, under the new policy. */
	ask(fresh, "GET /gone", "a.test", "");
	expect_head(fresh, "HTTP/1.1 403 ");
	hang_up(fresh, false);
	UNTIL(&w, idle);
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	assert_int_equal(w.events[0].cause, EVENT_CAUSE_POLICY);
}

static void test_an_idle_connection_ends(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /kept", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /kept ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_head(c, "HTTP/1.1 200 ");
	expect(c, "ok");
	assert_int_equal(reauthorize(), 0);
	expect_end(o); /* no upstream connection of the old policy is used again */
	retire();
	expect_end(c);
	hang_up(c, false);
	hang_up(o, false);
	UNTIL(&w, idle);
}

/* --- credentials --- */

static void test_another_credential_ends_it(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test"), *o;

	(void)state;
	ask(c, "GET /x", "c.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	assert_int_equal(reauthorize(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	expect_changed(EVENT_HTTP, "c");
	assert_true(slice_equals(only(EVENT_HTTP)->credential, SLICE("key")));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_one_that_waits_for_a_lost_credential_ends(void **state)
{
	struct peer *c = client(&w, NAME_C, "c.test");

	(void)state;
	w.keeper_silent = true;
	ask(c, "GET /x", "c.test", "");
	UNTIL(&w, w.asked);
	assert_int_equal(reauthorize(), 1);
	expect_head(c, "HTTP/1.1 403 ");
	expect_changed(EVENT_HTTP, "c");
	hang_up(c, false);
}

/* Also where it has another number now; its response is still covered. */
static void test_the_same_credential_goes_on(void **state)
{
	struct peer *c = client(&w, NAME_Q, "q.test"), *o;

	(void)state;
	ask(c, "GET /x", "q.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x?api_key=");
	assert_int_equal(reauthorize(), 0);
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n" SECRET_VALUE);
	expect_head(c, "HTTP/1.1 200 ");
	UNTIL(&w, c->in.len == 29);
	assert_null(memmem(buf_bytes(&c->in), c->in.len, SECRET_VALUE, 12));
	assert_true(slice_equals(only(EVENT_HTTP)->credential, SLICE("par")));
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_POLICY);
	hang_up(c, false);
	hang_up(o, false);
}

/* --- HTTP/2 --- */

static void test_streams_are_judged_one_by_one(void **state)
{
	struct h2 *c = enliven(h2_client()), *o;
	struct upload endless = {0};
	int32_t kept = h2_ask(c, "GET", "/kept"), gone = h2_ask(c, "GET", "/gone"),
	        waits = h2_ask(c, "GET", "/gone2");

	(void)state;
	o = h2_origin();
	request_of(o, 2);
	buf_init(&endless.bytes, 1);
	respond_with(o, request_of(o, 1)->id,
	        (const nghttp2_nv[]){nv(":status", "200"), nv("content-length", "100")}, 2,
	        &endless);
	ALL_UNTIL(answer(c, gone)->status == 200);
	assert_int_equal(reauthorize(), 2);
	retire();
	ALL_UNTIL(answer(c, gone)->closed && answer(c, waits)->closed);
	assert_int_equal(answer(c, gone)->code, NGHTTP2_CANCEL);
	assert_int_equal(answer(c, waits)->status, 403);
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(w.events[i].cause, EVENT_CAUSE_POLICY_CHANGED);
	assert_false(idle);
	respond(o, request_of(o, 0)->id);
	ALL_UNTIL(answer(c, kept)->closed);
	assert_int_equal(answer(c, kept)->status, 200);
	assert_int_equal(answer(c, kept)->code, NGHTTP2_NO_ERROR);
	ALL_UNTIL(idle);
	leave(c, false);
	leave(o, false);
}

/* --- tunnels and the kill switch --- */

static void test_a_tunnel_that_no_longer_passes(void **state)
{
	struct peer *c = client(&w, NAME_T, NULL), *o = origin(&w, false);

	(void)state;
	say(o, "220 hello\r\n");
	expect(c, "220 hello\r\n");
	assert_int_equal(reauthorize(), 1);
	expect_reset(c);
	expect_changed(EVENT_CONNECTION, "t");
	assert_int_equal(only(EVENT_CONNECTION)->bytes_in, 11);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_tunnel_outlives_retiring(void **state)
{
	struct peer *c = client(&w, NAME_T, NULL), *o = origin(&w, false);

	(void)state;
	say(o, "220 hello\r\n");
	expect(c, "220 hello\r\n");
	retire();
	say(c, "more");
	expect(o, "more");
	assert_false(idle);
	hang_up(c, false);
	hang_up(o, false);
	UNTIL(&w, idle);
	only(EVENT_CONNECTION);
}

static void test_the_kill_switch(void **state)
{
	struct peer *t = client(&w, NAME_T, NULL), *ot = origin(&w, false);
	struct peer *a = client(&w, NAME_A, "a.test"), *oa;

	(void)state;
	say(ot, "220 hello\r\n");
	expect(t, "220 hello\r\n");
	ask(a, "GET /x", "a.test", "");
	oa = origin(&w, true);
	expect_head(oa, "GET /x ");
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "stopped by hand");
	proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "stopped by hand");
	expect_reset(t);
	expect_reset(oa);
	expect_head(a, "HTTP/1.1 503 ");
	UNTIL(&w, memmem(buf_bytes(&a->in), a->in.len, "stopped by hand", 15));
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_PAUSED);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_PAUSED);
	hang_up(a, false);
	a = client(&w, NAME_A, "a.test");
	ask(a, "GET /x", "a.test", "");
	expect_head(a, "HTTP/1.1 503 ");
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, NULL);
	hang_up(a, false);
	hang_up(oa, false);
	a = client(&w, NAME_A, "a.test");
	ask(a, "GET /y", "a.test", "");
	oa = origin(&w, true);
	expect_head(oa, "GET /y ");
	hang_up(a, false);
	hang_up(oa, false);
	hang_up(t, false);
	hang_up(ot, false);
}

/* --- the event comes first --- */

/* The announced length is there, the upstream's end of the stream is not: the sandbox has a whole
 * response. */
static void test_a_whole_response_has_its_event(void **state)
{
	static const char body[] = "whole";
	const nghttp2_nv fields[] = {nv(":status", "200"), nv("content-length", "5")};
	struct upload up = {0};
	struct peer *c = client(&w, NAME_A, "a.test");
	struct h2 *o;

	(void)state;
	buf_init(&up.bytes, 100);
	buf_append(&up.bytes, body, 5);
	ask(c, "GET /x", "a.test", "");
	o = h2_origin();
	respond_with(o, request_of(o, 0)->id, fields, 2, &up);
	ALL_UNTIL(c->in.len && memmem(buf_bytes(&c->in), c->in.len, body, 5));
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	assert_int_equal(find_event(&w, EVENT_HTTP)->bytes_in, 5);
	up.ended = true;
	nghttp2_session_resume_data(o->session, request_of(o, 0)->id);
	run_for(20);
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	hang_up(c, false);
	leave(o, false);
	buf_fini(&up.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_request_that_waits_is_refused),
	        TEST(test_a_response_under_way_is_cut),
	        TEST(test_the_rest_of_an_upload_stays),
	        TEST(test_what_passes_is_finished),
	        TEST(test_an_idle_connection_ends),
	        TEST(test_another_credential_ends_it),
	        TEST(test_one_that_waits_for_a_lost_credential_ends),
	        TEST(test_the_same_credential_goes_on),
	        TEST(test_streams_are_judged_one_by_one),
	        TEST(test_a_tunnel_that_no_longer_passes),
	        TEST(test_a_tunnel_outlives_retiring),
	        TEST(test_the_kill_switch),
	        TEST(test_a_whole_response_has_its_event),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
