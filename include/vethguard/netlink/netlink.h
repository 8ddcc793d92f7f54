/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink: links, addresses, routes, rules and neighbors through rtnetlink (libmnl), in the network namespace that
 * the thread is in when the socket is opened. Every call waits for the kernel's answer and returns 0 or its -errno.
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
/* The socket's netlink address. Notifications name the author of a change by it. */
uint32_t netlink_port(const struct netlink *nl);

/* Adds a veth pair: name here, peer_name in the namespace of peer_netns_fd. mac and peer_mac are their addresses, so
 * that the kernel does not make any. peer_netns_fd stays the caller's. */
int netlink_veth_add(struct netlink *nl, const char *name, const uint8_t mac[6], const char *peer_name,
        const uint8_t peer_mac[6], int peer_netns_fd);
int netlink_link_delete(struct netlink *nl, const char *name);
int netlink_link_up(struct netlink *nl, const char *name);
int netlink_link_down(struct netlink *nl, const char *name);
/* Set and get a text that the kernel keeps with the link, for people and for the link's maker (ip-link(8), alias).
 * -EINVAL: text is longer than NETLINK_ALIAS_MAX. "": there is none. */
#define NETLINK_ALIAS_MAX 255 /* bytes */
int netlink_link_set_alias(struct netlink *nl, const char *name, const char *text);
int netlink_link_alias(struct netlink *nl, const char *name, char out[NETLINK_ALIAS_MAX + 1]);
/* Removes the link from its bridge or bond. */
int netlink_link_no_master(struct netlink *nl, const char *name);
/* Set the MAC address or MTU; the link may be up. */
int netlink_link_set_mac(struct netlink *nl, const char *name, const uint8_t mac[6]);
int netlink_link_set_mtu(struct netlink *nl, const char *name, uint32_t mtu);
/* Prevents that an IPv6 address comes up with the link by itself. */
int netlink_link_no_ipv6(struct netlink *nl, const char *name);

#define NETLINK_KIND_MAX 16
struct netlink_link {
	unsigned index, master; /* master: index of the link's bridge or bond, or 0 */
	unsigned peer;          /* index of its other end or lower device, in that one's own namespace; 0: none */
	uint32_t mtu;
	bool up, loopback, ethernet;
	bool elsewhere; /* its other end or its lower device is in another namespace */
	bool xdp;       /* an XDP program sees its frames before anything else */
	int nsid;       /* elsewhere: the number of that namespace in the link's own */
	uint8_t mac[6];
	char name[IFNAMSIZ], kind[NETLINK_KIND_MAX]; /* kind: "veth", "bridge", "tun", ...; "": none, usually
	                                                hardware */
};
/* Finds a link by name, or by index if name is NULL. -ENODEV: there is none. */
int netlink_link_get(struct netlink *nl, const char *name, unsigned index, struct netlink_link *out);
/* Calls each() for every link whose master has this index. */
int netlink_links_of(struct netlink *nl, unsigned master, void (*each)(void *context, const struct netlink_link *link),
        void *context);
/* True for the links that the kernel itself makes in every namespace, and that cannot be removed: the loopback, and
 * tunnels without a far end. Looks at the kind and not only at the name, because root inside may rename any link. */
bool netlink_link_is_kernels(const struct netlink_link *link);
/* True for links through which nothing can leave a namespace: the kernel's own, and dummies. */
bool netlink_link_leads_nowhere(const struct netlink_link *link);
/* Calls each() for every link of the namespace that nl's namespace has this number for; for none if it has none. Needs
 * CAP_NET_ADMIN there, and not to enter it. */
int netlink_links_in(
        struct netlink *nl, int nsid, void (*each)(void *context, const struct netlink_link *link), void *context);
/* The first address of the family (4 or 6) with a scope wider than link; family 0 in *out if there is none. */
int netlink_address_first(struct netlink *nl, unsigned index, int family, struct ip *out, uint8_t *bits);
/* *out: a default route of either family, in any table, leaves through the link. */
int netlink_route_is_default(struct netlink *nl, unsigned index, bool *out);
/* Adds a route to a network that is reached without a gateway; replaces an existing one. */
int netlink_route_on_link(struct netlink *nl, const char *link, const struct ip *base, uint8_t bits);
/* Makes all addresses of the network local ones of the namespace (table local, over lo): any socket of it that is bound
 * to no address receives what is sent to them. IPv4: senders that chose no address have 127.0.0.1. */
int netlink_route_to_loopback(struct netlink *nl, const struct ip *base, uint8_t bits);
/* Restores the route to its network that the kernel makes with this address. Returns 0: it existed; 1: it was missing
 * and was made; or -errno. */
