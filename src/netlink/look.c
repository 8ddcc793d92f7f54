/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: reads links, their addresses and default routes. A single link is queried by
 * name or index. The rest are dumps, filtered here, because older kernels filter less.
 */
#include "netlink/request.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

static void take_kind(const struct nlattr *info, struct netlink_link *link)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, info)
	{
		if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
			snprintf(link->kind, sizeof(link->kind), "%.*s",
			        (int)mnl_attr_get_payload_len(a),
			        (const char *)mnl_attr_get_payload(a));
	}
}

static void take_xdp(const struct nlattr *xdp, struct netlink_link *link)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, xdp)
	{
		if (mnl_attr_get_type(a) == IFLA_XDP_ATTACHED)
			link->xdp = mnl_attr_get_u8(a) != XDP_ATTACHED_NONE;
	}
}

static void take_attribute(const struct nlattr *a, struct netlink_link *link)
{
	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		snprintf(link->name, sizeof(link->name), "%.*s", (int)mnl_attr_get_payload_len(a),
		        (const char *)mnl_attr_get_payload(a));
		break;
	case IFLA_ADDRESS:
		if (mnl_attr_get_payload_len(a) == sizeof(link->mac))
			memcpy(link->mac, mnl_attr_get_payload(a), sizeof(link->mac));
		break;
	case IFLA_MTU:
		link->mtu = mnl_attr_get_u32(a);
		break;
	case IFLA_MASTER:
		link->master = mnl_attr_get_u32(a);
		break;
	case IFLA_LINK:
		link->peer = mnl_attr_get_u32(a);
		break;
	case IFLA_XDP:
		take_xdp(a, link);
		break;
	case IFLA_LINK_NETNSID:
		link->elsewhere = true;
		link->nsid = (int)mnl_attr_get_u32(a);
		break;
	case IFLA_LINKINFO:
		take_kind(a, link);
		break;
	default:
		break;
	}
}

/* Reads the link that the message describes. False: it describes none. */
bool rtnl_take_link(const struct nlmsghdr *message, struct netlink_link *out)
{
	const struct ifinfomsg *m = mnl_nlmsg_get_payload(message);
	const struct nlattr *a;

	if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
		return false;
	if (mnl_nlmsg_get_payload_len(message) < sizeof(*m) || m->ifi_family != AF_UNSPEC)
		return false; /* a bridge's message about one of its ports */
	*out = (struct netlink_link){.index = (unsigned)m->ifi_index,
	        .up = (m->ifi_flags & IFF_UP) != 0,
	        .loopback = (m->ifi_flags & IFF_LOOPBACK) != 0,
	        .ethernet = m->ifi_type == ARPHRD_ETHER};
	mnl_attr_for_each(a, message, sizeof(*m)) take_attribute(a, out);
	return true;
}

static int take_link(const struct nlmsghdr *reply, void *context)
{
	rtnl_take_link(reply, context);
	return MNL_CB_OK;
}

int netlink_link_get(struct netlink *nl, const char *name, unsigned index, struct netlink_link *out)
{
	struct request r;
	struct ifinfomsg *m;
	int rc = name ? rtnl_check_name(name) : 0;

	*out = (struct netlink_link){0};
	if (rc < 0)
		return rc;
	m = rtnl_begin(&r, RTM_GETLINK, 0, sizeof(*m));
	m->ifi_index = name ? 0 : (int)index;
	if (name)
		mnl_attr_put_strz(r.header, IFLA_IFNAME, name);
	rc = rtnl_run(nl, &r, take_link, out);
	return rc == 0 && out->index == 0 ? -ENODEV : rc;
}

struct links_of {
	unsigned master;
	void (*each)(void *context, const struct netlink_link *link);
	void *context;
};

static int take_member(const struct nlmsghdr *reply, void *context)
{
	const struct links_of *of = context;
	struct netlink_link link;

	if (rtnl_take_link(reply, &link) && link.master == of->master)
		of->each(of->context, &link);
	return MNL_CB_OK;
}

struct links_in {
	void (*each)(void *context, const struct netlink_link *link);
	void *context;
};

static int take_any(const struct nlmsghdr *reply, void *context)
{
	const struct links_in *in = context;
	struct netlink_link link;

	if (rtnl_take_link(reply, &link))
		in->each(in->context, &link);
	return MNL_CB_OK;
}

