/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP ASSOCIATE of SOCKS5 through a real proxy: connections that have come by the gateway, over
 * socket pairs; UDP sockets that the test opens in the supervisor's place; an origin at 127.0.0.1.
 * The clock stands still: an association is idle when the test says so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "proxy/client/client.h"
#include "proxy/tunnel/private.h"
#include "socks_client.h"
#include "still_clock.h"
#include "../datagrams.h"

/* The linker wraps: clock_gettime */

#define ASSOCIATIONS 32 /* at a time, of one session */
#define IDLE_MS 500     /* idle_ms of HASTY_TIMEOUTS */

static const char udp_policy[] = "vethguard: 1\n"
                                 "name: test\n"
                                 "allow:\n"
                                 "  - {name: u, to: \"udp://a.test:%1$u\"}\n"
                                 "  - {name: t, to: \"tcp://t.test:%1$u\"}\n";
static const char no_udp_policy[] = "vethguard: 1\n"
                                    "name: test\n"
                                    "allow:\n"
                                    "  - {name: t, to: \"tcp://t.test:%1$u\"}\n";
static const struct world_options udp_world = {
        .policy = udp_policy, .timeouts = HASTY_TIMEOUTS, .limits = USUAL_LIMITS};

static int udp;        /* the client's */
static uint64_t asked; /* id of the last question */
static unsigned questions, closed;
static int cannot_ask;
static struct ip asked_at;
static const struct ip told = {4, {192, 0, 2, 7}}; /* behind a NAT */
static struct sockaddr_in relay;                   /* to where the client sends */

static uint16_t port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t n = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	return ntohs(at.sin_port);
}

static int on_associate(void *context, uint64_t id, const struct ip *at)
{
	(void)context;
	asked = id;
	asked_at = *at;
	questions++;
	return cannot_ask;
}

static void on_associate_end(void *context)
{
	(void)context;
	closed++;
}

static void opens(void)
{
	origin_udp = bound(loopback(0, 0, 1, w.port));
	udp = bound(loopback(0, 0, 1, 0));
	asked = questions = closed = 0;
	cannot_ask = 0;
	w.proxy->config.associate = on_associate;
	w.proxy->config.associate_end = on_associate_end;
}

static int associate_set_up(void **state)
{
	(void)state;
	clock_stop();
	world_open(&w, &udp_world);
	opens();
	return 0;
}

static int associate_tear_down(void **state)
{
	(void)state;
	close(origin_udp);
	close(udp);
	world_close(&w);
	clock_go();
	return 0;
}

static void anew(struct world_options o)
{
	close(origin_udp);
	close(udp);
	again(o);
	opens();
}

/* --- the connection --- */

static struct peer *enters(uint8_t reached_family)
{
	const struct message_worker_enter enter = {.source = {4, {127, 0, 0, 1}},
	        .source_port = 7,
	        .reached = {reached_family, {127, 0, 0, 1}}};
	int pair[2];

	assert_int_equal(
	        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(proxy_enter(w.proxy, pair[0], &enter), 0);
	return peer_new(&w, pair[1]);
}

static void ask_for_association(struct peer *c, uint8_t d, uint16_t port)
{
	const uint8_t request[] = {5, SOCKS5_UDP_ASSOCIATE, 0, 1, d ? 127 : 0, 0, 0, d,
	        (uint8_t)(port >> 8), (uint8_t)port};

	say_n(c, BYTES(GREETING));
	expect_bytes(c, BYTES(GREETED));
	say_n(c, request, sizeof(request));
}

/* The supervisor answers the last question. */
static void answer_question(void)
{
	int fd = bound(loopback(0, 0, 1, 0));
	uint16_t port = port_of(fd);

	relay = loopback(0, 0, 1, port);
	proxy_associated(w.proxy, asked, fd, &told, port);
}

static void expect_association(struct peer *c)
{
	uint8_t answer[] = {5, 0, 0, 1, 192, 0, 2, 7, 0, 0};

	UNTIL(&w, questions == 1);
	answer_question();
	answer[8] = (uint8_t)(ntohs(relay.sin_port) >> 8);
	answer[9] = (uint8_t)ntohs(relay.sin_port);
	expect_bytes(c, (const char *)answer, sizeof(answer));
	questions = 0;
}

static struct peer *associated(void)
{
	struct peer *c = enters(4);

