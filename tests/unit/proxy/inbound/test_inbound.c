/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exposed ports: which connections are admitted, what the supervisor is asked and which answers
 * count, bounds, and how visits end. The host's listener lies at 127.0.0.2, the sandbox at
 * 127.0.0.3, and the test is the supervisor.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"
#include "proxy/inbound/inbound.h"

#define PORT 8080 /* in the policy's eyes */
#define MANY 60

static const char open_policy[] = "vethguard: 1\n"
                                  "name: test\n"
                                  "expose:\n"
                                  "  - {name: page, port: 8080, from: 127.0.0.0/8, at: "
                                  "\"127.0.0.2:%1$u\", connections: 3}\n";
static const char closed_policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "expose:\n"
        "  - {name: page, port: 8080, from: 127.0.0.9, at: \"127.0.0.2:%1$u\"}\n";
static const char elsewhere_policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "expose:\n"
        "  - {name: page, port: 8080, from: host, at: \"127.0.0.5:%1$u\"}\n";
static const char sandbox_policy[] =
        "vethguard: 1\n"
        "name: test\n"
        "expose:\n"
        "  - {port: 8080, from: [\"sandbox:two\", \"label:a=b\"], connections: 2}\n";
static const char no_policy[] = "vethguard: 1\nname: test\n";

static int sandbox_fd; /* listens */
static unsigned asked, asks;
static bool idle;

static int reach(void *context, uint16_t port, uint32_t count)
{
	(void)context;
	assert_int_equal(port, PORT);
	asked += count;
	asks++;
	return 0;
}

static void on_idle(void *context)
{
	*(bool *)context = true;
}

static void expose(const char *policy, struct config_timeouts timeouts)
{
	const struct world_options o = {
	        .policy = policy, .timeouts = timeouts, .limits = USUAL_LIMITS};
	struct sockaddr_in at;

	world_open(&w, &o);
	w.proxy->config.reach = reach;
	asked = asks = 0;
	idle = false;
	at = loopback(0, 0, 2, w.port);
	assert_int_equal(proxy_serve_exposed(w.proxy, world_listen(&at, 0), PORT), 0);
	at = loopback(0, 0, 3, w.port);
	sandbox_fd = world_listen(&at, 0);
}

static int open_set_up(void **state)
{
	(void)state;
	expose(open_policy, patient_timeouts);
	return 0;
}

static int closed_set_up(void **state)
{
	(void)state;
	expose(closed_policy, patient_timeouts);
	return 0;
}

static int hasty_set_up(void **state)
{
	(void)state;
	expose(open_policy, hasty_timeouts);
	return 0;
}

static int inbound_tear_down(void **state)
{
	(void)state;
	if (sandbox_fd >= 0)
		close(sandbox_fd);
	world_close(&w);
	return 0;
}

static struct peer *visitor(void)
{
	const struct sockaddr_in at = loopback(0, 0, 2, w.port);

	return peer_new(&w, connect_to(&at));
}

/* A socket that is connecting to the sandbox. */
static int connecting(void)
{
	const struct sockaddr_in at = loopback(0, 0, 3, w.port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)connect(fd, (const struct sockaddr *)&at, sizeof(at));
	return fd;
}

/* The supervisor's answer: as many sockets. Returns what the proxy says to it. */
static int answer(uint16_t port, size_t count)
{
	const struct ip address = {4, {127, 0, 0, 3}};
	int fds[MESSAGE_REACH_MAX], rc;

	for (size_t i = 0; i < count; i++)
		fds[i] = connecting();
	rc = proxy_reached(w.proxy, port, &address, fds, count, "there are no more");
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc;
}

/* The end of a connection in the sandbox. */
static struct peer *inside(void)
{
	int fd = -1;

