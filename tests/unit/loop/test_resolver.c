/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver against a real server on loopback, in the same loop, that answers as a test tells
 * it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "no_memory.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/cursor.h"
#include "vethguard/loop/resolver.h"

#define PATIENCE_MS 60000
#define SILENT_MS 600
#define TYPE_A 1
#define TYPE_AAAA 28

struct waiter {
	struct resolver_wait wait;
	unsigned answers;
	struct resolver_answer answer;
};

struct fixture {
	struct loop *loop;
	struct resolver *resolver;
	struct loop_io io;
	struct loop_timer stop, late;
	int server;
	struct config_server at; /* where it listens */
	unsigned queries[2];     /* A, AAAA */
	unsigned stop_after, answered;
	struct waiter waiters[3];
	/* An answer held back until `late`. */
	uint8_t held[512];
	size_t held_n;
	struct sockaddr_storage peer;
	socklen_t peer_n;
	bool by_hand; /* ... or the test */
};

static struct fixture f;

/* What the server says of a name. */
struct zone {
	const char *name;
	unsigned v4, v6; /* addresses of each family */
	uint8_t rcode;
	uint32_t ttl;
	bool silent, truncated, slow_v6;
};
static const struct zone zones[] = {
        {.name = "both.test", .v4 = 2, .v6 = 1, .ttl = 60},
        {.name = "four.test", .v4 = 1, .ttl = 60},
        {.name = "six.test", .v6 = 1, .ttl = 60},
        {.name = "none.test", .ttl = 60},
        {.name = "missing.test", .rcode = 3},
        {.name = "refused.test", .rcode = 5},
        {.name = "brief.test", .v4 = 1, .ttl = 0},
        {.name = "silent.test", .silent = true},
        {.name = "cut.test", .v4 = 1, .ttl = 60, .truncated = true},
        {.name = "slow6.test", .v4 = 1, .v6 = 1, .ttl = 60, .slow_v6 = true},
        {.name = "many.test", .v4 = 20, .ttl = 60},
        {.name = "brief6.test", .v4 = 1, .v6 = 1, .ttl = 0, .slow_v6 = true},
};

static const struct zone *find(const char *name)
{
	for (size_t i = 0; i < sizeof(zones) / sizeof(*zones); i++)
		if (strcasecmp(zones[i].name, name) == 0)
			return &zones[i];
	return NULL;
}

static size_t parse_name(const uint8_t *q, size_t n, char *name)
{
	size_t at = 12, out = 0;

	while (at < n && q[at]) {
		memcpy(name + out, q + at + 1, q[at]);
		out += q[at];
		name[out++] = '.';
		at += q[at] + 1u;
	}
	name[out ? out - 1 : 0] = '\0';
	return at + 1;
}

static size_t build(const struct zone *z, const uint8_t *q, size_t resolver_query_end,
        uint16_t type, uint8_t *out, size_t cap)
{
	struct writer w = writer_over(out, cap);
	unsigned count = type == TYPE_A ? z->v4 : type == TYPE_AAAA ? z->v6 : 0;
	unsigned width = type == TYPE_A ? 4 : 16;

	writer_bytes(&w, q, 2);
	writer_u16(&w, (uint16_t)(0x8180 | z->rcode | (z->truncated ? 0x0200 : 0)));
	writer_u16(&w, 1);
	writer_u16(&w, (uint16_t)count);
	writer_u32(&w, 0);
	writer_bytes(&w, q + 12, resolver_query_end - 12);
	for (unsigned i = 0; i < count; i++) {
		uint8_t address[16] = {203, 0, 113, (uint8_t)(i + 1)};

		writer_u16(&w, 0xc00c);
		writer_u16(&w, type);
		writer_u16(&w, 1);
		writer_u32(&w, z->ttl);
		writer_u16(&w, (uint16_t)width);
		writer_bytes(&w, address, width);
	}
	return w.failed ? 0 : w.len;
}

static void on_query(struct loop_io *io, unsigned events)
{
	uint8_t q[512], answer[512];
	char name[256];
	struct sockaddr_storage peer;
	socklen_t peer_n = sizeof(peer);
	ssize_t n = recvfrom(io->fd, q, sizeof(q), MSG_DONTWAIT, (struct sockaddr *)&peer, &peer_n);
	const struct zone *z;
	size_t end, size;
	uint16_t type;

	(void)events;
	if (n < 17)
		return;
	end = parse_name(q, (size_t)n, name) + 4;
	type = (uint16_t)(q[end - 4] << 8 | q[end - 3]);
	f.queries[type == TYPE_AAAA]++;
	z = find(name);
	if (!z || z->silent)
		return;
	size = build(z, q, end, type, answer, sizeof(answer));
	if (z->slow_v6 && type == TYPE_AAAA) {
		memcpy(f.held, answer, size);
		f.held_n = size;
		f.peer = peer;
		f.peer_n = peer_n;
		if (!f.by_hand)
			loop_timer_set(&f.late, 200);
		return;
	}
	sendto(io->fd, answer, size, 0, (struct sockaddr *)&peer, peer_n);
}

