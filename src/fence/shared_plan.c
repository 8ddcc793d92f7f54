/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a table of chains, like plan.c. Addresses are rewritten at a priority before
 * the usual one (-100): where an engine has its own rewriting of its resolver's address, the first
 * chain that rewrites a connection decides.
 */
#include "fence/shared_plan.h"

#include <errno.h>
#include <string.h>

#define PRIORITY_REWRITE (-150)
#define PRIORITY_FILTER 0

static const struct shared_chain chains[] = {
        {{.name = "others"}, shared_others},
        {{.name = "leave"}, shared_leave},
        {{.name = "rewrite",
                 .base = true,
                 .type = "nat",
                 .hook = NF_INET_LOCAL_OUT,
                 .priority = PRIORITY_REWRITE,
                 .policy = NF_ACCEPT},
                shared_rewrite},
        {{.name = "output",
                 .base = true,
                 .hook = NF_INET_LOCAL_OUT,
                 .priority = PRIORITY_FILTER,
                 .policy = NF_DROP},
                shared_output},
        {{.name = "postrouting",
                 .base = true,
                 .hook = NF_INET_POST_ROUTING,
                 .priority = PRIORITY_FILTER,
                 .policy = NF_DROP},
                shared_postrouting},
        {{.name = "input",
                 .base = true,
                 .hook = NF_INET_LOCAL_IN,
                 .priority = PRIORITY_FILTER,
                 .policy = NF_DROP},
                shared_input},
        {{.name = "forward",
                 .base = true,
                 .hook = NF_INET_FORWARD,
                 .priority = PRIORITY_FILTER,
                 .policy = NF_DROP},
                shared_forward},
};
#define CHAIN_COUNT (sizeof(chains) / sizeof(chains[0]))
_Static_assert(CHAIN_COUNT + FENCE_SHARED_DEVICES_MAX <= SHARED_CHAINS_MAX, "room for every chain");

static bool are_ports(const uint16_t *ports, size_t count, const struct fence_shared_spec *spec)
{
	if (count > FENCE_SHARED_PORTS_MAX)
		return false;
	for (size_t i = 0; i < count; i++)
		if (ports[i] == 0 || ports[i] == spec->tcp_port || ports[i] == spec->dns_port)
			return false;
	return true;
}

static bool is_witness(uint16_t port)
{
	return port == FENCE_WITNESS_PORT || port == FENCE_WITNESS_REFUSED_PORT;
}

static bool are_devices(const struct fence_shared_spec *spec)
{
	if (spec->device_count > FENCE_SHARED_DEVICES_MAX)
		return false;
	for (size_t i = 0; i < spec->device_count; i++) {
		size_t n = strnlen(spec->devices[i], IFNAMSIZ);

		if (n == 0 || n == IFNAMSIZ || strcmp(spec->devices[i], "lo") == 0)
			return false;
	}
	return true;
}

int shared_spec_check(const struct fence_shared_spec *spec)
{
	if (spec->uid == 0 || spec->uid == UINT32_MAX)
		return -EINVAL;
	if (spec->tcp_port == 0 || spec->dns_port == 0 || spec->tcp_port == spec->dns_port ||
	        is_witness(spec->tcp_port) || is_witness(spec->dns_port))
		return -EINVAL;
	if (spec->cgroup == 0 && spec->cgroup_level != 0)
		return -EINVAL;
	if (spec->loopback_all && spec->loopback_count)
		return -EINVAL;
	if (!are_devices(spec))
		return -EINVAL;
	if (spec->synthetic4.base.family != 4 || spec->synthetic4.bits > 32 ||
	        spec->synthetic6.base.family != 6 || spec->synthetic6.bits > 128)
		return -EINVAL;
	if (!are_ports(spec->udp_ports, spec->udp_count, spec) ||
	        !are_ports(spec->loopback_ports, spec->loopback_count, spec) ||
	        !are_ports(spec->inbound_ports, spec->inbound_count, spec))
		return -EINVAL;
	return 0;
}

static void add_egress(struct shared_chain *c, const char *device)
{
	char name[FENCE_NAME_MAX];

	*c = (struct shared_chain){{.table = SHARED_TABLE,
	                                   .family = NFPROTO_NETDEV,
	                                   .device = device,
	                                   .base = true,
	                                   .hook = NF_NETDEV_EGRESS,
	                                   .policy = NF_ACCEPT},
	        shared_egress};
	memcpy(c->plan.name, fence_name(name, SHARED_EGRESS_PREFIX, device), sizeof(name));
}

size_t shared_plan(const struct fence_shared_spec *spec, struct shared_chain out[SHARED_CHAINS_MAX])
{
	memcpy(out, chains, sizeof(chains));
	for (size_t i = 0; i < CHAIN_COUNT; i++) {
		out[i].plan.table = SHARED_TABLE;
		out[i].plan.family = NFPROTO_INET;
	}
	for (size_t i = 0; i < spec->device_count; i++)
		add_egress(&out[CHAIN_COUNT + i], spec->devices[i]);
	return CHAIN_COUNT + spec->device_count;
}

int shared_plan_rules(const struct shared_chain *chain, const struct fence_shared_spec *spec,
        struct rule_list *out)
{
	*out = (struct rule_list){.family = chain->plan.family,
	        .table = chain->plan.table,
	        .chain = chain->plan.name};
	chain->build(out, spec);
	return out->failed ? -ENOMEM : 0;
}