	UNTIL(&w, (fd = accept4(sandbox_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	return peer_new(&w, fd);
}

static void test_passes(void **state)
{
	struct peer *v = visitor(), *s;
	const struct event *e;

	(void)state;
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 1), 0);
	s = inside();
	say(v, "GET / HTTP/1.0\r\n\r\n");
	expect(s, "GET / HTTP/1.0\r\n\r\n");
	say(s, "a page");
	expect(v, "a page");
	hang_up(s, false);
	expect_end(v);
	hang_up(v, false);
	e = only(EVENT_INBOUND);
	assert_int_equal(e->decision, EVENT_ALLOWED);
	assert_int_equal(e->bytes_in, 18);
	assert_int_equal(e->bytes_out, 6);
	assert_int_equal(e->upstream_port, PORT);
	assert_int_equal(e->upstream.bytes[3], 3);
	assert_int_equal(e->dst.bytes[3], 2);
	assert_int_equal(e->dst_port, w.port);
	assert_true(slice_equals(e->rule, SLICE("page")));
	assert_int_equal(w.proxy->inbound->count, 0);
}

static void refused(enum event_cause cause)
{
	struct peer *v = visitor();
	const struct event *e;

	expect_reset(v);
	hang_up(v, true);
	e = only(EVENT_INBOUND);
	assert_int_equal(e->decision, EVENT_DENIED);
	assert_int_equal(e->cause, cause);
	assert_int_equal(e->bytes_in + e->bytes_out, 0);
	assert_int_equal(asks, 0);
}

static void test_another_source(void **state)
{
	(void)state;
	refused(EVENT_CAUSE_POLICY);
}

static void test_paused(void **state)
{
	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "paused");
	refused(EVENT_CAUSE_PAUSED);
}

/* A policy that exposes the port at another address, or not at all, does not apply to this
 * listener. */
static void test_not_this_place(void **state)
{
	(void)state;
	inbound_tear_down(state);
	expose(elsewhere_policy, patient_timeouts);
	refused(EVENT_CAUSE_POLICY);
}

static void test_no_such_port(void **state)
{
	struct peer *v;

	(void)state;
	inbound_tear_down(state);
	expose(no_policy, patient_timeouts);
	v = visitor();
	pump(&w, 50);
	assert_int_equal(asks, 0);
	assert_int_equal(w.proxy->inbound->count, 0);
	hang_up(v, true);
}

static void test_a_flood_of_refused(void **state)
{
	uint64_t told = 0;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		struct peer *v = visitor();

		expect_reset(v);
		hang_up(v, true);
	}
	assert_int_equal(count_events(&w, EVENT_INBOUND), INBOUND_REFUSED_PER_S);
	UNTIL(&w, count_events(&w, EVENT_INBOUND) == INBOUND_REFUSED_PER_S + 1);
	for (size_t i = 0; i < w.event_count; i++)
		if (w.events[i].kind == EVENT_INBOUND)
			told++;
	assert_int_equal(told, INBOUND_REFUSED_PER_S + 1);
	assert_true(slice_starts_with(
	        find_event(&w, EVENT_INBOUND)->detail, SLICE("the last of 40 more")));
	assert_int_equal(asks, 0);
}

/* Unexpected answers end the supervisor's pair of sockets. */
static void test_wrong_answers(void **state)
{
	struct peer *v;

	(void)state;
	assert_int_equal(answer(PORT, 0), 0); /* takes nothing away */
	assert_int_equal(answer(PORT, 1), -EBADMSG);
	assert_int_equal(answer(PORT + 1, 0), -EBADMSG);
	v = visitor();
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 2), -EBADMSG);
	assert_int_equal(answer(PORT, 1), 0);
	assert_int_equal(answer(PORT, 1), -EBADMSG);
	for (unsigned i = 0; i < 5; i++) /* all sockets that were made */
		hang_up(inside(), true);
	expect_reset(v);
	hang_up(v, true);
}

