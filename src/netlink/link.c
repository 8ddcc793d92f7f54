/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: interfaces, always identified by name: rtnetlink accepts IFLA_IFNAME instead
 * of an index. */
#include "netlink/request.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>

static int link_begin(
        struct request *r, uint16_t type, uint16_t flags, const char *name, struct ifinfomsg **out)
{
	int rc = rtnl_check_name(name);

	if (rc < 0)
		return rc;
	*out = rtnl_begin(r, type, flags, sizeof(struct ifinfomsg));
	(*out)->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(r->header, IFLA_IFNAME, name);
	return 0;
}

/* Asks for one queue each way, which is all that a pair uses. Otherwise the kernel makes one for
 * each processor, removes all but one, and waits for an RCU grace period in between. */
static void put_queues(struct request *r)
{
	mnl_attr_put_u32(r->header, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(r->header, IFLA_NUM_RX_QUEUES, 1);
}

static void put_peer(struct request *r, const char *name, const uint8_t mac[6], int netns_fd)
{
	struct nlattr *peer = mnl_attr_nest_start(r->header, VETH_INFO_PEER);

	mnl_nlmsg_put_extra_header(r->header, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(r->header, IFLA_IFNAME, name);
	mnl_attr_put(r->header, IFLA_ADDRESS, 6, mac);
	mnl_attr_put_u32(r->header, IFLA_NET_NS_FD, (uint32_t)netns_fd);
	put_queues(r);
	mnl_attr_nest_end(r->header, peer);
}

int netlink_veth_add(struct netlink *nl, const char *name, const uint8_t mac[6],
        const char *peer_name, const uint8_t peer_mac[6], int peer_netns_fd)
{
	struct request r;
	struct ifinfomsg *link;
	struct nlattr *info, *data;
	int rc = rtnl_check_name(peer_name);

	if (rc == 0)
		rc = link_begin(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name, &link);
	if (rc < 0)
		return rc;
	mnl_attr_put(r.header, IFLA_ADDRESS, 6, mac);
	put_queues(&r);
	info = mnl_attr_nest_start(r.header, IFLA_LINKINFO);
	mnl_attr_put_str(r.header, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(r.header, IFLA_INFO_DATA);
	put_peer(&r, peer_name, peer_mac, peer_netns_fd);
	mnl_attr_nest_end(r.header, data);
	mnl_attr_nest_end(r.header, info);
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_delete(struct netlink *nl, const char *name)
{
	struct request r;
	struct ifinfomsg *link;
	int rc = link_begin(&r, RTM_DELLINK, 0, name, &link);

	return rc < 0 ? rc : rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_up(struct netlink *nl, const char *name)
{
	struct request r;
	struct ifinfomsg *link;
	int rc = link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	link->ifi_flags = IFF_UP;
	link->ifi_change = IFF_UP;
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_down(struct netlink *nl, const char *name)
{
	struct request r;
	struct ifinfomsg *link;
	int rc = link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	link->ifi_change = IFF_UP;
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_set_alias(struct netlink *nl, const char *name, const char *text)
{
	struct request r;
	struct ifinfomsg *link;
	int rc = strlen(text) > NETLINK_ALIAS_MAX ? -EINVAL
	                                          : link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	mnl_attr_put_str(r.header, IFLA_IFALIAS, text);
	return rtnl_run(nl, &r, NULL, NULL);
}

static int take_alias(const struct nlmsghdr *reply, void *context)
{
	char *out = context;
	const struct nlattr *a;

	mnl_attr_for_each(a, reply, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(a) == IFLA_IFALIAS)
			snprintf(out, NETLINK_ALIAS_MAX + 1, "%.*s",
			        (int)mnl_attr_get_payload_len(a),
			        (const char *)mnl_attr_get_payload(a));
	}
	return MNL_CB_OK;
}

int netlink_link_alias(struct netlink *nl, const char *name, char out[NETLINK_ALIAS_MAX + 1])
{
	struct request r;
	struct ifinfomsg *link;
	int rc;

	out[0] = 0;
	rc = link_begin(&r, RTM_GETLINK, 0, name, &link);
	return rc < 0 ? rc : rtnl_run(nl, &r, take_alias, out);
}

int netlink_link_no_master(struct netlink *nl, const char *name)
{
	struct request r;
	struct ifinfomsg *link;
	int rc = link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	mnl_attr_put_u32(r.header, IFLA_MASTER, 0);
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_set_mac(struct netlink *nl, const char *name, const uint8_t mac[6])
{
	struct request r;
	struct ifinfomsg *link;
	int rc = link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	mnl_attr_put(r.header, IFLA_ADDRESS, 6, mac);
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_set_mtu(struct netlink *nl, const char *name, uint32_t mtu)
{
	struct request r;
	struct ifinfomsg *link;
	int rc = link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	mnl_attr_put_u32(r.header, IFLA_MTU, mtu);
	return rtnl_run(nl, &r, NULL, NULL);
}

int netlink_link_no_ipv6(struct netlink *nl, const char *name)
{
	struct request r;
	struct ifinfomsg *link;
	struct nlattr *families, *inet6;
	int rc = link_begin(&r, RTM_NEWLINK, 0, name, &link);

	if (rc < 0)
		return rc;
	families = mnl_attr_nest_start(r.header, IFLA_AF_SPEC);
	inet6 = mnl_attr_nest_start(r.header, AF_INET6);
	mnl_attr_put_u8(r.header, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(r.header, inet6);
	mnl_attr_nest_end(r.header, families);
	return rtnl_run(nl, &r, NULL, NULL);
}

static int take_index(const struct nlmsghdr *reply, void *context)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(reply);

	if (reply->nlmsg_type == RTM_NEWLINK && link->ifi_index > 0)
		*(unsigned *)context = (unsigned)link->ifi_index;
	return MNL_CB_OK;
}

unsigned netlink_link_index(struct netlink *nl, const char *name)
{
	struct request r;
	struct ifinfomsg *link;
	unsigned index = 0;

	if (link_begin(&r, RTM_GETLINK, 0, name, &link) < 0)
		return 0;
	return rtnl_run(nl, &r, take_index, &index) < 0 ? 0 : index;
}
