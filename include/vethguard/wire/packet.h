/* SPDX-License-Identifier: Apache-2.0 */
/* packet: frames and packets that the fence dropped, as far as a record needs them, and the NFLOG messages
 * (nfnetlink_log, linux/netfilter/nfnetlink_log.h) that carry them, parsed by hand from plain bytes so that the
 * recorder links no netlink library. Pure. */
#ifndef VETHGUARD_WIRE_PACKET_H
#define VETHGUARD_WIRE_PACKET_H

#include "vethguard/base/cursor.h"
#include "vethguard/base/ip.h"

struct packet {
	uint16_t ethertype;
	struct ip src, dst;
	uint8_t protocol;          /* final header after IPv6 extensions; 0 where unknown */
	uint16_t src_port, dst_port; /* TCP, UDP, SCTP, UDP-Lite, DCCP; ICMP: type and code in dst_port as type<<8|code */
	bool fragment;
	uint32_t length;           /* bytes of the packet as the kernel tells */
};

/* payload: from the network header (ethertype tells which), possibly cut short. Always fills what can be known. */
void packet_parse(uint16_t ethertype, const uint8_t *p, size_t n, struct packet *out);

struct nflog_packet {
	struct packet packet;
	struct slice prefix;       /* the log rule's prefix, without its NUL */
	uint16_t group;
};
/* Calls each() for every packet in one datagram read from an NFLOG socket. 0, or -EBADMSG at the first malformed
 * message (those before it were delivered). */
int nflog_parse(const uint8_t *p, size_t n, void (*each)(void *context, const struct nflog_packet *packet), void *context);
/* Name of an IP protocol: "tcp", "icmp", ... or "ip-47" into out. */
const char *packet_protocol_name(uint8_t protocol, char out[16]);

#endif
