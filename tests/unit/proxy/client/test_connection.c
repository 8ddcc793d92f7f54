/* SPDX-License-Identifier: Apache-2.0 */
/* Connections through a real proxy: how their protocol is recognized, CONNECT, tunnels. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "../fixture.h"

static void ask_connect(struct peer *c, const char *host)
{
	char text[400];

	snprintf(text, sizeof(text), "CONNECT %s:%u HTTP/1.0\r\n\r\n", host, w.port);
	say(c, text);
}

/* --- names and addresses --- */

/* Asks for so many other names, long after, that each address that may be is given away; how many
 * names found room. */
static unsigned use_up_addresses(int64_t now_ms)
{
	unsigned assigned = 0;
	struct ip v4, v6;
	char name[32];

	for (unsigned i = 0; i < 200; i++) {
		int n = snprintf(name, sizeof(name), "n%u-%u.test", (unsigned)now_ms, i);

		assigned += names_assign(w.names, slice_of(name, (size_t)n), now_ms, &v4, &v6) == 0;
	}
	return assigned;
}

static bool stands_for(unsigned name, const char *host)
{
	const struct ip address = {4, {127, 77, 1, (uint8_t)name}};
	struct slice is;

	return names_lookup(w.names, &address, &is) && slice_equals(is, slice_from_string(host));
}

/* However many names are asked for meanwhile: the address that a connection goes to keeps its name,
 * and what is asked over it goes where it went. Then the address may be another name's, and nothing
 * is let out there by what it was. */
static void test_an_address_that_is_in_use_is_given_to_nobody(void **state)
{
	struct peer *c = client(&w, NAME_P, NULL), *o;

	(void)state;
	ask(c, "GET /x", "p.test", "");
	o = origin(&w, false);
	expect_head(o, "GET /x ");
	assert_int_equal(use_up_addresses(1000000), 63); /* of 64 */
	assert_true(stands_for(NAME_P, "p.test"));
	assert_false(stands_for(NAME_A, "a.test"));
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	say(c, "GET /y HTTP/1.0\r\n\r\n"); /* which names no host */
	expect_head(o, "GET /y ");
	assert_true(head_has(o, "\r\nhost: p.test:"));
	hang_up(c, true);
	UNTIL(&w, !w.proxy->client_count);
	assert_int_equal(use_up_addresses(2000000), 64);
	assert_false(stands_for(NAME_P, "p.test"));
	c = client(&w, NAME_P, NULL);
	say(c, "GET /z HTTP/1.0\r\n\r\n");
	expect_head(c, "HTTP/1.1 403 ");
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
	hang_up(o, false);
}

/* --- what is refused --- */

