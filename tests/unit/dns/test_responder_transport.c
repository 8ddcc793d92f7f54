/* SPDX-License-Identifier: Apache-2.0 */
/* responder: queries over UDP and TCP on loopback, floods of them, and holding. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "responder_fixture.h"

static int listen_on(int type, struct sockaddr_in *at)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(*at);
	int fd;

	/* UDP on the wildcard, so that the address that was asked matters. */
	if (type == SOCK_DGRAM)
		any.sin_addr.s_addr = htonl(INADDR_ANY);
	fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &n), 0);
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd;
}

static void udp_answers_from_the_asked_address(void **state)
{
	struct sockaddr_in at, from;
	socklen_t from_n = sizeof(from);
	uint8_t query[512], reply[1500];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &at)), 0);
	at.sin_addr.s_addr = htonl(0x7f00004d); /* 127.0.0.77 */
	for (int i = 0; i < 100; i++)
		assert_int_equal(
		        sendto(client, query, n, 0, (struct sockaddr *)&at, sizeof(at)), n);
	assert_int_equal(sendto(client, reply, 0, 0, (struct sockaddr *)&at, sizeof(at)), 0);
	run_loop(100);
	for (int i = 0; i < 100; i++) {
		assert_true(recvfrom(client, reply, sizeof(reply), 0, (struct sockaddr *)&from,
		                    &from_n) > (ssize_t)n);
		assert_int_equal(ntohl(from.sin_addr.s_addr), 0x7f00004d);
		assert_int_equal(from.sin_port, at.sin_port);
	}
	assert_true(recv(client, reply, sizeof(reply), 0) < 0);
	assert_int_equal(fixture.count, 101);
	assert_int_equal(fixture.event.dst.bytes[3], 77);
	close(client);
}

/* Of a flood that passed the fence in few packets, the responder reads a bounded number in a
 * second. */
static void udp_reads_no_more_than_the_fence_would_let_through(void **state)
{
	enum { PER_S = 3, MOST = PER_S * RESPONDER_READ_MOST + RESPONDER_TURN_QUERIES };
	struct sockaddr_in at;
	uint8_t query[512];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &at)), 0);
	for (int i = 0; i < 3 * MOST; i++)
		sendto(client, query, n, 0, (struct sockaddr *)&at, sizeof(at));
	run_loop(100);
	assert_true(fixture.responder->paused);
	assert_in_range(fixture.responder->queries + responder_refused(fixture.responder),
	        PER_S * RESPONDER_READ_MOST, MOST);
	while (fixture.responder->paused) /* and then it goes on */
		run_loop(100);
	run_loop(100);
	assert_true(responder_refused(fixture.responder) > MOST);
	close(client);
}

static int connect_to(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* The query with its length before it. */
static size_t make_framed(uint8_t *out, const char *name)
{
	size_t n = make_query(out + 2, name, DNS_A, 1);

	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	return n + 2;
}

static void tcp_takes_queries_in_any_pieces(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	ssize_t got;
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(send(client, query + i, 1, 0), 1);
		run_loop(2);
		assert_int_equal(fixture.count, i + 1 == n);
	}
	got = recv(client, reply, sizeof(reply), 0);
	assert_true(got > 2);
	assert_int_equal(reply[0] << 8 | reply[1], got - 2);
	assert_memory_equal(reply + 2, "\xab\xcd\x81\x80", 4);
	assert_int_equal(fixture.event.protocol, 6);
	assert_int_equal(fixture.event.dst_port, ntohs(at.sin_port));
	close(client);
}

