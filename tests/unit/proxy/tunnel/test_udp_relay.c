/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The UDP relay over real sockets: what a flow carries, who may answer, what is refused, and its
 * bounds. The relay's sockets lie at the names' own synthetic addresses, the origin at
 * 127.0.0.1, all at one port. The relay's clock stands still: a flow is idle when the test says so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fixture.h"
#include "no_memory.h"
#include "proxy/tunnel/private.h"
#include "still_clock.h"
#include "../datagrams.h"

/* The linker wraps: clock_gettime */

#define FLOWS_MAX 4 /* usual_limits */
#define KEPT 4      /* datagrams of one flow that the relay keeps until the name is resolved */
#define ALL_KEPT 16 /* of the largest datagrams, of all flows */
#define IDLE_MS 200 /* udp_idle_ms of HASTY_TIMEOUTS */

static const char udp_policy[] = "vethguard: 1\n"
                                 "name: test\n"
                                 "allow:\n"
                                 "  - {name: u, to: \"udp://a.test:%1$u\"}\n"
                                 "  - {name: v, to: \"udp://d.test:%1$u\"}\n"
                                 "  - {name: t, to: \"tcp://t.test:%1$u\"}\n";
static const struct world_options udp_world = {
        .policy = udp_policy, .timeouts = HASTY_TIMEOUTS, .limits = USUAL_LIMITS};

static int client_udp(void)
{
	return bound(loopback(0, 0, 1, 0));
}

static void relay_opens(void)
{
	origin_udp = bound(loopback(0, 0, 1, w.port));
	for (unsigned i = 0; i < 3; i++) /* a.test, c.test, d.test */
		assert_int_equal(proxy_serve_udp(w.proxy,
		                         bound(loopback(77, 1, (uint8_t)i, w.port)), w.port),
		        0);
	assert_int_equal(proxy_serve_udp(w.proxy, bound(loopback(78, 1, 1, w.port)), w.port),
	        0); /* no name's */
}

static int relay_set_up(void **state)
{
	(void)state;
	clock_stop();
	world_open(&w, &udp_world);
	relay_opens();
	return 0;
}

static int relay_tear_down(void **state)
{
	(void)state;
	close(origin_udp);
	world_close(&w);
	clock_go();
	return 0;
}

static void anew(struct world_options o)
{
	close(origin_udp);
	again(o);
	relay_opens();
}

static void send_at(int fd, uint8_t b, uint8_t d, const void *p, size_t n)
{
	struct sockaddr_in to = loopback(b, 1, d, w.port);

	assert_int_equal(sendto(fd, p, n, 0, (struct sockaddr *)&to, sizeof(to)), n);
}

/* From a client to a name. */
static void tell(int fd, unsigned name, const char *text)
{
	send_at(fd, 77, (uint8_t)name, text, strlen(text));
}

static void reply(const char *text)
{
	assert_int_equal(
	        sendto(origin_udp, text, strlen(text), 0, (struct sockaddr *)&from, sizeof(from)),
	        strlen(text));
}

static void expect_from(uint8_t b, uint8_t d)
{
	struct sockaddr_in is = loopback(b, 1, d, w.port);

	assert_int_equal(from.sin_addr.s_addr, is.sin_addr.s_addr);
	assert_int_equal(from.sin_port, is.sin_port);
}

/* All flows that there are end. */
static void idle_out(void)
{
	clock_move(IDLE_MS);
	UNTIL(&w, !w.proxy->datagrams->flows);
}

/* The event of the one flow that there was. */
static const struct event *ended(void)
{
	idle_out();
	return only(EVENT_FLOW);
}

static const struct event *expect_refused(enum event_cause cause)
{
	const struct event *e = only(EVENT_FLOW);

	assert_int_equal(e->decision, EVENT_DENIED);
	assert_int_equal(e->cause, cause);
	assert_int_equal(e->bytes_out, 0);
	return e;
}

/* --- what passes --- */

