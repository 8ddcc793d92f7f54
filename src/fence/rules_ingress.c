/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what may enter from the wire at all, before any part of the IP stack has
 * looked at it. The first two rules take nearly every packet, so they come first and are complete:
 * right source, a possible destination, no IPv4 options, no fragment, no IPv6 extension header
 * (which hides the port and, as a routing header, the destination), and a frame to this interface's
 * own MAC (the IP stack would silently drop another one). Then come neighbor discovery and ARP from
 * the sandbox's own addresses. The rest is sorted by reason, logged, counted and dropped.
 *
 * The IP stack drops broken packets (checksum, lengths) before the next hook sees them. So the IP
 * packets that pass here and those that arrive there are counted; the difference was dropped.
 *
 * The ethertype is read from the frame, not from the kernel's protocol field, which has already
 * lost a VLAN tag.
 *
 * All of this is in a chain of its own, which can exist before the interface does. The hook cannot;
 * it has one rule that leads to the chain, and drops what comes back.
 */
#include "fence/plan.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>

#define LINK NFT_PAYLOAD_LL_HEADER
#define NETWORK NFT_PAYLOAD_NETWORK_HEADER
#define ICMP6_BASE 40 /* behind an IPv6 header without extensions */

/* Each fe80:: source that asks makes a neighbor entry, and the kernel has one neighbor table for
 * all namespaces. */
#define LINK_LOCAL_ND_PER_SECOND 10

const uint8_t rules_extensions[] = {
        IPPROTO_HOPOPTS,
        IPPROTO_ROUTING,
        IPPROTO_FRAGMENT,
        IPPROTO_DSTOPTS,
        IPPROTO_AH,
        IPPROTO_MH,
        139 /* HIP, RFC 7401 */,
        140 /* Shim6, RFC 5533 */,
        253,
        254 /* experiments, RFC 3692 */,
};
const size_t rules_extension_count = sizeof(rules_extensions);

static void match_ethertype(struct rule_list *l, uint16_t ethertype)
{
	rule_load_payload(l, LINK, 12, 2);
	rule_test_u16(l, NFT_CMP_EQ, ethertype);
}

static void match_to_this_host(struct rule_list *l)
{
	rule_load_meta(l, NFT_META_PKTTYPE);
	rule_test_u8(l, NFT_CMP_EQ, PACKET_HOST);
}

static void pass(struct rule_list *l, const struct fence_spec *spec)
{
	char counter[FENCE_NAME_MAX];

	rule_count(l, fence_name(counter, FENCE_PASSED_PREFIX, spec->interface));
	rule_verdict(l, NF_ACCEPT);
}

#define IPV4_SOURCE 12
#define IPV6_SOURCE 8
#define ARP_SENDER 14

