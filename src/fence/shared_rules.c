/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a packet belongs to the owner of its socket. Three cases:
 *
 * - The socket is the guard's (user id, and cgroup where known): it passes. A connection that the
 *   guard begins is marked in the kernel's connection table.
 * - The socket is somebody else's: chain "others". The mark never counts there. Otherwise a member
 *   of the group could use the port of a connection that the guard has just closed.
 * - The packet has no socket of a process: the kernel's own (neighbor discovery), and the last
 *   packets of a TCP connection whose program has closed it. Those of the guard bear the mark of
 *   their connection.
 *
 * In the hook "output" the name of the interface is the one from before addresses were rewritten.
 * So that chain goes by the destination, and "postrouting" by the interface. A socket that is bound
 * to an interface would send even a packet for 127.0.0.1 there.
 */
#include "fence/shared_plan.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>

#define NETWORK NFT_PAYLOAD_NETWORK_HEADER
#define TRANSPORT NFT_PAYLOAD_TRANSPORT_HEADER
#define DNS_PORT 53
#define SOURCE_PORT 0
#define DESTINATION_PORT 2
#define HOPS_OF_NEIGHBOR 255

static const uint8_t loopback4[4] = {127, 0, 0, 1};
static const uint8_t loopback6[16] = {[15] = 1};
/* Docker's resolver listens in the container's own namespace, at this address and any port, and
 * forwards what it is asked. */
static const uint8_t resolver_of_docker[4] = {127, 0, 0, 11};

static void match_guard(struct rule_list *l, const struct fence_shared_spec *spec)
{
	rule_load_meta(l, NFT_META_SKUID);
	rule_test_u32(l, NFT_CMP_EQ, spec->uid);
	if (spec->cgroup == 0)
		return;
	rule_load_cgroup(l, spec->cgroup_level);
	rule_test_bytes(l, NFT_CMP_EQ, &spec->cgroup, sizeof(spec->cgroup));
}

/* Matches any packet that belongs to a socket of a process: without one, the load ends the rule. */
static void match_any_socket(struct rule_list *l)
{
	rule_load_meta(l, NFT_META_SKUID);
}

static void match_protocol(struct rule_list *l, uint8_t protocol)
{
	rule_load_meta(l, NFT_META_L4PROTO);
	rule_test_u8(l, NFT_CMP_EQ, protocol);
}

static void match_port(struct rule_list *l, uint8_t protocol, uint32_t which, uint16_t port)
{
	match_protocol(l, protocol);
	rule_load_payload(l, TRANSPORT, which, 2);
	rule_test_u16(l, NFT_CMP_EQ, port);
}

static void match_destination4(struct rule_list *l, const uint8_t address[4])
{
	rule_load_meta(l, NFT_META_NFPROTO);
	rule_test_u8(l, NFT_CMP_EQ, NFPROTO_IPV4);
	rule_load_payload(l, NETWORK, 16, 4);
	rule_test_bytes(l, NFT_CMP_EQ, address, 4);
}

static void match_destination6(struct rule_list *l, const uint8_t address[16])
{
	rule_load_meta(l, NFT_META_NFPROTO);
	rule_test_u8(l, NFT_CMP_EQ, NFPROTO_IPV6);
	rule_load_payload(l, NETWORK, 24, 16);
	rule_test_bytes(l, NFT_CMP_EQ, address, 16);
}

