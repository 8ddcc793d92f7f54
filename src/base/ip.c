/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inet_pton(3) and inet_ntop(3) convert text; they are exact (no short forms, no octal, no zones).
 * Only the checks that they cannot make on bytes without a NUL are added here. Classes come from
 * one table of prefixes, searched from the top, so an exception stands before the range it is cut
 * from. IPv4 addresses in no row are public; IPv6 addresses are public only inside 2000::/3, since
 * the rest of that space is not assigned to anybody.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "vethguard/base/ip.h"

static bool parse_text(int family, struct slice text, struct ip *out)
{
	char buf[IP_TEXT_MAX];

	if (text.n == 0 || text.n >= sizeof(buf) || slice_find_byte(text, '\0') >= 0)
		return false;
	memcpy(buf, text.p, text.n);
	buf[text.n] = '\0';
	*out = (struct ip){.family = family == AF_INET ? 4 : 6};
	if (inet_pton(family, buf, out->bytes) == 1)
		return true;
	*out = (struct ip){0};
	return false;
}

bool ip_parse(struct slice text, struct ip *out)
{
	if (text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
		return parse_text(AF_INET6, slice_of(text.p + 1, text.n - 2), out);
	return parse_text(slice_find_byte(text, ':') < 0 ? AF_INET : AF_INET6, text, out);
}

static unsigned family_bits(const struct ip *ip)
{
	return ip->family == 4 ? 32 : 128;
}

/* The mask for byte i of an address under a prefix of this many bits. */
static uint8_t mask_byte(unsigned bits, unsigned i)
{
	if (bits >= 8 * (i + 1))
		return 0xff;
	if (bits <= 8 * i)
		return 0;
	return (uint8_t)(0xff << (8 * (i + 1) - bits));
}

bool ip_prefix_parse(struct slice text, struct ip_prefix *out)
{
	ptrdiff_t slash = slice_find_byte(text, '/');
	struct slice address = slash < 0 ? text : slice_of(text.p, (size_t)slash);
	struct slice digits;
	struct ip_prefix prefix;
	uint64_t bits;

	if (!ip_parse(address, &prefix.base))
		return false;
	bits = family_bits(&prefix.base);
	if (slash >= 0) {
		digits = slice_of(text.p + slash + 1, text.n - (size_t)slash - 1);
		if (digits.n > 1 && digits.p[0] == '0')
			return false;
		if (!slice_to_u64(digits, bits, &bits))
			return false;
	}
	prefix.bits = (uint8_t)bits;
	for (unsigned i = 0; i < sizeof(prefix.base.bytes); i++)
		if (prefix.base.bytes[i] & ~mask_byte(prefix.bits, i))
			return false;
	*out = prefix;
	return true;
}

char *ip_format(const struct ip *ip, char out[IP_TEXT_MAX])
{
	int family = ip->family == 4 ? AF_INET : AF_INET6;

	if ((ip->family != 4 && ip->family != 6) || !inet_ntop(family, ip->bytes, out, IP_TEXT_MAX))
		snprintf(out, IP_TEXT_MAX, "-");
	return out;
}

bool ip_equals(const struct ip *a, const struct ip *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

static bool bytes_in_prefix(const uint8_t *address, const uint8_t *base, unsigned bits)
{
	for (unsigned i = 0; 8 * i < bits; i++)
		if ((address[i] ^ base[i]) & mask_byte(bits, i))
			return false;
	return true;
}

bool ip_in_prefix(const struct ip *ip, const struct ip_prefix *prefix)
{
	if (ip->family == 0 || ip->family != prefix->base.family || prefix->bits > family_bits(ip))
		return false;
	return bytes_in_prefix(ip->bytes, prefix->base.bytes, prefix->bits);
}

struct class_row {
	uint8_t base[16];
	uint8_t bits;
	enum ip_class class;
};

static const struct class_row rows4[] = {
        {{169, 254, 169, 254}, 32, IP_METADATA},
        {{168, 63, 129, 16}, 32, IP_METADATA},
        {{100, 100, 100, 200}, 32, IP_METADATA},
        {{192, 0, 0, 192}, 32, IP_METADATA},
        {{0, 0, 0, 0}, 32, IP_UNSPECIFIED},
        {{0}, 8, IP_RESERVED},
        {{10}, 8, IP_PRIVATE},
        {{100, 64}, 10, IP_CGNAT},
        {{127}, 8, IP_LOOPBACK},
        {{169, 254}, 16, IP_LINK_LOCAL},
        {{172, 16}, 12, IP_PRIVATE},
        {{192, 0, 0}, 24, IP_RESERVED},
        {{192, 0, 2}, 24, IP_RESERVED},
        {{192, 88, 99}, 24, IP_6TO4}, /* the relays' old anycast prefix, RFC 7526 */
        {{192, 168}, 16, IP_PRIVATE},
        {{198, 18}, 15, IP_RESERVED},
        {{198, 51, 100}, 24, IP_RESERVED},
        {{203, 0, 113}, 24, IP_RESERVED},
        {{224}, 4, IP_MULTICAST},
        {{255, 255, 255, 255}, 32, IP_BROADCAST},
        {{240}, 4, IP_RESERVED},
};

static const struct class_row rows6[] = {
        {{0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54}, 128, IP_METADATA}, /* fd00:ec2::254 */
        {{0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54}, 128, IP_METADATA}, /* fd20:ce::254 */
        {{0xfd, 0, 0, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe}, 128,
                IP_METADATA}, /* fd00:c1::a9fe:a9fe */
        {{0}, 128, IP_UNSPECIFIED}, {{[15] = 1}, 128, IP_LOOPBACK},
        {{[10] = 0xff, 0xff}, 96, IP_MAPPED},
        {{[8] = 0xff, 0xff}, 96, IP_MAPPED}, /* translated, RFC 2765 */
        {{0}, 96, IP_MAPPED},                /* IPv4-compatible */
        {{0, 0x64, 0xff, 0x9b}, 96, IP_NAT64}, {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, IP_NAT64},
        {{0x20, 0x01, 0, 0}, 32, IP_TEREDO}, {{0x20, 0x01, 0}, 23, IP_RESERVED},
        {{0x20, 0x01, 0x0d, 0xb8}, 32, IP_RESERVED}, {{0x20, 0x02}, 16, IP_6TO4},
        {{0x3f, 0xff, 0}, 20, IP_RESERVED}, {{0xfc}, 7, IP_PRIVATE},
        {{0xfe, 0x80}, 10, IP_LINK_LOCAL}, {{0xfe, 0xc0}, 10, IP_PRIVATE},
        {{0xff}, 8, IP_MULTICAST}, {{0x20}, 3, IP_PUBLIC},
        {{0}, 0, IP_RESERVED}, /* discard-only 100::/64, SRv6 5f00::/16, everything not assigned
                                  yet */
};

#define ROWS4 (sizeof(rows4) / sizeof(rows4[0]))
#define ROWS6 (sizeof(rows6) / sizeof(rows6[0]))
/* In unassigned space nobody uses a network wider than this. */
#define TRANSLATOR_BITS_MAX 96 /* RFC 6052 */
#define RESERVED_BITS_MIN 8

/* The first row whose prefix is no longer than bits and contains the address, or NULL. */
static const struct class_row *row_of(const struct ip *ip, unsigned bits)
{
	const struct class_row *rows = ip->family == 4 ? rows4 : rows6;
	size_t count = ip->family == 4 ? ROWS4 : ROWS6;

	for (size_t i = 0; i < count; i++)
		if (rows[i].bits <= bits && bytes_in_prefix(ip->bytes, rows[i].base, rows[i].bits))
			return &rows[i];
	return NULL;
}

enum ip_class ip_classify(const struct ip *ip)
{
	const struct class_row *row;

	if (ip->family != 4 && ip->family != 6)
		return IP_UNSPECIFIED;
	row = row_of(ip, family_bits(ip));
	return row ? row->class : IP_PUBLIC;
}

struct ip ip_carried(const struct ip *ip, unsigned translator_bits)
{
	enum ip_class class = ip_classify(ip);
	bool local = class == IP_NAT64 && ip->bytes[5] == 1; /* RFC 8215 */
	struct ip carried = {.family = 4};
	size_t at = 12;

	if (class != IP_MAPPED && class != IP_NAT64)
		return (struct ip){0};
	if (local && (translator_bits == 48 || translator_bits == 56 || translator_bits == 64))
		at = translator_bits / 8;
	for (size_t i = 0; i < 4; i++) {
		at += at == 8; /* this byte is zero in all of them */
		carried.bytes[i] = ip->bytes[at++];
	}
	return carried;
}

bool ip_network_is_one(const struct ip_prefix *network)
{
	return network->bits == family_bits(&network->base);
}

/* Asks whether a network in a range of carriers means the carried address. The part of the network
 * behind its first 96 bits is the network for the carried address (RFC 6052). */
static bool means_carried(const struct ip_prefix *network, const struct ip *ip)
{
	struct ip carried = ip_carried(ip, network->bits);
	struct ip_prefix rest = {.base = {.family = 4}};

	if (carried.family == 0)
		return false;
	if (ip_classify(&carried) == IP_PUBLIC)
		return true;
	if (network->bits <= 96)
		return false;
	rest.bits = (uint8_t)(network->bits - 96);
	memcpy(rest.base.bytes, network->base.bytes + 12, 4);
	return ip_network_means(&rest, &carried);
}

bool ip_network_means(const struct ip_prefix *network, const struct ip *ip)
{
	const struct class_row *row;

	if (!ip_in_prefix(ip, network))
		return false;
	row = row_of(ip, family_bits(ip));
	if (ip_network_is_one(network) || !row || row->class == IP_PUBLIC)
		return true;
	if (network->bits < row->bits)
		return false;
	switch (row->class) {
	case IP_PRIVATE:
	case IP_CGNAT:
		return true;
	case IP_RESERVED:
		return network->bits >= RESERVED_BITS_MIN;
	case IP_MAPPED:
	case IP_NAT64:
		return means_carried(network, ip);
	default:
		return false;
	}
}

/* Permitting a translator's prefix permits the IPv4 internet, not everything the translator
 * reaches. So the carried address has to be permitted by itself, unless the network is narrower
 * than the prefix. */
bool ip_networks_permit(const struct ip_prefix *networks, size_t count, const struct ip *ip)
{
	for (size_t i = 0; i < count; i++) {
		struct ip carried = ip_carried(ip, networks[i].bits);

		if (ip_network_means(&networks[i], ip))
			return true;
		if (ip_in_prefix(ip, &networks[i]) && carried.family &&
		        networks[i].bits <= TRANSLATOR_BITS_MAX &&
		        ip_networks_permit(networks, count, &carried))
			return true;
	}
	return false;
}

bool ip_networks_name(const struct ip_prefix *networks, size_t count, const struct ip *ip)
{
	for (size_t i = 0; i < count; i++)
		if (ip_network_is_one(&networks[i]) && ip_in_prefix(ip, &networks[i]))
			return true;
	return false;
}

enum ip_class ip_network_class(const struct ip_prefix *network, bool *mixed)
{
	const struct class_row *row = row_of(&network->base, network->bits);
	struct ip_prefix range;

	*mixed = false;
	for (size_t i = 0; ip_class_range(i, &range) && !*mixed; i++)
		*mixed = range.bits > network->bits && ip_in_prefix(&range.base, network);
	return row && row->bits > 0 ? row->class : IP_PUBLIC;
}

bool ip_class_range(size_t index, struct ip_prefix *out)
{
	const struct class_row *row = index < ROWS4           ? &rows4[index]
	                              : index < ROWS4 + ROWS6 ? &rows6[index - ROWS4]
	                                                      : NULL;

	if (!row)
		return false;
	*out = (struct ip_prefix){.base.family = index < ROWS4 ? 4 : 6, .bits = row->bits};
	memcpy(out->base.bytes, row->base, sizeof(out->base.bytes));
	return true;
}

static const char *const class_names[] = {
        [IP_PUBLIC] = "public",
        [IP_UNSPECIFIED] = "unspecified",
        [IP_LOOPBACK] = "loopback",
        [IP_PRIVATE] = "private",
        [IP_LINK_LOCAL] = "link-local",
        [IP_METADATA] = "cloud metadata",
        [IP_CGNAT] = "carrier-grade NAT",
        [IP_MULTICAST] = "multicast",
        [IP_BROADCAST] = "broadcast",
        [IP_MAPPED] = "IPv4-mapped",
        [IP_NAT64] = "NAT64",
        [IP_6TO4] = "6to4",
        [IP_TEREDO] = "Teredo",
        [IP_RESERVED] = "reserved",
};
_Static_assert(sizeof(class_names) / sizeof(class_names[0]) == IP_CLASS_COUNT, "a name per class");

const char *ip_class_name(enum ip_class c)
{
	return (unsigned)c < IP_CLASS_COUNT ? class_names[c] : "unknown";
}

struct ip ip_from_sockaddr(const struct sockaddr *sa, uint16_t *port)
{
	struct ip ip = {0};
	in_port_t wire_port = 0;

	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		ip.family = 4;
		memcpy(ip.bytes, &in.sin_addr, sizeof(in.sin_addr));
		wire_port = in.sin_port;
	} else if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		ip.family = 6;
		memcpy(ip.bytes, &in6.sin6_addr, sizeof(in6.sin6_addr));
		wire_port = in6.sin6_port;
	}
	if (port)
		*port = ntohs(wire_port);
	return ip;
}

socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ss)
{
	memset(ss, 0, sizeof(*ss));
	if (ip->family == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)ss;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ip->bytes, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	if (ip->family == 6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, ip->bytes, sizeof(in6->sin6_addr));
		return sizeof(*in6);
	}
	return 0;
}
