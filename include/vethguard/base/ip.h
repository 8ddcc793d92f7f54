/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip: addresses and prefixes of both families, their text forms, and the class of an address. Pure.
 */
#ifndef VETHGUARD_BASE_IP_H
#define VETHGUARD_BASE_IP_H

#include <netinet/in.h>

#include "vethguard/base/slice.h"

struct ip {
	uint8_t family;    /* 4 or 6; 0: none */
	uint8_t bytes[16]; /* network order; IPv4 uses the first four, the rest is zero */
};

struct ip_prefix {
	struct ip base; /* host bits are zero */
	uint8_t bits;
};

#define IP_TEXT_MAX 46 /* INET6_ADDRSTRLEN */

/* The purpose of an address (IANA special-purpose registries, RFC 6890). Only IP_PUBLIC is dialed, unless a rule
 * names the address or the operator permits its range. An address that carries another (mapped, NAT64, 6to4, Teredo,
 * IPv4-compatible) is never public, because the carried address could be anything. */
enum ip_class {
	IP_PUBLIC,
	IP_UNSPECIFIED,
	IP_LOOPBACK,
	IP_PRIVATE, /* RFC 1918, unique local fc00::/7, site-local fec0::/10 */
	IP_LINK_LOCAL,
	IP_METADATA, /* cloud metadata: 169.254.169.254, fd00:ec2::254, 168.63.129.16, 100.100.100.200, 192.0.0.192 */
	IP_CGNAT,    /* 100.64.0.0/10 */
	IP_MULTICAST,
	IP_BROADCAST,
	IP_MAPPED, /* ::ffff:0:0/96, ::/96 */
	IP_NAT64,  /* 64:ff9b::/96, 64:ff9b:1::/48 */
	IP_6TO4,
	IP_TEREDO,
	IP_RESERVED, /* documentation, benchmarking, 240/4, discard-only, 192.0.0.0/24, ... */
	IP_CLASS_COUNT
};

/* Parses text as in a URL or a policy: a dotted quad with exactly four decimal parts and no leading zeros, or RFC
 * 4291 with or without brackets; no zone, no port. Returns false if text is not an address. */
bool ip_parse(struct slice text, struct ip *out);
/* As ip_parse(), followed by "/bits"; an address alone is /32 or /128. Returns false also if host bits are set. */
bool ip_prefix_parse(struct slice text, struct ip_prefix *out);
/* RFC 5952 form, NUL-terminated, no brackets. Returns out. */
char *ip_format(const struct ip *ip, char out[IP_TEXT_MAX]);
bool ip_equals(const struct ip *a, const struct ip *b);
bool ip_in_prefix(const struct ip *ip, const struct ip_prefix *prefix);
enum ip_class ip_classify(const struct ip *ip);
/* The IPv4 address inside an IPv4-mapped, -translated or -compatible address or a NAT64 address (RFC 6052 section
 * 2.2). translator_bits is the length of the translator's prefix, which matters for 64:ff9b:1::/48: 48, 56 or 64,
 * else 96. family 0: there is none. */
struct ip ip_carried(const struct ip *ip, unsigned translator_bits);
/* True if naming the network means this address of it, so that the address may be dialed although it is not public.
 * Does not check whether the address is the host's own.
 * - A network of one address means that address, whatever its class.
 * - A wider network means its public addresses. It also means private, carrier-grade NAT and reserved addresses if
 *   the whole network lies inside such a range.
 * - It never means unspecified, loopback, link-local, metadata, multicast, broadcast, 6to4 and Teredo addresses.
 * - It means addresses that carry another (mapped, NAT64) if the network lies inside such a range, and the carried
 *   address is public or is meant by the part of the network behind the first 96 bits. */
bool ip_network_means(const struct ip_prefix *network, const struct ip *ip);
/* True if one of the networks that the configuration permits means the address. For an address that carries another
 * and lies in a permitted translator's prefix, true if the carried address is permitted too. */
bool ip_networks_permit(const struct ip_prefix *networks, size_t count, const struct ip *ip);
/* True if one of the networks is exactly this address. */
bool ip_networks_name(const struct ip_prefix *networks, size_t count, const struct ip *ip);
bool ip_network_is_one(const struct ip_prefix *network); /* has one address */
/* The class that the network's range gives all its addresses; IP_PUBLIC if it lies in no range. *mixed: ranges of
 * other classes lie inside the network. */
enum ip_class ip_network_class(const struct ip_prefix *network, bool *mixed);
/* Ranges between whose borders all addresses have one class, by index. Returns false behind the last one. */
bool ip_class_range(size_t index, struct ip_prefix *out);
/* A word for people: "private", "link-local", ... */
const char *ip_class_name(enum ip_class c);
/* The address in sa; family 0 if sa is neither IPv4 nor IPv6. *port: in host byte order; port may be NULL. */
struct ip ip_from_sockaddr(const struct sockaddr *sa, uint16_t *port);
/* Fills ss and returns its length in bytes. port: in host byte order. */
socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ss);

#endif
