/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners of a gate in a namespace that guard and sandbox share. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "privileges.h"
#include "supervisor/gate/gate.h"

static void open_gate(struct gate *gate)
{
	gate_init(gate);
	gate->tcp_port = 3128;
	gate->dns_port = 7653;
	assert_int_equal(gate_open_shared(gate, -1), 0);
}

static int bind_loopback(uint16_t port, int type)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -errno;
}

static void listens_on_loopback_alone(void **state)
{
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_true(gate.listener_count == 6 || gate.listener_count == 3); /* without IPv6 */
	assert_int_equal(gate.listeners[0].kind, MESSAGE_LISTEN_REWRITTEN);
	for (size_t i = 0; i < gate.listener_count; i++) {
		struct sockaddr_storage ss;
		socklen_t n = sizeof(ss);
		struct ip ip;

		assert_int_equal(getsockname(gate.listeners[i].fd, (struct sockaddr *)&ss, &n), 0);
		ip = ip_from_sockaddr((struct sockaddr *)&ss, NULL);
		assert_true(ip_equals(&ip, &gate.gate4) || ip_equals(&ip, &gate.gate6));
	}
	assert_int_equal(bind_loopback(3128, SOCK_STREAM), -EADDRINUSE);
	assert_int_equal(bind_loopback(7653, SOCK_DGRAM), -EADDRINUSE);
	gate_close(&gate);
}

static void has_nothing_to_connect_set_or_watch(void **state)
{
	const struct fence_bounds bounds = {1, 1, 1, 1};
	struct gate gate;

	(void)state;
	open_gate(&gate);
	assert_int_equal(gate_connect(&gate), 0);
	assert_int_equal(gate_repair(&gate), 0);
	assert_int_equal(gate_watch(&gate, NULL, NULL), 0);
	assert_int_equal(gate_dropped(&gate).packets, 0);
	assert_int_equal(gate_set_traffic(&gate, NULL, 0, &bounds), 0);
	gate_close(&gate);
}

/* The sockets of datagram ports are bound to no address; sockets of the set before may still be
 * open. */
static void ports_for_datagrams_come_and_go(void **state)
{
	const struct fence_bounds bounds = {1, 1, 1, 1};
	const uint16_t ports[] = {5000, 5001};
	struct gate gate;
	size_t before;
	int kept, own;

	(void)state;
	open_gate(&gate);
	before = gate.listener_count;
	assert_int_equal(gate_set_traffic(&gate, ports, 2, &bounds), 0);
	assert_int_equal(gate.listener_count, 0); /* the open set had other ports */
	assert_int_equal(gate_listen(&gate), 0);
	assert_int_equal(gate.listener_count, before + (before == 6 ? 4 : 2));
	assert_int_equal(gate.listeners[before].kind, MESSAGE_LISTEN_UDP);
	assert_int_equal(gate.listeners[before].port, 5000);
	assert_int_equal(bind_loopback(5001, SOCK_DGRAM), -EADDRINUSE);
	kept = dup(gate.listeners[before].fd);
	assert_int_equal(gate_listen(&gate), 0);
	close(kept);
	assert_int_equal(gate_set_traffic(&gate, NULL, 0, &bounds), 0);
	assert_int_equal(gate_listen(&gate), 0);
	assert_int_equal(gate.listener_count, before);
	own = bind_loopback(5000, SOCK_DGRAM);
	assert_true(own >= 0);
	assert_int_equal(gate_set_traffic(&gate, ports, 1, &bounds), 0);
	assert_int_equal(gate_listen(&gate), -EADDRINUSE);
	assert_non_null(strstr(gate.why, "UDP port 5000"));
	assert_int_equal(gate.listener_count, 0);
	close(own);
	gate_close(&gate);
}

/* A worker has the first set while the next one opens. */
static void another_set_opens_beside_the_first(void **state)
{
	struct gate gate;
	int kept;

	(void)state;
	open_gate(&gate);
	kept = dup(gate.listeners[0].fd);
	assert_true(kept >= 0);
	assert_int_equal(gate_listen(&gate), 0);
	close(kept);
	gate_close(&gate);
}

static void a_port_that_is_taken_is_named(void **state)
{
	struct gate gate;
	int fd = bind_loopback(7653, SOCK_DGRAM);

	(void)state;
	assert_true(fd >= 0);
	gate_init(&gate);
	gate.tcp_port = 3128;
	gate.dns_port = 7653;
	assert_int_equal(gate_open_shared(&gate, -1), -EADDRINUSE);
	assert_non_null(strstr(gate.why, "port 7653"));
	gate_close(&gate);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(listens_on_loopback_alone),
	        cmocka_unit_test(has_nothing_to_connect_set_or_watch),
	        cmocka_unit_test(ports_for_datagrams_come_and_go),
	        cmocka_unit_test(another_set_opens_beside_the_first),
	        cmocka_unit_test(a_port_that_is_taken_is_named)};

	if (!privileges_for_namespaces() || system("ip link set lo up") != 0) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
