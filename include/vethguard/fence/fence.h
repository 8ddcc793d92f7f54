/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence: the kernel rules that leave a sandbox one way out: to its worker. Built with libnftnl, one batch per change,
 * for one interface of one network namespace. If every process of vethguard dies, the rules stay and nothing passes.
 *
 * Two tables. "netdev vethguard" has the ingress hook of the interface: ARP and the sandbox's own source addresses
 * pass, everything else is logged and dropped. "inet vethguard" has one verdict map by iifname and one chain per
 * sandbox: TCP goes to tproxy, DNS to the responder, the policy's UDP ports to the relay; the rest is logged, counted
 * and rejected. Nothing is tracked in either direction (notrack).
 */
#ifndef VETHGUARD_FENCE_FENCE_H
#define VETHGUARD_FENCE_FENCE_H

#include <net/if.h>

#include "vethguard/base/ip.h"

#define FENCE_UDP_PORTS_MAX 64
/* Each address that a sandbox sends from makes a neighbor entry, and the kernel has one neighbor table for all
 * namespaces. */
#define FENCE_SOURCES_MAX 64
#define FENCE_SOURCE_S 3600    /* an address that is silent for this long may be replaced by another */
#define FENCE_NFLOG_GROUP 7675 /* in the gate's namespace */
#define FENCE_SNAP_BYTES 128   /* of each dropped packet that is copied to the log */
/* Copies of packets above a bound, as examples for the log; all of them are counted. */
#define FENCE_RATE_COPIES_PER_S 10

/* How much work one sandbox may make for this machine per second, after a burst of FENCE_BURST_S times as much. The
 * kernel drops what exceeds it. 0: no bound. No packet passes because of a bound that would not pass without it. */
#define FENCE_BURST_S 2
#define FENCE_PER_S_MAX 1000000
struct fence_bounds {
	uint32_t connections_per_s; /* new TCP connections; dropped are their first packets, which the sender
	                               repeats */
	uint32_t queries_per_s;     /* packets to the responder over UDP */
	uint32_t copies_per_s;      /* copies of dropped packets to the log, with a burst of one second; more are
	                               dropped and counted, without a copy and without a reject */
	uint32_t datagrams_per_s;   /* packets to the relay, all ports together; a packet that the sandbox's kernel
	                               is to split into datagrams later (UDP_SEGMENT, udp(7)) counts as one */
};

struct fence_spec {
	char interface[IFNAMSIZ];     /* outer end of the sandbox's link */
	struct ip sandbox4, sandbox6; /* the only source addresses that pass (and the link-local one, for ND) */
	uint8_t bits4, bits6;         /* of the network that the sandbox may send from, at most FENCE_SOURCES_MAX
	                                 addresses of it at a time and not the gate's; 0: the one address alone */
	struct ip gate4, gate6;
	uint16_t tcp_port;                       /* listener of intercepted TCP (and of the explicit proxy) */
	uint16_t dns_port;                       /* responder, UDP and TCP: 53 */
	uint16_t udp_ports[FENCE_UDP_PORTS_MAX]; /* policy's udp:// ports; relayed on listeners of the same port */
	size_t udp_port_count;
	uint16_t nflog_group;
	struct fence_bounds bounds;
	bool whole_namespace; /* the namespace is a gate of our own: packets of every other interface are
	                         dropped as well, nothing is forwarded, and only the worker's transparent
	                         sockets may send to the sandbox */
};

/* Sets the fence up, or replaces the one on the same interface, in one batch, in the caller's network namespace.
 * Returns 0 or -errno. */
int fence_set(const struct fence_spec *spec);
/* How the prepared rules of a namespace fit a fence that is to be set there. */
enum fence_prepared {
	FENCE_OTHER, /* they have other addresses or bounds: the kernel deletes those, and makes the caller wait for it
	              */
	FENCE_BARE,  /* they lack everything with addresses and bounds */
	FENCE_FITS   /* they have the same addresses and bounds (fence_prepared_fits()) */
};

