/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: three chains for each interface, and seven that all interfaces share. The
 * kernel wants the index of the interface to forward to in the rules of a base chain; an interface
 * that comes back has another index, and its rules are set anew.
 */
#include "fence/divert_plan.h"

#include <errno.h>
#include <net/if_arp.h>
#include <linux/netfilter_arp.h>
#include <stdio.h>
#include <string.h>

#define PRIORITY_FIRST (-450)
/* NF_BR_PRE_ROUTING and NF_BR_POST_ROUTING; their header and <net/if.h> exclude each other. */
#define BRIDGE_PRE_ROUTING NF_INET_PRE_ROUTING
#define BRIDGE_POST_ROUTING NF_INET_POST_ROUTING

const uint32_t divert_families[] = {
        [DIVERT_INET] = NFPROTO_INET, [DIVERT_BRIDGE] = NFPROTO_BRIDGE, [DIVERT_ARP] = NFPROTO_ARP};

struct chain_plan divert_chain(enum divert_chain which, const struct divert_spec *spec)
{
	struct chain_plan c = {.table = DIVERT_TABLE,
	        .family = NFPROTO_NETDEV,
	        .base = true,
	        .device = which == DIVERT_BACK ? spec->link : spec->interface,
	        .hook = which == DIVERT_OUT ? NF_NETDEV_EGRESS : NF_NETDEV_INGRESS,
	        .policy = NF_DROP,
	        .priority = PRIORITY_FIRST};

	fence_name(c.name, which == DIVERT_OUT ? "out-" : FENCE_INGRESS_PREFIX, c.device);
	return c;
}

int divert_rules(enum divert_chain which, const struct divert_spec *spec,
        const struct chain_plan *chain, struct rule_list *out)
{
	*out = (struct rule_list){
	        .family = chain->family, .table = chain->table, .chain = chain->name};
	if (!spec->link[0])
		return 0; /* shut: the policy alone decides */
	rule_begin(out);
	if (which == DIVERT_OUT) {
		rule_load_meta(out, NFT_META_MARK);
		rule_test_u32(out, NFT_CMP_EQ, DIVERT_MARK);
		rule_verdict(out, NF_ACCEPT);
	} else if (which == DIVERT_IN) {
		rule_forward(out, if_nametoindex(spec->link));
	} else {
		rule_set_mark(out, DIVERT_MARK);
		rule_forward(out, if_nametoindex(spec->interface));
	}
	return out->failed ? -ENOMEM : 0;
}

static void add_wall(struct chain_plan *out, size_t *count, uint32_t family, const char *name,
        uint32_t hook, int32_t priority)
{
	struct chain_plan *c = &out[(*count)++];

	*c = (struct chain_plan){.table = DIVERT_TABLE,
	        .family = family,
	        .base = true,
	        .hook = hook,
	        .policy = NF_ACCEPT,
	        .priority = priority};
	snprintf(c->name, sizeof(c->name), "%s", name);
}

size_t divert_wall(const struct divert *d, struct chain_plan out[DIVERT_WALL_MAX])
{
	size_t n = 0;

	add_wall(out, &n, NFPROTO_INET, "input", NF_INET_LOCAL_IN, PRIORITY_FIRST);
	add_wall(out, &n, NFPROTO_INET, "output", NF_INET_LOCAL_OUT, PRIORITY_FIRST);
	add_wall(out, &n, NFPROTO_INET, "forward", NF_INET_FORWARD, PRIORITY_FIRST);
	if (d->has_family[DIVERT_BRIDGE]) {
		add_wall(out, &n, NFPROTO_BRIDGE, "prerouting", BRIDGE_PRE_ROUTING, PRIORITY_FIRST);
		add_wall(out, &n, NFPROTO_BRIDGE, "postrouting", BRIDGE_POST_ROUTING,
		        PRIORITY_FIRST);
	}
	if (d->has_family[DIVERT_ARP]) {
		add_wall(out, &n, NFPROTO_ARP, "input", NF_ARP_IN, PRIORITY_FIRST);
		add_wall(out, &n, NFPROTO_ARP, "output", NF_ARP_OUT, PRIORITY_FIRST);
	}
	return n;
}

/* Drops what comes from a guarded interface, or goes to one. */
static void drop_guarded(struct rule_list *l, enum nft_meta_keys which)
{
	rule_begin(l);
	rule_load_meta(l, which);
	rule_test_in_set(l, DIVERT_GUARDED, false);
	rule_verdict(l, NF_DROP);
}

static void accept_itself(struct rule_list *l)
{
	rule_begin(l);
	rule_test_pair_in_set(l, DIVERT_ITSELF);
	rule_verdict(l, NF_ACCEPT);
}

