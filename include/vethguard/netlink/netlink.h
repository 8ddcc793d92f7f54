/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink: links, addresses, routes, rules and neighbours by rtnetlink (libmnl), in whichever network namespace the
 * thread is in when the socket is opened. Every call waits for the kernel's answer and returns 0 or its -errno.
 */
#ifndef VETHGUARD_NETLINK_NETLINK_H
#define VETHGUARD_NETLINK_NETLINK_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/types.h>

#include "vethguard/base/ip.h"

struct netlink; /* one rtnetlink socket; belongs to the namespace it was opened in */

int netlink_open(struct netlink **out);
void netlink_close(struct netlink *nl);
/* Its netlink address, by which notifications name who made a change. */
uint32_t netlink_port(const struct netlink *nl);

/* A veth pair: name here, peer_name in the namespace of peer_netns_fd. mac and peer_mac are
 * theirs: the kernel need not make any. peer_netns_fd stays the caller's. */
int netlink_veth_add(struct netlink *nl, const char *name, const uint8_t mac[6], const char *peer_name,
	const uint8_t peer_mac[6], int peer_netns_fd);
int netlink_link_delete(struct netlink *nl, const char *name);
int netlink_link_up(struct netlink *nl, const char *name);
/* Out of the bridge or bond that it belongs to. */
int netlink_link_no_master(struct netlink *nl, const char *name);
/* Its address or MTU; the link may be up. */
int netlink_link_set_mac(struct netlink *nl, const char *name, const uint8_t mac[6]);
int netlink_link_set_mtu(struct netlink *nl, const char *name, uint32_t mtu);
/* No IPv6 address comes up with the link by itself. */
int netlink_link_no_ipv6(struct netlink *nl, const char *name);

#define NETLINK_KIND_MAX 16
struct netlink_link {
	unsigned index, master; /* master: index of the bridge or bond that it belongs to, or 0 */
	uint32_t mtu;
	bool up, loopback, ethernet;
	bool elsewhere; /* its other end, or what carries it, is in another namespace */
	uint8_t mac[6];
	char name[IFNAMSIZ], kind[NETLINK_KIND_MAX]; /* kind: "veth", "bridge", "tun", ...; "": none, as a rule hardware */
};
/* By name, or by index where name is NULL. -ENODEV: there is none. */
int netlink_link_get(struct netlink *nl, const char *name, unsigned index, struct netlink_link *out);
/* Each link whose master has this index. */
int netlink_links_of(struct netlink *nl, unsigned master, void (*each)(void *context, const struct netlink_link *link),
	void *context);
/* The first address of the family (4 or 6) with more than link scope; family 0 in *out where there is none. */
int netlink_address_first(struct netlink *nl, unsigned index, int family, struct ip *out, uint8_t *bits);
/* True in *out where a default route of either family leaves through the link, in any table. */
int netlink_route_is_default(struct netlink *nl, unsigned index, bool *out);
/* A network reached without a gateway; replaces what leads there. */
int netlink_route_on_link(struct netlink *nl, const char *link, const struct ip *base, uint8_t bits);
/* The route to its network that the kernel makes with this address, where it may be there. 0: it was; 1: it was missing
 * and is made; -errno. */
int netlink_route_connected_mend(struct netlink *nl, const char *link, const struct ip *address, uint8_t bits);

/* Notifications: a non-blocking socket, in the namespace of the caller, that hears of changes to links, and besides: */
enum netlink_watched {
	NETLINK_WATCH_ROUTING, /* of addresses, routes and routing rules that are removed, and of the sysctls that the
	                          kernel tells of: forwarding, rp_filter */
	NETLINK_WATCH_FILTERS  /* of queueing disciplines and filters (netlink/filter.h) */
};
int netlink_watch_open(enum netlink_watched also);
struct netlink_watcher {
	/* Each change of a link; removed: it is gone, or has moved elsewhere. */
	void (*link)(void *context, const struct netlink_link *link, bool removed);
	/* Of what is on the interface of this index, by this netlink address. NULL with NETLINK_WATCH_ROUTING. */
	void (*filter)(void *context, unsigned index, uint32_t by);
	void *context;
};
/* Reads what there is. 0; 1: something of NETLINK_WATCH_ROUTING has changed; -ENOBUFS where some were lost, -errno. */
int netlink_watch_read(int fd, const struct netlink_watcher *watcher);
/* The number by which the namespace of nl knows another one (network_namespaces(7), RTM_NEWNSID); assigned where there
 * is none yet. 0 or -errno. */
int netlink_nsid(struct netlink *nl, int netns_fd, int *out);
/* One socket for all: it hears of the same as with NETLINK_WATCH_ROUTING, in every namespace that the caller's has a
 * number for. The kernel asks each socket that listens to any group, in whichever namespace, whether it wants a
 * notification: a socket in each of a thousand namespaces makes every change of a link anywhere slower. The
 * descriptor, or -errno; -EPERM without CAP_NET_BROADCAST. */
int netlink_watch_open_all(void);
/* Whether a socket with NETLINK_WATCH_ROUTING hears of more than links: the kernel looks through the numbers of all
 * namespaces for each notification that a socket for all might hear of, and who sets up a link causes dozens. What
 * happens while it does not is lost. 0 or -errno. */
int netlink_watch_routing(int fd, bool wanted);
/* Reads some of what there is. each: nsid is the namespace, -1 the caller's own; link NULL: something else has changed.
 * 0, -ENOBUFS where some were lost, -errno. */
int netlink_watch_read_all(int fd,
	void (*each)(void *context, int nsid, const struct netlink_link *link, bool removed), void *context);
/* A receive of either kind of socket that listens for all (NETLINK_LISTEN_ALL_NSID). As recv(2), with the namespace. */
ssize_t netlink_receive_nsid(int fd, void *buffer, size_t size, int *nsid);
/* Makes a bound netlink socket one of those. 0 or -errno. */
int netlink_listen_all(int fd);
#define NETLINK_READS_MAX 256 /* datagrams in one call: whoever makes many keeps nobody else waiting */
/* The interface's index, or 0. */
unsigned netlink_link_index(struct netlink *nl, const char *name);
/* IPv6 without duplicate address detection (IFA_F_NODAD). -EEXIST: the link has it. */
int netlink_address_add(struct netlink *nl, const char *link, const struct ip *address, uint8_t prefix_bits);
/* The default route of the gateway's family, which is taken to be on the link; replaces one. */
int netlink_route_default(struct netlink *nl, const char *link, const struct ip *gateway);
/* An entry that is never asked for and never forgotten (NUD_PERMANENT); replaces one. */
int netlink_neighbour_permanent(struct netlink *nl, const char *link, const struct ip *address, const uint8_t mac[6]);
/* Packets that come in on link are looked up in table, which delivers every address locally (TPROXY). Both families. */
int netlink_local_delivery(struct netlink *nl, const char *link, uint32_t table);
/* The same where it may be there: 0: it was; 1: something was missing and is made; -errno. */
int netlink_local_delivery_mend(struct netlink *nl, const char *link, uint32_t table);
/* The routing rules that every namespace begins with, which flushing rules takes away. 0: they were there; 1: one was
 * missing and is made; -errno. */
int netlink_kernel_rules_mend(struct netlink *nl);

#endif