static void a_flow_carries_both_ways(void **state)
{
	int c = client_udp();
	const struct event *e;

	(void)state;
	tell(c, NAME_A, "question");
	expect_text(origin_udp, "question");
	reply("answer");
	expect_text(c, "answer");
	expect_from(77, NAME_A);
	tell(c, NAME_A, "");
	assert_int_equal(next(origin_udp), 0);
	reply("");
	assert_int_equal(next(c), 0);
	e = ended();
	assert_int_equal(e->decision, EVENT_ALLOWED);
	assert_int_equal(e->bytes_out, 8);
	assert_int_equal(e->bytes_in, 6);
	assert_true(slice_equals(e->rule, SLICE("u")));
	assert_true(slice_equals(e->host, SLICE("a.test")));
	close(c);
}

static void two_clients_are_two_flows(void **state)
{
	int one = client_udp(), two = client_udp();
	struct sockaddr_in first;

	(void)state;
	tell(one, NAME_A, "one");
	expect_text(origin_udp, "one");
	first = from;
	tell(two, NAME_A, "two");
	expect_text(origin_udp, "two");
	assert_int_not_equal(from.sin_port, first.sin_port);
	reply("for two");
	expect_text(two, "for two");
	expect_silence(one);
	close(one);
	close(two);
}

/* Only the peer answers: others at the same host, who know the flow's port, do not. */
static void only_the_destination_answers(void **state)
{
	int c = client_udp(), other = client_udp();
	struct sockaddr_in flow;

	(void)state;
	tell(c, NAME_A, "question");
	expect_text(origin_udp, "question");
	flow = from;
	sendto(other, "forged", 6, 0, (struct sockaddr *)&flow, sizeof(flow));
	expect_silence(c);
	reply("answer");
	expect_text(c, "answer");
	assert_int_equal(ended()->bytes_in, 6);
	close(c);
	close(other);
}

/* The flow itself, the table of all, its buckets: it is not there, and the next one may be. */
static void a_flow_without_memory(void **state)
{
	struct udp_relay *relay = w.proxy->datagrams;
	struct sockaddr_in to = loopback(77, 1, NAME_A, w.port);
	struct udp_flow_key key = {.src_port = 1, .dst_port = w.port};
	unsigned nth = 0, refused = 0;
	bool met;

	(void)state;
	key.src = key.dst = ip_from_sockaddr((struct sockaddr *)&to, &key.dst_port);
	do {
		no_memory_at(++nth);
		struct udp_flow *f = udp_flow_open(&relay->sockets[0], &key);
		met = no_memory_met();

		assert_true(f || met);
		assert_int_equal(HASH_COUNT(relay->flows), f != NULL);
		refused += !f;
		if (f)
			udp_flow_free(f);
	} while (met);
	assert_true(refused >= 3);
}

/* An ICMP error of an earlier datagram neither ends the flow nor swallows the next datagram. */
static void a_flow_survives_an_unreachable_port(void **state)
{
	int c = client_udp();

	(void)state;
	close(origin_udp);
	tell(c, NAME_A, "lost");
	UNTIL(&w, w.proxy->datagrams->flows && w.proxy->datagrams->flows->bytes_out == 4);
	pump(&w, QUIET_MS);
	origin_udp = bound(loopback(0, 0, 1, w.port));
	tell(c, NAME_A, "again");
	expect_text(origin_udp, "again");
	close(c);
}

/* --- what is refused --- */

static void what_no_rule_names_is_recorded_once(void **state)
{
	int c = client_udp();

	(void)state;
	for (int i = 0; i < 20; i++)
		tell(c, NAME_C, "flood");
	expect_silence(origin_udp);
	assert_int_equal(expect_refused(EVENT_CAUSE_POLICY)->policy_reason, POLICY_REASON_DEFAULT);
	idle_out(); /* its end is not a second event */
	assert_int_equal(count_events(&w, EVENT_FLOW), 1);
	close(c);
}

static void an_address_without_a_name_is_judged_as_itself(void **state)
{
	int c = client_udp();

	(void)state;
	send_at(c, 78, 1, "x", 1);
	expect_silence(origin_udp);
	expect_refused(EVENT_CAUSE_POLICY);
	close(c);
}

