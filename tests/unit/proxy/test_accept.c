/* SPDX-License-Identifier: Apache-2.0 */
/* How connections are taken: as they come, of a flood a few at a time, and all that wait at the
 * end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "fixture.h"

#define FLOOD 80 /* more than may come to nothing in a second */

/* The listener at a name's address: the proxy's own is the first. */
static struct listener *listener_of(unsigned name)
{
	return &w.proxy->listeners[1 + name];
}

static bool is_watched(unsigned name)
{
	return listener_of(name)->io.watch != NULL;
}

/* Each comes when the one before has gone; all of them are taken. Ends while nobody listens, unless
 * that never happens. All of them come in one second of the bound, however slow this machine is. */
static bool flood(void (*one)(void))
{
	struct rate *unproductive = &w.proxy->unproductive;
	bool stopped = false;

	unproductive->at_ms = INT64_MAX;
	for (unsigned i = 0; i < 2 * FLOOD && !stopped; i++) {
		uint64_t taken = w.proxy->accepted;

		one();
		UNTIL(&w, w.proxy->accepted == taken + 1 && w.proxy->client_count == 0);
		stopped = !is_watched(NAME_D);
	}
	unproductive->at_ms = clock_monotonic_ms();
	return stopped;
}

static void say_nothing(void)
{
	hang_up(client(&w, NAME_D, NULL), false);
}

static void ask_denied(struct peer *c)
{
	ask(c, "GET /x", "d.test", "");
}

static void take_denial(struct peer *c)
{
	expect_head(c, "HTTP/1.1 403 ");
	hang_up(c, false);
}

static void expect_answer(struct peer *c)
{
	ask_denied(c);
	take_denial(c);
}

static void ask_what_is_denied(void)
{
	expect_answer(client(&w, NAME_D, NULL));
}

static void say_what_is_no_request(void)
{
	struct peer *c = client(&w, NAME_D, NULL);

	say(c, "\x01\x02\x03");
	expect_reset(c);
	hang_up(c, false);
}

/* --- floods --- */

static void expect_flood_by_the_batch(void (*one)(void))
{
	assert_true(flood(one));
	UNTIL(&w, is_watched(NAME_D)); /* at the latest when the next batch is due */
	expect_answer(client(&w, NAME_D, NULL));
	pump(&w, 100);
	assert_true(is_watched(NAME_D));
}

static void test_connections_without_a_word(void **state)
{
	(void)state;
	expect_flood_by_the_batch(say_nothing);
}

static void test_requests_that_are_denied(void **state)
{
	(void)state;
	expect_flood_by_the_batch(ask_what_is_denied);
}

static void test_bytes_that_are_no_request(void **state)
{
	(void)state;
	expect_flood_by_the_batch(say_what_is_no_request);
}

/* ... and none of those that wait is lost, also where nothing comes behind them. */
static void test_many_that_wait_in_a_flood(void **state)
{
	enum { WAITING = 14 };
	struct peer *c[WAITING];
	uint64_t taken;

	(void)state;
	assert_true(flood(say_nothing));
	taken = w.proxy->accepted;
	for (unsigned i = 0; i < WAITING; i++) {
		c[i] = client(&w, NAME_D, NULL);
		ask(c[i], "GET /x", "d.test", "");
	}
	for (unsigned i = 0; i < WAITING; i++) {
		expect_head(c[i], "HTTP/1.1 403 ");
		hang_up(c[i], false);
	}
	assert_int_equal(w.proxy->accepted, taken + WAITING);
}

/* Holding all connections but one does not evade the bound: each that ends makes room for the next.
 */
static void test_a_flood_at_the_bound_of_connections(void **state)
{
	enum { WAITING = 14, AT_ONCE = 4 };
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *held;

	(void)state;
	o.limits.connections = 2;
	again(o);
	held = client(&w, NAME_A, NULL);
	UNTIL(&w, w.proxy->client_count == 1);
	w.proxy->unproductive.left = 0; /* a flood, however slow this machine is */
	w.proxy->unproductive.at_ms = INT64_MAX;
	for (unsigned i = 0; i < WAITING; i++)
		say_nothing();
	UNTIL(&w, w.proxy->accepted > 1);
	assert_in_range(w.proxy->accepted, 2, 1 + AT_ONCE);
	UNTIL(&w, w.proxy->accepted == 1 + WAITING && w.proxy->client_count == 1);
	w.proxy->unproductive.left = w.proxy->unproductive.burst;
	UNTIL(&w, is_watched(NAME_D));
	expect_answer(client(&w, NAME_D, NULL));
	hang_up(held, false);
}

