/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared: the fence of a network namespace in which the sandbox and its guard live together (pods, compose groups).
 * There is no link between the two, so the rules tell them apart by the owner of a socket: the guard's user id, and its
 * cgroup where that is known. One table, "inet vethguard-shared":
 *
 * - output, before addresses are rewritten: the guard's packets pass; DNS of any address is rewritten to the guard's
 *   name service, and TCP to every address that is not the namespace's own to the guard's listener (REDIRECT;
 *   SO_ORIGINAL_DST tells the listener where a connection was going to). UDP to a synthetic address is not rewritten:
 *   the caller makes these addresses local ones of the namespace, so that an ordinary socket gets the datagram and is
 *   told the address, which the kernel does not tell of a datagram that was rewritten;
 * - output, after that: only what goes to the namespace itself passes, as far as the spec allows it (to synthetic
 *   addresses: UDP to the ports named in it), and answers to connections that came in on an inbound port; the rest is
 *   logged, counted and rejected;
 * - postrouting: only the guard's packets and those answers leave by an interface other than lo. This holds for
 *   sockets that are bound to an interface, too;
 * - input: from outside only answers to the guard, and the inbound ports;
 * - forward: nothing.
 *
 * A second table, "netdev vethguard-shared", has the egress hook of each named device (Linux 5.16): what a socket of
 * another user sends there is dropped, but for answers from inbound ports. It is for packet sockets (AF_PACKET), whose
 * packets pass no other hook.
 *
 * If the guard dies, the rules stay: what is rewritten finds no listener, and nothing else passes.
 *
 * Not covered: what a packet socket hears. It needs CAP_NET_RAW, and then hears the guard's packets. Devices that are
 * made later have no egress hook.
 */
#ifndef VETHGUARD_FENCE_SHARED_H
#define VETHGUARD_FENCE_SHARED_H

#include <net/if.h>

#include "vethguard/base/ip.h"

#define FENCE_SHARED_PORTS_MAX 8
#define FENCE_SHARED_DEVICES_MAX 16
/* Ports of 127.0.0.1 and ::1 by which the guard sees that the fence is in force (fence_shared_witness()). */
#define FENCE_WITNESS_PORT 7676
#define FENCE_WITNESS_REFUSED_PORT 7677

struct fence_shared_spec {
	uint32_t uid;          /* of the guard, and of nobody else; never 0 */
	uint64_t cgroup;       /* id of the guard's cgroup (version 2); 0: the user id alone decides */
	uint32_t cgroup_level; /* how deep that cgroup is below the root of the cgroup namespace */
	uint16_t tcp_port;     /* the guard's listener for connections, on 127.0.0.1 and ::1 */
	uint16_t dns_port;     /* its name service, UDP and TCP */
	struct ip_prefix synthetic4, synthetic6;    /* the addresses that stand for names */
	uint16_t udp_ports[FENCE_SHARED_PORTS_MAX]; /* ports of those that take datagrams: the guard listens there */
	size_t udp_count;
	bool loopback_all;                               /* members of the group may use all ports of each other */
	uint16_t loopback_ports[FENCE_SHARED_PORTS_MAX]; /* else these */
	size_t loopback_count;
	uint16_t inbound_ports[FENCE_SHARED_PORTS_MAX]; /* TCP ports that may be reached from outside */
	size_t inbound_count;
	char devices[FENCE_SHARED_DEVICES_MAX][IFNAMSIZ]; /* with an egress hook; not lo */
	size_t device_count;
	uint16_t nflog_group;
};

/* Sets the fence up in the caller's namespace, or replaces the one that is there, in one batch. Returns 0, -EINVAL,
 * or another -errno: then nothing has changed. */
int fence_shared_set(const struct fence_shared_spec *spec);
/* Reads the rules back and compares them. Returns 0; -ESTALE: changed or missing; or another -errno. */
int fence_shared_check(const struct fence_shared_spec *spec);

#endif
