/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A datagram from an NFLOG socket holds one or more netlink messages, in host byte order as this
 * machine's kernel writes them: a header, a nfgenmsg, attributes. Every length is checked against
 * the rest of the enclosing level, and every step moves forward by at least a header, so the walk
 * ends whatever the bytes say.
 */
#include <errno.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>

#include "vethguard/wire/packet.h"

#define NFLOG_PACKET_TYPE (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Returns the rest of an item of length n whose first used bytes were read already. Skips the
 * padding, which the last item may lack. */
static struct slice take_padded(struct reader *r, size_t n, size_t used)
{
	struct slice body;
	size_t padding = padded(n) - n;

	if (n < used) {
		r->failed = true;
		return SLICE("");
	}
	body = reader_bytes(r, n - used);
	reader_bytes(r, padding < r->left ? padding : r->left);
	return body;
}

struct attributes {
	struct slice header, payload, prefix;
};

static bool read_attributes(struct reader r, struct attributes *out)
{
	while (r.left) {
		struct nlattr attr;
		struct slice body;

		reader_copy(&r, &attr, sizeof(attr));
		body = take_padded(&r, attr.nla_len, sizeof(attr));
		switch (attr.nla_type & NLA_TYPE_MASK) {
		case NFULA_PACKET_HDR:
			out->header = body;
			break;
		case NFULA_PAYLOAD:
			out->payload = body;
			break;
		case NFULA_PREFIX:
			out->prefix = body;
			break;
		default:
			break;
		}
	}
	return !r.failed;
}

static uint16_t ethertype_of(uint8_t family)
{
	return family == AF_INET ? ETHERTYPE_IPV4 : family == AF_INET6 ? ETHERTYPE_IPV6 : 0;
}

static bool read_packet(struct slice message, struct nflog_packet *out)
{
	struct attributes attributes = {SLICE(""), SLICE(""), SLICE("")};
	struct reader r = reader_over(message.p, message.n);
	struct reader header;
	uint16_t ethertype;
	uint8_t family = reader_u8(&r);
	ptrdiff_t nul;

	reader_u8(&r);
	out->group = reader_u16(&r); /* res_id is in network order */
	if (r.failed || !read_attributes(r, &attributes))
		return false;
	ethertype = ethertype_of(family);
	header = reader_over(attributes.header.p, attributes.header.n);
	if (attributes.header.n)
		ethertype = reader_u16(&header);
	if (header.failed)
		return false;
	packet_parse(ethertype, (const uint8_t *)attributes.payload.p, attributes.payload.n,
	        &out->packet);
	nul = slice_find_byte(attributes.prefix, '\0');
	out->prefix = slice_of(attributes.prefix.p, nul < 0 ? attributes.prefix.n : (size_t)nul);
	return true;
}

int nflog_parse(const uint8_t *p, size_t n,
        void (*each)(void *context, const struct nflog_packet *packet), void *context)
{
	struct reader r = reader_over(p, n);

	while (r.left) {
		struct nflog_packet packet;
		struct nlmsghdr head;
		struct slice body;

		reader_copy(&r, &head, sizeof(head));
		body = take_padded(&r, head.nlmsg_len, sizeof(head));
		if (r.failed)
			return -EBADMSG;
		if (head.nlmsg_type !=
		        NFLOG_PACKET_TYPE) /* the end of a batch, or an acknowledgment */
			continue;
		if (!read_packet(body, &packet))
			return -EBADMSG;
		each(context, &packet);
	}
	return 0;
}
