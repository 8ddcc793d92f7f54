/* SPDX-License-Identifier: Apache-2.0 */
/* A real proxy over a Unix socket: everything that an explicit proxy speaks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "socks_client.h"

static void test_unix_socks(void **state)
{
	struct peer *c;

	(void)state;
	serve_unix();
	c = unix_client();
	ask_socks(c, "a.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	get_through(c, "a.test", true);
	assert_int_equal(only(EVENT_HTTP)->src.family, 0);
	assert_int_equal(only(EVENT_HTTP)->src_port, 0);
	assert_int_equal(only(EVENT_HTTP)->dst.family, 0);
	assert_int_equal(only(EVENT_HTTP)->dst_port, 0);
}

static void test_unix_connect(void **state)
{
	char text[200];
	struct peer *c;

	(void)state;
	serve_unix();
	c = unix_client();
	snprintf(text, sizeof(text), "CONNECT a.test:%1$u HTTP/1.1\r\nHost: a.test:%1$u\r\n\r\n",
	        w.port);
	say(c, text);
	expect_head(c, "HTTP/1.1 200 ");
	start_tls(c, "a.test");
	ask(c, "GET /x", "a.test", "");
	struct peer *o = origin(&w, true);

	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_unix_absolute_target(void **state)
{
	static const char *const refused[] = {"GET / HTTP/1.1\r\nHost: p.test\r\n\r\n",
	        "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	        "GET http://d.test/ HTTP/1.1\r\nHost: d.test\r\n\r\n",
	        "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
	        "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n",
	        "CONNECT d.test:443 HTTP/1.1\r\nHost: d.test:443\r\n\r\n",
	        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	        "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n"};
	struct peer *c, *o;
	char text[200];

	(void)state;
	serve_unix();
	c = unix_client();
	snprintf(text, sizeof(text),
	        "GET http://p.test:%1$u/x HTTP/1.1\r\nHost: p.test:%1$u\r\n\r\n", w.port);
	say(c, text);
	o = origin(&w, false);
	expect_head(o, "GET /x HTTP/1.1\r\n");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	hang_up(c, false);
	hang_up(o, false);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		c = unix_client();
		if (i == sizeof(refused) / sizeof(*refused) - 1)
			say_n(c, refused[i], 14);
		else
			say(c, refused[i]);
		take_head(c);
		if (strncmp(c->head, "HTTP/1.1 40", 11) != 0 &&
		        strncmp(c->head, "HTTP/1.1 505 ", 13) != 0)
			fail_msg("%zu: %s", i, c->head);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

/* Bytes are moved as between any other sockets. */
static void test_unix_tunnel_of_much(void **state)
{
	const size_t n = 1u << 20;
	uint8_t *big = malloc(n);
	struct peer *c, *o;

	(void)state;
	serve_unix();
	for (size_t i = 0; i < n; i++)
		big[i] = (uint8_t)(i * 7 + i / 251);
	c = unix_client();
	ask_socks(c, "t.test");
	expect_reply(c, SOCKS5_SUCCEEDED);
	o = origin(&w, false);
	for (size_t at = 0; at < n; at += 65536) {
		say_n(c, big + at, 65536);
		say_n(o, big + at, 65536);
		UNTIL(&w, socket_unsent(&c->socket) < 65536 && socket_unsent(&o->socket) < 65536);
	}
	socket_end(&c->socket);
	UNTIL(&w, o->eof && c->in.len == n);
	assert_int_equal(o->in.len, n);
	assert_memory_equal(buf_bytes(&o->in), big, n);
	assert_memory_equal(buf_bytes(&c->in), big, n);
	socket_end(&o->socket);
	UNTIL(&w, c->eof);
	assert_int_equal(only(EVENT_CONNECTION)->bytes_out, n);
	free(big);
	hang_up(c, false);
	hang_up(o, false);
}

/* No fence bounds how often the sandbox connects here: the proxy does, for this socket only. */
static void test_unix_connections_in_a_second(void **state)
{
	struct world_options few = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192};
	struct peer *c[6], *other;

	(void)state;
	few.limits.connections_per_s = 2; /* and as a burst twice as many */
	again(few);
	serve_unix();
	w.proxy->local_connections.at_ms = INT64_MAX; /* nothing comes back meanwhile */
	for (size_t i = 0; i < 6; i++)
		c[i] = unix_client();
	UNTIL(&w, w.proxy->accepted == 4);
	pump(&w, 50);
	assert_int_equal(w.proxy->accepted, 4);
	other = proxy_client(&w);
	UNTIL(&w, w.proxy->accepted == 5);
	w.proxy->local_connections.at_ms = clock_monotonic_ms() - 1000;
	UNTIL(&w, w.proxy->accepted == 7);
	hang_up(other, false);
	for (size_t i = 0; i < 6; i++)
		hang_up(c[i], false);
}

/* For a listener that serves one machine, a client over another kind of socket is a stranger
 * too: its connection is closed before a byte is read, with one finding for many. */
static void test_strangers(void **state)
{
	unsigned told = 0;

	(void)state;
	assert_int_equal(proxy_serve_vsock(w.proxy, listen_unix(), 7), 0);
	w.proxy->strangers.left = 2000; /* of ten */
	for (unsigned i = 0; i < 30; i++) {
		struct peer *c = unix_client();

		say(c, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
		UNTIL(&w, c->eof || c->failed);
		assert_int_equal(c->in.len, 0);
		hang_up(c, false);
	}
	for (unsigned i = 0; i < w.event_count; i++) {
		assert_int_equal(w.events[i].kind, EVENT_FINDING);
		assert_int_equal(w.events[i].finding, EVENT_FINDING_FOREIGN_PEER);
		assert_int_equal(w.events[i].decision, EVENT_DENIED);
		told++;
	}
	assert_in_range(told, 2, 10);
	assert_int_equal(w.proxy->accepted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_unix_socks),
	        TEST(test_unix_connect),
	        TEST(test_unix_absolute_target),
	        TEST(test_unix_tunnel_of_much),
	        TEST(test_unix_connections_in_a_second),
	        TEST(test_strangers),
	};

	signal(SIGPIPE, SIG_IGN); /* as the worker does */
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
