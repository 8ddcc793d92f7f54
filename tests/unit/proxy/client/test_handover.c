/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that the gateway has handed over, through a real proxy: where they go on, what they
 * bring, what is refused, and that they can be cut. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>

#include "proxy/client/client.h"
#include "socks_client.h"

#define LOGGED_IN "\1\0"

/* A TCP connection. Returns the client's end. */
static int connection(int *other)
{
	struct sockaddr_in at = loopback(0, 0, 1, 0);
	socklen_t n = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(connect(client, (const struct sockaddr *)&at, sizeof(at)), 0);
	*other = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(*other >= 0);
	close(listener);
	fcntl(client, F_SETFL, O_NONBLOCK);
	return client;
}

static int hand_over(const struct message_handover *handover, struct peer **c)
{
	const struct message_worker_enter enter = {.source = {4, {192, 0, 2, 9}},
	        .source_port = 7,
	        .form = MESSAGE_FORM_PROXY,
	        .handover = *handover};
	int fd, client = connection(&fd), rc = proxy_enter(w.proxy, fd, &enter);

	*c = peer_new(&w, client);
	return rc;
}

static struct peer *handed(enum message_handed how, const char *first, size_t n)
{
	const struct message_handover handover = {.handed = how, .first = slice_of(first, n)};
	struct peer *c;

	assert_int_equal(hand_over(&handover, &c), 0);
	return c;
}

static void test_connect(void **state)
{
	char head[200];
	struct peer *c;
	int n = snprintf(
	        head, sizeof(head), "CONNECT p.test:%u HTTP/1.1\r\nHost: x\r\n\r\n", w.port);

	(void)state;
	c = handed(MESSAGE_HANDED_PROXY, head, (size_t)n);
	expect_head(c, "HTTP/1.1 200 ");
	get_through(c, "p.test", false);
	assert_int_equal(only(EVENT_HTTP)->src.bytes[3], 9);
}

static void test_a_head_in_parts(void **state)
{
	char rest[200];
	struct peer *c = handed(MESSAGE_HANDED_PROXY, BYTES("CONN"));

	(void)state;
	snprintf(rest, sizeof(rest), "ECT p.test:%u HTTP/1.1\r\nHost: x\r\n\r\n", w.port);
	say(c, rest);
	expect_head(c, "HTTP/1.1 200 ");
	get_through(c, "p.test", false);
}

static void test_socks(void **state)
{
	char request[SOCKS5_REQUEST_MAX];
	const size_t n = request_for("p.test", w.port, request);
	struct peer *c;

	(void)state;
	c = handed(MESSAGE_HANDED_SOCKS_LOGIN, "", 0);
	expect_bytes(c, BYTES(LOGGED_IN));
	say_n(c, request, n);
	expect_reply(c, SOCKS5_SUCCEEDED);
	get_through(c, "p.test", false);
	/* The request has come with the login, or a part of it has. */
	for (size_t part = n; part > 0; part -= n - 2) {
		c = handed(MESSAGE_HANDED_SOCKS_LOGIN, request, part);
		say_n(c, request + part, n - part);
		expect_bytes(c, BYTES(LOGGED_IN SUCCEEDED));
		hang_up(c, false);
		if (part < n)
			break;
	}
	c = handed(MESSAGE_HANDED_SOCKS, request, n); /* without a login */
	expect_reply(c, SOCKS5_SUCCEEDED);
	hang_up(c, false);
}

static void expect_gone(struct peer *c)
{
	UNTIL(&w, c->eof || c->failed);
	hang_up(c, false);
}

/* What the policy refuses, it refuses here as well. */
static void test_refused(void **state)
{
	static const char head[] = "CONNECT nowhere.test:443 HTTP/1.1\r\nHost: x\r\n\r\n";
	char request[SOCKS5_REQUEST_MAX];
	struct peer *c = handed(MESSAGE_HANDED_PROXY, head, sizeof(head) - 1);

	(void)state;
	expect_head(c, "HTTP/1.1 403 ");
	expect_gone(c);
	c = handed(MESSAGE_HANDED_SOCKS, request, request_for("nowhere.test", 443, request));
	expect_reply(c, SOCKS5_NOT_ALLOWED);
	expect_gone(c);
	c = handed(MESSAGE_HANDED_SOCKS, BYTES("\4\1\0\1")); /* no SOCKS5 */
	expect_reply(c, SOCKS5_FAILURE);
	expect_gone(c);
}

