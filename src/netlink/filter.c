/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a "clsact" queueing discipline, which queues nothing, gives an interface the
 * two places. A classifier of kind "bpf" in direct-action mode holds a program there, whose result
 * is the verdict. Both are requests of rtnetlink; only the program itself is loaded with bpf(2). An
 * interface has only one discipline in this position. One of the older kind "ingress" is somebody
 * else's, and so is a filter of another kind or name at our priority.
 */
#include "netlink/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vethguard/netlink/filter.h"

#define DISCIPLINE "clsact"
#define CLASSIFIER "bpf"
#define HANDLE 1u /* of our filter within its priority */

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int filter_load(const struct bpf_insn *instructions, size_t count)
{
	static const char license[] = "Apache-2.0";
	union bpf_attr attr;
	int program;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	attr.insns = (uintptr_t)instructions;
	attr.insn_cnt = (uint32_t)count;
	attr.license = (uintptr_t)license;
	program = bpf(BPF_PROG_LOAD, &attr); /* close-on-exec, like all of its descriptors */
	return program < 0 ? -errno : program;
}

int filter_tag(int program, uint8_t tag[FILTER_TAG_BYTES])
{
	struct bpf_prog_info info;
	union bpf_attr attr;

	_Static_assert(FILTER_TAG_BYTES == BPF_TAG_SIZE, "the kernel's size");
	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)program;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0)
		return -errno;
	memcpy(tag, info.tag, FILTER_TAG_BYTES);
	return 0;
}

static struct tcmsg *begin(struct request *r, uint16_t type, uint16_t flags, unsigned index)
{
	struct tcmsg *m = rtnl_begin(r, type, flags, sizeof(*m));

	m->tcm_family = AF_UNSPEC;
	m->tcm_ifindex = (int)index;
	return m;
}

static uint32_t parent_of(enum filter_hook hook)
{
	return TC_H_MAKE(TC_H_CLSACT, hook == FILTER_EGRESS ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS);
}

static void begin_filter(
        struct request *r, uint16_t type, uint16_t flags, const struct filter_place *place)
{
	struct tcmsg *m = begin(r, type, flags, place->index);

	m->tcm_parent = parent_of(place->hook);
	m->tcm_handle = HANDLE;
	m->tcm_info = TC_H_MAKE((uint32_t)place->priority << 16, htons(ETH_P_ALL));
	mnl_attr_put_strz(r->header, TCA_KIND, CLASSIFIER);
}

static bool is_text(const struct nlattr *a, const char *text)
{
	size_t n = strlen(text);

	return mnl_attr_get_payload_len(a) > n && memcmp(mnl_attr_get_payload(a), text, n + 1) == 0;
}

static int take_kind(const struct nlmsghdr *reply, void *context)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, reply, sizeof(struct tcmsg))
	{
		if (mnl_attr_get_type(a) == TCA_KIND)
			*(int *)context = is_text(a, DISCIPLINE) ? 0 : -EBUSY;
	}
	return MNL_CB_OK;
}

/* Returns 0; -ENOENT: there is no discipline; -EBUSY: there is one of another kind. */
static int check_discipline(struct netlink *nl, unsigned index)
{
	struct request r;
	struct tcmsg *m = begin(&r, RTM_GETQDISC, NLM_F_ECHO, index); /* without it only
	                                                                 listeners get the answer */
	int kind = -ENOENT; /* if there was one before, the kernel reports success and sends no
	                       answer */
	int rc;

	m->tcm_parent = TC_H_CLSACT;
	rc = rtnl_run(nl, &r, take_kind, &kind);
	return rc < 0 ? rc : kind;
}

static int discipline(struct netlink *nl, uint16_t type, uint16_t flags, unsigned index)
{
	struct request r;
	struct tcmsg *m = begin(&r, type, flags, index);

	m->tcm_parent = TC_H_CLSACT;
	m->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	mnl_attr_put_strz(r.header, TCA_KIND, DISCIPLINE);
	return rtnl_run(nl, &r, NULL, NULL);
}

struct filter_look {
	const struct filter_place *place;
	const uint8_t *tag; /* or NULL: any */
	bool there, foreign, same;
};

