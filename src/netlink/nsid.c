/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a namespace numbers the others that it refers to. One without a number gets
 * the next free number; if another process has assigned one already, that one stays. */
#include "netlink/request.h"

#include <errno.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>

static struct request *begin(struct request *r, uint16_t type, int netns_fd)
{
	struct rtgenmsg *head = rtnl_begin(r, type, 0, sizeof(*head));

	head->rtgen_family = AF_UNSPEC;
	mnl_attr_put_u32(r->header, NETNSA_FD, (uint32_t)netns_fd);
	return r;
}

static int take_number(const struct nlmsghdr *reply, void *context)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, reply, sizeof(struct rtgenmsg))
	{
		if (mnl_attr_get_type(a) == NETNSA_NSID &&
		        mnl_attr_get_payload_len(a) == sizeof(int32_t))
			*(int *)context = (int)mnl_attr_get_u32(a);
	}
	return MNL_CB_OK;
}

int netlink_nsid(struct netlink *nl, int netns_fd, int *out)
{
	struct request r;
	int rc;

	begin(&r, RTM_NEWNSID, netns_fd);
	mnl_attr_put_u32(r.header, NETNSA_NSID, (uint32_t)NETNSA_NSID_NOT_ASSIGNED);
	rc = rtnl_run(nl, &r, NULL, NULL);
	if (rc && rc != -EEXIST)
		return rc;
	*out = NETNSA_NSID_NOT_ASSIGNED;
	rc = rtnl_run(nl, begin(&r, RTM_GETNSID, netns_fd), take_number, out);
	return rc ? rc : *out < 0 ? -ENOENT : 0;
}
