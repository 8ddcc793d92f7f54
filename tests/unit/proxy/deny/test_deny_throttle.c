/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals beyond their rate: logged at once, answered in turn, delaying nobody else. The tests
 * fill the token bucket, so that no clock decides.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "../http2_peer.h"

static void allow(uint64_t refusals)
{
	w.proxy->deny_throttle.rate = (struct rate){
	        .per_s = 1000, .left = refusals * 1000, .burst = 1000000, .at_ms = INT64_MAX};
}

static struct peer *ask_in_vain(void)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	ask(c, "DELETE /x", "a.test", "");
	return c;
}

static void expect_nothing(const struct peer *c)
{
	pump(&w, 50);
	assert_int_equal(c->in.len, 0);
	assert_false(c->eof || c->failed);
}

static void expect_refusal(struct peer *c)
{
	expect_head(c, "HTTP/1.1 403 ");
	assert_true(head_has(c, "application/problem+json"));
	UNTIL(&w, has(c, "\"rule\":\"no\"", 11));
	assert_true(has(c, "never", 5));
}

/* --- HTTP/1 --- */

static void test_within_the_rate_nobody_waits(void **state)
{
	struct peer *c;

	(void)state;
	allow(3);
	for (int i = 0; i < 3; i++) {
		c = ask_in_vain();
		expect_refusal(c);
		hang_up(c, false);
	}
	assert_int_equal(w.proxy->deny_throttle.delayed, 0);
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
}

/* The log knows before the sandbox does. */
static void test_one_too_many_waits_for_its_turn(void **state)
{
	struct peer *c[3];

	(void)state;
	allow(1);
	c[0] = ask_in_vain();
	expect_refusal(c[0]);
	for (size_t i = 1; i < 3; i++) {
		c[i] = ask_in_vain();
		UNTIL(&w, count_events(&w, EVENT_HTTP) == i + 1);
		assert_int_equal(find_event(&w, EVENT_HTTP)->decision, EVENT_DENIED);
		assert_int_equal(find_event(&w, EVENT_HTTP)->status, 403);
	}
	expect_nothing(c[1]);
	expect_nothing(c[2]);
	allow(1);
	expect_refusal(c[1]); /* first come, first served */
	expect_nothing(c[2]);
	allow(1);
	expect_refusal(c[2]);
	assert_int_equal(w.proxy->deny_throttle.delayed, 2);
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
	for (size_t i = 0; i < 3; i++)
		hang_up(c[i], false);
}

static void test_the_clock_brings_the_turn(void **state)
{
	struct peer *c;

	(void)state;
	allow(0);
	c = ask_in_vain();
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	w.proxy->deny_throttle.rate.at_ms = clock_monotonic_ms();
	expect_refusal(c);
	hang_up(c, false);
}

/* The connection goes on as if there had been no wait. */
static void test_a_connection_is_kept(void **state)
{
	struct peer *c, *o;

	(void)state;
	allow(0);
	c = ask_in_vain();
	ask(c, "GET /next", "a.test", ""); /* pipelined: behind the other's answer */
	expect_nothing(c);
	assert_false(origin_is_asked(&w));
	allow(1);
	expect_refusal(c);
	o = origin(&w, true);
	expect_head(o, "GET /next ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	UNTIL(&w, has(c, "HTTP/1.1 200 OK", 15));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_request_with_a_body_waits_too(void **state)
{
	struct peer *c;

	(void)state;
	allow(0);
	c = client(&w, NAME_A, "a.test");
	ask(c, "DELETE /x", "a.test", "Content-Length: 100000\r\n");
	say(c, "the beginning");
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	expect_nothing(c);
	allow(1);
	expect_refusal(c);
	hang_up(c, false);
	assert_int_equal(only(EVENT_HTTP)->status, 403);
}

static void test_what_cannot_be_read_waits_too(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	allow(0);
	say(c, "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n");
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	expect_nothing(c);
	assert_int_equal(count_events(&w, EVENT_FINDING), 1);
	allow(1);
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
}

static void test_whoever_goes_is_told_of_once(void **state)
{
	struct peer *c;

	(void)state;
	for (int i = 0; i < 2; i++) {
		allow(0);
		c = ask_in_vain();
		UNTIL(&w, w.proxy->deny_throttle.delayed == (uint64_t)i + 1);
		hang_up(c, i == 1);
		UNTIL(&w, w.proxy->client_count == 0 || !i);
		allow(1); /* one that only ended its side may still want the answer */
		UNTIL(&w,
		        list_is_empty(&w.proxy->deny_throttle.waiting) && w.proxy->exchanges == 0);
	}
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	assert_int_equal(count_events(&w, EVENT_CONNECTION), 0);
}

/* A missing upstream costs as much as a refusal. */
static void test_failures_wait_too(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	allow(0);
	close(w.origin_fd);
	w.origin_fd = -1;
	ask(c, "GET /x", "a.test", "");
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_CONNECT);
	expect_nothing(c);
	allow(1);
	expect_head(c, "HTTP/1.1 502 ");
	UNTIL(&w, has(c, "\"detail\":\"GET https://a.test", 28));
	hang_up(c, false);
}

/* Requests that are sent on neither wait nor count. */
static void test_what_is_allowed_is_not_concerned(void **state)
{
	struct peer *vain, *c, *o = NULL;

	(void)state;
	allow(0);
	vain = ask_in_vain();
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	c = client(&w, NAME_A, "a.test");
	for (int i = 0; i < 20; i++) {
		ask(c, "GET /x", "a.test", "");
		if (!o)
			o = origin(&w, true);
		expect_head(o, "GET /x ");
		say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		expect_head(c, "HTTP/1.1 200 ");
	}
	assert_int_equal(w.proxy->deny_throttle.delayed, 1);
	assert_int_equal(count_events(&w, EVENT_HTTP), 21);
	hang_up(c, false);
	hang_up(o, false);
	hang_up(vain, true);
}

/* --- the end of waiting --- */

static void change_nothing(void *context)
{
	(void)context;
}

static void test_a_new_policy_answers_all(void **state)
{
	struct peer *c[2];
	struct policy same;

	(void)state;
	allow(0);
	c[0] = ask_in_vain();
	c[1] = ask_in_vain();
	UNTIL(&w, w.proxy->deny_throttle.delayed == 2);
	same = w.policy;
	assert_int_equal(proxy_reauthorize(w.proxy, &same, change_nothing, NULL), 0);
	expect_refusal(c[0]);
	expect_refusal(c[1]);
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	hang_up(c[0], false);
	hang_up(c[1], false);
}

static void on_idle(void *context)
{
	*(bool *)context = true;
}

static void test_the_end_answers_all(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct peer *c;
		bool idle = false;

		allow(0);
		c = ask_in_vain();
		UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
		if (i == 0)
			proxy_drain(w.proxy, on_idle, &idle);
		else if (i == 1)
			proxy_retire(w.proxy, on_idle, &idle);
		else
			proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "it is over");
		expect_refusal(c);
		hang_up(c, false);
		UNTIL(&w, idle || i == 2);
		assert_int_equal(count_events(&w, EVENT_HTTP), 1);
		again((struct world_options){.timeouts = patient_timeouts, .limits = usual_limits});
	}
}