/* The other listeners are not in it. */
static void test_a_flood_is_of_one_listener(void **state)
{
	(void)state;
	assert_true(flood(say_nothing));
	assert_true(is_watched(NAME_A));
}

/* However many they are. */
static void test_requests_that_are_allowed_are_no_flood(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FLOOD; i++) {
		struct peer *c = client(&w, NAME_P, NULL), *o;

		ask(c, "GET /x", "p.test", "Connection: close\r\n");
		o = origin(&w, false);
		expect_head(o, "GET /x ");
		say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
		expect_head(c, "HTTP/1.1 200 ");
		assert_true(is_watched(NAME_P));
		hang_up(o, false);
		hang_up(c, false);
	}
}

static void test_tunnels_are_no_flood(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FLOOD; i++) {
		struct peer *c = client(&w, NAME_T, NULL), *o = origin(&w, false);

		say(c, "hello");
		expect(o, "hello");
		assert_true(is_watched(NAME_T));
		hang_up(o, false);
		hang_up(c, false);
	}
}

/* --- a flood, and something else happens --- */

static bool idle;

static void on_idle(void *context)
{
	(void)context;
	idle = true;
}

static void test_what_waits_is_served_by_who_retires(void **state)
{
	struct peer *c;

	(void)state;
	assert_true(flood(say_nothing));
	c = client(&w, NAME_D, NULL); /* waits: nobody listens */
	idle = false;
	proxy_retire(w.proxy, on_idle, NULL);
	expect_answer(c);
	UNTIL(&w, idle);
}

/* More of them than are taken in one turn. */
static void test_all_that_wait_are_served_by_who_retires(void **state)
{
	enum { WAITING = 150 };
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *c[WAITING];

	(void)state;
	o.limits.connections = WAITING;
	again(o);
	assert_int_equal(listen(listener_of(NAME_D)->fd, WAITING), 0);
	for (unsigned i = 0; i < WAITING; i++) {
		c[i] = client(&w, NAME_D, NULL);
		ask_denied(c[i]); /* a silent client is not waited for long */
	}
	idle = false;
	proxy_retire(w.proxy, on_idle, NULL);
	assert_int_equal(w.proxy->client_count, WAITING);
	for (unsigned i = 0; i < WAITING; i++)
		take_denial(c[i]);
	UNTIL(&w, idle);
}

static void test_draining_in_a_flood(void **state)
{
	(void)state;
	assert_true(flood(say_nothing));
	idle = false;
	proxy_drain(w.proxy, on_idle, NULL);
	assert_true(idle);
	pump(&w, 50); /* the next batch would be due */
	assert_int_equal(w.proxy->listener_count, 0);
}

static void test_held_in_a_flood(void **state)
{
	struct peer *c;

	(void)state;
	assert_true(flood(say_nothing));
	proxy_hold(w.proxy, true);
	c = client(&w, NAME_D, NULL);
	ask(c, "GET /x", "d.test", "");
	pump(&w, 50);
	assert_int_equal(w.proxy->client_count, 0);
	proxy_hold(w.proxy, false);
	expect_head(c, "HTTP/1.1 403 ");
	hang_up(c, false);
}

static void test_freed_in_a_flood(void **state)
{
	(void)state;
	assert_true(flood(say_nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_connections_without_a_word),
	        TEST(test_requests_that_are_denied),
	        TEST(test_bytes_that_are_no_request),
	        TEST(test_many_that_wait_in_a_flood),
	        TEST(test_a_flood_at_the_bound_of_connections),
	        TEST(test_a_flood_is_of_one_listener),
	        TEST(test_requests_that_are_allowed_are_no_flood),
	        TEST(test_tunnels_are_no_flood),
	        TEST(test_what_waits_is_served_by_who_retires),
	        TEST(test_all_that_wait_are_served_by_who_retires),
	        TEST(test_draining_in_a_flood),
	        TEST(test_held_in_a_flood),
	        TEST(test_freed_in_a_flood),
	};

	signal(SIGPIPE, SIG_IGN); /* as the worker does */
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
