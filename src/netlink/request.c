/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one socket, one request at a time. Every request asks for an acknowledgment,
 * and the call reads until that comes, so a caller knows what the kernel did before the next step.
 */
#include "netlink/request.h"

#include "vethguard/netlink/dump.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_BYTES 32768 /* a link with all its statistics is much smaller */

struct netlink {
	struct mnl_socket *socket;
	uint32_t sequence;
};

int netlink_open(struct netlink **out)
{
	struct netlink *nl = calloc(1, sizeof(*nl));
	int rc;

	*out = NULL;
	if (!nl)
		return -ENOMEM;
	nl->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!nl->socket) {
		rc = -errno;
		free(nl);
		return rc;
	}
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		rc = -errno;
		netlink_close(nl);
		return rc;
	}
	*out = nl;
	return 0;
}

void netlink_close(struct netlink *nl)
{
	if (!nl)
		return;
	mnl_socket_close(nl->socket);
	free(nl);
}

uint32_t netlink_port(const struct netlink *nl)
{
	return mnl_socket_get_portid(nl->socket);
}

int rtnl_fd(const struct netlink *nl)
{
	return mnl_socket_get_fd(nl->socket);
}

void *rtnl_begin(struct request *r, uint16_t type, uint16_t flags, size_t header_bytes)
{
	memset(r->bytes, 0, sizeof(r->bytes));
	r->header = mnl_nlmsg_put_header(r->bytes);
	r->header->nlmsg_type = type;
	r->header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	return mnl_nlmsg_put_extra_header(r->header, header_bytes);
}

int rtnl_family(const struct ip *address)
{
	return address->family == 6 ? AF_INET6 : AF_INET;
}

void rtnl_put_ip(struct request *r, uint16_t attribute, const struct ip *address)
{
	mnl_attr_put(r->header, attribute, address->family == 6 ? 16 : 4, address->bytes);
}

int rtnl_run(struct netlink *nl, struct request *r, mnl_cb_t on_reply, void *context)
{
	unsigned port = mnl_socket_get_portid(nl->socket);
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	bool overtaken = false;
	ssize_t n;
	int more = MNL_CB_OK;

	r->header->nlmsg_seq = ++nl->sequence;
	if (mnl_socket_sendto(nl->socket, r->header, r->header->nlmsg_len) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		n = mnl_socket_recvfrom(nl->socket, reply, sizeof(reply));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		overtaken |= netlink_dump_overtaken(reply, (size_t)n);
		more = mnl_cb_run(reply, (size_t)n, r->header->nlmsg_seq, port,
		        overtaken ? NULL : on_reply, context);
		if (more < 0)
			return -errno;
	}
	return overtaken ? -EINTR : 0;
}

int rtnl_check_name(const char *name)
{
	size_t n = strnlen(name, IFNAMSIZ);

	return n == 0 || n == IFNAMSIZ ? -EINVAL : 0;
}