/* More queries at once than one turn takes, and more answers than the out buffer holds. */
static void tcp_pipelines(void **state)
{
	enum { QUERIES = 3000 };
	struct sockaddr_in at;
	uint8_t query[512], reply[65536];
	size_t n = make_framed(query, "api.example.com");
	static uint8_t all[QUERIES * 64];
	size_t sent = 0, got = 0, size;
	int client;

	(void)state;
	assert_true(n <= 64);
	for (size_t i = 0; i < QUERIES; i++)
		memcpy(all + i * n, query, n);
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	size = 2 + (n - 2) + 16; /* of each answer */
	for (int turn = 0; turn < 2000 && got < QUERIES * size; turn++) {
		ssize_t more =
		        sent < QUERIES * n ? send(client, all + sent, QUERIES * n - sent, 0) : 0;

		sent += more > 0 ? (size_t)more : 0;
		run_loop(1);
		if (turn < 50)
			continue; /* let the answers pile up first */
		while ((more = recv(client, reply, sizeof(reply), 0)) > 0)
			got += (size_t)more;
		assert_true(more < 0 && errno == EAGAIN);
	}
	assert_int_equal(got, QUERIES * size);
	assert_int_equal(fixture.count, QUERIES);
	close(client);
}

static void tcp_answers_before_it_closes(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	assert_int_equal(send(client, query, n, 0), n);
	assert_int_equal(send(client, query, 5, 0), 5); /* and half a query */
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	run_loop(20);
	assert_true(recv(client, reply, sizeof(reply), 0) > (ssize_t)n);
	assert_int_equal(recv(client, reply, sizeof(reply), 0), 0);
	assert_int_equal(fixture.count, 1);
	close(client);
}

static void tcp_cuts_off_garbage(void **state)
{
	struct sockaddr_in at;
	uint8_t reply[100];
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	assert_int_equal(send(client, "\0\0", 2, 0), 2);
	run_loop(20);
	assert_int_equal(recv(client, reply, sizeof(reply), 0), 0);
	close(client);
}

static void tcp_ends_where_far_too_much_is_asked(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	ssize_t got = -1;
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	client = connect_to(&at);
	for (int i = 0; i < 50; i++)
		send(client, query, n, MSG_NOSIGNAL);
	for (int turn = 0; turn < 200; turn++) {
		run_loop(20);
		while ((got = recv(client, reply, sizeof(reply), 0)) > 0)
			;
		if (got == 0 || errno != EAGAIN)
			break;
	}
	assert_true(got == 0 || errno == ECONNRESET);
	assert_in_range(responder_refused(fixture.responder), 4, 47);
	close(client);
}

static void tcp_connections_are_bounded(void **state)
{
	struct sockaddr_in at;
	int clients[40];
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	size_t served = 0, closed = 0;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	for (size_t i = 0; i < 40; i++)
		clients[i] = connect_to(&at);
	run_loop(20);
	for (size_t i = 0; i < 40; i++)
		send(clients[i], query, n, MSG_NOSIGNAL);
	run_loop(20);
	for (size_t i = 0; i < 40; i++) {
		ssize_t got = recv(clients[i], reply, sizeof(reply), 0);

		served += got > 0;
		closed += got == 0 || (got < 0 && errno != EAGAIN);
		close(clients[i]);
	}
	assert_int_equal(served, 32);
	assert_int_equal(closed, 8);
	run_loop(20); /* those are gone: there is room again */
	clients[0] = connect_to(&at);
	send(clients[0], query, n, 0);
	run_loop(20);
	assert_true(recv(clients[0], reply, sizeof(reply), 0) > 0);
	close(clients[0]);
}

/* Beyond a number of connections in a second the others are taken in batches, and none is lost. */
static void tcp_floods_are_taken_by_the_batch(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512], reply[1500];
	size_t n = make_framed(query, "api.example.com");
	bool rested = false;
	int client;

	(void)state;
	assert_int_equal(responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &at)), 0);
	for (int i = 0; i < 500 && !rested; i++) {
		close(connect_to(&at));
		run_loop(1);
		rested = !fixture.responder->listeners->io.watch;
	}
	assert_true(rested);
	client = connect_to(&at);
	send(client, query, n, 0);
	for (int i = 0; i < 100 && recv(client, reply, sizeof(reply), MSG_PEEK) < 0; i++)
		run_loop(20);
	assert_true(recv(client, reply, sizeof(reply), 0) > (ssize_t)n);
	close(client);
	run_loop(100);
	assert_non_null(fixture.responder->listeners->io.watch);
}