static void test_no_socket(void **state)
{
	struct peer *v = visitor();

	(void)state;
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 0), 0);
	expect_reset(v);
	hang_up(v, true);
	assert_int_equal(only(EVENT_INBOUND)->cause, EVENT_CAUSE_CONNECT);
	assert_true(slice_equals(only(EVENT_INBOUND)->detail, SLICE("there are no more")));
}

static void test_nothing_listens_inside(void **state)
{
	struct peer *v = visitor();

	(void)state;
	close(sandbox_fd);
	sandbox_fd = -1;
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 1), 0);
	expect_reset(v);
	hang_up(v, true);
	assert_int_equal(only(EVENT_INBOUND)->cause, EVENT_CAUSE_CONNECT);
	assert_true(event_is_failure(only(EVENT_INBOUND)));
}

static void test_no_answer(void **state)
{
	struct peer *v = visitor();

	(void)state;
	expect_reset(v);
	hang_up(v, true);
	assert_int_equal(only(EVENT_INBOUND)->cause, EVENT_CAUSE_TIMEOUT);
	assert_int_equal(answer(PORT, 1), 0); /* too late: the socket is closed */
	assert_int_equal(w.proxy->inbound->count, 0);
}

static void test_idle(void **state)
{
	struct peer *v = visitor(), *s;

	(void)state;
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 1), 0);
	s = inside();
	expect_reset(v);
	expect_reset(s);
	assert_int_equal(only(EVENT_INBOUND)->cause, EVENT_CAUSE_TIMEOUT);
	hang_up(v, true);
	hang_up(s, true);
}

/* One message asks for all that wait; beyond the bound nobody is accepted. */
static void test_bound(void **state)
{
	struct peer *v[5], *s[5];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		v[i] = visitor();
	UNTIL(&w, w.proxy->inbound->count == 3);
	pump(&w, 20);
	assert_int_equal(w.proxy->inbound->count, 3);
	UNTIL(&w, asks > 0);
	while (asked < 3) {
		size_t now = asked;

		assert_int_equal(answer(PORT, now), 0);
		UNTIL(&w, asked > now || asked == 3);
	}
	assert_int_equal(answer(PORT, w.proxy->inbound->ports[0].asked), 0);
	for (size_t i = 0; i < 3; i++)
		s[i] = inside();
	hang_up(s[0], true);
	UNTIL(&w, asked == 4);
	assert_int_equal(answer(PORT, 1), 0);
	s[3] = inside();
	assert_int_equal(w.proxy->inbound->count, 3);
	for (size_t i = 1; i < 4; i++)
		hang_up(s[i], true);
	UNTIL(&w, asked == 5);
	assert_int_equal(answer(PORT, 1), 0);
	hang_up(inside(), true);
	UNTIL(&w, count_events(&w, EVENT_INBOUND) == 5);
	for (size_t i = 0; i < 5; i++)
		hang_up(v[i], true);
}

static void test_held(void **state)
{
	struct peer *v;

	(void)state;
	proxy_hold(w.proxy, true);
	v = visitor();
	pump(&w, 50);
	assert_int_equal(asks, 0);
	proxy_hold(w.proxy, false);
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 1), 0);
	hang_up(inside(), true);
	hang_up(v, true);
	UNTIL(&w, find_event(&w, EVENT_INBOUND));
}

static struct policy next;

static void change(void *context)
{
	(void)context;
	w.policy = next;
}

static size_t reauthorize(const char *text)
{
	uint8_t *image = w.image, *next_image;
	struct policy policy = w.policy;
	size_t ended;

	world_load_policy(&w, text, false);
	next_image = w.image;
	next = w.policy;
	w.policy = policy;
	ended = proxy_reauthorize(w.proxy, &next, change, NULL);
	free(image);
	w.image = next_image;
	return ended;
}

/* A visit that waits, and one that is open. */
static void two_visits(struct peer *v[2], struct peer **s)
{
	v[0] = visitor();
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 1), 0);
	*s = inside();
	v[1] = visitor();
	UNTIL(&w, asked == 2);
}

