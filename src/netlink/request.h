/* SPDX-License-Identifier: Apache-2.0 */
/* One rtnetlink request at a time: begin, put attributes, then ask and wait for the kernel's
 * answer. */
#ifndef VETHGUARD_SRC_NETLINK_REQUEST_H
#define VETHGUARD_SRC_NETLINK_REQUEST_H

#include <libmnl/libmnl.h>
#include <stdint.h>

#include "vethguard/netlink/netlink.h"

#define REQUEST_BYTES 2048 /* the largest request (a veth pair) is below 300 bytes */

struct request {
	_Alignas(struct nlmsghdr) uint8_t bytes[REQUEST_BYTES];
	struct nlmsghdr *header;
};

/* A message of this type with header_bytes of zeroed family header behind it, which is returned. */
void *rtnl_begin(struct request *r, uint16_t type, uint16_t flags, size_t header_bytes);
/* The address alone, in its own family's length. */
void rtnl_put_ip(struct request *r, uint16_t attribute, const struct ip *address);
/* Its socket, which belongs to its namespace as any other. */
int rtnl_fd(const struct netlink *nl);
int rtnl_family(const struct ip *address);
/* Sends and waits; each reply that is not an acknowledgement goes to on_reply where one is given. 0
 * or -errno. */
int rtnl_run(struct netlink *nl, struct request *r, mnl_cb_t on_reply, void *context);
/* The link that a message describes. False: it describes none. */
bool rtnl_take_link(const struct nlmsghdr *message, struct netlink_link *out);
/* -EINVAL for a name that no interface can have. */
int rtnl_check_name(const char *name);

#endif