/* Matches if the address at offset belongs to the network, or with bits 0 is that address. */
static void match_network(struct rule_list *l, uint32_t offset, const struct ip *network,
        uint8_t bits, const struct ip *gate)
{
	uint32_t bytes = network->family == 6 ? 16 : 4;
	uint8_t mask[16] = {0};

	rule_load_payload(l, NETWORK, offset, bytes);
	if (bits == 0) {
		rule_test_bytes(l, NFT_CMP_EQ, network->bytes, bytes);
		return;
	}
	for (uint32_t i = 0; i < bits; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	if (gate->family)
		rule_test_bytes(l, NFT_CMP_NEQ, gate->bytes, bytes);
	rule_load_mask(l, mask, bytes);
	rule_test_bytes(l, NFT_CMP_EQ, network->bytes, bytes);
}

static void match_source4(struct rule_list *l, const struct fence_spec *spec, uint32_t offset)
{
	match_network(l, offset, &spec->sandbox4, spec->bits4, &spec->gate4);
}

static void match_source6(struct rule_list *l, const struct fence_spec *spec)
{
	match_network(l, IPV6_SOURCE, &spec->sandbox6, spec->bits6, &spec->gate6);
}

/* The last test before a packet from a whole network is accepted. */
static void learn_source4(struct rule_list *l, const struct fence_spec *spec, uint32_t offset)
{
	char set[FENCE_NAME_MAX];

	if (spec->bits4 == 0)
		return;
	rule_load_payload(l, NETWORK, offset, 4);
	rule_learn(l, fence_name(set, FENCE_SOURCES4_PREFIX, spec->interface));
}

static void learn_source6(struct rule_list *l, const struct fence_spec *spec)
{
	char set[FENCE_NAME_MAX];

	if (spec->bits6 == 0)
		return;
	rule_load_payload(l, NETWORK, IPV6_SOURCE, 16);
	rule_learn(l, fence_name(set, FENCE_SOURCES6_PREFIX, spec->interface));
}

static void accept_ipv4(struct rule_list *l, const struct fence_spec *spec)
{
	static const uint8_t fragment_mask[2] = {0x3f, 0xff}; /* the "more fragments" bit and the
	                                                         offset */
	static const uint8_t none[2];

	rule_begin(l);
	match_ethertype(l, ETH_P_IP);
	match_source4(l, spec, IPV4_SOURCE);
	rule_load_payload(l, NETWORK, 0, 1);
	rule_test_u8(l, NFT_CMP_EQ, 0x45); /* version 4, no options */
	rule_load_payload(l, NETWORK, 6, 2);
	rule_load_mask(l, fragment_mask, 2);
	rule_test_bytes(l, NFT_CMP_EQ, none, 2);
	rule_load_payload(l, NETWORK, 16, 1); /* not 0/8, 127/8, multicast, broadcast, class E */
	rule_test_u8(l, NFT_CMP_NEQ, 0);
	rule_test_u8(l, NFT_CMP_NEQ, 127);
	rule_test_u8(l, NFT_CMP_LT, 224);
	match_to_this_host(l);
	learn_source4(l, spec, IPV4_SOURCE);
	pass(l, spec);
}

static void accept_ipv6(struct rule_list *l, const struct fence_spec *spec)
{
	rule_begin(l);
	match_ethertype(l, ETH_P_IPV6);
	match_source6(l, spec);
	rule_load_payload(l, NETWORK, 6, 1);
	rule_test_in_set(l, FENCE_EXTENSIONS, true);
	rule_load_payload(
	        l, NETWORK, 24, 2); /* not ::/16 (unspecified, loopback, mapped), multicast */
	rule_test_u16(l, NFT_CMP_NEQ, 0);
	rule_test_u16(l, NFT_CMP_LT, 0xff00);
	match_to_this_host(l);
	learn_source6(l, spec);
	pass(l, spec);
}

/* Matches neighbor solicitation and advertisement that have not passed a router (RFC 4861 section
 * 7.1). */
static void match_neighbor_discovery(struct rule_list *l)
{
	rule_load_payload(l, NETWORK, 6, 2); /* next header, hop limit */
	rule_test_u16(l, NFT_CMP_EQ, IPPROTO_ICMPV6 << 8 | 255);
	rule_load_payload(l, NETWORK, ICMP6_BASE, 1);
	rule_test_u8(l, NFT_CMP_GTE, ND_NEIGHBOR_SOLICIT);
	rule_test_u8(l, NFT_CMP_LTE, ND_NEIGHBOR_ADVERT);
}

static void accept_neighbor_discovery(struct rule_list *l, const struct fence_spec *spec)
{
	static const uint8_t mask[2] = {0xff, 0xc0};

	rule_begin(l);
	match_ethertype(l, ETH_P_IPV6);
	match_source6(l, spec);
	match_neighbor_discovery(l);
	learn_source6(l, spec);
	pass(l, spec);
	rule_begin(l);
	match_ethertype(l, ETH_P_IPV6);
	rule_load_payload(l, NETWORK, 8, 2);
	rule_load_mask(l, mask, 2);
	rule_test_u16(l, NFT_CMP_EQ, 0xfe80);
	match_neighbor_discovery(l);
	rule_test_rate(l, LINK_LOCAL_ND_PER_SECOND);
	pass(l, spec);
}

/* Accepts a request or reply for IPv4 over Ethernet with the sender's true address (RFC 826). */
static void accept_arp(struct rule_list *l, const struct fence_spec *spec)
{
	static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};

	rule_begin(l);
	match_ethertype(l, ETH_P_ARP);
	rule_load_payload(l, NETWORK, 0, 6);
	rule_test_bytes(l, NFT_CMP_EQ, ethernet_ipv4, 6);
	rule_load_payload(l, NETWORK, 6, 2);
	rule_test_u16(l, NFT_CMP_GTE, 1);
	rule_test_u16(l, NFT_CMP_LTE, 2);
	match_source4(l, spec, ARP_SENDER);
	learn_source4(l, spec, ARP_SENDER);
	rule_verdict(l, NF_ACCEPT);
}