static void take_options(const struct nlattr *options, struct filter_look *look)
{
	const struct nlattr *a;
	bool named = false;

	mnl_attr_for_each_nested(a, options)
	{
		if (mnl_attr_get_type(a) == TCA_BPF_NAME)
			named = is_text(a, look->place->name);
		else if (mnl_attr_get_type(a) == TCA_BPF_TAG && look->tag)
			look->same =
			        mnl_attr_get_payload_len(a) == FILTER_TAG_BYTES &&
			        memcmp(mnl_attr_get_payload(a), look->tag, FILTER_TAG_BYTES) == 0;
	}
	look->there = named;
	look->foreign |= !named;
}

static int take_filter(const struct nlmsghdr *reply, void *context)
{
	const struct tcmsg *m = mnl_nlmsg_get_payload(reply);
	struct filter_look *look = context;
	const struct nlattr *a;

	if (TC_H_MAJ(m->tcm_info) >> 16 != look->place->priority)
		return MNL_CB_OK;
	mnl_attr_for_each(a, reply, sizeof(*m))
	{
		if (mnl_attr_get_type(a) == TCA_KIND && !is_text(a, CLASSIFIER))
			look->foreign = true;
		else if (mnl_attr_get_type(a) == TCA_OPTIONS && m->tcm_handle == HANDLE)
			take_options(a, look);
	}
	return MNL_CB_OK;
}

/* Uses a dump, because a query for one filter gives the same error for several reasons. Returns 0;
 * -EBUSY: somebody else's filter or discipline is in the place; or another -errno. */
static int look_at(struct netlink *nl, struct filter_look *look)
{
	struct request r;
	struct tcmsg *m = begin(&r, RTM_GETTFILTER, NLM_F_DUMP, look->place->index);
	int rc;

	m->tcm_parent = parent_of(look->place->hook);
	rc = rtnl_run(nl, &r, take_filter, look);
	if (rc == 0 && !look->there && !look->foreign)
		rc = check_discipline(nl, look->place->index);
	if (rc == 0 && look->foreign)
		return -EBUSY;
	return rc == -ENOENT ? 0 : rc;
}

int filter_check(struct netlink *nl, const struct filter_place *place, const uint8_t tag[8])
{
	struct filter_look look = {.place = place, .tag = tag};
	int rc = look_at(nl, &look);

	if (rc < 0)
		return rc;
	return look.there && look.same ? 0 : -ESTALE;
}

int filter_set(struct netlink *nl, const struct filter_place *place, int program)
{
	struct filter_look look = {.place = place};
	struct nlattr *options;
	struct request r;
	int rc = discipline(nl, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, place->index);

	if (rc == -EEXIST)
		rc = look_at(nl, &look);
	if (rc < 0)
		return rc;
	begin_filter(&r, RTM_NEWTFILTER, NLM_F_CREATE, place);
	options = mnl_attr_nest_start(r.header, TCA_OPTIONS);
	mnl_attr_put_u32(r.header, TCA_BPF_FD, (uint32_t)program);
	mnl_attr_put_strz(r.header, TCA_BPF_NAME, place->name);
	mnl_attr_put_u32(r.header, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	mnl_attr_nest_end(r.header, options);
	return rtnl_run(nl, &r, NULL, NULL);
}

int filter_remove(struct netlink *nl, const struct filter_place *place)
{
	struct filter_look look = {.place = place};
	struct request r;
	int rc = look_at(nl, &look);

	if (rc == -EBUSY || rc == -ENODEV)
		return 0;
	if (rc < 0 || !look.there)
		return rc;
	begin_filter(&r, RTM_DELTFILTER, 0, place);
	rc = rtnl_run(nl, &r, NULL, NULL);
	return rc == -ENOENT || rc == -ENODEV ? 0 : rc;
}

static int take_any(const struct nlmsghdr *reply, void *context)
{
	(void)reply;
	*(bool *)context = true;
	return MNL_CB_OK;
}

int filter_tidy(struct netlink *nl, unsigned index)
{
	static const enum filter_hook hooks[] = {FILTER_INGRESS, FILTER_EGRESS};
	int rc = check_discipline(nl, index);
	bool in_use = false;

	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]) && rc == 0; i++) {
		struct request r;
		struct tcmsg *m = begin(&r, RTM_GETTFILTER, NLM_F_DUMP, index);

		m->tcm_parent = parent_of(hooks[i]);
		rc = rtnl_run(nl, &r, take_any, &in_use);
	}
	if (rc == 0 && !in_use)
		rc = discipline(nl, RTM_DELQDISC, 0, index);
	return rc == -ENOENT || rc == -EBUSY || rc == -ENODEV ? 0 : rc;
}