static void test_freed_while_they_wait(void **state)
{
	struct peer *c;

	(void)state;
	allow(0);
	c = ask_in_vain();
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	proxy_free(w.proxy);
	w.proxy = NULL;
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	hang_up(c, false);
	again((struct world_options){.timeouts = patient_timeouts, .limits = usual_limits});
}

/* --- HTTP/2 --- */

/* Each stream by itself: others of the same connection pass. */
static void test_streams_wait_by_themselves(void **state)
{
	struct h2 *h = h2_client();
	int32_t vain[3], good;
	struct peer *o;

	(void)state;
	allow(0);
	for (size_t i = 0; i < 3; i++)
		vain[i] = h2_ask(h, "DELETE", "/x");
	UNTIL(&w, w.proxy->deny_throttle.delayed == 3);
	assert_int_equal(count_events(&w, EVENT_HTTP), 3);
	good = h2_ask(h, "GET", "/good");
	o = origin(&w, true);
	expect_head(o, "GET /good ");
	say(o, "HTTP/1.1 204 Done\r\n\r\n");
	H2_UNTIL(h, answer(h, good)->closed);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(answer(h, vain[i])->status, 0);
	allow(2);
	H2_UNTIL(h, answer(h, vain[1])->closed);
	assert_int_equal(answer(h, vain[0])->status, 403);
	assert_int_equal(answer(h, vain[1])->status, 403);
	assert_int_equal(answer(h, vain[2])->status, 0);
	allow(1);
	H2_UNTIL(h, answer(h, vain[2])->closed);
	assert_int_equal(count_events(&w, EVENT_HTTP), 4);
	h2_hang_up(h, false);
	hang_up(o, false);
}

static void test_a_stream_that_is_reset_while_it_waits(void **state)
{
	struct h2 *h = h2_client();
	int32_t id;

	(void)state;
	allow(0);
	id = h2_ask(h, "DELETE", "/x");
	UNTIL(&w, w.proxy->deny_throttle.delayed == 1);
	nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	h2_run(h);
	UNTIL(&w, list_is_empty(&w.proxy->deny_throttle.waiting) && w.proxy->exchanges == 0);
	assert_int_equal(only(EVENT_HTTP)->status, 403);
	id = h2_ask(h, "DELETE", "/x");
	UNTIL(&w, w.proxy->deny_throttle.delayed == 2);
	h2_hang_up(h, true);
	UNTIL(&w, w.proxy->client_count == 0);
	assert_true(list_is_empty(&w.proxy->deny_throttle.waiting));
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_within_the_rate_nobody_waits),
	        TEST(test_one_too_many_waits_for_its_turn),
	        TEST(test_the_clock_brings_the_turn),
	        TEST(test_a_connection_is_kept),
	        TEST(test_a_request_with_a_body_waits_too),
	        TEST(test_what_cannot_be_read_waits_too),
	        TEST(test_whoever_goes_is_told_of_once),
	        TEST(test_failures_wait_too),
	        TEST(test_what_is_allowed_is_not_concerned),
	        TEST(test_a_new_policy_answers_all),
	        TEST(test_the_end_answers_all),
	        TEST(test_freed_while_they_wait),
	        TEST(test_streams_wait_by_themselves),
	        TEST(test_a_stream_that_is_reset_while_it_waits),
	};

	signal(SIGPIPE, SIG_IGN); /* as the worker does */
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
