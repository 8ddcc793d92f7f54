/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: addresses, routes, rules and neighbors. A rule "packets from LINK use table
 * N" and a route "in table N every address is local" (to lo) make the kernel hand a packet for any
 * address to the sockets of this machine instead of forwarding it. No packet mark takes part, so
 * nothing that sets marks can change that.
 */
#include "netlink/request.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

/* directly behind the kernel's own "local" rule (0), before anything that an administrator is
 * likely to have */
#define LOCAL_DELIVERY_PRIORITY 1
#define CONNECTED_METRIC 256 /* IP6_RT_PRIO_KERN: part of the identity of an IPv6 route */

/* Uses netdevice(7), since rtnetlink answers with all of a link's statistics. Call this only for
 * links that exist: for others the ioctl makes the kernel look for a module to load. */
static unsigned index_of(const struct netlink *nl, const char *link)
{
	struct ifreq r = {0};

	if (rtnl_check_name(link) < 0)
		return 0;
	memcpy(r.ifr_name, link, strlen(link));
	return ioctl(rtnl_fd(nl), SIOCGIFINDEX, &r) < 0 ? 0 : (unsigned)r.ifr_ifindex;
}

static int require_index(
        struct netlink *nl, const char *link, const struct ip *address, unsigned *index)
{
	if (address->family != 4 && address->family != 6)
		return -EAFNOSUPPORT;
	*index = index_of(nl, link);
	return *index == 0 ? -ENODEV : 0;
}

int netlink_address_add(
        struct netlink *nl, const char *link, const struct ip *address, uint8_t prefix_bits)
{
	struct request r;
	struct ifaddrmsg *m;
	unsigned index;
	int rc = require_index(nl, link, address, &index);

	if (rc < 0)
		return rc;
	if (prefix_bits > (address->family == 6 ? 128 : 32))
		return -EINVAL;
	m = rtnl_begin(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));
	m->ifa_family = (uint8_t)rtnl_family(address);
	m->ifa_prefixlen = prefix_bits;
	m->ifa_index = index;
	rtnl_put_ip(&r, IFA_LOCAL, address);
	rtnl_put_ip(&r, IFA_ADDRESS, address);
	if (address->family == 6)
		mnl_attr_put_u32(r.header, IFA_FLAGS, IFA_F_NODAD);
	return rtnl_run(nl, &r, NULL, NULL);
}

/* Begins a route of the main table over a link. The caller adds the destination. */
static struct rtmsg *route_begin(struct request *r, uint16_t flags, uint8_t protocol,
        const struct ip *address, unsigned index)
{
	struct rtmsg *m = rtnl_begin(r, RTM_NEWROUTE, NLM_F_CREATE | flags, sizeof(*m));

	m->rtm_family = (uint8_t)rtnl_family(address);
	m->rtm_table = RT_TABLE_MAIN;
	m->rtm_protocol = protocol;
	m->rtm_scope = RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(r->header, RTA_OIF, index);
	return m;
}

/* Adds a destination network that is on the link itself. */
static void route_to(struct request *r, struct rtmsg *m, const struct ip *network, uint8_t bits)
{
	m->rtm_dst_len = bits;
	m->rtm_scope = network->family == 6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
	rtnl_put_ip(r, RTA_DST, network);
}