static void all_ended(struct peer *v[2], struct peer *s, enum event_cause cause)
{
	expect_reset(v[0]);
	expect_reset(v[1]);
	expect_reset(s);
	assert_int_equal(count_events(&w, EVENT_INBOUND), 2);
	for (size_t i = 0; i < w.event_count; i++)
		if (w.events[i].kind == EVENT_INBOUND)
			assert_int_equal(w.events[i].cause, cause);
	assert_int_equal(w.proxy->inbound->count, 0);
	hang_up(v[0], true);
	hang_up(v[1], true);
	hang_up(s, true);
}

static void test_policy_changes(void **state)
{
	struct peer *v[2], *s;

	(void)state;
	two_visits(v, &s);
	assert_int_equal(reauthorize(open_policy), 0);
	say(s, "still there");
	expect(v[0], "still there");
	assert_int_equal(reauthorize(closed_policy), 2);
	all_ended(v, s, EVENT_CAUSE_POLICY_CHANGED);
	assert_int_equal(answer(PORT, 1), 0);
}

static void test_port_is_taken_out(void **state)
{
	struct peer *v[2], *s;

	(void)state;
	two_visits(v, &s);
	assert_int_equal(reauthorize(no_policy), 2);
	all_ended(v, s, EVENT_CAUSE_POLICY_CHANGED);
}

static void test_kill_switch(void **state)
{
	struct peer *v[2], *s;

	(void)state;
	two_visits(v, &s);
	proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "paused");
	all_ended(v, s, EVENT_CAUSE_PAUSED);
}

static void test_drain(void **state)
{
	struct peer *v[2], *s;

	(void)state;
	two_visits(v, &s);
	proxy_drain(w.proxy, on_idle, &idle);
	all_ended(v, s, EVENT_CAUSE_CLOSING);
	assert_true(idle);
}

/* A retired worker takes no further visitor, and ends with its last one. */
static void test_retire(void **state)
{
	const struct sockaddr_in at = loopback(0, 0, 2, w.port);
	struct peer *v = visitor(), *s;
	int fd;

	(void)state;
	UNTIL(&w, asked == 1);
	assert_int_equal(answer(PORT, 1), 0);
	s = inside();
	proxy_retire(w.proxy, on_idle, &idle);
	pump(&w, 20);
	assert_false(idle);
	assert_int_equal(proxy_left(w.proxy), 1);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), -1);
	close(fd);
	say(s, "still there");
	expect(v, "still there");
	hang_up(s, false);
	hang_up(v, false);
	UNTIL(&w, idle);
}

static void test_one_listener_each(void **state)
{
	struct sockaddr_in at = loopback(0, 0, 4, 0);

	(void)state;
	assert_int_equal(proxy_serve_exposed(w.proxy, world_listen(&at, 0), PORT), -EEXIST);
	for (unsigned i = 1; i < INBOUND_PORTS_MAX; i++) {
		at = loopback(0, 0, 4, 0);
		assert_int_equal(
		        proxy_serve_exposed(w.proxy, world_listen(&at, 0), (uint16_t)(PORT + i)),
		        0);
	}
	at = loopback(0, 0, 4, 0);
	assert_int_equal(proxy_serve_exposed(w.proxy, world_listen(&at, 0), 1), -ENOMEM);
}

/* --- another sandbox calls --- */

static int called_set_up(void **state)
{
	const struct world_options o = {
	        .policy = sandbox_policy, .timeouts = PATIENT_TIMEOUTS, .limits = USUAL_LIMITS};
	struct sockaddr_in at;

	(void)state;
	world_open(&w, &o);
	w.proxy->config.reach = reach;
	asked = asks = 0;
	at = loopback(0, 0, 3, w.port);
	sandbox_fd = world_listen(&at, 0);
	return 0;
}

static struct peer *caller(const char *name, const char *labels)
{
	int pair[2];

