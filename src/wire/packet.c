/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dropped packet may be anything, and the copy may end anywhere. Everything before the damage is
 * reported, the rest stays zero, and no field is trusted beyond the bytes that exist. IPv6
 * extension headers are walked (RFC 8200 section 4) up to a bound, because a record that says
 * "protocol 60" helps nobody.
 */
#include <netinet/in.h>
#include <stdio.h>

#include "vethguard/wire/packet.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_IPV6 0x86dd

#define IPV4_HEADER_MIN 20
#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV4_OFFSET_MASK 0x1fff
#define IPV6_HEADER_BYTES 40
#define IPV6_OFFSET_MASK 0xfff8
#define IPV6_MORE_FRAGMENTS 1
#define IPV6_EXTENSIONS_MAX 32 /* headers walked per packet */

#define PROTOCOL_MOBILITY 135
#define PROTOCOL_HIP 139
#define PROTOCOL_SHIM6 140

static void read_ports(struct reader r, struct packet *out)
{
	switch (out->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_SCTP:
	case IPPROTO_UDPLITE:
	case IPPROTO_DCCP:
		if (r.left < 4)
			return;
		out->src_port = reader_u16(&r);
		out->dst_port = reader_u16(&r);
		return;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		out->dst_port = reader_u16(&r); /* type, code */
		return;
	default:
		return;
	}
}

static void parse_ipv4(struct reader r, struct packet *out)
{
	uint8_t version_and_length = reader_u8(&r);
	size_t header = 4 * (size_t)(version_and_length & 15);
	uint16_t total, fragment;

	if (version_and_length >> 4 != 4 || header < IPV4_HEADER_MIN ||
	        r.left < IPV4_HEADER_MIN - 1)
		return;
	reader_u8(&r);
	total = reader_u16(&r);
	reader_u16(&r);
	fragment = reader_u16(&r);
	reader_u8(&r);
	out->protocol = reader_u8(&r);
	reader_u16(&r);
	out->src.family = out->dst.family = 4;
	reader_copy(&r, out->src.bytes, 4);
	reader_copy(&r, out->dst.bytes, 4);
	reader_bytes(&r, header - IPV4_HEADER_MIN);
	if (total > out->length)
		out->length = total;
	out->fragment = (fragment & (IPV4_MORE_FRAGMENTS | IPV4_OFFSET_MASK)) != 0;
	if (!r.failed && (fragment & IPV4_OFFSET_MASK) == 0)
		read_ports(r, out);
}

enum extension_step { STEP_ON, STEP_FINAL, STEP_NO_PORTS, STEP_LOST };

/* Steps over one header of the chain. *next is its number and becomes that of the header after
 * it. */
static enum extension_step step_extension(struct reader *r, uint8_t *next, bool *fragment)
{
	uint16_t offset;
	uint8_t number = *next;
	uint8_t length;

	switch (number) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case PROTOCOL_MOBILITY:
	case PROTOCOL_HIP:
	case PROTOCOL_SHIM6:
		*next = reader_u8(r);
		length = reader_u8(r);
		reader_bytes(r, 8 * (size_t)length + 6);
		break;
	case IPPROTO_AH: /* counts words of four bytes, RFC 4302 section 2.2 */
		*next = reader_u8(r);
		length = reader_u8(r);
		reader_bytes(r, 4 * (size_t)length + 6);
		break;
	case IPPROTO_FRAGMENT:
		*next = reader_u8(r);
		reader_u8(r);
		offset = reader_u16(r);
		reader_u32(r);
		*fragment = *fragment || (offset & (IPV6_OFFSET_MASK | IPV6_MORE_FRAGMENTS)) != 0;
		if (!r->failed && offset & IPV6_OFFSET_MASK)
			return STEP_NO_PORTS;
		break;
	default:
		return STEP_FINAL;
	}
	return r->failed ? STEP_LOST : STEP_ON;
}

static void parse_ipv6(struct reader r, struct packet *out)
{
	enum extension_step step = STEP_ON;
	uint8_t next;
	uint32_t length;

	if (r.left < IPV6_HEADER_BYTES || *r.p >> 4 != 6)
		return;
	reader_u32(&r);
	length = reader_u16(&r) + (uint32_t)IPV6_HEADER_BYTES;
	next = reader_u8(&r);
	reader_u8(&r);
	out->src.family = out->dst.family = 6;
	reader_copy(&r, out->src.bytes, 16);
	reader_copy(&r, out->dst.bytes, 16);
	if (length > out->length)
		out->length = length;
	for (int i = 0; i < IPV6_EXTENSIONS_MAX && step == STEP_ON; i++)
		step = step_extension(&r, &next, &out->fragment);
	if (step == STEP_FINAL || step == STEP_NO_PORTS)
		out->protocol = next;
	if (step == STEP_FINAL)
		read_ports(r, out);
}

/* RFC 826: sender and target address, for IPv4 over Ethernet. */
static void parse_arp(struct reader r, struct packet *out)
{
	uint16_t hardware = reader_u16(&r);
	uint16_t protocol = reader_u16(&r);
	uint16_t lengths = reader_u16(&r);

	if (hardware != 1 || protocol != ETHERTYPE_IPV4 || lengths != 0x0604 || r.left < 2 + 2 * 10)
		return;
	reader_bytes(&r, 2 + 6);
	out->src.family = out->dst.family = 4;
	reader_copy(&r, out->src.bytes, 4);
	reader_bytes(&r, 6);
	reader_copy(&r, out->dst.bytes, 4);
}

void packet_parse(uint16_t ethertype, const uint8_t *p, size_t n, struct packet *out)
{
	struct reader r = reader_over(p, n);

	memset(out, 0, sizeof(*out));
	out->ethertype = ethertype;
	out->length = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	if (ethertype == ETHERTYPE_IPV4)
		parse_ipv4(r, out);
	else if (ethertype == ETHERTYPE_IPV6)
		parse_ipv6(r, out);
	else if (ethertype == ETHERTYPE_ARP)
		parse_arp(r, out);
}

const char *packet_protocol_name(uint8_t protocol, char out[16])
{
	static const struct {
		uint8_t protocol;
		const char *name;
	} names[] = {{IPPROTO_ICMP, "icmp"}, {IPPROTO_IGMP, "igmp"}, {IPPROTO_TCP, "tcp"},
	        {IPPROTO_UDP, "udp"}, {IPPROTO_DCCP, "dccp"}, {IPPROTO_ESP, "esp"},
	        {IPPROTO_AH, "ah"}, {IPPROTO_ICMPV6, "ipv6-icmp"}, {IPPROTO_SCTP, "sctp"},
	        {IPPROTO_UDPLITE, "udplite"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].protocol == protocol) {
			snprintf(out, 16, "%s", names[i].name);
			return out;
		}
	}
	snprintf(out, 16, "ip-%u", protocol);
	return out;
}
