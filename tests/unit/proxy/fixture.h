/* SPDX-License-Identifier: Apache-2.0 */
/* What every test program over a whole proxy begins with: one world per test, requests that name
 * the port of its listener, and the one event that is expected. */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_PROXY_FIXTURE_H

#include "world.h"

#define MAY_BE_UNUSED __attribute__((unused))
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define HASTY(name) cmocka_unit_test_setup_teardown(name, set_up_hasty, tear_down)

static struct world w;

MAY_BE_UNUSED static int set_up(void **state)
{
	const struct world_options usual = {
	        .timeouts = patient_timeouts, .limits = usual_limits, .send_bytes = 8192};

	(void)state;
	world_open(&w, &usual);
	return 0;
}

/* For tests whose subject is that a time is over. */
MAY_BE_UNUSED static int set_up_hasty(void **state)
{
	const struct world_options hasty = {
	        .timeouts = hasty_timeouts, .limits = usual_limits, .send_bytes = 8192};

	(void)state;
	world_open(&w, &hasty);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

/* The same world anew, with other options. */
MAY_BE_UNUSED static void again(struct world_options o)
{
	world_close(&w);
	world_open(&w, &o);
}

/* A request head with the port put in, then more fields (each with its CRLF). */
MAY_BE_UNUSED static void ask(
        struct peer *c, const char *line, const char *host, const char *fields)
{
	char text[9000];

	snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: %s:%u\r\n%s\r\n", line, host, w.port,
	        fields);
	say(c, text);
}

/* A WebSocket's handshake (RFC 6455 section 1.3 has this key and its answer). */
#define SWITCH_ASKED                                                                 \
	"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define SWITCHED_FIELDS                                                                     \
	"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n" \
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define SWITCHED SWITCHED_FIELDS "\r\n"

/* Says something that arrives at once. */
MAY_BE_UNUSED static void say_at_once(struct peer *p, const char *text)
{
	int one = 1;

	setsockopt(p->socket.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	say(p, text);
}

/* ... and resets the connection. */
MAY_BE_UNUSED static void say_and_reset(struct peer *p, const char *text)
{
	say_at_once(p, text);
	hang_up(p, true);
}

/* A turn of the proxy's loop in which of all sockets only its first client's was ready: what is
 * passed on may find an upstream gone that has said something before. */
MAY_BE_UNUSED static void only_the_client_is_ready(void)
{
	struct client *c = container_of(w.proxy->clients.next, struct client, list);

	c->socket.io.on_ready(&c->socket.io, LOOP_READ);
	socket_flush(&container_of(w.proxy->upstreams.next, struct upstream_conn, all)->socket);
}

/* The only event of its kind, once it is there. */
MAY_BE_UNUSED static const struct event *only(enum event_kind kind)
{
	UNTIL(&w, find_event(&w, kind));
	assert_int_equal(count_events(&w, kind), 1);
	return find_event(&w, kind);
}

#endif
