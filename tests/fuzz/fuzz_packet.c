/* SPDX-License-Identifier: Apache-2.0 */
/* The same bytes as an NFLOG datagram, and, behind their first two as the ethertype, as a dropped
 * packet. */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct packet *p)
{
	char text[IP_TEXT_MAX];
	char name[16];

	if (p->src.family != p->dst.family ||
	        (p->src.family != 0 && p->src.family != 4 && p->src.family != 6))
		abort();
	ip_format(&p->src, text);
	ip_format(&p->dst, text);
	packet_protocol_name(p->protocol, name);
}

static void each(void *context, const struct nflog_packet *packet)
{
	size_t *bytes = context;

	check(&packet->packet);
	for (size_t i = 0; i < packet->prefix.n; i++)
		if (packet->prefix.p[i] == '\0')
			abort();
	*bytes += packet->prefix.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t prefix_bytes = 0;
	struct packet packet;

	nflog_parse(data, size, each, &prefix_bytes);
	if (prefix_bytes > size)
		abort();
	if (size < 2)
		return 0;
	packet_parse((uint16_t)(data[0] << 8 | data[1]), data + 2, size - 2, &packet);
	check(&packet);
	return 0;
}