/*
 * A frame to one of the addresses that no bridge forwards (IEEE 802.1D section 7.12.6: spanning
 * tree, LLDP, 802.1X) does not come in on the bridge but on its port, whatever it contains, and
 * some pass no hook of the bridge. IP and ARP in such a frame would reach the host's own stack on
 * an interface that nothing guards. Nobody needs IP or ARP there, so the rule applies to all
 * interfaces.
 */
static void drop_reserved_frames(struct rule_list *l)
{
	static const uint8_t reserved[6] = {0x01, 0x80, 0xc2, 0, 0, 0};
	static const uint8_t mask[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xf0};
	static const uint16_t ethernet = ARPHRD_ETHER;

	rule_begin(l);
	rule_load_meta(l, NFT_META_IIFTYPE);
	rule_test_bytes(l, NFT_CMP_EQ, &ethernet, sizeof(ethernet));
	rule_load_payload(l, NFT_PAYLOAD_LL_HEADER, 0, sizeof(reserved));
	rule_load_mask(l, mask, sizeof(mask));
	rule_test_bytes(l, NFT_CMP_EQ, reserved, sizeof(reserved));
	rule_verdict(l, NF_DROP);
}

#define KIND_COUNT 4
static const char kinds[KIND_COUNT][IFNAMSIZ] = {"veth", "tun", "netkit", "dummy"};

bool divert_kind_leads_to_sandbox(const char *kind)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (strcmp(kind, kinds[i]) == 0)
			return true;
	return false;
}

/*
 * The daemon's checks take a port that leads to a network out of a guarded bridge; this rule holds
 * when nobody checks. Not every kernel can tell which bridge a port belongs to
 * (CONFIG_NFT_BRIDGE_META), so the frame's mark says that the frame comes from a guarded one. A
 * network card has no kind: no rule that tests the kind matches, and the last rule drops.
 */
static void keep_from_networks(struct rule_list *l)
{
	rule_begin(l);
	rule_load_meta(l, NFT_META_MARK);
	rule_test_u32(l, NFT_CMP_NEQ, DIVERT_MARK);
	rule_test_u32(l, NFT_CMP_NEQ, DIVERT_PORT_MARK);
	rule_verdict(l, NF_ACCEPT);
	for (size_t i = 0; i < KIND_COUNT; i++) {
		rule_begin(l);
		rule_load_meta(l, NFT_META_OIFKIND);
		rule_test_bytes(l, NFT_CMP_EQ, kinds[i], sizeof(kinds[i]));
		rule_verdict(l, NF_ACCEPT);
	}
	rule_begin(l);
	rule_verdict(l, NF_DROP);
}

/*
 * With br_netfilter the inet family also sees frames between the ports of a bridge; they come in on
 * the bridge and leave through it. A whole bridge that is one sandbox keeps these frames. For the
 * same reason "input", and not "prerouting", keeps a sandbox from the host.
 */
int divert_wall_rules(const struct chain_plan *chain, struct rule_list *out)
{
	*out = (struct rule_list){
	        .family = chain->family, .table = chain->table, .chain = chain->name};
	if (strcmp(chain->name, "forward") == 0) {
		accept_itself(out);
		drop_guarded(out, NFT_META_IIFNAME);
		drop_guarded(out, NFT_META_OIFNAME);
	} else if (strcmp(chain->name, "input") == 0) {
		drop_guarded(out, NFT_META_IIFNAME);
		drop_reserved_frames(out);
	} else if (strcmp(chain->name, "prerouting") == 0) {
		drop_guarded(out, NFT_META_IIFNAME);
	} else {
		drop_guarded(out, NFT_META_OIFNAME);
		if (chain->family == NFPROTO_BRIDGE)
			keep_from_networks(out);
	}
	return out->failed ? -ENOMEM : 0;
}

struct set_plan divert_guarded(uint32_t family)
{
	struct fence_spec none = {0};
	char unused[FENCE_NAME_MAX];
	struct set_plan plan = set_plan(SET_LINKS, &none, unused);

	plan.table = DIVERT_TABLE;
	plan.family = family;
	plan.name = DIVERT_GUARDED;
	return plan;
}

struct set_plan divert_itself(void)
{
	struct set_plan plan = divert_guarded(NFPROTO_INET);

	plan.name = DIVERT_ITSELF;
	plan.key_type = plan.key_type << FENCE_TYPE_BITS | plan.key_type;
	plan.key_bytes = FENCE_PAIR_BYTES;
	plan.id = SET_KIND_COUNT + 1;
	return plan;
}