/* Does the same as fence_set() in two steps, in a namespace without rules. fence_prepare() makes everything that needs
 * no interface; nothing passes yet. With bare it also leaves out what needs addresses or bounds. fence_set_prepared()
 * makes the rest, for the same interface, ports and nflog_group; UDP ports are added. Both return 0 or -errno; -ENODEV:
 * the interface does not exist.
 *
 * *generation: the generation of the namespace's rules after this step (fence_generation()), or 0 if somebody else has
 * changed a rule since the previous step. Pass the first step's value to the second step. */
int fence_prepare(const struct fence_spec *spec, bool bare, uint32_t *generation);
int fence_set_prepared(const struct fence_spec *spec, enum fence_prepared prepared, uint32_t *generation);
/* True if what was prepared for one spec has the addresses and bounds of the other. */
bool fence_prepared_fits(const struct fence_spec *prepared, const struct fence_spec *spec);
/* A number that changes with every change of the rules of the caller's namespace, by anybody; never 0. Returns 0 or
 * -errno. */
int fence_generation(uint32_t *out);
/* Reads the rules back and compares them with spec. Returns 0: as they should be; -ESTALE: changed or missing; or
 * another -errno. */
int fence_check(const struct fence_spec *spec);
/* Opens a non-blocking socket that receives changes of the rules of the caller's namespace. Returns the descriptor or
 * -errno. */
int fence_watch_open(void);
/* Reads all pending notifications. *changed: a table was changed by anybody except the netlink address own (0: by
 * anybody): the table with this name, or any table if table is NULL. Returns 0; -ENOBUFS: notifications were lost
 * (*changed is true then); or another -errno. */
int fence_watch_read(int fd, const char *table, uint32_t own, bool *changed);
/* Opens one socket for all namespaces that the caller's namespace has a number for (netlink_watch_open_all()).
 * Returns the descriptor or -errno. */
int fence_watch_open_all(void);
/* Reads some pending notifications. Calls each() with the number of every namespace in which anybody changed any
 * rule; -1 is the caller's own. Returns 0, -ENOBUFS if notifications were lost, or another -errno. */
int fence_watch_read_all(int fd, void (*each)(void *context, int nsid), void *context);
/* Packets and bytes that the fence rejected or dropped on the interface, and the packets among them that exceeded a
 * bound. */
struct fence_counters {
	uint64_t packets, bytes;
	uint64_t connections, queries, datagrams;
};
/* Reads the counters, in the caller's namespace. Returns 0, or -errno with zeros. */
int fence_counters_get(const char *interface, struct fence_counters *out);

/* Opens a transparent socket in the caller's namespace (IP_TRANSPARENT, non-blocking, close-on-exec), bound to the
 * wildcard of family 4 or 6 (IPV6_V6ONLY) on port (0: any; see getsockname()). stream: listening TCP with this
 * backlog and without deferred accept; else UDP with IP_RECVORIGDSTADDR and packet info. Returns the descriptor or
 * -errno. */
int fence_listen(int family, bool stream, uint16_t port, int backlog);
/* The same in two steps, the second from any namespace: a socket with these options, and its port. A stream listens
 * after listen(2). Return the descriptor, or 0; or -errno. */
int fence_socket(int family, bool stream);
int fence_bind(int fd, int family, uint16_t port);
/* Opens an NFLOG socket bound to group, with a copy range of FENCE_SNAP_BYTES and a large receive buffer,
 * non-blocking and close-on-exec. read() on it returns nfnetlink_log datagrams (wire/packet.h parses them) of at most
 * FENCE_NFLOG_DATAGRAM_BYTES. Records that find the buffer full are lost without an error from read();
 * fence_counters_get() counts them nevertheless. Returns the descriptor or -errno; -EPERM also if the group has a
 * reader. */
#define FENCE_NFLOG_DATAGRAM_BYTES 32768
int fence_nflog_open(uint16_t group);
/* The same in two steps, the second from any namespace. Until then it gets nothing. Return the descriptor, or 0; or
 * -errno. */
int fence_nflog_socket(void);
int fence_nflog_bind(int fd, uint16_t group);

#endif
