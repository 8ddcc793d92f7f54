/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netlink: links, addresses, routes, rules and neighbours by rtnetlink (libmnl), in whichever network namespace the
 * thread is in when the socket is opened. Every call waits for the kernel's answer and returns 0 or its -errno.
 */
#ifndef VETHGUARD_NETLINK_NETLINK_H
#define VETHGUARD_NETLINK_NETLINK_H

#include <net/if.h>

#include "vethguard/base/ip.h"

struct netlink; /* one rtnetlink socket; belongs to the namespace it was opened in */

int netlink_open(struct netlink **out);
void netlink_close(struct netlink *nl);

/* A veth pair: name here, peer_name in the namespace of peer_netns_fd. Locally administered random MACs are given. */
int netlink_veth_add(struct netlink *nl, const char *name, const uint8_t mac[6], const char *peer_name,
	const uint8_t peer_mac[6], int peer_netns_fd);
int netlink_link_delete(struct netlink *nl, const char *name);
int netlink_link_up(struct netlink *nl, const char *name);
/* The interface's index, or 0. */
unsigned netlink_link_index(struct netlink *nl, const char *name);
/* IPv6 without duplicate address detection (IFA_F_NODAD). */
int netlink_address_add(struct netlink *nl, const char *link, const struct ip *address, uint8_t prefix_bits);
int netlink_route_default(struct netlink *nl, const char *link, const struct ip *gateway);
int netlink_neighbour_permanent(struct netlink *nl, const char *link, const struct ip *address, const uint8_t mac[6]);
/* Packets that come in on link are looked up in table, which delivers every address locally (TPROXY). Both families. */
int netlink_local_delivery(struct netlink *nl, const char *link, uint32_t table);
int netlink_local_delivery_remove(struct netlink *nl, const char *link, uint32_t table);

#endif