/* Drops packets to this group with this next header and hop limit, and this first byte behind the
 * IPv6 header. */
static void drop_to_group(
        struct rule_list *l, const uint8_t group[16], uint16_t next_and_hops, uint8_t first)
{
	rule_begin(l);
	match_ethertype(l, ETH_P_IPV6);
	rule_load_payload(l, NETWORK, 24, 16);
	rule_test_bytes(l, NFT_CMP_EQ, group, 16);
	rule_load_payload(l, NETWORK, 6, 2);
	rule_test_u16(l, NFT_CMP_EQ, next_and_hops);
	rule_load_payload(l, NETWORK, ICMP6_BASE, 1);
	rule_test_u8(l, NFT_CMP_EQ, first);
	rule_verdict(l, NF_DROP);
}

/*
 * Drops what a sandbox's own kernel sends by itself when its link comes up, always to the link's
 * own multicast groups: duplicate address detection, multicast listener reports, router
 * solicitations. Nobody listens, and a record would only be noise.
 */
static void drop_link_chatter(struct rule_list *l)
{
	static const uint8_t unspecified[16];
	static const uint8_t mld_routers[16] = {0xff, 2, [15] = 0x16};
	static const uint8_t all_routers[16] = {0xff, 2, [15] = 2};

	rule_begin(l);
	match_ethertype(l, ETH_P_IPV6);
	rule_load_payload(l, NETWORK, 8, 16);
	rule_test_bytes(l, NFT_CMP_EQ, unspecified, 16);
	rule_load_payload(l, NETWORK, 24, 2);
	rule_test_u16(l, NFT_CMP_EQ, 0xff02);
	match_neighbor_discovery(l);
	rule_verdict(l, NF_DROP);
	/* a report follows a router alert, whose first byte says what follows it (RFC 3810 section
	 * 5) */
	drop_to_group(l, mld_routers, IPPROTO_HOPOPTS << 8 | 1, IPPROTO_ICMPV6);
	drop_to_group(l, all_routers, IPPROTO_ICMPV6 << 8 | 255, ND_ROUTER_SOLICIT);
}

static void drop_with(struct rule_list *l, const struct fence_spec *spec, const char *prefix)
{
	rules_note(l, spec, prefix);
	rule_verdict(l, NF_DROP);
}

static void drop_rest(struct rule_list *l, const struct fence_spec *spec)
{
	static const uint16_t known[] = {ETH_P_IP, ETH_P_IPV6, ETH_P_ARP};

	rules_drop_uncopied(l, spec, spec->bounds.copies_per_s);
	if (spec->sandbox4.family) {
		rule_begin(l);
		match_ethertype(l, ETH_P_IP);
		match_source4(l, spec, IPV4_SOURCE);
		drop_with(l, spec, "vethguard:other");
	}
	if (spec->sandbox6.family) {
		rule_begin(l);
		match_ethertype(l, ETH_P_IPV6);
		match_source6(l, spec);
		drop_with(l, spec, "vethguard:other");
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		rule_begin(l);
		match_ethertype(l, known[i]);
		drop_with(l, spec, "vethguard:source");
	}
	rule_begin(l);
	drop_with(l, spec, "vethguard:ethertype");
}

void rules_hook(struct rule_list *l, const struct fence_spec *spec)
{
	char wire[FENCE_NAME_MAX];

	rule_begin(l);
	rule_goto(l, fence_name(wire, FENCE_WIRE_PREFIX, spec->interface));
}

void rules_wire(struct rule_list *l, const struct fence_spec *spec)
{
	if (spec->sandbox4.family)
		accept_ipv4(l, spec);
	if (spec->sandbox6.family) {
		accept_ipv6(l, spec);
		accept_neighbor_discovery(l, spec);
	}
	if (spec->sandbox4.family)
		accept_arp(l, spec);
	drop_link_chatter(l);
	drop_rest(l, spec);
}
