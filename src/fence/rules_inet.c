/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a packet of a fenced interface goes from "prerouting" through the verdict
 * map to the chain of that interface, is exempted from connection tracking, and is given to a
 * listener or refused. TPROXY without a listener does not match, so a dead worker's sandbox is
 * refused at once instead of hanging.
 *
 * Bounds stand before what they bound: a connection's first packet, a query, or a datagram for the
 * relay that exceeds the sandbox's rate goes to the chain "over" and ends there, whatever it asks
 * for. Only the few packets that are copied from there, and those refused at the end as long as
 * copies are permitted, cost more than these rules. Packets of established connections never count
 * against a bound.
 *
 * "forward" drops what no rule here should let come so far. "output" keeps the answers out of
 * connection tracking. In a gate both, and "input", also shut every other interface out.
 */
#include "fence/plan.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>

#define NETWORK NFT_PAYLOAD_NETWORK_HEADER
#define TRANSPORT NFT_PAYLOAD_TRANSPORT_HEADER
#define DNS_PORT 53

void rules_note(struct rule_list *l, const struct fence_spec *spec, const char *prefix)
{
	char counter[FENCE_NAME_MAX];

	rule_log(l, prefix, spec->nflog_group, FENCE_SNAP_BYTES);
	rule_count(l, fence_name(counter, FENCE_COUNTER_PREFIX, spec->interface));
}

void rules_drop_uncopied(struct rule_list *l, const struct fence_spec *spec, uint32_t per_second)
{
	char counter[FENCE_NAME_MAX];

	if (per_second == 0)
		return;
	rule_begin(l);
	rule_test_beyond(l, per_second, per_second);
	rule_count(l, fence_name(counter, FENCE_COUNTER_PREFIX, spec->interface));
	rule_verdict(l, NF_DROP);
}

/* Ends a rule that matches so far what is bounded. */
static void end_beyond(
        struct rule_list *l, const struct fence_spec *spec, uint32_t per_second, const char *prefix)
{
	char name[FENCE_NAME_MAX];

	rule_test_beyond(l, per_second, per_second * FENCE_BURST_S);
	rule_count(l, fence_name(name, prefix, spec->interface));
	rule_goto(l, fence_name(name, FENCE_OVER_PREFIX, spec->interface));
}

static void match_protocol(struct rule_list *l, uint8_t protocol)
{
	rule_load_meta(l, NFT_META_L4PROTO);
	rule_test_u8(l, NFT_CMP_EQ, protocol);
}

static void match_destination_port(struct rule_list *l, enum nft_cmp_ops op, uint16_t port)
{
	rule_load_payload(l, TRANSPORT, 2, 2);
	rule_test_u16(l, op, port);
}

#define TCP_FLAGS 13
#define TCP_OPENING 0x02   /* SYN */
#define TCP_OPENED_BY 0x16 /* SYN, RST, ACK */

/* Matches what a listener answers: SYN without ACK or RST (RFC 9293 section 3.10.7.2). */
static void bound_connections(struct rule_list *l, const struct fence_spec *spec)
{
	static const uint8_t mask = TCP_OPENED_BY;

	if (spec->bounds.connections_per_s == 0)
		return;
	rule_begin(l);
	match_protocol(l, IPPROTO_TCP);
	rule_load_payload(l, TRANSPORT, TCP_FLAGS, 1);
	rule_load_mask(l, &mask, 1);
	rule_test_u8(l, NFT_CMP_EQ, TCP_OPENING);
	end_beyond(l, spec, spec->bounds.connections_per_s, FENCE_CONNECTIONS_PREFIX);
}

static void bound_queries(struct rule_list *l, const struct fence_spec *spec)
{
	if (spec->bounds.queries_per_s == 0)
		return;
	rule_begin(l);
	match_protocol(l, IPPROTO_UDP);
	match_destination_port(l, NFT_CMP_EQ, DNS_PORT);
	end_beyond(l, spec, spec->bounds.queries_per_s, FENCE_QUERIES_PREFIX);
}

static void deliver(struct rule_list *l, uint8_t protocol, enum nft_cmp_ops dns, uint16_t listener)
{
	rule_begin(l);
	match_protocol(l, protocol);
	match_destination_port(l, dns, DNS_PORT);
	rule_tproxy(l, listener);
	rule_verdict(l, NF_ACCEPT);
}

static void match_named_udp(struct rule_list *l, const struct fence_spec *spec)
{
	char set[FENCE_NAME_MAX];

	match_protocol(l, IPPROTO_UDP);
	rule_load_payload(l, TRANSPORT, 2, 2);
	rule_test_in_set(l, fence_name(set, FENCE_UDP_PREFIX, spec->interface), false);
}

static void bound_datagrams(struct rule_list *l, const struct fence_spec *spec)
{
	if (spec->bounds.datagrams_per_s == 0)
		return;
	rule_begin(l);
	match_named_udp(l, spec);
	end_beyond(l, spec, spec->bounds.datagrams_per_s, FENCE_DATAGRAMS_PREFIX);
}

