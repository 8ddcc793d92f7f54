/* SPDX-License-Identifier: Apache-2.0 */
/* packet: parses frames and packets that the fence dropped, as far as a record needs them, and the NFLOG messages
 * (nfnetlink_log, linux/netfilter/nfnetlink_log.h) that carry them. Parsed by hand from plain bytes, so that the
 * recorder links no netlink library. Pure. */
#ifndef VETHGUARD_WIRE_PACKET_H
#define VETHGUARD_WIRE_PACKET_H

#include "vethguard/base/cursor.h"
#include "vethguard/base/ip.h"

struct packet {
	uint16_t ethertype;
	struct ip src, dst;
	uint8_t protocol;            /* the last header after IPv6 extensions; 0: unknown */
	uint16_t src_port, dst_port; /* of TCP, UDP, SCTP, UDP-Lite, DCCP; ICMP: dst_port is type<<8|code */
	bool fragment;
	uint32_t length; /* bytes of the packet as the kernel reports */
};

/* Parses n bytes from the network header on (ethertype says which), possibly truncated. Fills every field it can. */
void packet_parse(uint16_t ethertype, const uint8_t *p, size_t n, struct packet *out);

struct nflog_packet {
	struct packet packet;
	struct slice prefix; /* the log rule's prefix, without its NUL */
	uint16_t group;
};
/* Calls each() for every packet in one datagram from an NFLOG socket. Returns 0, or -EBADMSG at the first malformed
 * message (the packets before it were delivered). */
int nflog_parse(
        const uint8_t *p, size_t n, void (*each)(void *context, const struct nflog_packet *packet), void *context);
/* Writes the name of an IP protocol, "tcp", "icmp", ... or "ip-47", into out. Returns out. */
const char *packet_protocol_name(uint8_t protocol, char out[16]);

#endif
