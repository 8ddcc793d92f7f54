/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world: a gate and a sandbox namespace with a veth pair between them and a fence on its outer end,
 * for the tests of this folder. The test program itself stays outside of both; it opens sockets in
 * either by netns_run().
 */
#ifndef VETHGUARD_TESTS_UNIT_FENCE_WORLD_H
#define VETHGUARD_TESTS_UNIT_FENCE_WORLD_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "privileges.h"
#include "vethguard/fence/fence.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"

#define WORLD_TABLE 100
#define WORLD_LINK "vg0"
#define WORLD_TIMEOUT_MS 60000

struct world {
	int gate, sandbox; /* namespaces */
	struct fence_spec spec;
	int tcp4, tcp6, dns4, dns6, dns_tcp4, udp4, udp6; /* listeners in the gate */
	int log;
};

static const uint8_t world_gate_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t world_sandbox_mac[6] = {2, 0, 0, 0, 0, 2};

static struct ip world_ip(const char *text)
{
	struct ip ip = {0};

	assert_true(ip_parse(slice_from_string(text), &ip));
	return ip;
}

static uint16_t world_port(int fd)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	uint16_t port = 0;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &n), 0);
	ip_from_sockaddr((struct sockaddr *)&ss, &port);
	return port;
}

static int world_build_gate(void *context)
{
	struct world *w = context;
	struct netlink *nl;

	assert_int_equal(netns_harden_gate(), 0);
	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(netlink_veth_add(nl, WORLD_LINK, world_gate_mac, "eth0", world_sandbox_mac,
	                         w->sandbox),
	        0);
	assert_int_equal(netlink_address_add(nl, WORLD_LINK, &w->spec.gate4, 30), 0);
	assert_int_equal(netlink_address_add(nl, WORLD_LINK, &w->spec.gate6, 64), 0);
	assert_int_equal(netlink_link_up(nl, WORLD_LINK), 0);
	assert_int_equal(netlink_local_delivery(nl, WORLD_LINK, WORLD_TABLE), 0);
	netlink_close(nl);
	return 0;
}

static int world_build_sandbox(void *context)
{
	struct world *w = context;
	struct netlink *nl;

	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(netlink_link_up(nl, "lo"), 0);
	assert_int_equal(netlink_address_add(nl, "eth0", &w->spec.sandbox4, 30), 0);
	assert_int_equal(netlink_address_add(nl, "eth0", &w->spec.sandbox6, 64), 0);
	assert_int_equal(netlink_link_up(nl, "eth0"), 0);
	assert_int_equal(netlink_route_default(nl, "eth0", &w->spec.gate4), 0);
	assert_int_equal(netlink_route_default(nl, "eth0", &w->spec.gate6), 0);
	netlink_close(nl);
	return 0;
}

static int world_open_listeners(void *context)
{
	struct world *w = context;

	w->tcp4 = fence_listen(4, true, 0, 16);
	assert_true(w->tcp4 >= 0);
	w->spec.tcp_port = world_port(w->tcp4);
	w->tcp6 = fence_listen(6, true, w->spec.tcp_port, 16);
	w->dns4 = fence_listen(4, false, 53, 0);
	w->dns6 = fence_listen(6, false, 53, 0);
	w->dns_tcp4 = fence_listen(4, true, 53, 16);
	w->udp4 = fence_listen(4, false, 123, 0);
	w->udp6 = fence_listen(6, false, 123, 0);
	w->log = fence_nflog_open(FENCE_NFLOG_GROUP);
	assert_true(w->tcp6 >= 0 && w->dns4 >= 0 && w->dns6 >= 0 && w->dns_tcp4 >= 0);
	assert_true(w->udp4 >= 0 && w->udp6 >= 0 && w->log >= 0);
	return 0;
}

static int world_fence_set(void *context)
{
	return fence_set(&((struct world *)context)->spec);
}

static inline int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->spec = (struct fence_spec){.interface = WORLD_LINK,
	        .sandbox4 = world_ip("10.77.0.2"),
	        .sandbox6 = world_ip("fd77::2"),
	        .gate4 = world_ip("10.77.0.1"),
	        .gate6 = world_ip("fd77::1"),
	        .tcp_port = 1,
	        .dns_port = 53,
	        .udp_ports = {123},
	        .udp_port_count = 1,
	        .nflog_group = FENCE_NFLOG_GROUP,
	        .bounds = {10000, 10000, 10000, 10000},
	        .whole_namespace = true};
	w->gate = netns_new();
	w->sandbox = netns_new();
	assert_true(w->gate >= 0 && w->sandbox >= 0);
	assert_int_equal(netns_run(w->gate, world_build_gate, w), 0);
	assert_int_equal(netns_run(w->sandbox, world_build_sandbox, w), 0);
	assert_int_equal(netns_run(w->gate, world_open_listeners, w), 0);
	assert_int_equal(netns_run(w->gate, world_fence_set, w), 0);
	*state = w;
	return 0;
}

static inline int world_teardown(void **state)
{
	struct world *w = *state;
	const int fds[] = {w->tcp4, w->tcp6, w->dns4, w->dns6, w->dns_tcp4, w->udp4, w->udp6,
	        w->log, w->gate, w->sandbox};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(w);
	return 0;
}

struct world_command {
	const char *line;
};

static int world_run_command(void *context)
{
	return system(((struct world_command *)context)->line);
}

/* A command line in the gate; its exit status. */
static inline int world_shell(struct world *w, const char *line)
{
	struct world_command c = {line};

	return netns_run(w->gate, world_run_command, &c);
}

/* True when fd becomes readable in time. */
static inline bool world_readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

#endif