/* Queries that came while there was no room for their events are answered when there is, in order.
 */
static void held_in_the_middle(void **state)
{
	struct sockaddr_in udp_at, tcp_at;
	uint8_t query[512], framed[512], reply[1500];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	size_t framed_n = make_framed(framed, "api.example.com");
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), tcp;

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &udp_at)), 0);
	assert_int_equal(
	        responder_serve_tcp(fixture.responder, listen_on(SOCK_STREAM, &tcp_at)), 0);
	tcp = connect_to(&tcp_at);
	for (unsigned round = 0; round < 2; round++) {
		fixture.hold_after = fixture.count + 1;
		for (int i = 0; i < 20 && round == 0; i++)
			sendto(udp, query, n, 0, (struct sockaddr *)&udp_at, sizeof(udp_at));
		for (int i = 0; i < 20 && round == 1; i++)
			assert_int_equal(send(tcp, framed, framed_n, 0), framed_n);
		run_loop(50);
		assert_int_equal(fixture.count, fixture.hold_after);
		assert_true(recv(round ? tcp : udp, reply, sizeof(reply), 0) > (ssize_t)n);
		assert_true(
		        recv(round ? tcp : udp, reply, sizeof(reply), 0) < 0 && errno == EAGAIN);
		if (round == 0) { /* whoever comes now waits as well */
			assert_int_equal(send(tcp, framed, framed_n, 0), framed_n);
			run_loop(20);
			assert_int_equal(fixture.count, 1);
		}
		fixture.hold_after = 0;
		responder_hold(fixture.responder, false);
		responder_hold(fixture.responder, false);
		run_loop(50);
		assert_int_equal(fixture.count, round == 0 ? 21 : 41);
		while (recv(round ? tcp : udp, reply, sizeof(reply), 0) > 0)
			;
		while (recv(tcp, reply, sizeof(reply), 0) > 0)
			;
	}
	close(udp);
	close(tcp);
}

/* A pause for its rate and a hold do not lift each other. */
static void held_and_paused(void **state)
{
	struct sockaddr_in at;
	uint8_t query[512];
	size_t n = make_query(query, "api.example.com", DNS_A, 1);
	int client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	uint64_t refused;

	(void)state;
	assert_int_equal(responder_serve_udp(fixture.responder, listen_on(SOCK_DGRAM, &at)), 0);
	for (int i = 0; i < 300; i++)
		sendto(client, query, n, 0, (struct sockaddr *)&at, sizeof(at));
	run_loop(50);
	assert_true(fixture.responder->paused);
	refused = responder_refused(fixture.responder);
	responder_hold(fixture.responder, true);
	responder_hold(fixture.responder, false);
	run_loop(50);
	assert_int_equal(responder_refused(fixture.responder), refused);
	responder_hold(fixture.responder, true);
	while (fixture.responder->paused)
		run_loop(100);
	run_loop(50);
	assert_int_equal(responder_refused(fixture.responder), refused);
	responder_hold(fixture.responder, false);
	run_loop(50);
	assert_true(responder_refused(fixture.responder) > refused);
	close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_LOOP(udp_answers_from_the_asked_address),
	        SLOW(udp_reads_no_more_than_the_fence_would_let_through),
	        IN_LOOP(tcp_takes_queries_in_any_pieces),
	        IN_LOOP(tcp_pipelines),
	        IN_LOOP(tcp_answers_before_it_closes),
	        IN_LOOP(tcp_cuts_off_garbage),
	        SLOW(tcp_ends_where_far_too_much_is_asked),
	        IN_LOOP(tcp_connections_are_bounded),
	        IN_LOOP(tcp_floods_are_taken_by_the_batch),
	        IN_LOOP(held_in_the_middle),
	        SLOW(held_and_paused),
	};

	return cmocka_run_group_tests_name("responder_transport", tests, NULL, NULL);
}