static void on_late(struct loop_timer *timer)
{
	(void)timer;
	sendto(f.server, f.held, f.held_n, 0, (struct sockaddr *)&f.peer, f.peer_n);
}

static void on_stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	struct waiter *w = container_of(wait, struct waiter, wait);

	w->answers++;
	w->answer = *answer;
	if (++f.answered == f.stop_after)
		loop_stop(f.loop);
}

/* Asks and waits for `count` answers in all, at most so long. */
static void settle(unsigned count, int64_t at_most_ms)
{
	f.stop_after = count;
	loop_timer_set(&f.stop, at_most_ms);
	if (f.answered < count)
		assert_int_equal(loop_run(f.loop), 0);
	loop_timer_cancel(&f.stop);
	assert_int_equal(f.answered, count);
}

static const struct resolver_answer *ask(unsigned i, const char *name)
{
	f.waiters[i].wait.on_answer = on_answer;
	return resolver_get(f.resolver, slice_from_string(name), &f.waiters[i].wait);
}

static const struct resolver_answer *ask_and_settle(const char *name)
{
	const struct resolver_answer *at_once = ask(0, name);

	if (at_once)
		return at_once;
	settle(f.answered + 1, PATIENCE_MS);
	return &f.waiters[0].answer;
}

static int set_up(void **state)
{
	struct sockaddr_in loopback = {
	        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(loopback);
	struct config_host hosts[] = {{.name = "static.test"}, {.name = "static.test"}};

	(void)state;
	memset(&f, 0, sizeof(f));
	f.loop = loop_new();
	f.server = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (!f.loop || bind(f.server, (struct sockaddr *)&loopback, n) < 0 ||
	        getsockname(f.server, (struct sockaddr *)&loopback, &n) < 0)
		return -1;
	ip_parse(SLICE("127.0.0.1"), &f.at.address);
	f.at.port = ntohs(loopback.sin_port);
	ip_parse(SLICE("192.0.2.1"), &hosts[0].address);
	ip_parse(SLICE("2001:db8::1"), &hosts[1].address);
	f.resolver = resolver_new(f.loop, &f.at, 1, hosts, 2, PATIENCE_MS);
	return f.resolver &&
	                       loop_io_open_level(f.loop, &f.io, f.server, LOOP_READ, on_query) ==
	                               0 &&
	                       loop_timer_open(f.loop, &f.stop, on_stop) == 0 &&
	                       loop_timer_open(f.loop, &f.late, on_late) == 0
	               ? 0
	               : -1;
}

static int tear_down(void **state)
{
	(void)state;
	resolver_free(f.resolver);
	loop_io_close(&f.io);
	loop_timer_close(&f.stop);
	loop_timer_close(&f.late);
	close(f.server);
	loop_free(f.loop);
	return 0;
}

static void test_static_hosts_come_at_once_and_ask_nobody(void **state)
{
	const struct resolver_answer *a = ask(0, "static.test");

	(void)state;
	assert_non_null(a);
	assert_int_equal(a->count, 2);
	assert_int_equal(f.queries[0] + f.queries[1], 0);
}

static void test_both_families_are_asked_and_kept(void **state)
{
	const struct resolver_answer *a = ask_and_settle("both.test");

	(void)state;
	assert_int_equal(a->count, 3);
	assert_int_equal(f.queries[0], 1);
	assert_int_equal(f.queries[1], 1);
	a = ask(1, "both.test");
	assert_non_null(a);
	assert_int_equal(a->count, 3);
	assert_int_equal(f.queries[0], 1);
}

static void test_one_family_is_enough(void **state)
{
	(void)state;
	assert_int_equal(ask_and_settle("four.test")->count, 1);
	assert_int_equal(ask_and_settle("six.test")->count, 1);
	assert_int_equal(f.waiters[0].answer.addresses[0].family, 6);
}

static void test_failures_say_why(void **state)
{
	static const struct {
		const char *name, *error;
	} cases[] = {
	        {"none.test", "the name has no address"},
	        {"missing.test", "the name does not exist"},
	        {"refused.test", "the resolver refused to answer"},
	        {"cut.test", "the resolver's answer does not fit into a datagram and could not be "
	                     "fetched over TCP"},
	        {"silent.test", "no resolver answered in time"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct resolver_answer *a;

		if (strcmp(cases[i].name, "silent.test") == 0) {
			resolver_free(f.resolver);
			f.resolver = resolver_new(f.loop, &f.at, 1, NULL, 0, SILENT_MS);
			assert_non_null(f.resolver);
		}
		a = ask_and_settle(cases[i].name);

		assert_int_equal(a->count, 0);
		assert_string_equal(a->error, cases[i].error);
	}
}

static void test_a_slow_family_delays_little(void **state)
{
	(void)state;
	f.by_hand = true; /* it would be waited for until the patience is over */
	assert_int_equal(ask_and_settle("slow6.test")->count, 1);
	/* The late answer finds nobody waiting and harms nothing. */
	on_late(&f.late);
	f.stop_after = 99;
	loop_timer_set(&f.stop, 300);
	assert_int_equal(loop_run(f.loop), 0);
	assert_int_equal(f.answered, 1);
}

static void test_callers_share_one_question(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_null(ask(i, "both.test"));
	settle(3, PATIENCE_MS);
	assert_int_equal(f.queries[0], 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(f.waiters[i].answer.count, 3);
}

static void test_a_cancelled_caller_hears_nothing(void **state)
{
	(void)state;
	assert_null(ask(0, "both.test"));
	assert_null(ask(1, "both.test"));
	resolver_wait_cancel(&f.waiters[0].wait);
	resolver_wait_cancel(&f.waiters[0].wait);
	settle(1, PATIENCE_MS);
	assert_int_equal(f.waiters[0].answers, 0);
	assert_int_equal(f.waiters[1].answers, 1);
}

static void test_an_answer_ages(void **state)
{
	(void)state;
	assert_int_equal(ask_and_settle("brief.test")->count, 1);
	assert_int_equal(f.queries[0], 1);
	usleep(1100 * 1000); /* a ttl of 0 is kept for a second */
	assert_null(ask(0, "brief.test"));
	settle(2, PATIENCE_MS);
	assert_int_equal(f.queries[0], 2);
}

/* A question still open when a round ends is over: its answer does not count for the next
 * question, and touches no memory that has another owner by then. */
static void test_an_answer_that_comes_after_its_round(void **state)
{
	(void)state;
	f.by_hand = true;
	assert_int_equal(ask_and_settle("brief6.test")->count, 1);
	usleep(1100 * 1000);
	assert_null(ask(1, "brief6.test"));
	on_late(&f.late);
	settle(2, PATIENCE_MS);
	assert_int_equal(f.waiters[1].answer.count, 1);
	assert_int_equal(f.queries[0], 2);
	assert_int_equal(f.queries[1], 2);
}

static void test_more_addresses_than_are_kept(void **state)
{
	(void)state;
	assert_int_equal(ask_and_settle("many.test")->count, RESOLVER_ADDRESSES_MAX);
}

static void test_without_servers_nothing_is_asked(void **state)
{
	struct resolver *r = resolver_new(f.loop, NULL, 0, NULL, 0, 500);
	struct waiter w = {.wait.on_answer = on_answer};
	const struct resolver_answer *a = resolver_get(r, SLICE("both.test"), &w.wait);

	(void)state;
	assert_non_null(a);
	assert_int_equal(a->count, 0);
	assert_string_equal(a->error, "no resolver is configured");
	resolver_free(r);
}

/* A resolver has all of its hosts or is not made. libevent, which uses the same allocator, can
 * do without some of its memory. */
static void test_without_memory_no_host_is_forgotten(void **state)
{
	struct config_host hosts[40]; /* the table grows on the way */
	struct waiter w = {.wait.on_answer = on_answer};
	unsigned nth = 0, refused = 0;
	struct resolver *r;
	bool met;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		hosts[i] = (struct config_host){.address = {.family = 4}};
		snprintf(hosts[i].name, sizeof(hosts[i].name), "host-%u.test", i);
	}
	do {
		no_memory_at(++nth);
		r = resolver_new(f.loop, NULL, 0, hosts, 40, 500);
		met = no_memory_met();
		assert_true(r || met);
		refused += !r;
		for (unsigned i = 0; r && i < 40; i++)
			assert_int_equal(
			        resolver_get(r, slice_from_string(hosts[i].name), &w.wait)->count,
			        1);
		resolver_free(r);
	} while (met);
	assert_true(refused >= 43); /* itself, the names, the table, its buckets */
}

static void test_freed_while_asking(void **state)
{
	(void)state;
	assert_null(ask(0, "silent.test"));
	assert_null(ask(1, "both.test"));
	resolver_free(f.resolver);
	f.resolver = NULL;
	loop_timer_set(&f.stop, 50);
	assert_int_equal(loop_run(f.loop), 0);
	assert_int_equal(f.answered, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_static_hosts_come_at_once_and_ask_nobody),
	        TEST(test_both_families_are_asked_and_kept),
	        TEST(test_one_family_is_enough),
	        TEST(test_failures_say_why),
	        TEST(test_a_slow_family_delays_little),
	        TEST(test_callers_share_one_question),
	        TEST(test_a_cancelled_caller_hears_nothing),
	        TEST(test_an_answer_ages),
	        TEST(test_an_answer_that_comes_after_its_round),
	        TEST(test_more_addresses_than_are_kept),
	        TEST(test_without_servers_nothing_is_asked),
	        TEST(test_without_memory_no_host_is_forgotten),
	        TEST(test_freed_while_asking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
