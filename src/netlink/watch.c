/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a second rtnetlink socket that only listens, to the groups of changes. */
#include "request.h"

#include <errno.h>
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENT_BYTES 32768
#define ALL_BUFFER_BYTES (8 << 20)

#define GROUP(number) (1u << ((number)-1))
#define ALSO                                                                               \
	(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | \
	        GROUP(RTNLGRP_IPV4_RULE) | GROUP(RTNLGRP_IPV6_RULE))

int netlink_listen_all(int fd)
{
	int on = 1, size = ALL_BUFFER_BYTES;

	/* Of a smaller buffer some are lost earlier, which is noticed. */
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return setsockopt(fd, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &on, sizeof(on)) < 0 ? -errno
	                                                                                 : 0;
}

int netlink_watch_open_all(void)
{
	int fd = netlink_watch_open(true);
	int error = fd < 0 ? fd : netlink_listen_all(fd);

	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	return error;
}

ssize_t netlink_receive_nsid(int fd, void *buffer, size_t size, int *nsid)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {buffer, size};
	struct msghdr message = {.msg_iov = &part,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &message, 0);

	*nsid = NETNSA_NSID_NOT_ASSIGNED;
	if (n < 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_level == SOL_NETLINK && c->cmsg_type == NETLINK_LISTEN_ALL_NSID &&
		        c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(nsid, CMSG_DATA(c), sizeof(int));
	return n;
}

int netlink_watch_open(bool also_removed)
{
	struct sockaddr_nl group = {
	        .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | (also_removed ? ALSO : 0)};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int result;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&group, sizeof(group)) == 0)
		return fd;
	result = -errno;
	close(fd);
	return result;
}

static bool is_removal(const struct nlmsghdr *event)
{
	return event->nlmsg_type == RTM_DELADDR || event->nlmsg_type == RTM_DELROUTE ||
	       event->nlmsg_type == RTM_DELRULE;
}

struct watch {
	void (*each)(void *context, const struct netlink_link *link, bool removed);
	void *context;
	bool removed;
};

static int take_event(const struct nlmsghdr *event, void *context)
{
	struct watch *watch = context;
	struct netlink_link link;

	if (rtnl_take_link(event, &link))
		watch->each(watch->context, &link, event->nlmsg_type == RTM_DELLINK);
	else if (is_removal(event))
		watch->removed = true;
	return MNL_CB_OK;
}

struct watch_all {
	void (*each)(void *context, int nsid, const struct netlink_link *link, bool removed);
	void *context;
	int nsid;
};

static int take_event_of_all(const struct nlmsghdr *event, void *context)
{
	struct watch_all *watch = context;
	struct netlink_link link;

	if (rtnl_take_link(event, &link))
		watch->each(watch->context, watch->nsid, &link, event->nlmsg_type == RTM_DELLINK);
	else if (is_removal(event))
		watch->each(watch->context, watch->nsid, NULL, true);
	return MNL_CB_OK;
}

int netlink_watch_read_all(int fd,
        void (*each)(void *context, int nsid, const struct netlink_link *link, bool removed),
        void *context)
{
	_Alignas(struct nlmsghdr) char events[EVENT_BYTES];
	struct watch_all watch = {each, context, 0};
	int result = 0;

	for (int i = 0; i < NETLINK_READS_MAX; i++) {
		ssize_t n = netlink_receive_nsid(fd, events, sizeof(events), &watch.nsid);

		if (n >= 0)
			mnl_cb_run(events, (size_t)n, 0, 0, take_event_of_all, &watch);
		else if (errno == ENOBUFS)
			result = -ENOBUFS; /* told once; what comes after is read on */
		else if (errno != EINTR)
			return errno == EAGAIN ? result : -errno;
	}
	return result;
}

int netlink_watch_read(int fd,
        void (*each)(void *context, const struct netlink_link *link, bool removed), void *context)
{
	_Alignas(struct nlmsghdr) char events[EVENT_BYTES];
	struct watch watch = {each, context, false};
	int result = 0;
	ssize_t n;

	for (;;) {
		n = recv(fd, events, sizeof(events), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ENOBUFS) {
			result = -ENOBUFS; /* told once; what comes after is read on */
			continue;
		}
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0)
			return result == 0 && watch.removed ? 1 : result;
		mnl_cb_run(events, (size_t)n, 0, 0, take_event, &watch);
	}
}
