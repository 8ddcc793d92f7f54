/* SPDX-License-Identifier: Apache-2.0 */
/* A fence's bounds: what comes faster than a sandbox's rate is dropped, counted and told together;
 * what is within it all arrives. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "refused.h"

static void bound(struct world *w, struct fence_bounds bounds)
{
	w->spec.bounds = bounds;
	assert_int_equal(netns_run(w->gate, world_fence_set, w), 0);
}

/* Asks for a connection and does not wait. */
static int begin_connection(struct world *w, const char *address, uint16_t port)
{
	struct ip ip = world_ip(address);
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&ip, port, &ss);
	int fd = open_socket(w->sandbox, ip.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);

	assert_true(connect(fd, (struct sockaddr *)&ss, n) == 0 || errno == EINPROGRESS);
	return fd;
}

#define TRIES 40

/* Slow as the machine may be: a rate of one a second lets no more through than it has seconds. */
static void connections_beyond_the_rate_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before, after;
	int fds[TRIES], kept, server, arrived = 0;
	struct seen seen[2] = {{"vethguard:rate", IPPROTO_TCP, 443, w->spec.sandbox4,
	                               world_ip("93.184.216.34"), false},
	        {.found = true}};
	char byte = 0;

	bound(w, (struct fence_bounds){1, 0, 0, 0});
	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, "93.184.216.34", 443, &kept), 0);
	server = accept4(w->tcp4, NULL, NULL, SOCK_CLOEXEC);
	before = counted(w);
	for (int i = 0; i < TRIES; i++)
		fds[i] = begin_connection(w, "93.184.216.34", 443);
	after = counted(w);
	for (int i = 0; i < TRIES; i++)
		close(fds[i]);
	while (world_readable(w->tcp4, 0) && arrived <= TRIES) {
		close(accept4(w->tcp4, NULL, NULL, SOCK_CLOEXEC));
		arrived++;
	}
	assert_true(arrived < TRIES);
	assert_true(after.connections > before.connections);
	assert_int_equal(after.packets - before.packets, after.connections - before.connections);
	assert_int_equal(after.queries, 0);
	assert_logged(w, seen);
	/* Established connections go on, at any rate. */
	for (int i = 0; i < TRIES; i++) {
		assert_int_equal(write(kept, "x", 1), 1);
		assert_true(world_readable(server, WORLD_TIMEOUT_MS));
		assert_int_equal(read(server, &byte, 1), 1);
	}
	close(kept);
	close(server);
}

/* Other ports than the one asked for, IPv6, and the responder over TCP: all of one rate. */
static void all_connections_are_of_one_rate(void **state)
{
	struct world *w = *state;
	static const char *const addresses[] = {"8.8.8.8", "2001:db8::7"};
	uint64_t last = 0;

	bound(w, (struct fence_bounds){1, 0, 0, 0});
	for (uint16_t i = 0; i < TRIES; i++)
		close(begin_connection(w, addresses[i % 2], i % 4 < 2 ? 53 : (uint16_t)(1000 + i)));
	last = counted(w).connections;
	assert_true(last > 0);
	bound(w, (struct fence_bounds){0, 0, 0, 0});
	for (uint16_t i = 0; i < TRIES; i++)
		close(begin_connection(w, addresses[i % 2], 443));
	assert_int_equal(counted(w).connections, last);
}

static void queries_beyond_the_rate_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before, after;
	char data[64];
	int client, arrived = 0;

	bound(w, (struct fence_bounds){0, 1, 0, 0});
	before = counted(w);
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "8.8.8.8", 53, &client), 0);
	for (int i = 0; i < TRIES; i++)
		assert_int_equal(send(client, "question", 8, 0), 8);
	after = counted(w);
	while (world_readable(w->dns4, 0) && recv(w->dns4, data, sizeof(data), 0) > 0)
		arrived++;
	assert_true(arrived < TRIES);
	assert_int_equal(after.queries - before.queries, TRIES - arrived);
	assert_int_equal(after.packets - before.packets, TRIES - arrived);
	assert_int_equal(after.connections, 0);
	assert_relayed(w, w->udp4, "203.0.113.7", 123); /* no query */
	close(client);
}

