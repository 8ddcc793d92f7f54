/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a real proxy: every deadline, every bound, holding, pausing, draining, observing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "fixture.h"

/* A dial that nobody answers: the listener's backlog is full. */
static void test_a_dial_that_takes_too_long(void **state)
{
	struct world_options o = {.timeouts = hasty_timeouts, .limits = usual_limits};
	struct peer *c;
	int fds[64];
	size_t n = 0;

	(void)state;
	o.timeouts.connect_ms = 200;
	again(o);
	assert_int_equal(listen(w.origin_fd, 0), 0);
	for (; n < 4; n++) { /* what is not accepted fills it */
		struct sockaddr_in sin = loopback(0, 0, 1, w.port);

		fds[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fds[n], (struct sockaddr *)&sin, sizeof(sin));
	}
	c = client(&w, NAME_T, NULL);
	expect_reset(c);
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_TIMEOUT);
	hang_up(c, false);
	while (n)
		close(fds[--n]);
}

/* --- connections that say nothing --- */

static void test_many_silent_connections_are_told_together(void **state)
{
	enum { MORE = 7 };
	int64_t began_ms = clock_monotonic_ms(), took_ms;
	unsigned long long sum = 0, more;
	size_t together = 0;

	(void)state;
	for (unsigned i = 1; i <= AUDIT_SILENT_PER_S + MORE; i++) {
		hang_up(client(&w, NAME_A, NULL), false);
		UNTIL(&w, w.proxy->accepted == i && w.proxy->client_count == 0);
	}
	took_ms = clock_monotonic_ms() - began_ms;
	UNTIL(&w, !w.proxy->silent.counting);
	for (size_t i = 0; i < w.event_count; i++) {
		const struct event *e = &w.events[i];

		assert_int_equal(e->kind, EVENT_CONNECTION);
		assert_int_equal(e->decision, EVENT_DENIED);
		more = e->cause == EVENT_CAUSE_LIMIT ? strtoull(e->detail.p, NULL, 10) : 1;
		together += e->cause == EVENT_CAUSE_LIMIT;
		sum += more;
	}
	assert_int_equal(sum, AUDIT_SILENT_PER_S + MORE);
	if (took_ms < 900) /* else they were of several seconds */
		assert_int_equal(together, 1);
}

/* Events still pending are reported at the end. */
static void test_silent_connections_are_told_at_the_end(void **state)
{
	(void)state;
	hang_up(client(&w, NAME_A, NULL), false);
	UNTIL(&w, w.proxy->accepted == 1 && w.proxy->client_count == 0);
	w.proxy->silent.count = 4321;
	proxy_free(w.proxy);
	w.proxy = NULL;
	assert_int_equal(w.event_total, 2);
	assert_true(slice_starts_with(w.events[1].detail, SLICE("4321 more connections")));
	again((struct world_options){.timeouts = patient_timeouts, .limits = usual_limits});
}

/* --- deadlines of requests --- */

static void test_a_slow_head(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	say(c, "GET / HT");
	expect_head(c, "HTTP/1.1 408 ");
	UNTIL(&w, c->eof);
	assert_int_equal(only(EVENT_HTTP)->status, 408);
	hang_up(c, false);
}