static void a_private_address_is_refused(void **state)
{
	int c = client_udp();

	(void)state;
	w.permit = (struct ip_prefix){{4, {10}}, 8};
	tell(c, NAME_A, "x");
	expect_silence(origin_udp);
	expect_refused(EVENT_CAUSE_ADDRESS);
	close(c);
}

/* A permitted range is not this host's own addresses in it. */
static void an_address_of_the_host_is_refused(void **state)
{
	int c = client_udp();

	(void)state;
	w.permit = (struct ip_prefix){{4, {127}}, 8};
	tell(c, NAME_A, "x");
	expect_silence(origin_udp);
	expect_refused(EVENT_CAUSE_ADDRESS);
	close(c);
}

static void nothing_new_begins_while_paused(void **state)
{
	int c = client_udp(), later = client_udp();

	(void)state;
	tell(c, NAME_A, "before");
	expect_text(origin_udp, "before");
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "the disk is full");
	tell(later, NAME_A, "x");
	expect_silence(origin_udp);
	expect_refused(EVENT_CAUSE_PAUSED);
	tell(c, NAME_A, "under way");
	expect_text(origin_udp, "under way");
	close(c);
	close(later);
}

/* While nothing is recorded, a datagram is lost without a trace, and the next attempt may succeed.
 */
static void nothing_new_begins_while_held(void **state)
{
	int c = client_udp();

	(void)state;
	proxy_hold(w.proxy, true);
	tell(c, NAME_A, "x");
	expect_silence(origin_udp);
	assert_int_equal(w.event_total, 0);
	proxy_hold(w.proxy, false);
	tell(c, NAME_A, "y");
	expect_text(origin_udp, "y");
	close(c);
}

static void observing_lets_it_pass(void **state)
{
	struct world_options o = udp_world;
	int c = client_udp();

	(void)state;
	o.observe = true;
	anew(o);
	tell(c, NAME_C, "x");
	expect_text(origin_udp, "x");
	assert_int_equal(ended()->decision, EVENT_OBSERVED);
	close(c);
}

/* A socket that does not tell where a datagram was sent to. */
static void without_its_destination_nothing_is_sent(void **state)
{
	int c = client_udp(), relay = bound(loopback(77, 1, NAME_T, w.port)), zero = 0;

	(void)state;
	assert_int_equal(setsockopt(relay, IPPROTO_IP, IP_RECVORIGDSTADDR, &zero, sizeof(zero)), 0);
	assert_int_equal(proxy_serve_udp(w.proxy, relay, w.port), 0);
	tell(c, NAME_T, "x");
	expect_silence(origin_udp);
	assert_int_equal(w.event_total, 0);
	close(c);
}

/* --- bounds --- */

static void an_idle_flow_ends(void **state)
{
	int c = client_udp();
	struct sockaddr_in first;

	(void)state;
	tell(c, NAME_A, "one");
	expect_text(origin_udp, "one");
	first = from;
	for (int i = 0; i < 6; i++) { /* longer than the timeout, but never silent for so long */
		clock_move(IDLE_MS - 1);
		pump(&w, 60); /* now and then the relay looks for idle flows */
		tell(c, NAME_A, "more");
		expect_text(origin_udp, "more");
		assert_int_equal(from.sin_port, first.sin_port);
	}
	assert_int_equal(w.event_total, 0);
	ended();
	from = first;
	reply("too late");
	expect_silence(c);
	tell(c, NAME_A, "anew");
	expect_text(origin_udp, "anew");
	close(c);
}

static void flows_are_bounded(void **state)
{
	int c[FLOWS_MAX + 1];

	(void)state;
	for (int i = 0; i < FLOWS_MAX; i++) {
		c[i] = client_udp();
		tell(c[i], i % 2 ? NAME_A : NAME_C, "x"); /* refused ones count, too */
	}
	c[FLOWS_MAX] = client_udp();
	for (int i = 0; i < FLOWS_MAX / 2; i++)
		expect_text(origin_udp, "x");
	tell(c[FLOWS_MAX], NAME_A, "one too many");
	expect_silence(origin_udp);
	idle_out();
	assert_int_equal(w.event_total, FLOWS_MAX);
	tell(c[FLOWS_MAX], NAME_A, "room again");
	expect_text(origin_udp, "room again");
	for (int i = 0; i <= FLOWS_MAX; i++)
		close(c[i]);
}