/* A port of the relay's, over either family: of one rate, which is nobody else's. */
static void datagrams_beyond_the_rate_are_dropped_and_counted(void **state)
{
	struct world *w = *state;
	struct fence_counters before, after;
	struct seen seen[2] = {{"vethguard:rate", IPPROTO_UDP, 123, w->spec.sandbox4,
	                               world_ip("203.0.113.7"), false},
	        {.found = true}};
	char data[64];
	int four, six, arrived = 0;

	bound(w, (struct fence_bounds){0, 0, 0, 1});
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "203.0.113.7", 123, &four), 0);
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "2001:db8::7", 123, &six), 0);
	before = counted(w);
	for (int i = 0; i < TRIES; i++)
		assert_int_equal(send(i % 2 ? six : four, "datagram", 8, 0), 8);
	after = counted(w);
	while (world_readable(w->udp4, 0) && recv(w->udp4, data, sizeof(data), 0) > 0)
		arrived++;
	while (world_readable(w->udp6, 0) && recv(w->udp6, data, sizeof(data), 0) > 0)
		arrived++;
	assert_in_range(arrived, FENCE_BURST_S, TRIES - 1);
	assert_int_equal(after.datagrams - before.datagrams, TRIES - arrived);
	assert_int_equal(after.packets - before.packets, TRIES - arrived);
	assert_int_equal(after.queries + after.connections, 0);
	assert_logged(w, seen);
	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
	close(four);
	close(six);
}

#define MANY 5000
#define UNDER_WAY 64 /* fewer than any queue on the way holds, however late its reader comes */

/* Within its rate nothing is lost, however fast it comes. */
static void datagrams_within_the_rate_all_arrive(void **state)
{
	struct world *w = *state;
	struct fence_counters before;
	char data[64];
	int client, arrived = 0;

	bound(w, (struct fence_bounds){0, 0, 0, MANY / FENCE_BURST_S});
	before = counted(w);
	assert_int_equal(connect_from_sandbox(w, SOCK_DGRAM, "203.0.113.7", 123, &client), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(send(client, "datagram", 8, 0), 8);
		while (world_readable(w->udp4, i - arrived < UNDER_WAY ? 0 : WORLD_TIMEOUT_MS) &&
		        recv(w->udp4, data, sizeof(data), 0) > 0)
			arrived++;
		assert_true(i - arrived < UNDER_WAY);
	}
	while (arrived < MANY && world_readable(w->udp4, WORLD_TIMEOUT_MS) &&
	        recv(w->udp4, data, sizeof(data), 0) > 0)
		arrived++;
	assert_int_equal(arrived, MANY);
	assert_int_equal(counted(w).packets, before.packets);
	close(client);
}

static void count_copy(void *context, const struct nflog_packet *p)
{
	(void)p;
	++*(unsigned *)context;
}

static unsigned count_copies(struct world *w)
{
	uint8_t datagram[FENCE_NFLOG_DATAGRAM_BYTES];
	unsigned copies = 0;
	ssize_t n;

	while (world_readable(w->log, 200) && (n = read(w->log, datagram, sizeof(datagram))) > 0)
		assert_int_equal(nflog_parse(datagram, (size_t)n, count_copy, &copies), 0);
	return copies;
}

static void send_many(struct world *w, const char *source, const char *to, uint16_t port)
{
	for (int i = 0; i < TRIES; i++)
		send_from(w, source, to, port);
}

/* Both chains that refuse, each with its own copies. */
static void all_is_counted_whatever_is_copied(void **state)
{
	struct world *w = *state;
	struct fence_counters before;
	unsigned copies;

	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_int_equal(netns_run(w->sandbox, add_false_addresses, w), 0);
	bound(w, (struct fence_bounds){0, 0, 1, 0});
	count_copies(w);
	before = counted(w);
	send_many(w, "10.77.0.2", "203.0.113.7", 443);
	send_many(w, "198.51.100.9", "203.0.113.7", 443);
	copies = count_copies(w);
	assert_int_equal(counted(w).packets - before.packets, 2 * TRIES);
	assert_in_range(copies, 2, 2 * TRIES - 2);
}

/* A bound only refuses more: it lets nothing through that was refused without it. */
static void a_bound_opens_nothing(void **state)
{
	struct world *w = *state;
	int tcp = gate_service(w, SOCK_STREAM, "10.77.0.1", 8888);
	int udp = gate_service(w, SOCK_DGRAM, "0.0.0.0", 7777);
	int udp53 = gate_service(w, SOCK_DGRAM, "10.77.0.1", 7778);

	bound(w, (struct fence_bounds){1, 1, 1, 1});
	for (int i = 0; i < TRIES; i++) {
		close(begin_connection(w, "10.77.0.1", 8888));
		send_from(w, "10.77.0.2", "10.77.0.1", 7777);
		send_from(w, "10.77.0.2", "10.77.0.1", 7778);
	}
	assert_false(world_readable(tcp, 50));
	assert_false(world_readable(udp, 0));
	assert_false(world_readable(udp53, 0));
	close(tcp);
	close(udp);
	close(udp53);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_WORLD(connections_beyond_the_rate_are_dropped_and_counted),
	        IN_WORLD(all_connections_are_of_one_rate),
	        IN_WORLD(queries_beyond_the_rate_are_dropped_and_counted),
	        IN_WORLD(datagrams_beyond_the_rate_are_dropped_and_counted),
	        IN_WORLD(datagrams_within_the_rate_all_arrive),
	        IN_WORLD(all_is_counted_whatever_is_copied),
	        IN_WORLD(a_bound_opens_nothing),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