int netlink_links_in(struct netlink *nl, int nsid,
        void (*each)(void *context, const struct netlink_link *link), void *context)
{
	struct links_in in = {each, context};
	struct request r;

	rtnl_begin(&r, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	mnl_attr_put_u32(r.header, IFLA_TARGET_NETNSID, (uint32_t)nsid);
	return rtnl_run(nl, &r, take_any, &in);
}

int netlink_links_of(struct netlink *nl, unsigned master,
        void (*each)(void *context, const struct netlink_link *link), void *context)
{
	struct links_of of = {master, each, context};
	struct request r;

	rtnl_begin(&r, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	return rtnl_run(nl, &r, take_member, &of);
}

bool netlink_link_is_kernels(const struct netlink_link *link)
{
	static const struct {
		const char *name, *kind;
	} tunnels[] = {{"sit0", "sit"}, {"tunl0", "ipip"}, {"ip6tnl0", "ip6tnl"}, {"gre0", "gre"},
	        {"gretap0", "gretap"}, {"erspan0", "erspan"}, {"ip6gre0", "ip6gre"},
	        {"ip_vti0", "vti"}, {"ip6_vti0", "vti6"}};

	for (size_t i = 0; i < sizeof(tunnels) / sizeof(tunnels[0]); i++)
		if (strcmp(link->name, tunnels[i].name) == 0)
			return strcmp(link->kind, tunnels[i].kind) == 0 && !link->elsewhere;
	return link->loopback;
}

bool netlink_link_leads_nowhere(const struct netlink_link *link)
{
	return netlink_link_is_kernels(link) || strcmp(link->kind, "dummy") == 0;
}

struct first_address {
	unsigned index;
	struct ip *out;
	uint8_t *bits;
};

static int take_address(const struct nlmsghdr *reply, void *context)
{
	const struct first_address *first = context;
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(reply);
	const struct nlattr *a;
	uint16_t wanted = IFA_ADDRESS;

	if (first->out->family || m->ifa_index != first->index || m->ifa_scope >= RT_SCOPE_LINK)
		return MNL_CB_OK;
	if (m->ifa_family == AF_INET)
		wanted = IFA_LOCAL; /* IFA_ADDRESS is the far end's on a point-to-point link */
	mnl_attr_for_each(a, reply, sizeof(*m))
	{
		if (mnl_attr_get_type(a) != wanted)
			continue;
		*first->out = (struct ip){.family = m->ifa_family == AF_INET ? 4 : 6};
		memcpy(first->out->bytes, mnl_attr_get_payload(a),
		        m->ifa_family == AF_INET ? 4 : 16);
		*first->bits = m->ifa_prefixlen;
	}
	return MNL_CB_OK;
}

int netlink_address_first(
        struct netlink *nl, unsigned index, int family, struct ip *out, uint8_t *bits)
{
	struct first_address first = {index, out, bits};
	struct request r;
	struct ifaddrmsg *m = rtnl_begin(&r, RTM_GETADDR, NLM_F_DUMP, sizeof(*m));

	*out = (struct ip){0};
	*bits = 0;
	m->ifa_family = family == 4 ? AF_INET : AF_INET6;
	return rtnl_run(nl, &r, take_address, &first);
}

struct default_route {
	unsigned index;
	bool found;
};

static bool leaves_through(const struct nlattr *a, unsigned index)
{
	const struct rtnexthop *hop;
	int left;

	if (mnl_attr_get_type(a) == RTA_OIF)
		return mnl_attr_get_u32(a) == index;
	if (mnl_attr_get_type(a) != RTA_MULTIPATH)
		return false;
	left = mnl_attr_get_payload_len(a);
	for (hop = mnl_attr_get_payload(a); RTNH_OK(hop, left);
	        left -= (int)RTNH_ALIGN(hop->rtnh_len), hop = RTNH_NEXT(hop))
		if ((unsigned)hop->rtnh_ifindex == index)
			return true;
	return false;
}

static int take_route(const struct nlmsghdr *reply, void *context)
{
	struct default_route *route = context;
	const struct rtmsg *m = mnl_nlmsg_get_payload(reply);
	const struct nlattr *a;

	if (m->rtm_dst_len != 0 || m->rtm_type != RTN_UNICAST)
		return MNL_CB_OK;
	mnl_attr_for_each(a, reply, sizeof(*m))
	{
		route->found |= leaves_through(a, route->index);
	}
	return MNL_CB_OK;
}

int netlink_route_is_default(struct netlink *nl, unsigned index, bool *out)
{
	struct default_route route = {index, false};
	struct request r;
	struct rtmsg *m = rtnl_begin(&r, RTM_GETROUTE, NLM_F_DUMP, sizeof(*m));
	int rc;

	m->rtm_family = AF_UNSPEC;
	rc = rtnl_run(nl, &r, take_route, &route);
	*out = route.found;
	return rc;
}