static void the_largest_datagrams_pass_whole(void **state)
{
	int c = client_udp();

	(void)state;
	for (int i = 0; i < 2; i++) { /* the first of a flow as well */
		send_at(c, 77, NAME_A, big, UDP_MAX);
		assert_int_equal(next(origin_udp), UDP_MAX);
		assert_memory_equal(in, big, UDP_MAX);
	}
	sendto(origin_udp, big, UDP_MAX, 0, (struct sockaddr *)&from, sizeof(from));
	assert_int_equal(next(c), UDP_MAX);
	close(c);
}

/* --- while the name is being resolved --- */

static int name_server;

static void with_a_name_server(uint32_t flows)
{
	static struct config_server server;
	struct sockaddr_in at;
	socklen_t n = sizeof(at);
	struct world_options o = udp_world;

	name_server = client_udp();
	assert_int_equal(getsockname(name_server, (struct sockaddr *)&at, &n), 0);
	server = (struct config_server){{4, {127, 0, 0, 1}}, ntohs(at.sin_port)};
	o.resolver = &server;
	o.limits.udp_flows = flows;
	anew(o);
}

/* Answers one query in the wire format of RFC 1035: 127.0.0.1 for the A of a name that is known,
 * else nothing. */
static void name_server_answers(bool known)
{
	static const uint8_t address[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1};
	ssize_t got = next(name_server);
	size_t end;

	assert_true(got > 12);
	end = 12 + strlen((const char *)in + 12) + 1 + 4; /* behind the question */
	assert_true(end <= (size_t)got);
	in[2] = 0x81;
	in[3] = 0x80;
	memset(in + 6, 0, 6);
	if (known && in[end - 3] == 1) {
		in[7] = 1;
		memcpy(in + end, address, sizeof(address));
		end += sizeof(address);
	}
	assert_int_equal(
	        sendto(name_server, in, end, 0, (struct sockaddr *)&from, sizeof(from)), end);
}

static void the_name_is_resolved(bool known)
{
	name_server_answers(known);
	name_server_answers(known);
}

static void a_large_first_datagram_waits_for_the_name(void **state)
{
	int c = client_udp();

	(void)state;
	with_a_name_server(FLOWS_MAX);
	send_at(c, 77, NAME_A, big, UDP_MAX);
	the_name_is_resolved(true);
	assert_int_equal(next(origin_udp), UDP_MAX);
	assert_memory_equal(in, big, UDP_MAX);
	close(c);
	close(name_server);
}

static void one_flow_keeps_few_datagrams(void **state)
{
	int c = client_udp();

	(void)state;
	with_a_name_server(FLOWS_MAX);
	for (int i = 0; i < KEPT; i++)
		tell(c, NAME_A, "");
	tell(c, NAME_A, "one too many");
	pump(&w, 1);
	the_name_is_resolved(true);
	for (int i = 0; i < KEPT; i++)
		assert_int_equal(next(origin_udp), 0);
	expect_silence(origin_udp);
	tell(c, NAME_A, "the next one");
	expect_text(origin_udp, "the next one");
	assert_int_equal(ended()->bytes_out, strlen("the next one"));
	close(c);
	close(name_server);
}

static void one_flow_keeps_few_bytes(void **state)
{
	int c = client_udp();

	(void)state;
	with_a_name_server(FLOWS_MAX);
	send_at(c, 77, NAME_A, big, UDP_MAX);
	pump(&w, 1);
	send_at(c, 77, NAME_A, big, UDP_MAX); /* has no room, but the small one behind it has */
	pump(&w, 1);
	tell(c, NAME_A, "small");
	pump(&w, 1);
	the_name_is_resolved(true);
	assert_int_equal(next(origin_udp), UDP_MAX);
	expect_text(origin_udp, "small");
	expect_silence(origin_udp);
	close(c);
	close(name_server);
}

