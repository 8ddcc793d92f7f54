/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS5 through a real proxy, on its port. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "socks_client.h"

/* --- what works --- */

static void test_socks_and_tls(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	ask_socks(c, "A.test.");
	expect_reply(c, SOCKS5_SUCCEEDED);
	get_through(c, "a.test", true);
	assert_int_equal(only(EVENT_HTTP)->dst_port, w.proxy_port);
	assert_int_equal(only(EVENT_HTTP)->src.family, 4);
}

static void test_socks_and_a_credential(void **state)
{
	struct peer *c = proxy_client(&w), *o;

	(void)state;
	ask_socks(c, "c.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	start_tls(c, "c.test");
	ask(c, "GET /x", "c.test", "Authorization: Bearer " PLACEHOLDER "\r\n");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	assert_true(head_has(o, "authorization: bearer " SECRET_VALUE));
	hang_up(c, false);
	hang_up(o, false);
}

static void test_socks_and_plain_http(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	ask_socks(c, "p.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	get_through(c, "p.test", false);
}

/* A server that speaks first. */
static void test_socks_and_a_tunnel(void **state)
{
	struct peer *c = proxy_client(&w), *o;

	(void)state;
	ask_socks(c, "t.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	o = origin(&w, false);
	say(o, "220 hello\r\n");
	expect(c, "220 hello\r\n");
	say(c, "bye");
	expect(o, "bye");
	hang_up(c, false);
	hang_up(o, false);
	assert_true(slice_equals(only(EVENT_CONNECTION)->host, SLICE("t.test")));
	assert_int_equal(only(EVENT_CONNECTION)->upstream_port, w.port);
}

/* An address that the name service gave out stands for its name, as four bytes and as text. */
static void test_socks_to_a_synthetic_address(void **state)
{
	struct peer *c = proxy_client(&w);
	char request[] = "\5\1\0\1\x7f\x4d\1\3??";

	(void)state;
	request[8] = (char)(w.port >> 8);
	request[9] = (char)w.port;
	say_n(c, BYTES(GREETING));
	expect_bytes(c, BYTES(GREETED));
	say_n(c, BYTES(request));
	expect_reply(c, SOCKS5_SUCCEEDED);
	get_through(c, "p.test", false);
	c = proxy_client(&w);
	ask_socks(c, "127.77.1.3");
	expect_reply(c, SOCKS5_SUCCEEDED);
	hang_up(c, false);
}

/* However the bytes are cut: one at a time, or greeting, request and what follows at once. */
static void test_socks_in_pieces(void **state)
{
	char all[400] = GREETING, *end;
	struct peer *c = proxy_client(&w), *o;
	size_t n = 3 + request_for("p.test", w.port, all + 3);
	int one = 1;

	(void)state;
	end = all + n;
	n += (size_t)snprintf(
	        end, sizeof(all) - n, "GET /x HTTP/1.1\r\nHost: p.test:%u\r\n\r\n", w.port);
	say_n(c, all, n);
	expect_bytes(c, BYTES(GREETED SUCCEEDED));
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(o, false);
	c = proxy_client(&w);
	setsockopt(c->socket.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (size_t i = 0; i < n; i++) {
		say_n(c, all + i, 1);
		pump(&w, 0);
	}
	expect_bytes(c, BYTES(GREETED SUCCEEDED));
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(o, false);
}

/* --- what is refused --- */

static void test_denied_destinations(void **state)
{
	static const char *const names[] = {"evil.test", "d.test", "127.0.0.1", "169.254.169.254",
	        "::1", "sub.a.test", "a.test.evil.test"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct peer *c = proxy_client(&w);

		ask_socks(c, names[i]);
		expect_reply(c, SOCKS5_NOT_ALLOWED);
		expect_end(c);
		assert_int_equal(count_events(&w, EVENT_CONNECTION), i + 1);
		assert_int_equal(find_event(&w, EVENT_CONNECTION)->decision, EVENT_DENIED);
		assert_int_equal(find_event(&w, EVENT_CONNECTION)->cause, EVENT_CAUSE_POLICY);
		assert_int_equal(find_event(&w, EVENT_CONNECTION)->upstream_port, w.port);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
	assert_true(slice_equals(w.events[0].host, SLICE("evil.test")));
	assert_int_equal(w.events[3].upstream.family, 4); /* which address was wanted */
	assert_int_equal(w.events[4].upstream.family, 6);
}

static void test_requests_that_are_none(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum socks5_reply reply;
	} cases[] = {
	        {"\5\2\0\1\x7f\0\0\1\0\x50", 10, SOCKS5_NO_COMMAND},
	        {"\5\3\0\1\0\0\0\0\0\0", 10, SOCKS5_NO_COMMAND},
	        {"\5\xf0\0\3\6p.test\0\x50", 13, SOCKS5_NO_COMMAND},
	        {"\5\1\0\2\6p.test\0\x50", 13, SOCKS5_NO_ADDRESS_TYPE},
	        {"\5\1\1\3\6p.test\0\x50", 13, SOCKS5_FAILURE},
	        {"\4\1\0\x50\x7f\0\0\1", 8, SOCKS5_FAILURE},
	        {"\5\1\0\3\6p.test\0\0", 13, SOCKS5_FAILURE},
	        {"\5\1\0\3\0\0\x50", 7, SOCKS5_FAILURE},
	        {"\5\1\0\3\7p.test\0\0\x50", 14, SOCKS5_FAILURE},
	        {"\5\1\0\3\7p.tes\xc3\xa9\0\x50", 14, SOCKS5_FAILURE},
	        {"\5\1\0\3\7p test\n\0\x50", 14, SOCKS5_FAILURE},
	        {"\5\1\0\3\3[::\0\x50", 10, SOCKS5_FAILURE},
	        {"\5\1\0\3\5"
	         "0x7f1\0\x50",
	                12, SOCKS5_FAILURE},
	        {"\5\1\0\3\5"
	         "127.1\0\x50",
	                12, SOCKS5_FAILURE},
	        {"\5\1\0\3\xff.", 262, SOCKS5_FAILURE}, /* 250 dots */
	        {"GET http://p.test/ HTTP/1.1\r\n\r\n", 32, SOCKS5_FAILURE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct peer *c = proxy_client(&w);
		char bytes[300];

		memset(bytes, '.', sizeof(bytes));
		memcpy(bytes, cases[i].bytes, cases[i].n < 40 ? cases[i].n : 6);
		say_n(c, BYTES(GREETING));
		expect_bytes(c, BYTES(GREETED));
		say_n(c, bytes, cases[i].n);
		expect_reply(c, cases[i].reply);
		expect_end(c);
		assert_int_equal(count_events(&w, EVENT_CONNECTION), i + 1);
		assert_int_equal(find_event(&w, EVENT_CONNECTION)->cause, EVENT_CAUSE_CLIENT);
		assert_true(find_event(&w, EVENT_CONNECTION)->detail.n > 0);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

static void test_clients_with_a_password(void **state)
{
	static const char *const greetings[] = {"\5\1\2", "\5\2\1\2", "\5\1\xff"};

	(void)state;
	for (size_t i = 0; i < sizeof(greetings) / sizeof(*greetings); i++) {
		struct peer *c = proxy_client(&w);

		say(c, greetings[i]);
		expect_bytes(c, BYTES("\5\xff"));
		expect_end(c);
		assert_int_equal(count_events(&w, EVENT_CONNECTION), i + 1);
		hang_up(c, false);
	}
	struct peer *c = proxy_client(&w);

	say_n(c, BYTES("\5\0")); /* no method at all */
	expect_bytes(c, BYTES("\5\xff"));
	expect_end(c);
	hang_up(c, false);
	c = proxy_client(&w);
	say_n(c, BYTES("\5\2\2\0")); /* it may do without */
	expect_bytes(c, BYTES(GREETED));
	hang_up(c, false);
}

/* SOCKS is spoken to the proxy port: on a connection to a destination its bytes are that
 * destination's. */
static void test_socks_where_it_is_not_spoken(void **state)
{
	struct peer *c = client(&w, NAME_D, NULL);

	(void)state;
	say_n(c, BYTES(GREETING));
	expect_reset(c);
	hang_up(c, false);
	c = client(&w, NAME_P, NULL);
	say_n(c, BYTES(GREETING "\r\n\r\n"));
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
	c = proxy_client(&w);
	ask_socks(c, "p.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	say_n(c, BYTES(GREETING "\r\n\r\n")); /* a second time, inside */
	expect_head(c, "HTTP/1.1 400 ");
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

static void test_another_proxy_protocol_inside(void **state)
{
	static const char *const heads[] = {
	        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
	        "CONNECT p.test:80 HTTP/1.0\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		struct peer *c = proxy_client(&w);

		ask_socks(c, "p.test");
		expect_reply(c, SOCKS5_SUCCEEDED);
		say(c, heads[i]);
		expect_head(c, "HTTP/1.1 400 ");
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

static void test_one_name_asked_and_another_meant(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	ask_socks(c, "a.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	start_tls(c, "c.test");
	ask(c, "GET /x", "c.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	assert_non_null(find_finding(&w, EVENT_FINDING_BINDING_MISMATCH));
	assert_false(origin_is_asked(&w));
	assert_int_equal(w.asked, 0);
	hang_up(c, false);
	c = proxy_client(&w);
	ask_socks(c, "p.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	ask(c, "GET /x", "a.test", "");
	take_head(c);
	assert_true(strncmp(c->head, "HTTP/1.1 4", 10) == 0);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

static void test_bytes_that_no_rule_lets_through(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	ask_socks(c, "a.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	say(c, "SSH-2.0-x\r\n");
	expect_reset(c);
	assert_int_equal(only(EVENT_CONNECTION)->decision, EVENT_DENIED);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

static void test_a_client_that_stops(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} cases[] = {
	        {"\5", 1}, {"\5\2\0", 3}, {GREETING "\5\1\0", 6}, {GREETING "\5\1\0\3\6p.t", 11}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct peer *c = proxy_client(&w);

		say_n(c, cases[i].bytes, cases[i].n);
		if (i % 2)
			socket_end(&c->socket);
		UNTIL(&w, c->eof || c->failed);
		assert_int_equal(count_events(&w, EVENT_CONNECTION), i + 1);
		assert_int_equal(find_event(&w, EVENT_CONNECTION)->cause,
		        i % 2 ? EVENT_CAUSE_CLIENT : EVENT_CAUSE_TIMEOUT);
		hang_up(c, false);
	}
	assert_int_equal(w.proxy->client_count, 0);
}

/* While the log is behind, nothing that it would have to hold is decided. */
static void test_a_request_while_the_log_is_behind(void **state)
{
	struct peer *c = proxy_client(&w);
	char request[SOCKS5_REQUEST_MAX];

	(void)state;
	say_n(c, BYTES(GREETING));
	expect_bytes(c, BYTES(GREETED));
	proxy_hold(w.proxy, true);
	say_n(c, request, request_for("evil.test", w.port, request));
	pump(&w, 20);
	assert_int_equal(c->in.len, 0);
	assert_int_equal(w.event_total, 0);
	proxy_hold(w.proxy, false);
	expect_reply(c, SOCKS5_NOT_ALLOWED);
	hang_up(c, false);
}

static void test_a_tunnel_while_paused(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	proxy_pause(w.proxy, EVENT_CAUSE_PAUSED, "the sandbox is paused");
	ask_socks(c, "t.test");
	UNTIL(&w, c->eof || c->failed);
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_PAUSED);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_socks_and_tls),
	        TEST(test_socks_and_a_credential),
	        TEST(test_socks_and_plain_http),
	        TEST(test_socks_and_a_tunnel),
	        TEST(test_socks_to_a_synthetic_address),
	        TEST(test_socks_in_pieces),
	        TEST(test_denied_destinations),
	        TEST(test_requests_that_are_none),
	        TEST(test_clients_with_a_password),
	        TEST(test_socks_where_it_is_not_spoken),
	        TEST(test_another_proxy_protocol_inside),
	        TEST(test_one_name_asked_and_another_meant),
	        TEST(test_bytes_that_no_rule_lets_through),
	        HASTY(test_a_client_that_stops),
	        TEST(test_a_request_while_the_log_is_behind),
	        TEST(test_a_tunnel_while_paused),
	};

	signal(SIGPIPE, SIG_IGN); /* as the worker does */
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
