/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the kernel reports each table, chain, rule, set, element and object that is
 * added or deleted, with the netlink address of the socket that asked for it; the table's name is
 * attribute 1 in every kind of message. If a hook goes together with its device, its chain is
 * reported.
 */
#include "vethguard/fence/fence.h"
#include "vethguard/netlink/netlink.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENT_BYTES (64 * 1024)
#define TABLE_NAME 1 /* NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE, NFTA_SET_TABLE, ... */

int fence_watch_open(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int group = NFNLGRP_NFTABLES, result;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	        setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) == 0)
		return fd;
	result = -errno;
	close(fd);
	return result;
}

static bool is_of_table(const struct nlmsghdr *event, const char *table)
{
	const struct nlattr *a;

	if (NFNL_SUBSYS_ID(event->nlmsg_type) != NFNL_SUBSYS_NFTABLES ||
	        NFNL_MSG_TYPE(event->nlmsg_type) == NFT_MSG_NEWGEN)
		return false;
	if (!table)
		return true;
	mnl_attr_for_each(a, event, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(a) == TABLE_NAME)
			return mnl_attr_get_payload_len(a) > strlen(table) &&
			       memcmp(mnl_attr_get_payload(a), table, strlen(table) + 1) == 0;
	}
	return false;
}

int fence_watch_open_all(void)
{
	int fd = fence_watch_open();
	int rc = fd < 0 ? fd : netlink_listen_all(fd);

	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

static bool touches_rules(const void *events, ssize_t n)
{
	const struct nlmsghdr *event;
	int left = (int)n;

	for (event = events; mnl_nlmsg_ok(event, left); event = mnl_nlmsg_next(event, &left))
		if (is_of_table(event, NULL))
			return true;
	return false;
}

int fence_watch_read_all(int fd, void (*each)(void *context, int nsid), void *context)
{
	static _Alignas(struct nlmsghdr) char events[EVENT_BYTES];
	int result = 0, nsid;

	for (int i = 0; i < NETLINK_READS_MAX; i++) {
		ssize_t n = netlink_receive_nsid(fd, events, sizeof(events), &nsid);

		if (n >= 0 && touches_rules(events, n))
			each(context, nsid);
		else if (n < 0 && errno == ENOBUFS)
			result = -ENOBUFS; /* reported once; go on reading */
		else if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? result : -errno;
	}
	return result;
}

int fence_watch_read(int fd, const char *table, uint32_t own, bool *changed)
{
	static _Alignas(struct nlmsghdr) char events[EVENT_BYTES];
	const struct nlmsghdr *event;
	bool lost = false;
	ssize_t n;
	int left;

	*changed = false;
	while ((n = netlink_receive_events(fd, events, sizeof(events), &lost)) > 0) {
		left = (int)n;
		for (event = (const struct nlmsghdr *)events; mnl_nlmsg_ok(event, left);
		        event = mnl_nlmsg_next(event, &left))
			if ((own == 0 || event->nlmsg_pid != own) && is_of_table(event, table))
				*changed = true;
	}
	*changed |= lost;
	return n < 0 ? (int)n : lost ? -ENOBUFS : 0;
}