/* Each of many flows sends the largest datagram. The bytes that left once the name was resolved. */
static uint64_t flood(uint8_t name, bool known)
{
	int c[ALL_KEPT + 2];
	uint64_t bytes = 0;

	w.event_count = w.event_total = 0;
	for (int i = 0; i < ALL_KEPT + 2; i++) {
		c[i] = client_udp();
		send_at(c[i], 77, name, big, UDP_MAX);
		pump(&w, 1);
	}
	the_name_is_resolved(known);
	UNTIL(&w, w.proxy->datagrams->kept_bytes == 0);
	idle_out();
	assert_int_equal(w.event_total, ALL_KEPT + 2);
	for (int i = 0; i < ALL_KEPT + 2; i++) {
		bytes += w.events[i].bytes_out;
		close(c[i]);
	}
	return bytes;
}

static void all_flows_together_keep_a_bound(void **state)
{
	(void)state;
	with_a_name_server(2 * (ALL_KEPT + 2));
	assert_int_equal(flood(NAME_D, false), 0); /* what was kept is given back */
	assert_int_equal(flood(NAME_A, true), ALL_KEPT * UDP_MAX);
	close(name_server);
}

static void sockets_are_bounded(void **state)
{
	int r = 0, n = 0;

	(void)state;
	while (n <= 2 * POLICY_UDP_PORTS_MAX && r == 0) {
		r = proxy_serve_udp(w.proxy, client_udp(), 1);
		n += r == 0;
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(n, 2 * POLICY_UDP_PORTS_MAX - 4);
}

/* Closing with flows under way writes their events; memory is the sanitizer's matter. */
static void flows_under_way_are_recorded_at_the_end(void **state)
{
	int c = client_udp();

	(void)state;
	tell(c, NAME_A, "x");
	expect_text(origin_udp, "x");
	tell(c, NAME_C, "x");
	UNTIL(&w, w.event_total == 1);
	proxy_free(w.proxy);
	w.proxy = NULL;
	assert_int_equal(w.event_total, 2);
	assert_int_equal(w.events[1].decision, EVENT_ALLOWED);
	assert_int_equal(w.events[1].bytes_out, 1);
	close(c);
}

#define RELAY(name) cmocka_unit_test_setup_teardown(name, relay_set_up, relay_tear_down)

/* --- a worker that retires, and the kill switch --- */

static bool idle;

static void on_idle(void *context)
{
	(void)context;
	idle = true;
}

/* Answers of the flows there are still leave; what comes anew is for the next worker, whose socket
 * lies at the same address. */
static void a_retired_relay_only_answers(void **state)
{
	struct sockaddr_in at = loopback(77, 1, 0, w.port), there;
	int c = client_udp();

	(void)state;
	tell(c, NAME_A, "ping");
	expect_text(origin_udp, "ping");
	there = from;
	idle = false;
	proxy_retire(w.proxy, on_idle, NULL);
	assert_int_equal(
	        sendto(origin_udp, "pong", 4, 0, (struct sockaddr *)&there, sizeof(there)), 4);
	expect_text(c, "pong");
	assert_true(from.sin_addr.s_addr == at.sin_addr.s_addr); /* from where it had asked */
	tell(c, NAME_A, "more");
	assert_int_equal(recvfrom(origin_udp, in, sizeof(in), 0, NULL, NULL), -1);
	clock_move(IDLE_MS);
	UNTIL(&w, idle); /* the flow has idled out */
	assert_int_equal(only(EVENT_FLOW)->bytes_in, 4);
	assert_int_equal(only(EVENT_FLOW)->bytes_out, 4);
	close(c);
}

static void the_kill_switch_ends_flows(void **state)
{
	int c = client_udp();

	(void)state;
	tell(c, NAME_A, "ping");
	expect_text(origin_udp, "ping");
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "stopped");
	proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "stopped");
	assert_int_equal(only(EVENT_FLOW)->cause, EVENT_CAUSE_PAUSED);
	tell(c, NAME_A, "again");
	UNTIL(&w, count_events(&w, EVENT_FLOW) == 2);
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, NULL);
	tell(c, NAME_A, "at last"); /* not refused for having been refused */
	expect_text(origin_udp, "at last");
	close(c);
}