static void test_a_denied_name_is_explained_inside_tls(void **state)
{
	struct peer *c = client(&w, NAME_D, "d.test");

	(void)state;
	ask(c, "GET /x", "d.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	assert_true(head_has(c, "content-type: application/problem+json"));
	UNTIL(&w, has(c, "}\n", 2));
	assert_int_equal(only(EVENT_HTTP)->decision, EVENT_DENIED);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

static void test_opaque_bytes_without_a_rule(void **state)
{
	struct peer *c = client(&w, NAME_D, NULL);

	(void)state;
	say(c, "SSH-2.0-x\r\n");
	expect_reset(c);
	assert_int_equal(only(EVENT_CONNECTION)->decision, EVENT_DENIED);
	assert_int_equal(only(EVENT_CONNECTION)->bytes_out, 11);
	assert_false(origin_is_asked(&w));
	hang_up(c, false);
}

/* ... are a malformed request where only http can be meant. */
static void test_what_begins_no_request_of_http(void **state)
{
	static const char *const bytes[] = {"SSH-2.0-x\r\n\r\n", "get / HTTP/1.1\r\n\r\n",
	        "GET\t/ HTTP/1.1\r\n\r\n", "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
	        "CONNECT p.test:80 HTTP/1.1\r\nHost: p.test:80\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
		struct peer *c = client(&w, NAME_P, NULL);

		say(c, bytes[i]);
		expect_head(c, "HTTP/1.1 400 ");
		assert_true(head_has(c, "connection: close"));
		UNTIL(&w, count_events(&w, EVENT_HTTP) == i + 1);
		assert_int_equal(count_events(&w, EVENT_FINDING), i + 1);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

static void test_a_broken_hello(void **state)
{
	struct peer *c = client(&w, NAME_A, NULL);

	(void)state;
	say_n(c, "\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", 10);
	UNTIL(&w, c->eof || c->failed);
	assert_true(c->eof);
	assert_int_equal(c->in.len, 7); /* an alert: fatal, unexpected_message */
	assert_memory_equal(buf_bytes(&c->in), "\x15\3\1\0\2\2\x0a", 7);
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_CLIENT);
	hang_up(c, false);
}

static void test_a_connection_that_says_nothing(void **state)
{
	struct peer *c = client(&w, NAME_A, NULL);

	(void)state;
	expect_reset(c);
	assert_int_equal(only(EVENT_CONNECTION)->decision, EVENT_DENIED);
	hang_up(c, false);
}

/* A destination that can only be refused: a web client gets the time that it needs to send its
 * hello, and then an explanation; another client may wait for a server that never speaks. */
static void test_how_long_a_refused_place_waits(void **state)
{
	static const struct {
		uint16_t port;
		enum proxy_wait wait;
	} rows[] = {{443, WAIT_HELLO}, {80, WAIT_HELLO}, {22, WAIT_SILENT}, {8443, WAIT_SILENT}};
	struct peer *p = client(&w, NAME_D, NULL);
	struct client *c;
	uint16_t port;

	(void)state;
	UNTIL(&w, w.proxy->client_count == 1);
	c = container_of(w.proxy->clients.next, struct client, list);
	port = c->destination.port;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		c->destination.port = rows[i].port;
		assert_int_equal(client_first_wait(c), rows[i].wait);
	}
	c->destination.port = port;
	hang_up(p, false);
}

static void test_a_connection_that_ends_at_once(void **state)
{
	struct peer *c = client(&w, NAME_A, NULL);

	(void)state;
	hang_up(c, false);
	only(EVENT_CONNECTION);
	pump(&w, 10);
	assert_int_equal(w.event_count, 1);
}

/* A connection that is opened and never used leaves an event too. */
static void test_tls_without_a_request(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	pump(&w, 5);
	hang_up(c, false);
	assert_true(slice_equals(only(EVENT_CONNECTION)->sni, SLICE("a.test")));
}

/* --- the explicit proxy --- */

static void test_connect_and_tls(void **state)
{
	struct peer *c = proxy_client(&w), *o;

	(void)state;
	ask_connect(c, "A.test.");
	expect_head(c, "HTTP/1.1 200 ");
	start_tls(c, "a.test");
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 OK");
	assert_int_equal(only(EVENT_HTTP)->upstream_port, w.port);
	assert_int_equal(only(EVENT_HTTP)->dst_port, w.proxy_port);
	hang_up(c, false);
	hang_up(o, false);
}

static void test_connect_to_one_name_and_sni_of_another(void **state)
{
	struct peer *c = proxy_client(&w);

	(void)state;
	ask_connect(c, "a.test");
	expect_head(c, "HTTP/1.1 200 ");
	start_tls(c, "c.test");
	ask(c, "GET /x", "c.test", "");
	expect_head(c, "HTTP/1.1 403 ");
	assert_non_null(find_finding(&w, EVENT_FINDING_BINDING_MISMATCH));
	assert_false(origin_is_asked(&w));
	assert_int_equal(w.asked, 0);
	hang_up(c, false);
}

/* An address literal that is synthetic stands for its name. */
static void test_connect_to_a_synthetic_address(void **state)
{
	struct peer *c = proxy_client(&w), *o;

	(void)state;
	ask_connect(c, "127.77.1.0");
	expect_head(c, "HTTP/1.1 200 ");
	start_tls(c, "a.test");
	ask(c, "GET /x", "a.test", "");
	o = origin(&w, true);
	expect_head(o, "GET /x ");
	hang_up(c, false);
	hang_up(o, false);
}

static void test_connect_refused(void **state)
{
	static const char *const where[] = {
	        "evil.test:443", "127.0.0.1:1", "169.254.169.254:80", "[::1]:443", "d.test:22"};

	(void)state;
	for (size_t i = 0; i < sizeof(where) / sizeof(*where); i++) {
		struct peer *c = proxy_client(&w);
		char text[200];

		snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\nHost: a.test\r\n\r\n",
		        where[i]);
		say(c, text);
		expect_head(c, "HTTP/1.1 403 ");
		assert_int_equal(count_events(&w, EVENT_HTTP), i + 1);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

static void test_connect_outside_of_the_proxy_port(void **state)
{
	struct peer *c = client(&w, NAME_A, "a.test");

	(void)state;
	ask_connect(c, "a.test");
	expect_head(c, "HTTP/1.1 400 ");
	hang_up(c, false);
}

static void test_absolute_targets(void **state)
{
	static const char *const refused[] = {
	        "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: p.test\r\n\r\n",
	        "GET http://a.test/ HTTP/1.1\r\nHost: p.test\r\n\r\n",
	        "GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"};
	struct peer *c = proxy_client(&w), *o;
	char text[200];

	(void)state;
	snprintf(text, sizeof(text),
	        "GET http://p.test:%1$u/x?y HTTP/1.1\r\nHost: p.test:%1$u\r\nProxy-Authorization: "
	        "x\r\n\r\n",
	        w.port);
	say(c, text);
	o = origin(&w, false);
	expect_head(o, "GET /x?y HTTP/1.1\r\n");
	assert_false(head_has(o, "proxy-authorization"));
	say(o, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	expect_head(c, "HTTP/1.1 200 ");
	hang_up(c, false);
	hang_up(o, false);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		c = proxy_client(&w);
		say(c, refused[i]);
		take_head(c);
		assert_true(strncmp(c->head, "HTTP/1.1 40", 11) == 0);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
}

/* --- tunnels --- */

static void test_a_tunnel_both_ways(void **state)
{
	const size_t n = 3u << 20;
	struct peer *c = client(&w, NAME_T, NULL),
	            *o = origin(&w, false); /* nothing need be said first */
	uint8_t *big = malloc(n);

	(void)state;
	for (size_t i = 0; i < n; i++)
		big[i] = (uint8_t)(i * 7 + i / 251);
	say(o, "220 hello\r\n");
	expect(c, "220 hello\r\n");
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
	say(o, "bye");
	socket_end(&o->socket);
	UNTIL(&w, c->eof);
	assert_int_equal(only(EVENT_CONNECTION)->bytes_out, n);
	assert_int_equal(only(EVENT_CONNECTION)->bytes_in, n + 11 + 3);
	assert_int_equal(only(EVENT_CONNECTION)->decision, EVENT_ALLOWED);
	free(big);
	hang_up(c, false);
	hang_up(o, false);
}

/* HTTP or TLS to a tcp:// destination is relayed like any other bytes, however early they
 * come. */
static void test_a_tunnel_carries_whatever_it_is(void **state)
{
	struct peer *c = proxy_client(&w), *o;
	char text[200];

	(void)state;
	snprintf(
	        text, sizeof(text), "CONNECT t.test:%u HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n", w.port);
	say(c, text);
	expect_head(c, "HTTP/1.1 200 ");
	o = origin(&w, false);
	expect(o, "GET / HTTP/1.1\r\n");
	hang_up(c, false);
	hang_up(o, false);
	only(EVENT_CONNECTION);
}

/* If an http rule counts beside a tcp:// rule, any token is a method: a server that takes "delete"
 * for DELETE gets neither unread. */
static void test_any_method_is_http(void **state)
{
	static const char *const requests[] = {"DELETE /x", "delete /x", "Delete /x", "delete *",
	        "delete HTTP://t.test/x", "LI-ST_1 /x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA /x"};
	static const char *const others[] = {"EHLO me\r\n", "delete (/x\r\n", "GET\t/x",
	        "\x16\x04/x", "SSH-2.0-x\r\n", "GET htt/"};
	struct world_options o = {.timeouts = patient_timeouts,
	        .limits = usual_limits,
	        .policy = "vethguard: 1\nname: t\n"
	                  "allow: [{name: t, to: \"tcp://t.test:%1$u\"}]\n"
	                  "deny: [{name: no, to: \"http://t.test:%1$u\"}]\n"};
	struct peer *c, *up;

	(void)state;
	again(o);
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		c = client(&w, NAME_T, NULL);
		for (const char *p = requests[i]; *p; p++) {
			say_n(c, p, 1);
			pump(&w, 1);
		}
		say(c, " HTTP/1.1\r\nHost: t.test\r\n\r\n");
		take_head(c);
		assert_memory_equal(c->head, "HTTP/1.1 ", 9);
		assert_false(origin_is_asked(&w));
		hang_up(c, false);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		c = client(&w, NAME_T, NULL);
		say(c, others[i]);
		up = origin(&w, false);
		expect(up, others[i]);
		hang_up(c, false);
		hang_up(up, false);
	}
}

static void test_passthrough(void **state)
{
	struct peer *c = peer_new(&w, connect_to(&(struct sockaddr_in){.sin_family = AF_INET,
	                                      .sin_port = htons(w.port),
	                                      .sin_addr = {htonl(0x7f4d0100u + NAME_S)}}));
	struct tls_client *direct =
	        tls_client_new(w.trust); /* the origin's own certificate comes through */
	const struct ip none = {0};
	struct peer *o;

	(void)state;
	socket_start_tls(&c->socket,
	        tls_connect_new(direct, SLICE("s.test"), &none, SLICE("\x08http/1.1"), SLICE(""),
	                &w.sockets.tx),
	        SLICE(""));
	c->shaking = true;
	peer_read(c);
	socket_flush(&c->socket);
	o = origin(&w, true);
	UNTIL(&w, !c->shaking);
	assert_false(c->failed);
	say(c, "anything");
	expect(o, "anything");
	hang_up(c, false);
	hang_up(o, false);
	assert_true(only(EVENT_CONNECTION)->passthrough);
	tls_client_free(direct);
}

/* The upstream closes while splice(2) has bytes for it: no signal may end the worker. */
static void test_a_tunnel_whose_end_breaks(void **state)
{
	struct peer *c = client(&w, NAME_T, NULL), *o = origin(&w, false);
	static uint8_t big[65536];

	(void)state;
	for (int i = 0; i < 8; i++) {
		say_n(c, big, sizeof(big));
		UNTIL(&w, socket_unsent(&c->socket) == 0);
	}
	hang_up(o, true);
	for (int i = 0; i < 4; i++)
		say_n(c, big, sizeof(big));
	UNTIL(&w, c->failed || c->eof);
	only(EVENT_CONNECTION);
	hang_up(c, false);
}

/* The last bytes and a reset in one wake-up: the kernel tells of both with one edge. */
static void test_a_reset_behind_the_last_bytes(void **state)
{
	struct world_options o = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192};
	struct peer *c, *origin_end;

	(void)state;
	o.timeouts.idle_ms = 60000;
	again(o);
	c = client(&w, NAME_T, NULL);
	origin_end = origin(&w, false);
	say(origin_end, "hello");
	expect(c, "hello");
	say(origin_end, "bye");
	socket_flush(&origin_end->socket);
	hang_up(origin_end, true);
	UNTIL(&w, c->failed || c->eof);
	expect(c, "bye");
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_POLICY);
	assert_int_equal(only(EVENT_CONNECTION)->bytes_in, 5 + 3);
	hang_up(c, false);
}

/* Sending to one end fails before its last bytes are read: they still go to the other end. */
static void test_last_words_before_a_reset(void **state)
{
	static const char *const other = "more";

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct peer *c = client(&w, NAME_T, NULL), *o = origin(&w, false);
		struct peer *stays = i ? o : c, *goes = i ? c : o;

		say(goes, "hello");
		expect(stays, "hello");
		say(stays, other); /* its event comes first */
		say_and_reset(goes, "bye");
		UNTIL(&w, stays->failed || stays->eof);
		assert_true(stays->failed);
		expect(stays, "bye");
		UNTIL(&w, count_events(&w, EVENT_CONNECTION) == (size_t)i + 1);
		assert_true(slice_equals(find_event(&w, EVENT_CONNECTION)->detail,
		        SLICE("one side reset the connection")));
		hang_up(stays, false);
	}
}

