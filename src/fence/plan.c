/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the table of chains. Everything in it that is not named after the interface
 * is the same for each fence of a namespace, so a second fence finds it there and can write it
 * again without harm.
 */
#include "fence/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Before the kernel reassembles fragments (-400): an untracked packet is left as it came. */
#define PRIORITY_FIRST (-450)

static bool family_is(const struct ip *ip, uint8_t family)
{
	return ip->family == family || ip->family == 0;
}

static bool are_bounds(const struct fence_bounds *b)
{
	return b->connections_per_s <= FENCE_PER_S_MAX && b->queries_per_s <= FENCE_PER_S_MAX &&
	       b->copies_per_s <= FENCE_PER_S_MAX && b->datagrams_per_s <= FENCE_PER_S_MAX;
}

int fence_spec_check(const struct fence_spec *spec)
{
	size_t n = strnlen(spec->interface, IFNAMSIZ);

	if (n == 0 || n == IFNAMSIZ || strcmp(spec->interface, "lo") == 0)
		return -EINVAL;
	if (!family_is(&spec->sandbox4, 4) || !family_is(&spec->sandbox6, 6))
		return -EINVAL;
	if (!family_is(&spec->gate4, 4) || !family_is(&spec->gate6, 6))
		return -EINVAL;
	if (spec->sandbox4.family == 0 && spec->sandbox6.family == 0)
		return -EINVAL;
	if (spec->bits4 > 32 || spec->bits6 > 128)
		return -EINVAL;
	if (spec->tcp_port == 0 || spec->dns_port == 0 ||
	        spec->udp_port_count > FENCE_UDP_PORTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < spec->udp_port_count; i++)
		if (spec->udp_ports[i] == 0)
			return -EINVAL;
	return are_bounds(&spec->bounds) ? 0 : -EINVAL;
}

static struct chain_plan *add_chain(
        struct chain_plan *out, size_t *count, uint32_t family, const char *name)
{
	struct chain_plan *c = &out[(*count)++];

	*c = (struct chain_plan){.table = FENCE_TABLE, .family = family};
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

static void add_base(struct chain_plan *out, size_t *count, const char *name, uint32_t hook,
        int32_t priority, uint32_t policy,
        void (*build)(struct rule_list *l, const struct fence_spec *spec))
{
	struct chain_plan *c = add_chain(out, count, NFPROTO_INET, name);

	c->base = true;
	c->hook = hook;
	c->priority = priority;
	c->policy = policy;
	c->build = build;
}

static void add_own(struct chain_plan *out, size_t *count, uint32_t family, const char *prefix,
        const struct fence_spec *spec,
        void (*build)(struct rule_list *l, const struct fence_spec *spec))
{
	char name[FENCE_NAME_MAX];

	add_chain(out, count, family, fence_name(name, prefix, spec->interface))->build = build;
}

static void add_hook(struct chain_plan *out, size_t *count, const struct fence_spec *spec)
{
	char name[FENCE_NAME_MAX];
	struct chain_plan *c = add_chain(out, count, NFPROTO_NETDEV,
	        fence_name(name, FENCE_INGRESS_PREFIX, spec->interface));

	c->base = true;
	c->hook = NF_NETDEV_INGRESS;
	c->policy = NF_DROP;
	c->device = spec->interface;
	c->build = rules_hook;
}

size_t fence_plan(const struct fence_spec *spec, struct chain_plan out[FENCE_CHAINS_MAX])
{
	uint32_t others = spec->whole_namespace ? NF_DROP : NF_ACCEPT;
	size_t n = 0;

	add_own(out, &n, NFPROTO_NETDEV, FENCE_WIRE_PREFIX, spec, rules_wire);
	add_own(out, &n, NFPROTO_INET, FENCE_LINK_PREFIX, spec, rules_link);
	add_own(out, &n, NFPROTO_INET, FENCE_OVER_PREFIX, spec, rules_over);
	add_base(out, &n, "prerouting", NF_INET_PRE_ROUTING, PRIORITY_FIRST, NF_ACCEPT,
	        rules_prerouting);
	add_base(out, &n, "output", NF_INET_LOCAL_OUT, PRIORITY_FIRST, others, rules_output);
	add_base(out, &n, "forward", NF_INET_FORWARD, PRIORITY_FIRST, others, rules_forward);
	if (spec->whole_namespace)
		add_base(out, &n, "input", NF_INET_LOCAL_IN, 0, NF_DROP, rules_input);
	add_hook(out, &n, spec);
	return n;
}

int fence_plan_rules(
        const struct chain_plan *chain, const struct fence_spec *spec, struct rule_list *out)
{
	*out = (struct rule_list){
	        .family = chain->family, .table = chain->table, .chain = chain->name};
	chain->build(out, spec);
	return out->failed ? -ENOMEM : 0;
}