static void test_an_upload_that_stalls(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;
	struct world_options options = {.timeouts = patient_timeouts, .limits = usual_limits};

	(void)state;
	hang_up(c, false);
	options.timeouts.response_ms = 60000; /* not the upstream's fault */
	options.timeouts.idle_ms = 200;
	again(options);
	for (int i = 0; i < 2; i++) { /* with nothing of the body, and with some of it */
		c = client(&w, NAME_A, "a.test");
		ask(c, "POST /x", "a.test", "Content-Length: 10\r\n");
		o = origin(&w, true);
		expect_head(o, "POST /x ");
		if (i)
			say(c, "abc");
		UNTIL(&w, (c->eof || c->failed) && (o->eof || o->failed));
		assert_int_equal(count_events(&w, EVENT_HTTP), (size_t)i + 1);
		assert_int_equal(find_event(&w, EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
		hang_up(c, false);
		hang_up(o, false);
	}
}

/* An upload was sent; what follows may take as long as the upstream is given, not the sandbox. */
static void test_a_long_answer_to_an_upload(void **state)
{
	struct world_options options = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *c, *o;

	(void)state;
	options.timeouts.response_ms = 3000;
	options.timeouts.idle_ms = 150;
	again(options);
	c = client(&w, NAME_A, "a.test");
	ask(c, "POST /x", "a.test", "Content-Length: 3\r\n");
	say(c, "abc");
	o = origin(&w, true);
	expect_head(o, "POST /x ");
	expect(o, "abc");
	pump(&w, 400);
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
	expect_head(c, "HTTP/1.1 200 ");
	pump(&w, 400);
	say(o, "k");
	expect(c, "ok");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_an_upstream_that_is_silent(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(c, "HTTP/1.1 504 ");
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_a_client_that_does_not_read(void **state)
{
	struct peer *c = client(&w, NAME_P, NULL), *o;
	static uint8_t big[65536];
	uint64_t end = 0;

	(void)state;
	c->deaf = true;
	ask(c, "GET /x", "p.test", "");
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
	for (int i = 0; i < 200 && !end; i++) {
		if (socket_unsent(&o->socket) < 65536)
			say_n(o, big, sizeof(big));
		pump(&w, 10);
		end = count_events(&w, EVENT_HTTP);
	}
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
	UNTIL(&w, o->eof || o->failed);
	hang_up(c, false);
	hang_up(o, false);
}

/* Responses that the client does not read do not pile up: requests wait in the kernel, and
 * every one is answered in the end. */
static void test_many_requests_at_once(void **state)
{
	enum { COUNT = 3000 };
	struct peer *c = client(&w, NAME_P, NULL);
	struct client *pc;
	size_t answers = 0;

	(void)state;
	c->deaf = true;
	for (int i = 0; i < COUNT; i++) {
		say(c, "GET / HTTP/1.1\r\nHost: evil.test\r\n");
		say(c, i < COUNT - 1 ? "\r\n" : "Connection: close\r\n\r\n");
		if (socket_unsent(&c->socket) >= SOCKET_HIGH)
			pump(&w, 1);
	}
	pump(&w, 100);
	assert_int_equal(w.proxy->client_count, 1);
	pc = container_of(w.proxy->clients.next, struct client, list);
	assert_true(pc->socket.out.len < 3 * SOCKET_HIGH);
	assert_true(w.event_total < 2 * COUNT);
	take_slowly(c);
	for (const uint8_t *p = buf_bytes(&c->in), *end = p + c->in.len;
	        (p = memmem(p, (size_t)(end - p), "HTTP/1.1 403", 12)); p++)
		answers++;
	assert_int_equal(answers, COUNT);
	hang_up(c, false);
}

static void test_an_exchange_as_a_whole(void **state)
{
	struct world_options options = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *c, *o;

	(void)state;
	options.timeouts.request_ms = 300;
	again(options);
	c = client(&w, NAME_A, "a.test");
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
	for (int i = 0; i < 20 && !c->failed && !c->eof; i++) {
		say(o, "x");
		pump(&w, 50);
	}
	assert_true(c->failed || c->eof);
	assert_int_equal(only(EVENT_HTTP)->cause, EVENT_CAUSE_TIMEOUT);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_an_idle_connection_ends_quietly(void **state)
{
	struct peer *c = client(&w, NAME_D, "d.test");

	(void)state;
	ask(c, "GET /x", "d.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	UNTIL(&w, c->eof || c->failed);
	assert_int_equal(w.event_count, 1);
	hang_up(c, false);
}

/* --- bounds, holding, pausing, draining --- */

static void test_connections_beyond_the_bound_wait(void **state)
{
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *first, *second;

	(void)state;
	o.limits.connections = 1;
	o.timeouts.idle_ms = 60000;
	again(o);
	first = client(&w, NAME_D, "d.test");
	second = peer_new(&w, connect_to(&(struct sockaddr_in){.sin_family = AF_INET,
	                              .sin_port = htons(w.port),
	                              .sin_addr = {htonl(0x7f4d0100u + NAME_D)}}));
	say(second, "GET /x HTTP/1.1\r\nHost: d.test\r\n\r\n");
	pump(&w, 50);
	assert_int_equal(second->in.len, 0);
	hang_up(first, false);
	expect_head(second, "HTTP/1.1 403 ");
	hang_up(second, false);
}

static void test_upstream_connections_beyond_the_bound(void **state)
{
	struct world_options options = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *c, *c2, *o;

	(void)state;
	options.limits.upstream_connections = 1;
	again(options);
	c = client(&w, NAME_A, "a.test");
	c2 = client(&w, NAME_P, NULL);
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	ask(c2, "GET /x", "p.test", "");
	expect_head(c2, "HTTP/1.1 503 ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	hang_up(c2, false);
	c2 = client(&w, NAME_P, NULL);
	ask(c2, "GET /x", "p.test", ""); /* the idle one gives way */
	hang_up(o, false);
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(c2, false);
	hang_up(o, false);
}

static void test_held_requests_wait(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *o;

	(void)state;
	proxy_hold(w.proxy, true);
	ask(c, "GET /x", "a.test", "");
	assert_false(origin_is_asked(&w));
	proxy_hold(w.proxy, false);
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_paused(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test"), *t;

	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "the operator \"said\" so");
	ask(c, "GET /x", "a.test", "");
	expect_head(c, "HTTP/1.1 503 ");
	UNTIL(&w, has(c, "the operator \\\"said\\\" so", 24));
	buf_consume(&c->in, c->in.len);
	t = client(&w, NAME_T, NULL);
	expect_reset(t);
	assert_false(origin_is_asked(&w));
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, NULL);
	hang_up(c, false);
	hang_up(t, false);
}

static void on_idle(void *context)
{
	struct world *world = context;

	assert_false(world->idle);
	world->idle = true;
}

static void test_draining(void **state)
{
	struct peer *busy = client(&w, NAME_A, "a.test"), *rest = client(&w, NAME_A, "a.test"),
	            *t = client(&w, NAME_T, NULL);
	struct peer *far = origin(&w, false), *o;

	(void)state;
	ask(busy, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	proxy_drain(w.proxy, on_idle, &w);
	UNTIL(&w, (rest->eof || rest->failed) && (t->eof || t->failed));
	assert_false(w.idle);
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_head(busy, "HTTP/1.1 200 ");
	assert_true(head_has(busy, "connection: close"));
	expect(busy, "ok");
	hang_up(busy, false);
	UNTIL(&w, w.idle);
	assert_int_equal(count_events(&w, EVENT_HTTP), 1);
	hang_up(rest, false);
	hang_up(t, false);
	hang_up(far, false);
	hang_up(o, false);
}

/* A response on its way to a slow client is not cut by draining. */
static void test_draining_lets_a_response_leave(void **state)
{
	const size_t n = 300000;
	struct peer *c = client(&w, NAME_P, NULL), *o;
	uint8_t *big = calloc(1, n);

	(void)state;
	c->deaf = true;
	ask(c, "GET /x", "p.test", "Connection: close\r\n");
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
	say_n(o, big, n);
	pump(&w, 20);
	proxy_drain(w.proxy, on_idle, &w);
	take_slowly(c);
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(c->in.len, n);
	UNTIL(&w, w.idle);
	free(big);
	hang_up(c, false);
	hang_up(o, false);
}

/* Everything at once is under way when the proxy goes. */
static void test_freed_in_the_middle(void **state)
{
	struct world_options o = {.timeouts = patient_timeouts, .limits = usual_limits};
	struct peer *peers[5] = {client(&w, NAME_A, "a.test"), client(&w, NAME_C, "c.test"),
	        client(&w, NAME_T, NULL)};
	size_t n;

	(void)state;
	w.keeper_silent = true;
	ask(peers[0], "POST /x", "a.test", "Content-Length: 10\r\n");
	ask(peers[1], "GET /x", "c.test", "");
	peers[3] = origin(&w, false);
	peers[4] = peer_new(&w, connect_to(&(struct sockaddr_in){.sin_family = AF_INET,
	                                .sin_port = htons(w.port),
	                                .sin_addr = {htonl(0x7f4d0100u + NAME_A)}}));
	pump(&w, 5);
	proxy_free(w.proxy);
	w.proxy = NULL;
	assert_int_equal(count_events(&w, EVENT_HTTP), 2);
	pump(&w, 5);
	for (n = 0; n < 5; n++)
		hang_up(peers[n], true);
	again(o);
}

/* Names in use are held, and let go with their connection, whatever way it ends. */
static void test_names_are_let_go(void **state)
{
	struct ip v4, v6;
	const int64_t later = 1000000;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct peer *c = client(&w, NAME_D, i == 1 ? "d.test" : NULL);

		if (i == 2)
			say(c, "what?");
		pump(&w, 5);
		hang_up(c, i == 0);
		pump(&w, 20);
	}
	UNTIL(&w, w.proxy->client_count == 0);
	for (unsigned i = 0; i < 64; i++) { /* a pool of 64 names: every one can be had again */
		char name[20];

		snprintf(name, sizeof(name), "n%u.test", i);
		assert_int_equal(
		        names_assign(w.names, slice_from_string(name), later, &v4, &v6), 0);
	}
}

static void test_observing(void **state)
{
	struct world_options o = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .observe = true};
	struct peer *c, *far;

	(void)state;
	again(o);
	c = client(&w, NAME_D, "d.test");
	ask(c, "GET /x", "d.test", "");
	far = origin(&w, true);
	expect_head(far, "GET /x ");
	say(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_OBSERVED);
	hang_up(far, false);
	ask(c, "GET /x", "a.test",
	        ""); /* what does not agree with itself is refused all the same */
	expect_head(c, "HTTP/1.1 403 ");
	hang_up(c, false);
	c = client(&w, NAME_A, "a.test");
	ask(c, "DELETE /x", "a.test", ""); /* a deny rule is only noted */
	far = origin(&w, true);
	expect_head(far, "DELETE /x ");
	hang_up(c, false);
	hang_up(far, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_a_dial_that_takes_too_long),
	        TEST(test_many_silent_connections_are_told_together),
	        TEST(test_silent_connections_are_told_at_the_end),
	        HASTY(test_a_slow_head),
	        TEST(test_an_upload_that_stalls),
	        TEST(test_a_long_answer_to_an_upload),
	        HASTY(test_an_upstream_that_is_silent),
	        HASTY(test_a_client_that_does_not_read),
	        TEST(test_many_requests_at_once),
	        TEST(test_an_exchange_as_a_whole),
	        HASTY(test_an_idle_connection_ends_quietly),
	        TEST(test_connections_beyond_the_bound_wait),
	        TEST(test_upstream_connections_beyond_the_bound),
	        TEST(test_held_requests_wait),
	        TEST(test_paused),
	        TEST(test_draining),
	        TEST(test_draining_lets_a_response_leave),
	        TEST(test_freed_in_the_middle),
	        TEST(test_names_are_let_go),
	        TEST(test_observing),
	};

	signal(SIGPIPE, SIG_IGN); /* as the worker does */
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