/* The client of transparent TLS sees neither the answer to the request, nor a refusal of SOCKS5. */
static void test_transparent(void **state)
{
	char request[SOCKS5_REQUEST_MAX];
	struct peer *c =
	        handed(MESSAGE_HANDED_TRANSPARENT, request, request_for("a.test", w.port, request));

	(void)state;
	get_through(c, "a.test", true);
	c = handed(MESSAGE_HANDED_TRANSPARENT, request, request_for("nowhere.test", 443, request));
	expect_bytes(c, BYTES("\25\3\3\0\2\2\61"));
	expect_gone(c);
}

/* TLS whose state is none: the connection is closed, and nothing of it is left. */
static void test_no_state(void **state)
{
	static const char zeros[MESSAGE_TRAFFIC_SECRET_MAX + 1];
	const size_t before = w.proxy->client_count;
	struct message_handover bad = {.handed = MESSAGE_HANDED_PROXY,
	        .reading = slice_of(zeros, 31),
	        .writing = slice_of(zeros, 31)};
	struct peer *c;

	(void)state;
	assert_int_equal(hand_over(&bad, &c), -ENOMEM);
	expect_gone(c);
	bad.reading = bad.writing = slice_of(zeros, sizeof(zeros)); /* longer than any */
	assert_int_equal(hand_over(&bad, &c), -ENOMEM);
	expect_gone(c);
	bad.reading = slice_of(zeros, 32);
	bad.writing = slice_of(zeros, 48);
	assert_int_equal(hand_over(&bad, &c), -ENOMEM);
	expect_gone(c);
	bad.writing = bad.reading;
	bad.suite = TLS_STATE_SUITES;
	assert_int_equal(hand_over(&bad, &c), -ENOMEM);
	expect_gone(c);
	assert_int_equal(w.proxy->client_count, before);
}

/* Bytes that are no TLS of the connection end it before anything is read of them. */
static void test_garbage_in_tls(void **state)
{
	static const char zeros[32];
	const struct message_handover handover = {.handed = MESSAGE_HANDED_PROXY,
	        .reading = slice_of(zeros, 32),
	        .writing = slice_of(zeros, 32)};
	struct peer *c;

	(void)state;
	assert_int_equal(hand_over(&handover, &c), 0);
	say(c, "CONNECT p.test:443 HTTP/1.1\r\nHost: x\r\n\r\n");
	UNTIL(&w, c->eof || c->failed);
	assert_int_equal(c->in.len, 0);
	hang_up(c, false);
}

static void test_cut(void **state)
{
	char request[SOCKS5_REQUEST_MAX];
	const size_t n = request_for("t.test", w.port, request);
	struct peer *waits = handed(MESSAGE_HANDED_SOCKS_LOGIN, "", 0);
	struct peer *tunnel = handed(MESSAGE_HANDED_SOCKS, request, n);
	struct peer *other = proxy_client(&w), *o;

	(void)state;
	expect_bytes(waits, BYTES(LOGGED_IN));
	expect_reply(tunnel, SOCKS5_SUCCEEDED);
	o = origin(&w, false);
	say(o, "220 hello\r\n");
	expect(tunnel, "220 hello\r\n");
	ask_socks(other, "p.test");
	expect_reply(other, SOCKS5_SUCCEEDED);
	proxy_cut(w.proxy);
	expect_gone(waits);
	expect_gone(tunnel);
	expect_gone(o);
	get_through(other, "p.test", false); /* not the gateway's */
	proxy_cut(w.proxy);                  /* nothing is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_connect),
	        TEST(test_a_head_in_parts),
	        TEST(test_socks),
	        TEST(test_refused),
	        TEST(test_transparent),
	        TEST(test_no_state),
	        TEST(test_garbage_in_tls),
	        TEST(test_cut),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