	assert_int_equal(
	        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	proxy_visited(w.proxy, PORT, pair[0], slice_from_string(name), slice_from_string(labels));
	return peer_new(&w, pair[1]);
}

static void test_called(void **state)
{
	static const char *const names[] = {"two", "three"}, *const labels[] = {"", "x=y\na=b\n"};
	struct peer *c, *s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		c = caller(names[i], labels[i]);
		assert_int_equal(asked, i + 1);
		assert_int_equal(answer(PORT, 1), 0);
		s = inside();
		say(c, "hello");
		expect(s, "hello");
		say(s, "there");
		expect(c, "there");
		hang_up(c, false);
		expect_end(s);
		hang_up(s, false);
		UNTIL(&w, count_events(&w, EVENT_INBOUND) == i + 1);
		assert_true(slice_equals(
		        find_event(&w, EVENT_INBOUND)->user, slice_from_string(names[i])));
		assert_int_equal(find_event(&w, EVENT_INBOUND)->src.family, 0);
	}
}

static void test_called_by_others(void **state)
{
	static const char *const names[] = {"tw", "twoo", "Two", "host", "three", "three", "three"};
	static const char *const labels[] = {"", "", "", "", "a=bc\n", "a\n", "sandbox:two\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct peer *c = caller(names[i], labels[i]);

		UNTIL(&w, c->eof || c->failed);
		hang_up(c, true);
		assert_int_equal(count_events(&w, EVENT_INBOUND), i + 1);
		assert_int_equal(find_event(&w, EVENT_INBOUND)->decision, EVENT_DENIED);
		assert_true(slice_equals(
		        find_event(&w, EVENT_INBOUND)->user, slice_from_string(names[i])));
	}
	assert_int_equal(asks, 0);
}

static void test_called_too_often(void **state)
{
	struct peer *c[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		c[i] = caller("two", "");
	UNTIL(&w, c[2]->eof || c[2]->failed);
	assert_int_equal(only(EVENT_INBOUND)->cause, EVENT_CAUSE_LIMIT);
	proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "paused");
	for (size_t i = 0; i < 3; i++) {
		UNTIL(&w, c[i]->eof || c[i]->failed);
		hang_up(c[i], true);
	}
	assert_int_equal(count_events(&w, EVENT_INBOUND), 3);
}

static void test_called_while_it_ends(void **state)
{
	struct peer *c;

	(void)state;
	proxy_drain(w.proxy, on_idle, &idle);
	c = caller("two", "");
	UNTIL(&w, c->eof || c->failed);
	hang_up(c, true);
	assert_int_equal(asks, 0);
}

#define CALLED(name) cmocka_unit_test_setup_teardown(name, called_set_up, inbound_tear_down)
#define OPEN(name) cmocka_unit_test_setup_teardown(name, open_set_up, inbound_tear_down)
#define CLOSED(name) cmocka_unit_test_setup_teardown(name, closed_set_up, inbound_tear_down)
#define SOON_OVER(name) cmocka_unit_test_setup_teardown(name, hasty_set_up, inbound_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        OPEN(test_passes),
	        CLOSED(test_another_source),
	        OPEN(test_paused),
	        OPEN(test_not_this_place),
	        OPEN(test_no_such_port),
	        CLOSED(test_a_flood_of_refused),
	        OPEN(test_wrong_answers),
	        OPEN(test_no_socket),
	        OPEN(test_nothing_listens_inside),
	        SOON_OVER(test_no_answer),
	        SOON_OVER(test_idle),
	        OPEN(test_bound),
	        OPEN(test_held),
	        OPEN(test_policy_changes),
	        OPEN(test_port_is_taken_out),
	        OPEN(test_kill_switch),
	        OPEN(test_drain),
	        OPEN(test_retire),
	        OPEN(test_one_listener_each),
	        CALLED(test_called),
	        CALLED(test_called_by_others),
	        CALLED(test_called_too_often),
	        CALLED(test_called_while_it_ends),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
