/* SPDX-License-Identifier: Apache-2.0 */
/* One rtnetlink request at a time: begin, add attributes, then send and wait for the kernel's
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

/* Begins a message of this type; returns its zeroed family header of header_bytes. */
void *rtnl_begin(struct request *r, uint16_t type, uint16_t flags, size_t header_bytes);
/* Adds the address's bytes, 4 or 16. */
void rtnl_put_ip(struct request *r, uint16_t attribute, const struct ip *address);
/* The descriptor of nl's socket, which belongs to nl's namespace like any other socket. */
int rtnl_fd(const struct netlink *nl);
int rtnl_family(const struct ip *address);
/* Sends and waits; every reply that is not an acknowledgment goes to on_reply, if given. Returns 0
 * or -errno; -EINTR: the data changed during a dump. */
int rtnl_run(struct netlink *nl, struct request *r, mnl_cb_t on_reply, void *context);
/* Reads the link that a message describes. False: it describes none. */
bool rtnl_take_link(const struct nlmsghdr *message, struct netlink_link *out);
/* Returns 0, or -EINVAL for a name that no interface can have. */
int rtnl_check_name(const char *name);

#endif