int netlink_route_default(struct netlink *nl, const char *link, const struct ip *gateway)
{
	struct request r;
	struct rtmsg *m;
	unsigned index;
	int rc = require_index(nl, link, gateway, &index);

	if (rc < 0)
		return rc;
	m = route_begin(&r, NLM_F_REPLACE, RTPROT_STATIC, gateway, index);
	/* the gateway is at the other end of this wire, whatever the prefix length says */
	m->rtm_flags = RTNH_F_ONLINK;
	rtnl_put_ip(&r, RTA_GATEWAY, gateway);
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_route_on_link(struct netlink *nl, const char *link, const struct ip *base, uint8_t bits)
{
	struct request r;
	unsigned index;
	int rc = require_index(nl, link, base, &index);

	if (rc < 0)
		return rc;
	route_to(&r, route_begin(&r, NLM_F_REPLACE, RTPROT_STATIC, base, index), base, bits);
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_route_to_loopback(struct netlink *nl, const struct ip *base, uint8_t bits)
{
	static const struct ip source = {.family = 4, .bytes = {127, 0, 0, 1}};
	struct request r;
	struct rtmsg *m;
	unsigned index;
	int rc = require_index(nl, "lo", base, &index);

	if (rc < 0)
		return rc;
	m = route_begin(&r, NLM_F_REPLACE, RTPROT_STATIC, base, index);
	route_to(&r, m, base, bits);
	m->rtm_table = RT_TABLE_LOCAL;
	m->rtm_type = RTN_LOCAL;
	if (base->family == 4) { /* else a connection's source would be its destination */
		m->rtm_scope = RT_SCOPE_HOST;
		rtnl_put_ip(&r, RTA_PREFSRC, &source);
	}
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_route_connected_repair(
        struct netlink *nl, const char *link, const struct ip *address, uint8_t bits)
{
	struct ip network = *address;
	struct request r;
	unsigned index;
	int rc = require_index(nl, link, address, &index);

	if (rc < 0)
		return rc;
	for (unsigned i = bits; i < (address->family == 6 ? 128 : 32); i++)
		network.bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	route_to(&r, route_begin(&r, NLM_F_EXCL, RTPROT_KERNEL, address, index), &network, bits);
	if (address->family == 6)
		mnl_attr_put_u32(r.header, RTA_PRIORITY, CONNECTED_METRIC);
	else
		rtnl_put_ip(&r, RTA_PREFSRC, address);
	rc = rtnl_run(nl, &r, NULL, NULL);
	return rc == -EEXIST ? 0 : rc == 0 ? 1 : rc;
}

int netlink_neighbor_permanent(
        struct netlink *nl, const char *link, const struct ip *address, const uint8_t mac[6])
{
	struct request r;
	struct ndmsg *m;
	unsigned index;
	int rc = require_index(nl, link, address, &index);

	if (rc < 0)
		return rc;
	m = rtnl_begin(&r, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*m));
	m->ndm_family = (uint8_t)rtnl_family(address);
	m->ndm_ifindex = (int)index;
	m->ndm_state = NUD_PERMANENT;
	rtnl_put_ip(&r, NDA_DST, address);
	mnl_attr_put(r.header, NDA_LLADDR, 6, mac);
	return rtnl_run(nl, &r, NULL, NULL);
}

static int local_rule(struct netlink *nl, int family, const char *link, uint32_t table)
{
	struct request r;
	struct fib_rule_hdr *m = rtnl_begin(&r, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));

	m->family = (uint8_t)family;
	m->action = FR_ACT_TO_TBL;
	mnl_attr_put_strz(r.header, FRA_IIFNAME, link);
	mnl_attr_put_u32(r.header, FRA_TABLE, table);
	mnl_attr_put_u32(r.header, FRA_PRIORITY, LOCAL_DELIVERY_PRIORITY);
	return rtnl_run(nl, &r, NULL, NULL);
}

static int local_route(struct netlink *nl, int family, unsigned lo, uint32_t table)
{
	struct request r;
	struct rtmsg *m = rtnl_begin(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));

	m->rtm_family = (uint8_t)family;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_LOCAL;
	mnl_attr_put_u32(r.header, RTA_TABLE, table);
	mnl_attr_put_u32(r.header, RTA_OIF, lo);
	return rtnl_run(nl, &r, NULL, NULL);
}

/* Counts what did not exist before. */
static int unless_there(int result, int *made)
{
	if (result == 0)
		++*made;
	return result == -EEXIST ? 0 : result;
}

int netlink_local_delivery_repair(struct netlink *nl, const char *link, uint32_t table)
{
	static const int families[] = {AF_INET, AF_INET6};
	unsigned lo = index_of(nl, "lo");
	int rc = rtnl_check_name(link), made = 0;

	if (rc == 0 && lo == 0)
		rc = -ENODEV;
	if (rc == 0)
		rc = netlink_link_up(nl, "lo"); /* a route over a link that is down is
		                                       refused */
	for (size_t i = 0; i < 2 && rc == 0; i++) {
		rc = unless_there(local_route(nl, families[i], lo, table), &made);
		if (rc == 0)
			rc = unless_there(local_rule(nl, families[i], link, table), &made);
	}
	return rc < 0 ? rc : made > 0;
}

int netlink_local_delivery(struct netlink *nl, const char *link, uint32_t table)
{
	int rc = netlink_local_delivery_repair(nl, link, table);

	return rc < 0 ? rc : 0;
}

static int kernel_rule(struct netlink *nl, int family, uint32_t priority, uint8_t table)
{
	struct request r;
	struct fib_rule_hdr *m = rtnl_begin(&r, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*m));

	m->family = (uint8_t)family;
	m->action = FR_ACT_TO_TBL;
	m->table = table;
	mnl_attr_put_u32(r.header, FRA_PRIORITY, priority);
	mnl_attr_put_u8(r.header, FRA_PROTOCOL, RTPROT_KERNEL); /* else it would be another rule */
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_kernel_rules_repair(struct netlink *nl)
{
	static const struct {
		int family;
		uint32_t priority;
		uint8_t table;
	} rules[] = {
	        {AF_INET, 0, RT_TABLE_LOCAL},
	        {AF_INET, 32766, RT_TABLE_MAIN},
	        {AF_INET, 32767, RT_TABLE_DEFAULT},
	        {AF_INET6, 0, RT_TABLE_LOCAL},
	        {AF_INET6, 32766, RT_TABLE_MAIN},
	};
	int rc = 0, made = 0;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && rc == 0; i++)
		rc = unless_there(
		        kernel_rule(nl, rules[i].family, rules[i].priority, rules[i].table), &made);
	return rc < 0 ? rc : made > 0;
}