	ask_for_association(c, 0, 0);
	expect_association(c);
	return c;
}

static void expect_gone(struct peer *c)
{
	UNTIL(&w, c->eof || c->failed);
	hang_up(c, false);
}

static void expect_refusal(struct peer *c, enum socks5_reply reply, enum event_cause cause)
{
	const struct event *e;

	expect_reply(c, reply);
	expect_gone(c);
	e = find_event(&w, EVENT_CONNECTION);
	assert_non_null(e);
	assert_int_equal(e->decision, EVENT_DENIED);
	assert_int_equal(e->cause, cause);
	w.event_count = w.event_total = 0;
}

/* --- datagrams --- */

static void send_from(int fd, const void *p, size_t n)
{
	assert_int_equal(sendto(fd, p, n, 0, (struct sockaddr *)&relay, sizeof(relay)), n);
}

/* Writes the header for a name. Returns its size. */
static size_t header_for(const char *name, uint16_t port, uint8_t *out)
{
	const size_t n = strlen(name);

	memcpy(out, "\0\0\0\3", 4);
	out[4] = (uint8_t)n;
	memcpy(out + 5, name, n);
	out[5 + n] = (uint8_t)(port >> 8);
	out[6 + n] = (uint8_t)port;
	return 7 + n;
}

static void tell_from(int fd, const char *name, const char *text)
{
	uint8_t datagram[1024];
	size_t n = header_for(name, w.port, datagram);

	memcpy(datagram + n, text, strlen(text));
	send_from(fd, datagram, n + strlen(text));
}

static void tell(const char *name, const char *text)
{
	tell_from(udp, name, text);
}

static void reply(const void *p, size_t n)
{
	assert_int_equal(sendto(origin_udp, p, n, 0, (struct sockaddr *)&from, sizeof(from)), n);
}

/* The client gets text, behind the header for name. */
static void expect_answer(const char *name, const char *text)
{
	uint8_t datagram[1024];
	size_t n = header_for(name, w.port, datagram);

	memcpy(datagram + n, text, strlen(text));
	n += strlen(text);
	assert_int_equal(next(udp), n);
	assert_memory_equal(in, datagram, n);
	assert_int_equal(from.sin_port, relay.sin_port);
}

/* --- what passes --- */

static void datagrams_pass_both_ways(void **state)
{
	struct peer *c = associated();
	const struct event *e;

	(void)state;
	assert_int_equal(asked_at.bytes[0], 127);
	tell("A.test.", "question");
	expect_text(origin_udp, "question");
	reply("answer", 6);
	expect_answer("a.test", "answer");
	tell("a.test", ""); /* the same flow */
	assert_int_equal(next(origin_udp), 0);
	reply("", 0);
	expect_answer("a.test", "");
	hang_up(c, false);
	e = only(EVENT_FLOW);
	assert_int_equal(e->decision, EVENT_ALLOWED);
	assert_int_equal(e->bytes_out, 8);
	assert_int_equal(e->bytes_in, 6);
	assert_true(slice_equals(e->rule, SLICE("u")));
	assert_true(slice_equals(e->host, SLICE("a.test")));
	assert_int_equal(e->src_port, port_of(udp));
	assert_int_equal(e->dst.family, 0);
	assert_int_equal(e->dst_port, w.port);
	assert_int_equal(e->upstream_port, w.port);
	UNTIL(&w, closed == 1);
}

/* The client sends to an address that stands for a name, as bytes and as text. */
static void an_address_is_answered_as_an_address(void **state)
{
	uint8_t datagram[] = {
	        0, 0, 0, 1, 127, 77, 1, 0, (uint8_t)(w.port >> 8), (uint8_t)w.port, 'x'};
	struct peer *c = associated();

	(void)state;
	send_from(udp, datagram, sizeof(datagram));
	expect_text(origin_udp, "x");
	reply("y", 1);
	datagram[sizeof(datagram) - 1] = 'y';
	assert_int_equal(next(udp), sizeof(datagram));
	assert_memory_equal(in, datagram, sizeof(datagram));
	tell("127.77.1.0", "z");
	expect_text(origin_udp, "z");
	hang_up(c, false);
	UNTIL(&w, w.event_total);
	assert_int_equal(w.event_total, 1); /* one flow */
	assert_true(slice_equals(w.events[0].host, SLICE("a.test")));
}

static void associations_do_not_mix(void **state)
{
	struct peer *one = associated();
	struct sockaddr_in first = relay, upstream;
	struct peer *two = associated();

	(void)state;
	tell("a.test", "by two");
	expect_text(origin_udp, "by two");
	upstream = from;
	relay = first;
	tell("a.test", "by one"); /* from the same address and port, to the same name */
	expect_text(origin_udp, "by one");
	assert_int_not_equal(upstream.sin_port, from.sin_port);
	reply("for one", 7);
	expect_answer("a.test", "for one");
	hang_up(one, false);
	UNTIL(&w, closed == 1);
	from = upstream;
	reply("for two", 7);
	assert_true(next(udp) > 7);
	assert_int_not_equal(from.sin_port, first.sin_port);
	hang_up(two, false);
	UNTIL(&w, closed == 2);
	assert_int_equal(w.event_total, 2);
}

static void the_largest_datagrams_pass(void **state)
{
	struct peer *c = associated();
	size_t n = header_for("a.test", w.port, big);

	(void)state;
	send_from(udp, big, UDP_MAX);
	assert_int_equal(next(origin_udp), UDP_MAX - n);
	reply(big, UDP_MAX); /* has no room behind a header */
	expect_silence(udp);
	reply(big, UDP_MAX - n);
	assert_int_equal(next(udp), UDP_MAX);
	hang_up(c, false);
	assert_int_equal(only(EVENT_FLOW)->bytes_in, UDP_MAX - n);
}

/* --- what is dropped --- */

static void wrong_headers_are_dropped(void **state)
{
	uint8_t whole[64], bad[64];
	size_t n = header_for("a.test", w.port, whole);
	struct peer *c = associated();

	(void)state;
	for (size_t cut = 0; cut < n; cut++)
		send_from(udp, whole, cut);
	for (unsigned i = 0; i < 4; i++) { /* reserved, reserved, fragment, type */
		for (unsigned value = 1; value < 256; value += i == 3 ? 1 : 50) {
			memcpy(bad, whole, n);
			bad[i] = (uint8_t)value;
			if (i < 3 || (value != 1 && value != 3 && value != 4))
				send_from(udp, bad, n);
		}
		pump(&w, 1);
	}
	memcpy(bad, whole, n);
	bad[n - 2] = bad[n - 1] = 0; /* port 0 */
	send_from(udp, bad, n);
	send_from(udp, "\0\0\0\3\0\0\x50", 7);    /* no name */
	send_from(udp, "\0\0\0\3\2a\n\0\x50", 9); /* no host name */
	send_from(udp,
	        "\0\0\0\3\xff"
	        "a\0\x50",
	        8);
	expect_silence(origin_udp);
	assert_null(w.proxy->datagrams->flows);
	assert_int_equal(w.event_total, 0);
	tell("a.test", "good");
	expect_text(origin_udp, "good");
	hang_up(c, false);
}

static void only_the_client_is_served(void **state)
{
	int address = bound(loopback(0, 0, 9, 0)), port = bound(loopback(0, 0, 1, 0));
	struct peer *c = associated();

	(void)state;
	tell_from(address, "a.test", "from another address");
	expect_silence(origin_udp);
	tell("a.test", "first");
	expect_text(origin_udp, "first");
	tell_from(port, "a.test", "from another port");
	tell_from(address, "a.test", "from another address");
	expect_silence(origin_udp);
	reply("answer", 6);
	expect_answer("a.test", "answer");
	expect_silence(port);
	hang_up(c, false);
	assert_int_equal(only(EVENT_FLOW)->bytes_out, 5);
	close(address);
	close(port);
}

/* The first valid datagram tells the client's port; another port's datagrams are dropped. */
static void only_the_first_port_is_served(void **state)
{
	int other = bound(loopback(0, 0, 1, 0));
	struct peer *c = associated();

	(void)state;
	tell_from(other, "", "invalid"); /* tells no port */
	tell("a.test", "one");
	tell_from(other, "a.test", "two");
	expect_text(origin_udp, "one");
	expect_silence(origin_udp);
	hang_up(c, false);
	close(other);
}

static void an_announced_port_is_the_only_one(void **state)
{
	int other = bound(loopback(0, 0, 1, 0));

	(void)state;
	for (unsigned own = 0; own < 2; own++) {
		struct peer *c = enters(4);

		ask_for_association(c, own, port_of(udp));
		expect_association(c);
		tell_from(other, "a.test", "sooner");
		expect_silence(origin_udp);
		tell("a.test", "announced");
		expect_text(origin_udp, "announced");
		hang_up(c, false);
	}
	struct peer *c = enters(4); /* behind a NAT: the port is not the one that arrives */

	ask_for_association(c, 9, port_of(other));
	expect_association(c);
	tell("a.test", "translated");
	expect_text(origin_udp, "translated");
	hang_up(c, false);
	close(other);
}

static void only_what_was_asked_answers(void **state)
{
	int other = bound(loopback(0, 0, 1, 0));
	struct peer *c = associated();
	struct sockaddr_in flow;

	(void)state;
	tell("a.test", "question");
	expect_text(origin_udp, "question");
	flow = from;
	sendto(other, "forged", 6, 0, (struct sockaddr *)&flow, sizeof(flow));
	expect_silence(udp);
	reply("answer", 6);
	expect_answer("a.test", "answer");
	hang_up(c, false);
	assert_int_equal(only(EVENT_FLOW)->bytes_in, 6);
	close(other);
}

static void what_no_rule_names_is_recorded_once(void **state)
{
	struct peer *c = associated();

	(void)state;
	for (unsigned i = 0; i < 20; i++)
		tell("evil.test", "flood");
	UNTIL(&w, w.event_total == 1);
	assert_true(slice_equals(w.events[0].host, SLICE("evil.test")));
	assert_int_equal(w.events[0].cause, EVENT_CAUSE_POLICY);
	tell("t.test", "tcp only");
	tell("127.0.0.1", "an address");
	tell("169.254.169.254", "metadata");
	UNTIL(&w, w.event_total == 4);
	expect_silence(origin_udp);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(w.events[i].decision, EVENT_DENIED);
	hang_up(c, false);
	UNTIL(&w, closed == 1);
	assert_int_equal(w.event_total, 4);
}

/* --- requests that are refused --- */

static void without_a_rule_there_is_no_association(void **state)
{
	struct world_options o = udp_world;
	struct peer *c;

	(void)state;
	o.policy = no_udp_policy;
	anew(o);
	c = enters(4);
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_NOT_ALLOWED, EVENT_CAUSE_POLICY);
	assert_int_equal(questions, 0);
}

