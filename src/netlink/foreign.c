/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of others that see an interface's frames first. Filters of clsact and ingress are found
 * by a dump of the filters of the incoming side, programs attached by tcx (Linux 6.6) by bpf(2),
 * those of XDP by the link's attributes. An "ingress" discipline counts without a filter: it takes
 * the place in which vethguard's own would stand.
 */
#include "netlink/request.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/netlink/filter.h"

#define TCX_INGRESS 46 /* BPF_TCX_INGRESS, which older headers do not know */

static bool is_kind(const struct nlattr *a, const char *kind)
{
	return mnl_attr_get_type(a) == TCA_KIND && mnl_attr_get_payload_len(a) > strlen(kind) &&
	       strcmp(mnl_attr_get_payload(a), kind) == 0;
}

struct look {
	unsigned index;
	bool found;
};

static int take_discipline(const struct nlmsghdr *reply, void *context)
{
	const struct tcmsg *m = mnl_nlmsg_get_payload(reply);
	struct look *look = context;
	const struct nlattr *a;

	if ((unsigned)m->tcm_ifindex != look->index)
		return MNL_CB_OK;
	mnl_attr_for_each(a, reply, sizeof(*m))
	{
		look->found |= is_kind(a, "ingress");
	}
	return MNL_CB_OK;
}

static int take_filter(const struct nlmsghdr *reply, void *context)
{
	struct look *look = context;

	(void)reply;
	look->found = true;
	return MNL_CB_OK;
}

/* Returns whether a dump of this kind finds something, or -errno. */
static int dump(struct netlink *nl, uint16_t type, uint32_t parent, mnl_cb_t take, unsigned index)
{
	struct look look = {index, false};
	struct request r;
	struct tcmsg *m = rtnl_begin(&r, type, NLM_F_DUMP, sizeof(*m));
	int rc;

	m->tcm_family = AF_UNSPEC;
	m->tcm_ifindex = (int)index;
	m->tcm_parent = parent;
	rc = rtnl_run(nl, &r, take, &look);
	return rc ? rc : look.found;
}

/* Returns whether there are programs, or -errno. A kernel without tcx answers EINVAL. */
static int ask_tcx(unsigned index)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.query.target_fd = index;
	attr.query.attach_type = TCX_INGRESS;
	if (syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr)) == 0)
		return attr.query.prog_cnt > 0;
	return errno == EINVAL || errno == ENOSYS ? 0 : -errno;
}

int filter_foreign(struct netlink *nl, unsigned index)
{
	struct netlink_link link;
	int rc = netlink_link_get(nl, NULL, index, &link);

	if (!rc)
		rc = link.xdp;
	if (!rc)
		rc = dump(nl, RTM_GETQDISC, 0, take_discipline, index);
	if (!rc)
		rc = dump(nl, RTM_GETTFILTER, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), take_filter,
		        index);
	if (rc == -EINVAL || rc == -ENOENT || rc == -EOPNOTSUPP) /* there is no such discipline */
		rc = 0;
	if (!rc)
		rc = ask_tcx(index);
	return rc > 0 ? -EBUSY : rc;
}