static void deliver_named_udp(struct rule_list *l, const struct fence_spec *spec)
{
	rule_begin(l);
	match_named_udp(l, spec);
	rule_tproxy_loaded_port(l);
	rule_verdict(l, NF_ACCEPT);
}

static void begin_neighbor_discovery(struct rule_list *l)
{
	rule_begin(l);
	rule_load_meta(l, NFT_META_NFPROTO);
	rule_test_u8(l, NFT_CMP_EQ, NFPROTO_IPV6);
	rule_load_payload(l, NETWORK, 6, 2); /* next header, hop limit */
	rule_test_u16(l, NFT_CMP_EQ, IPPROTO_ICMPV6 << 8 | 255);
	rule_load_payload(l, TRANSPORT, 0, 1);
	rule_test_u8(l, NFT_CMP_GTE, ND_NEIGHBOR_SOLICIT);
	rule_test_u8(l, NFT_CMP_LTE, ND_NEIGHBOR_ADVERT);
}

/* To the gate's address, or to what stays on the link: fe80::/10 and multicast. */
static void accept_neighbor_discovery(struct rule_list *l, const struct fence_spec *spec)
{
	begin_neighbor_discovery(l);
	rule_load_payload(l, NETWORK, 24, 1);
	rule_test_u8(l, NFT_CMP_GTE, 0xfe);
	rule_verdict(l, NF_ACCEPT);
	if (spec->gate6.family == 0)
		return;
	begin_neighbor_discovery(l);
	rule_load_payload(l, NETWORK, 24, 16);
	rule_test_bytes(l, NFT_CMP_EQ, spec->gate6.bytes, 16);
	rule_verdict(l, NF_ACCEPT);
}

void rules_link(struct rule_list *l, const struct fence_spec *spec)
{
	char received[FENCE_NAME_MAX];

	rule_begin(l);
	rule_count(l, fence_name(received, FENCE_RECEIVED_PREFIX, spec->interface));
	rule_notrack(l);
	bound_connections(l, spec);
	bound_queries(l, spec);
	deliver(l, IPPROTO_TCP, NFT_CMP_NEQ, spec->tcp_port);
	deliver(l, IPPROTO_TCP, NFT_CMP_EQ, spec->dns_port);
	deliver(l, IPPROTO_UDP, NFT_CMP_EQ, spec->dns_port);
	bound_datagrams(l, spec);
	deliver_named_udp(l, spec);
	accept_neighbor_discovery(l, spec);
	rules_drop_uncopied(l, spec, spec->bounds.copies_per_s);
	rule_begin(l);
	rules_note(l, spec, "vethguard:other");
	rule_reject(l);
}

/* Dropped and not rejected: answering each packet would cost what the bound saves, and the sender
 * of a SYN repeats it anyway. */
void rules_over(struct rule_list *l, const struct fence_spec *spec)
{
	rules_drop_uncopied(l, spec, FENCE_RATE_COPIES_PER_S);
	rule_begin(l);
	rules_note(l, spec, "vethguard:rate");
	rule_verdict(l, NF_DROP);
}

void rules_prerouting(struct rule_list *l, const struct fence_spec *spec)
{
	(void)spec;
	rule_begin(l);
	rule_load_meta(l, NFT_META_IIFNAME);
	rule_verdict_map(l, FENCE_SANDBOXES);
}

static void begin_link(struct rule_list *l, enum nft_meta_keys which)
{
	rule_begin(l);
	rule_load_meta(l, which);
	rule_test_in_set(l, FENCE_LINKS, false);
}

static void accept_loopback(struct rule_list *l, enum nft_meta_keys which)
{
	static const char lo[IFNAMSIZ] = "lo";

	rule_begin(l);
	rule_load_meta(l, which);
	rule_test_bytes(l, NFT_CMP_EQ, lo, sizeof(lo));
	rule_verdict(l, NF_ACCEPT);
}

void rules_output(struct rule_list *l, const struct fence_spec *spec)
{
	begin_link(l, NFT_META_OIFNAME);
	rule_notrack(l);
	rule_verdict(l, NF_ACCEPT);
	if (spec->whole_namespace)
		accept_loopback(l, NFT_META_OIFNAME);
}

void rules_forward(struct rule_list *l, const struct fence_spec *spec)
{
	begin_link(l, NFT_META_IIFNAME);
	rule_log(l, "vethguard:other", spec->nflog_group, FENCE_SNAP_BYTES);
	rule_verdict(l, NF_DROP);
	begin_link(l, NFT_META_OIFNAME);
	rule_verdict(l, NF_DROP);
}

void rules_input(struct rule_list *l, const struct fence_spec *spec)
{
	(void)spec;
	begin_link(l, NFT_META_IIFNAME);
	rule_verdict(l, NF_ACCEPT);
	accept_loopback(l, NFT_META_IIFNAME);
}