int netlink_route_connected_repair(struct netlink *nl, const char *link, const struct ip *address, uint8_t bits);

/* Notifications: a non-blocking socket in the caller's namespace that receives changes of links, and also: */
enum netlink_watched {
	NETLINK_WATCH_ROUTING, /* removed addresses, routes and routing rules, and changes of the sysctls that the
	                          kernel reports: forwarding, rp_filter */
	NETLINK_WATCH_FILTERS  /* changes of queueing disciplines and filters (netlink/filter.h) */
};
int netlink_watch_open(enum netlink_watched also);
struct netlink_watcher {
	/* A link changed. removed: the link is gone, or has moved to another namespace. */
	void (*link)(void *context, const struct netlink_link *link, bool removed);
	/* A filter on the interface with this index was changed, by this netlink address. NULL with
	 * NETLINK_WATCH_ROUTING. */
	void (*filter)(void *context, unsigned index, uint32_t by);
	void *context;
};
/* Reads all pending notifications. Returns 0; 1: something of NETLINK_WATCH_ROUTING changed; -ENOBUFS: some were
 * lost; or another -errno. */
int netlink_watch_read(int fd, const struct netlink_watcher *watcher);
/* Receives what a socket of events has next. Returns its bytes; 0: nothing more is there; or -errno. Sets *lost if the
 * kernel had no room for some. */
ssize_t netlink_receive_events(int fd, void *out, size_t size, bool *lost);
/* The number by which nl's namespace knows another one (network_namespaces(7), RTM_NEWNSID); assigns one if there is
 * none yet. Returns 0 or -errno. */
int netlink_nsid(struct netlink *nl, int netns_fd, int *out);
/* Opens one socket that receives the same as with NETLINK_WATCH_ROUTING from every namespace that the caller's
 * namespace has a number for. The kernel asks each socket that listens to any group, in whatever namespace, whether
 * it wants a notification, so a socket in each of a thousand namespaces would slow down every change of a link.
 * Returns the descriptor or -errno; -EPERM without CAP_NET_BROADCAST. */
int netlink_watch_open_all(void);
/* Switches whether a socket with NETLINK_WATCH_ROUTING receives more than changes of links. The kernel searches the
 * numbers of all namespaces for each notification that a socket for all might receive, and setting up a link causes
 * dozens. What happens while it is off is lost. Returns 0 or -errno. */
int netlink_watch_routing(int fd, bool wanted);
/* Reads some pending notifications. each(): nsid is the namespace, -1 the caller's own; link NULL: something else
 * changed. Returns 0, -ENOBUFS if some were lost, or another -errno. */
int netlink_watch_read_all(
        int fd, void (*each)(void *context, int nsid, const struct netlink_link *link, bool removed), void *context);
/* Receives from a netlink socket that listens for all (NETLINK_LISTEN_ALL_NSID). As recv(2), with the namespace in
 * *nsid. */
ssize_t netlink_receive_nsid(int fd, void *buffer, size_t size, int *nsid);
/* Makes a bound netlink socket listen for all. Returns 0 or -errno. */
int netlink_listen_all(int fd);
#define NETLINK_READS_MAX 256 /* datagrams read in one call, so that a flood of changes delays nobody else */
/* Returns the interface's index, or 0. */
unsigned netlink_link_index(struct netlink *nl, const char *name);
/* Adds an address; IPv6 without duplicate address detection (IFA_F_NODAD). -EEXIST: the link has it. */
int netlink_address_add(struct netlink *nl, const char *link, const struct ip *address, uint8_t prefix_bits);
/* Sets the default route of the gateway's family; the gateway is assumed to be on the link. Replaces an existing
 * one. */
int netlink_route_default(struct netlink *nl, const char *link, const struct ip *gateway);
/* Sets an entry that is never queried and never expires (NUD_PERMANENT); replaces an existing one. */
int netlink_neighbor_permanent(struct netlink *nl, const char *link, const struct ip *address, const uint8_t mac[6]);
/* Makes packets that come in on link use table, which delivers every address locally (TPROXY). Both families. */
int netlink_local_delivery(struct netlink *nl, const char *link, uint32_t table);
/* Restores the same. Returns 0: all of it existed; 1: something was missing and was made; or -errno. */
int netlink_local_delivery_repair(struct netlink *nl, const char *link, uint32_t table);
/* Restores the routing rules that every namespace has at first and that flushing the rules removes. Returns 0: they
 * existed; 1: one was missing and was made; or -errno. */
int netlink_kernel_rules_repair(struct netlink *nl);

#endif