static void elsewhere_it_is_no_command(void **state)
{
	struct peer *c = enters(0); /* by a load balancer */

	(void)state;
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_NO_COMMAND, EVENT_CAUSE_CLIENT);
	serve_unix();
	c = unix_client();
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_NO_COMMAND, EVENT_CAUSE_CLIENT);
	c = proxy_client(&w); /* of a sandbox with a link */
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_NO_COMMAND, EVENT_CAUSE_CLIENT);
	w.proxy->config.associate = NULL;
	c = enters(4);
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_NO_COMMAND, EVENT_CAUSE_CLIENT);
	assert_int_equal(questions, 0);
}

static void without_a_socket_it_fails(void **state)
{
	struct peer *c = enters(4);

	(void)state;
	ask_for_association(c, 0, 0);
	UNTIL(&w, questions == 1);
	proxy_associated(w.proxy, asked, -1, &told, 0);
	expect_refusal(c, SOCKS5_FAILURE, EVENT_CAUSE_LIMIT);
	cannot_ask = -EAGAIN;
	c = enters(4);
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_FAILURE, EVENT_CAUSE_LIMIT);
	assert_int_equal(w.proxy->association_count, 0);
	assert_int_equal(closed, 0);
}

static void nothing_new_while_paused(void **state)
{
	struct peer *c;

	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "the disk is full");
	c = enters(4);
	ask_for_association(c, 0, 0);
	expect_refusal(c, SOCKS5_FAILURE, EVENT_CAUSE_PAUSED);
}

