/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence: the kernel rules that leave a sandbox one way out: to its worker. Built with libnftnl as one batch per
 * change; put on one interface of one network namespace. If every process of vethguard dies, the rules stay and
 * nothing passes.
 *
 * Two tables: "netdev vethguard" (ingress hook on the interface: ARP and the sandbox's own source addresses pass, all
 * else is logged and dropped) and "inet vethguard" (one iifname verdict map, one chain per sandbox: TCP to tproxy,
 * DNS to the responder, the policy's UDP ports to the relay, the rest logged, counted and rejected), with notrack
 * both ways.
 */
#ifndef VETHGUARD_FENCE_FENCE_H
#define VETHGUARD_FENCE_FENCE_H

#include <net/if.h>

#include "vethguard/base/ip.h"

#define FENCE_UDP_PORTS_MAX 64
/* Each address that a sandbox sends from makes a neighbour entry, and the kernel has one table of them for all
 * namespaces. */
#define FENCE_SOURCES_MAX 64
#define FENCE_SOURCE_S 3600     /* an address that was silent for so long leaves its place to another */
#define FENCE_NFLOG_GROUP 7675  /* in the gate's namespace */
#define FENCE_SNAP_BYTES 128    /* of each dropped packet copied to the log */
#define FENCE_RATE_COPIES_PER_S 10 /* of what is beyond a bound, so that the log has examples; all of it is counted */

/* What one sandbox may make of this machine's work in a second, after a burst of FENCE_BURST_S times as much; beyond,
 * the kernel drops. 0: no bound. Nothing passes because of a bound that would not pass without it. */
#define FENCE_BURST_S 2
#define FENCE_PER_S_MAX 1000000
struct fence_bounds {
	uint32_t connections_per_s; /* new TCP connections; what is dropped is their first packet, which its sender repeats */
	uint32_t queries_per_s;     /* packets to the responder over UDP */
	uint32_t copies_per_s;      /* of dropped packets to the log, burst of one second; beyond, they are dropped and
	                               counted without a copy, and not rejected */
	uint32_t datagrams_per_s;   /* packets to the relay, of all its ports; one that the sandbox's kernel is to cut into
	                               several datagrams later (UDP_SEGMENT, udp(7)) counts as one */
};

struct fence_spec {
	char interface[IFNAMSIZ];   /* outer end of the sandbox's link */
	struct ip sandbox4, sandbox6; /* the only source addresses that pass (and the link-local one for ND) */
	uint8_t bits4, bits6;       /* of the network that the sandbox may send from, FENCE_SOURCES_MAX addresses of it
	                               at a time, gate's own excepted; 0: the one address alone */
	struct ip gate4, gate6;
	uint16_t tcp_port;          /* listener of intercepted TCP (and of the explicit proxy) */
	uint16_t dns_port;          /* responder, UDP and TCP: 53 */
	uint16_t udp_ports[FENCE_UDP_PORTS_MAX]; /* policy's udp:// ports; relayed on listeners of the same port */
	size_t udp_port_count;
	uint16_t nflog_group;
	struct fence_bounds bounds;
	bool whole_namespace;       /* a gate of our own: every other interface's packets are dropped as well, nothing is
	                               forwarded, and only the worker's transparent sockets may send to the sandbox */
};

/* Sets the fence up, or replaces the one on the same interface, in one batch, in the caller's network namespace.
 * 0 or -errno. */
int fence_set(const struct fence_spec *spec);
/* The same in two steps, in a namespace without rules: all that needs no interface (nothing passes yet), and the rest,
 * of the same interface, ports and nflog_group, but for UDP ports, which are added. fits: the addresses and bounds are
 * the same, too (fence_prepared_fits). *generation: of the namespace's rules when the step was done (fence_generation),
 * if nobody else has changed any of them since the step before; else 0. The second step takes there what the first
 * gave. 0 or -errno; -ENODEV: the interface is not there. */
int fence_prepare(const struct fence_spec *spec, uint32_t *generation);
int fence_set_prepared(const struct fence_spec *spec, bool fits, uint32_t *generation);
/* Whether what was prepared for one has the addresses and bounds of the other. */
bool fence_prepared_fits(const struct fence_spec *prepared, const struct fence_spec *spec);
/* Another number after each change of the rules of the caller's namespace, whoever made it; never 0. 0 or -errno. */
int fence_generation(uint32_t *out);
/* Reads the rules back and compares them with spec. 0: as they should be; -ESTALE: changed or missing; -errno. */
int fence_check(const struct fence_spec *spec);
/* A non-blocking socket that hears of changes to the rules of the caller's namespace. The descriptor or -errno. */
int fence_watch_open(void);
/* Reads what there is. True in *changed where a table was touched by anyone but the netlink address own (0: by anyone):
 * any table, or with a name, that one. 0; -ENOBUFS where notifications were lost (*changed is true then); -errno. */
int fence_watch_read(int fd, const char *table, uint32_t own, bool *changed);
/* One for all namespaces that the caller's has a number for (netlink_watch_open_all). The descriptor or -errno. */
int fence_watch_open_all(void);
/* Reads some of what it hears: each is told of a namespace, -1 the caller's own, in which anybody has changed any rule.
 * 0, -ENOBUFS where notifications were lost, -errno. */
int fence_watch_read_all(int fd, void (*each)(void *context, int nsid), void *context);
/* Packets and bytes the fence rejected or dropped on the interface; of them, those beyond a bound. */
struct fence_counters {
	uint64_t packets, bytes;
	uint64_t connections, queries, datagrams;
};
/* In the caller's namespace. 0 or -errno, with zeros. */
int fence_counters_get(const char *interface, struct fence_counters *out);

/* A transparent listening socket in the caller's namespace (IP_TRANSPARENT, non-blocking, close-on-exec), bound to the
 * wildcard of family 4 or 6 (IPV6_V6ONLY) on port (0: any; see getsockname). stream: listening TCP with the given
 * backlog and deferred accept off; else UDP with IP_RECVORIGDSTADDR and packet info. The fd or -errno. */
int fence_listen(int family, bool stream, uint16_t port, int backlog);
/* An NFLOG socket bound to group with FENCE_SNAP_BYTES copy range and a large receive buffer, non-blocking and
 * close-on-exec, set up so that read() on it yields nfnetlink_log datagrams (wire/packet.h parses them), each within
 * FENCE_NFLOG_DATAGRAM_BYTES. Records that find the buffer full are lost without an error from read();
 * fence_counters_get() counts them all the same. The fd or -errno; -EPERM also where the group has a reader. */
#define FENCE_NFLOG_DATAGRAM_BYTES 32768
int fence_nflog_open(uint16_t group);

#endif