/* --- too many --- */

/* The token bucket stays empty until the test says so. */
static void allow(uint64_t datagrams)
{
	w.proxy->datagrams->rate = (struct rate){
	        .per_s = 1000, .left = datagrams * 1000, .burst = 1000000, .at_ms = INT64_MAX};
}

static void beyond_the_rate_nothing_is_read_for_a_while(void **state)
{
	int c = client_udp(), d = client_udp();

	(void)state;
	allow(2);
	tell(c, NAME_A, "one");
	tell(c, NAME_A, "two");
	tell(c, NAME_A, "three"); /* finds the bucket empty, and stays with the kernel */
	expect_text(origin_udp, "one");
	expect_text(origin_udp, "two");
	expect_silence(origin_udp);
	tell(d, NAME_D, "four"); /* on another socket of the same relay */
	expect_silence(origin_udp);
	allow(2);
	assert_true(next(origin_udp) > 0); /* three and four, in either order */
	assert_true(next(origin_udp) > 0);
	allow(1000);
	for (int i = 0; i < 100; i++) {
		tell(c, NAME_A, "at once");
		expect_text(origin_udp, "at once");
	}
	assert_int_equal(w.proxy->datagrams->rate.left, 900 * 1000);
	close(c);
	close(d);
}

/* Answers do not count as a flood. */
static void answers_pass_in_a_pause(void **state)
{
	int c = client_udp();
	struct sockaddr_in flow;

	(void)state;
	allow(1);
	tell(c, NAME_A, "question");
	expect_text(origin_udp, "question");
	flow = from;
	for (int i = 0; i < 10; i++) {
		from = flow;
		tell(c, NAME_A, "more"); /* so that it is paused, and stays so */
		reply("answer");
		expect_text(c, "answer");
	}
	close(c);
}

static void a_pause_ends_with_the_relay(void **state)
{
	int c = client_udp();

	(void)state;
	allow(1);
	tell(c, NAME_A, "question");
	expect_text(origin_udp, "question");
	tell(c, NAME_A, "too many");
	expect_silence(origin_udp);
	udp_relay_retire(w.proxy->datagrams);
	pump(&w, 5 * DATAGRAM_PAUSE_MS);
	tell(c, NAME_A, "more");
	expect_silence(origin_udp);
	close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RELAY(a_flow_carries_both_ways),
	        RELAY(two_clients_are_two_flows),
	        RELAY(only_the_destination_answers),
	        RELAY(a_flow_without_memory),
	        RELAY(a_flow_survives_an_unreachable_port),
	        RELAY(what_no_rule_names_is_recorded_once),
	        RELAY(an_address_without_a_name_is_judged_as_itself),
	        RELAY(a_private_address_is_refused),
	        RELAY(an_address_of_the_host_is_refused),
	        RELAY(nothing_new_begins_while_paused),
	        RELAY(nothing_new_begins_while_held),
	        RELAY(observing_lets_it_pass),
	        RELAY(without_its_destination_nothing_is_sent),
	        RELAY(an_idle_flow_ends),
	        RELAY(flows_are_bounded),
	        RELAY(the_largest_datagrams_pass_whole),
	        RELAY(a_large_first_datagram_waits_for_the_name),
	        RELAY(one_flow_keeps_few_datagrams),
	        RELAY(one_flow_keeps_few_bytes),
	        RELAY(all_flows_together_keep_a_bound),
	        RELAY(sockets_are_bounded),
	        RELAY(flows_under_way_are_recorded_at_the_end),
	        RELAY(a_retired_relay_only_answers),
	        RELAY(the_kill_switch_ends_flows),
	        RELAY(beyond_the_rate_nothing_is_read_for_a_while),
	        RELAY(answers_pass_in_a_pause),
	        RELAY(a_pause_ends_with_the_relay),
	};

	memset(big, 'b', sizeof(big));
	alarm(900);
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