static void associations_are_bounded(void **state)
{
	struct world_options o = udp_world;
	struct peer *c[ASSOCIATIONS], *more;

	(void)state;
	o.limits.connections = 2 * ASSOCIATIONS;
	anew(o);
	for (unsigned i = 0; i < ASSOCIATIONS; i++) {
		w.proxy->associations.left = 1000;
		c[i] = associated();
	}
	w.proxy->associations.left = 1000;
	more = enters(4);
	ask_for_association(more, 0, 0);
	expect_refusal(more, SOCKS5_FAILURE, EVENT_CAUSE_LIMIT);
	for (unsigned i = 0; i < ASSOCIATIONS; i++)
		hang_up(c[i], false);
	UNTIL(&w, closed == ASSOCIATIONS);
	w.proxy->associations.left = 0; /* too fast */
	more = enters(4);
	ask_for_association(more, 0, 0);
	expect_refusal(more, SOCKS5_FAILURE, EVENT_CAUSE_LIMIT);
	w.proxy->associations.left = 1000;
	hang_up(associated(), false);
}

static void a_client_may_leave_before_its_socket_comes(void **state)
{
	struct peer *c = enters(4);

	(void)state;
	ask_for_association(c, 0, 0);
	UNTIL(&w, questions == 1);
	clock_move(2000); /* hello_ms */
	expect_gone(c);
	UNTIL(&w, !w.proxy->association_count);
	answer_question();
	assert_int_equal(closed, 1);
	proxy_associated(w.proxy, asked + 1, -1, &told, 0); /* nobody has asked */
	assert_int_equal(closed, 1);
}

