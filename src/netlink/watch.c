/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a second rtnetlink socket that only listens, to the groups of changes. */
#include "request.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENT_BYTES 32768

#define GROUP(number) (1u << ((number)-1))
#define ALSO                                                                               \
	(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | \
	        GROUP(RTNLGRP_IPV4_RULE) | GROUP(RTNLGRP_IPV6_RULE))

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
	else if (event->nlmsg_type == RTM_DELADDR || event->nlmsg_type == RTM_DELROUTE ||
	         event->nlmsg_type == RTM_DELRULE)
		watch->removed = true;
	return MNL_CB_OK;
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