static void test_an_idle_tunnel_ends(void **state)
{
	struct peer *c = client(&w, NAME_T, NULL), *o = origin(&w, false);

	(void)state;
	UNTIL(&w, c->eof || c->failed);
	assert_int_equal(only(EVENT_CONNECTION)->cause, EVENT_CAUSE_TIMEOUT);
	hang_up(c, false);
	hang_up(o, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_an_address_that_is_in_use_is_given_to_nobody),
	        TEST(test_a_denied_name_is_explained_inside_tls),
	        TEST(test_opaque_bytes_without_a_rule),
	        TEST(test_what_begins_no_request_of_http),
	        TEST(test_a_broken_hello),
	        HASTY(test_a_connection_that_says_nothing),
	        TEST(test_how_long_a_refused_place_waits),
	        TEST(test_a_connection_that_ends_at_once),
	        TEST(test_tls_without_a_request),
	        TEST(test_connect_and_tls),
	        TEST(test_connect_to_one_name_and_sni_of_another),
	        TEST(test_connect_to_a_synthetic_address),
	        TEST(test_connect_refused),
	        TEST(test_connect_outside_of_the_proxy_port),
	        TEST(test_absolute_targets),
	        TEST(test_a_tunnel_both_ways),
	        TEST(test_a_tunnel_carries_whatever_it_is),
	        TEST(test_any_method_is_http),
	        TEST(test_passthrough),
	        TEST(test_a_tunnel_whose_end_breaks),
	        TEST(test_a_reset_behind_the_last_bytes),
	        TEST(test_last_words_before_a_reset),
	        HASTY(test_an_idle_tunnel_ends),
	};

	signal(SIGPIPE, SIG_IGN); /* as the worker does */
	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