/* --- the end --- */

static void it_ends_with_its_connection(void **state)
{
	(void)state;
	for (unsigned way = 0; way < 3; way++) {
		struct peer *c = associated();

		tell("a.test", "x");
		expect_text(origin_udp, "x");
		if (way == 0)
			hang_up(c, false);
		else if (way == 1)
			hang_up(c, true);
		else
			say_n(c, "x", 1); /* nothing may follow */
		UNTIL(&w, closed == way + 1);
		if (way == 2)
			expect_gone(c);
		sendto(udp, "\0\0\0\1\x7f\1\1\1\0\1x", 11, 0, (struct sockaddr *)&relay,
		        sizeof(relay));
		reply("late", 4);
		expect_silence(udp);
		assert_int_equal(w.event_total, way + 1);
		assert_null(w.proxy->datagrams->flows);
		(void)recv(udp, in, sizeof(in), 0); /* the ICMP error */
	}
}

static void it_ends_when_idle(void **state)
{
	struct peer *c = associated();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		clock_move(IDLE_MS - 1);
		pump(&w, QUIET_MS);
		tell("a.test", "x");
		expect_text(origin_udp, "x");
	}
	assert_int_equal(closed, 0);
	for (unsigned i = 0; i < 2; i++) {
		clock_move(IDLE_MS);
		pump(&w, QUIET_MS);
	}
	expect_gone(c);
	UNTIL(&w, closed == 1);
}

