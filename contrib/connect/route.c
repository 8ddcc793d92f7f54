/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing by mark, through rtnetlink(7) by hand: a static program has no library for it on every
 * system, and not every sandbox has ip(8). Each family gets one rule, which sends packets with the
 * mark to a table, and one route in that table, which makes every address a local one.
 */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect.h"
#include "rules.h"

#define ROUTE_TABLE 7667
#define RULE_PRIORITY 100 /* before the rule of the table main */
#define REQUEST_MAX 256
#define ANSWER_MAX 4096
#define ANSWER_S 5 /* the kernel answers at once */

union request {
	struct nlmsghdr header;
	char bytes[REQUEST_MAX];
};

static void *begin(union request *r, uint16_t type, size_t n)
{
	memset(r, 0, sizeof(*r));
	r->header.nlmsg_len = (uint32_t)NLMSG_LENGTH(n);
	r->header.nlmsg_type = type;
	r->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (type == RTM_NEWRULE || type == RTM_NEWROUTE)
		r->header.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
	return NLMSG_DATA(&r->header);
}

static void put_u32(union request *r, uint16_t type, uint32_t value)
{
	struct rtattr *a = (struct rtattr *)(void *)(r->bytes + NLMSG_ALIGN(r->header.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(sizeof(value));
	memcpy(RTA_DATA(a), &value, sizeof(value));
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* Returns the kernel's answer: 0 or -errno. */
static int run(int fd, const union request *r)
{
	union {
		struct nlmsghdr header;
		char bytes[ANSWER_MAX];
	} answer;
	const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
	ssize_t n;

	if (send(fd, r->bytes, r->header.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(error->error)) ||
	        answer.header.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return error->error;
}

static int rule(int fd, uint16_t type, uint8_t family)
{
	union request r;
	struct fib_rule_hdr *m = begin(&r, type, sizeof(*m));

	m->family = family;
	m->action = FR_ACT_TO_TBL;
	m->table = RT_TABLE_UNSPEC;
	put_u32(&r, FRA_TABLE, ROUTE_TABLE);
	put_u32(&r, FRA_PRIORITY, RULE_PRIORITY);
	put_u32(&r, FRA_FWMARK, MARK_CAPTURED);
	put_u32(&r, FRA_FWMASK, UINT32_MAX);
	return run(fd, &r);
}

static int route(int fd, uint16_t type, uint8_t family)
{
	union request r;
	struct rtmsg *m = begin(&r, type, sizeof(*m));

	m->rtm_family = family;
	m->rtm_table = RT_TABLE_UNSPEC;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_LOCAL;
	put_u32(&r, RTA_TABLE, ROUTE_TABLE);
	put_u32(&r, RTA_OIF, if_nametoindex("lo"));
	return run(fd, &r);
}

static int open_socket(void)
{
	const struct timeval limit = {.tv_sec = ANSWER_S};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool is_there(int rc)
{
	return rc == 0 || rc == -EEXIST;
}

int route_set(bool ipv6)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	int fd = open_socket(), rc = fd < 0 ? -errno : 0;

	for (size_t i = 0; i < (ipv6 ? 2 : 1) && rc == 0; i++) {
		rc = route(fd, RTM_NEWROUTE, families[i]);
		rc = is_there(rc) ? rule(fd, RTM_NEWRULE, families[i]) : rc;
		rc = is_there(rc) ? 0 : rc;
	}
	if (fd >= 0)
		close(fd);
	if (rc)
		route_remove();
	return rc;
}

void route_remove(void)
{
	int fd = open_socket();

	if (fd < 0)
		return;
	rule(fd, RTM_DELRULE, AF_INET);
	rule(fd, RTM_DELRULE, AF_INET6);
	route(fd, RTM_DELROUTE, AF_INET);
	route(fd, RTM_DELROUTE, AF_INET6);
	close(fd);
}
