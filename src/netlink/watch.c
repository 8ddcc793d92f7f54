/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a second rtnetlink socket that only listens, to the groups of changes. */
#include "netlink/request.h"

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
#define ROUTING                                                                            \
	(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | \
	        GROUP(RTNLGRP_IPV4_RULE) | GROUP(RTNLGRP_IPV6_RULE) |                      \
	        GROUP(RTNLGRP_IPV4_NETCONF) | GROUP(RTNLGRP_IPV6_NETCONF))
#define FILTERS GROUP(RTNLGRP_TC)

int netlink_listen_all(int fd)
{
	int on = 1, size = ALL_BUFFER_BYTES;

	/* with a smaller buffer notifications are lost earlier, which is noticed */
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return setsockopt(fd, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, &on, sizeof(on)) < 0 ? -errno
	                                                                                 : 0;
}

int netlink_watch_open_all(void)
{
	int fd = netlink_watch_open(NETLINK_WATCH_ROUTING);
	int rc = fd < 0 ? fd : netlink_listen_all(fd);

	if (!rc)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Binding a bound socket again changes its groups if it keeps its address (netlink(7)). */
int netlink_watch_routing(int fd, bool wanted)
{
	struct sockaddr_nl own;
	socklen_t n = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &n) < 0)
		return -errno;
	own.nl_groups = RTMGRP_LINK | (wanted ? ROUTING : 0);
	return bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0 ? -errno : 0;
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

int netlink_watch_open(enum netlink_watched also)
{
	struct sockaddr_nl group = {.nl_family = AF_NETLINK,
	        .nl_groups = RTMGRP_LINK | (also == NETLINK_WATCH_FILTERS ? FILTERS : ROUTING)};
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

static bool is_routing(const struct nlmsghdr *event)
{
	return event->nlmsg_type == RTM_DELADDR || event->nlmsg_type == RTM_DELROUTE ||
	       event->nlmsg_type == RTM_DELRULE || event->nlmsg_type == RTM_NEWNETCONF;
}

static bool is_filter(const struct nlmsghdr *event)
{
	return (event->nlmsg_type == RTM_NEWQDISC || event->nlmsg_type == RTM_DELQDISC ||
	               event->nlmsg_type == RTM_NEWTFILTER ||
	               event->nlmsg_type == RTM_DELTFILTER) &&
	       mnl_nlmsg_get_payload_len(event) >= sizeof(struct tcmsg);
}

struct watch {
	const struct netlink_watcher *watcher;
	bool changed;
};

static int take_event(const struct nlmsghdr *event, void *context)
{
	struct watch *watch = context;
	const struct netlink_watcher *watcher = watch->watcher;
	const struct tcmsg *m = mnl_nlmsg_get_payload(event);
	struct netlink_link link;

	if (rtnl_take_link(event, &link))
		watcher->link(watcher->context, &link, event->nlmsg_type == RTM_DELLINK);
	else if (is_routing(event))
		watch->changed = true;
	else if (is_filter(event) && watcher->filter)
		watcher->filter(watcher->context, (unsigned)m->tcm_ifindex, event->nlmsg_pid);
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
	else if (is_routing(event))
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
			result = -ENOBUFS; /* reported once; go on reading */
		else if (errno != EINTR)
			return errno == EAGAIN ? result : -errno;
	}
	return result;
}

ssize_t netlink_receive_events(int fd, void *out, size_t size, bool *lost)
{
	for (;;) {
		ssize_t n = recv(fd, out, size, 0);

		if (n > 0)
			return n;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == ENOBUFS)
			*lost = true; /* reported once; go on reading */
		else if (n < 0 && errno != EINTR)
			return -errno;
	}
}

int netlink_watch_read(int fd, const struct netlink_watcher *watcher)
{
	_Alignas(struct nlmsghdr) char events[EVENT_BYTES];
	struct watch watch = {watcher, false};
	bool lost = false;
	ssize_t n;

	while ((n = netlink_receive_events(fd, events, sizeof(events), &lost)) > 0)
		mnl_cb_run(events, (size_t)n, 0, 0, take_event, &watch);
	return n < 0 ? (int)n : lost ? -ENOBUFS : watch.changed;
}