/* The addresses that stand for names, of one family. */
static void match_synthetic(struct rule_list *l, const struct fence_shared_spec *spec, int family)
{
	const struct ip_prefix *pool = family == 4 ? &spec->synthetic4 : &spec->synthetic6;
	const uint32_t size = family == 4 ? 4 : 16;
	uint8_t mask[16] = {0};

	for (unsigned i = 0; i < pool->bits; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	rule_load_meta(l, NFT_META_NFPROTO);
	rule_test_u8(l, NFT_CMP_EQ, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	rule_load_payload(l, NETWORK, family == 4 ? 16 : 24, size);
	rule_load_mask(l, mask, size);
	rule_test_bytes(l, NFT_CMP_EQ, pool->base.bytes, size);
}

static void match_loopback_interface(struct rule_list *l, enum nft_meta_keys which)
{
	static const char lo[IFNAMSIZ] = "lo";

	rule_load_meta(l, which);
	rule_test_bytes(l, NFT_CMP_EQ, lo, sizeof(lo));
}

static void match_state(struct rule_list *l, uint32_t states)
{
	static const uint32_t none;

	rule_load_ct(l, NFT_CT_STATE);
	rule_load_mask(l, &states, sizeof(states));
	rule_test_bytes(l, NFT_CMP_NEQ, &none, sizeof(none));
}

#define STATE_ESTABLISHED 2u /* NF_CT_STATE_BIT() of the kernel's numbers */
#define STATE_RELATED 4u

static void match_direction(struct rule_list *l, uint8_t direction)
{
	rule_load_ct(l, NFT_CT_DIRECTION);
	rule_test_u8(l, NFT_CMP_EQ, direction);
}

#define DIRECTION_ORIGINAL 0
#define DIRECTION_REPLY 1

static void match_guards_connection(struct rule_list *l)
{
	rule_load_ct(l, NFT_CT_MARK);
	rule_test_u32(l, NFT_CMP_EQ, SHARED_MARK);
}

static void refuse(struct rule_list *l, const struct fence_shared_spec *spec, bool reject)
{
	rule_begin(l);
	rule_log(l, "vethguard:other", spec->nflog_group, FENCE_SNAP_BYTES);
	rule_count(l, SHARED_COUNTER);
	if (reject)
		rule_reject(l);
	else
		rule_verdict(l, NF_DROP);
}

/* The guard's own sockets see by these whether the fence is in force: they lead to its listeners
 * (rewritten) or are refused. */
static void witness_rewritten(
        struct rule_list *l, const struct fence_shared_spec *spec, uint8_t protocol, uint16_t to)
{
	for (int family = 4; family <= 6; family += 2) {
		rule_begin(l);
		match_guard(l, spec);
		if (family == 4)
			match_destination4(l, loopback4);
		else
			match_destination6(l, loopback6);
		match_port(l, protocol, DESTINATION_PORT, FENCE_WITNESS_PORT);
		rule_redirect(l, to);
	}
}

void shared_rewrite(struct rule_list *l, const struct fence_shared_spec *spec)
{
	witness_rewritten(l, spec, IPPROTO_TCP, spec->tcp_port);
	witness_rewritten(l, spec, IPPROTO_UDP, spec->dns_port);
	rule_begin(l);
	match_guard(l, spec);
	rule_verdict(l, NF_ACCEPT);
	rule_begin(l);
	match_port(l, IPPROTO_UDP, DESTINATION_PORT, DNS_PORT);
	rule_redirect(l, spec->dns_port);
	rule_begin(l);
	match_port(l, IPPROTO_TCP, DESTINATION_PORT, DNS_PORT);
	rule_redirect(l, spec->dns_port);
	for (int family = 4; family <= 6; family += 2) { /* local, but not the group's own */
		rule_begin(l);
		match_synthetic(l, spec, family);
		match_protocol(l, IPPROTO_TCP);
		rule_redirect(l, spec->tcp_port);
	}
	rule_begin(l);
	rule_test_local_destination(l);
	rule_verdict(l, NF_ACCEPT);
	rule_begin(l);
	match_protocol(l, IPPROTO_TCP);
	rule_redirect(l, spec->tcp_port);
}

/* Reports of multicast groups (MLD) are not among them: because the program that joins a group
 * chooses its address.
 */
static void accept_neighbors(struct rule_list *l, uint8_t first, uint8_t last)
{
	rule_begin(l);
	match_protocol(l, IPPROTO_ICMPV6);
	rule_load_payload(l, NETWORK, 7, 1);
	rule_test_u8(l, NFT_CMP_EQ, HOPS_OF_NEIGHBOR);
	rule_load_payload(l, TRANSPORT, 0, 1);
	rule_test_u8(l, NFT_CMP_GTE, first);
	rule_test_u8(l, NFT_CMP_LTE, last);
	rule_verdict(l, NF_ACCEPT);
}

/* Accepts the packets that the kernel itself sends. */
static void accept_kernels(struct rule_list *l)
{
	rule_begin(l);
	match_guards_connection(l);
	match_protocol(l, IPPROTO_TCP);
	rule_verdict(l, NF_ACCEPT);
	accept_neighbors(l, ND_ROUTER_SOLICIT, ND_ROUTER_SOLICIT);
	accept_neighbors(l, ND_NEIGHBOR_SOLICIT, ND_NEIGHBOR_ADVERT);
}

/* Answers to connections that came in on an inbound port. */
static void accept_inbound_answers(struct rule_list *l, const struct fence_shared_spec *spec)
{
	for (size_t i = 0; i < spec->inbound_count; i++) {
		rule_begin(l);
		match_port(l, IPPROTO_TCP, SOURCE_PORT, spec->inbound_ports[i]);
		match_state(l, STATE_ESTABLISHED);
		match_direction(l, DIRECTION_REPLY);
		rule_verdict(l, NF_ACCEPT);
	}
}

static void accept_local_port(struct rule_list *l, uint8_t protocol, uint16_t port)
{
	rule_begin(l);
	match_port(l, protocol, DESTINATION_PORT, port);
	rule_test_local_destination(l);
	rule_verdict(l, NF_ACCEPT);
}

static void accept_group(struct rule_list *l, const struct fence_shared_spec *spec)
{
	for (size_t i = 0; i < spec->loopback_count; i++)
		accept_local_port(l, IPPROTO_TCP, spec->loopback_ports[i]);
	rule_begin(l);
	if (!spec->loopback_all)
		match_state(l, STATE_ESTABLISHED | STATE_RELATED);
	rule_test_local_destination(l);
	rule_verdict(l, NF_ACCEPT);
}

/* Datagrams to synthetic addresses go to the guard's sockets; nothing else of the group is there.
 */
static void sort_synthetic(struct rule_list *l, const struct fence_shared_spec *spec, int family)
{
	for (size_t i = 0; i < spec->udp_count; i++) {
		rule_begin(l);
		match_synthetic(l, spec, family);
		match_port(l, IPPROTO_UDP, DESTINATION_PORT, spec->udp_ports[i]);
		rule_verdict(l, NF_ACCEPT);
	}
	rule_begin(l);
	match_synthetic(l, spec, family);
	rule_log(l, "vethguard:other", spec->nflog_group, FENCE_SNAP_BYTES);
	rule_count(l, SHARED_COUNTER);
	rule_reject(l);
}

void shared_others(struct rule_list *l, const struct fence_shared_spec *spec)
{
	accept_local_port(l, IPPROTO_TCP, spec->tcp_port);
	accept_local_port(l, IPPROTO_UDP, spec->dns_port);
	accept_local_port(l, IPPROTO_TCP, spec->dns_port);
	rule_begin(l);
	match_destination4(l, resolver_of_docker);
	rule_log(l, "vethguard:other", spec->nflog_group, FENCE_SNAP_BYTES);
	rule_count(l, SHARED_COUNTER);
	rule_reject(l);
	sort_synthetic(l, spec, 4);
	sort_synthetic(l, spec, 6);
	accept_group(l, spec);
	accept_inbound_answers(l, spec);
	refuse(l, spec, true);
}

static void witness_refused(struct rule_list *l, const struct fence_shared_spec *spec)
{
	rule_begin(l);
	match_guard(l, spec);
	match_port(l, IPPROTO_UDP, DESTINATION_PORT, FENCE_WITNESS_REFUSED_PORT);
	rule_test_local_destination(l);
	rule_verdict(l, NF_DROP);
}

void shared_output(struct rule_list *l, const struct fence_shared_spec *spec)
{
	witness_refused(l, spec);
	rule_begin(l);
	match_guard(l, spec);
	match_direction(l, DIRECTION_ORIGINAL);
	rule_set_ct_mark(l, SHARED_MARK);
	rule_begin(l);
	match_guard(l, spec);
	rule_verdict(l, NF_ACCEPT);
	rule_begin(l);
	match_any_socket(l);
	rule_goto(l, "others");
	accept_kernels(l);
	rule_begin(l);
	rule_goto(l, "others");
}

void shared_leave(struct rule_list *l, const struct fence_shared_spec *spec)
{
	accept_inbound_answers(l, spec);
	refuse(l, spec, false);
}

/* The cgroup cannot be asked for in this hook. The mark stands in for it. */
void shared_postrouting(struct rule_list *l, const struct fence_shared_spec *spec)
{
	rule_begin(l);
	match_loopback_interface(l, NFT_META_OIFNAME);
	rule_verdict(l, NF_ACCEPT);
	rule_begin(l);
	rule_load_meta(l, NFT_META_SKUID);
	rule_test_u32(l, NFT_CMP_EQ, spec->uid);
	match_guards_connection(l);
	rule_verdict(l, NF_ACCEPT);
	rule_begin(l);
	match_any_socket(l);
	rule_goto(l, "leave");
	accept_kernels(l);
	rule_begin(l);
	rule_goto(l, "leave");
}

void shared_input(struct rule_list *l, const struct fence_shared_spec *spec)
{
	rule_begin(l);
	match_loopback_interface(l, NFT_META_IIFNAME);
	rule_verdict(l, NF_ACCEPT);
	rule_begin(l);
	match_guards_connection(l);
	match_state(l, STATE_ESTABLISHED | STATE_RELATED);
	rule_verdict(l, NF_ACCEPT);
	for (size_t i = 0; i < spec->inbound_count; i++) {
		rule_begin(l);
		match_port(l, IPPROTO_TCP, DESTINATION_PORT, spec->inbound_ports[i]);
		rule_verdict(l, NF_ACCEPT);
	}
	accept_neighbors(l, ND_ROUTER_ADVERT, ND_NEIGHBOR_ADVERT);
	refuse(l, spec, false);
}

/* What has no socket of a process is the kernel's own here as well. */
void shared_egress(struct rule_list *l, const struct fence_shared_spec *spec)
{
	rule_begin(l);
	rule_load_meta(l, NFT_META_SKUID);
	rule_test_u32(l, NFT_CMP_EQ, spec->uid);
	rule_verdict(l, NF_ACCEPT);
	for (size_t i = 0; i < spec->inbound_count; i++) {
		rule_begin(l);
		match_port(l, IPPROTO_TCP, SOURCE_PORT, spec->inbound_ports[i]);
		rule_verdict(l, NF_ACCEPT);
	}
	rule_begin(l);
	match_any_socket(l);
	rule_count(l, SHARED_COUNTER);
	rule_verdict(l, NF_DROP);
}

void shared_forward(struct rule_list *l, const struct fence_shared_spec *spec)
{
	refuse(l, spec, false);
}