static void the_kill_switch_ends_it(void **state)
{
	struct peer *c = associated();

	(void)state;
	tell("a.test", "x");
	expect_text(origin_udp, "x");
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "stopped");
	proxy_end_all(w.proxy, EVENT_CAUSE_PAUSED, "stopped");
	assert_int_equal(only(EVENT_FLOW)->cause, EVENT_CAUSE_PAUSED);
	expect_gone(c);
	UNTIL(&w, closed == 1);
	assert_null(w.proxy->datagrams->flows);
}

static void on_idle(void *context)
{
	*(bool *)context = true;
}

static void a_worker_that_retires_ends_it(void **state)
{
	struct peer *c = associated(), *asking = enters(4);
	bool idle = false;

	(void)state;
	ask_for_association(asking, 0, 0);
	UNTIL(&w, questions == 1);
	tell("a.test", "x");
	expect_text(origin_udp, "x");
	proxy_retire(w.proxy, on_idle, &idle);
	expect_gone(c);
	expect_gone(asking);
	UNTIL(&w, idle);
	assert_int_equal(only(EVENT_FLOW)->decision, EVENT_ALLOWED);
	assert_int_equal(closed, 1);
}

static void it_is_recorded_at_the_end(void **state)
{
	struct peer *c = associated();

	(void)state;
	tell("a.test", "x");
	expect_text(origin_udp, "x");
	proxy_free(w.proxy);
	w.proxy = NULL;
	assert_int_equal(only(EVENT_FLOW)->bytes_out, 1);
	assert_int_equal(closed, 1);
	hang_up(c, false);
}

/* Beyond the rate, the kernel keeps what it has room for. */
static void beyond_the_rate_nothing_is_read_for_a_while(void **state)
{
	struct rate *rate = &w.proxy->datagrams->rate;
	struct peer *c = associated();

	(void)state;
	*rate = (struct rate){.per_s = 1000, .left = 1000, .burst = 1000000, .at_ms = INT64_MAX};
	tell("a.test", "one");
	tell("a.test", "two");
	expect_text(origin_udp, "one");
	expect_silence(origin_udp);
	rate->left = 1000;
	clock_move(20);
	expect_text(origin_udp, "two");
	hang_up(c, false);
}

#define ASSOCIATE(name) cmocka_unit_test_setup_teardown(name, associate_set_up, associate_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ASSOCIATE(datagrams_pass_both_ways),
	        ASSOCIATE(an_address_is_answered_as_an_address),
	        ASSOCIATE(associations_do_not_mix),
	        ASSOCIATE(the_largest_datagrams_pass),
	        ASSOCIATE(wrong_headers_are_dropped),
	        ASSOCIATE(only_the_client_is_served),
	        ASSOCIATE(only_the_first_port_is_served),
	        ASSOCIATE(an_announced_port_is_the_only_one),
	        ASSOCIATE(only_what_was_asked_answers),
	        ASSOCIATE(what_no_rule_names_is_recorded_once),
	        ASSOCIATE(without_a_rule_there_is_no_association),
	        ASSOCIATE(elsewhere_it_is_no_command),
	        ASSOCIATE(without_a_socket_it_fails),
	        ASSOCIATE(nothing_new_while_paused),
	        ASSOCIATE(associations_are_bounded),
	        ASSOCIATE(a_client_may_leave_before_its_socket_comes),
	        ASSOCIATE(it_ends_with_its_connection),
	        ASSOCIATE(it_ends_when_idle),
	        ASSOCIATE(the_kill_switch_ends_it),
	        ASSOCIATE(a_worker_that_retires_ends_it),
	        ASSOCIATE(it_is_recorded_at_the_end),
	        ASSOCIATE(beyond_the_rate_nothing_is_read_for_a_while),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
