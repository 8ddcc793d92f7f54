/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip: addresses and prefixes of both families, their text forms, and what kind of address one is. Pure.
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

/* What an address is for (IANA special-purpose registries, RFC 6890). Only IP_PUBLIC is dialled unless a rule names
 * the address or the operator permits its range. An address that carries another (mapped, NAT64, 6to4, Teredo,
 * IPv4-compatible) is never public: the carried address could be anything. */
enum ip_class {
	IP_PUBLIC,
	IP_UNSPECIFIED,
	IP_LOOPBACK,
	IP_PRIVATE,      /* RFC 1918, unique local fc00::/7, site-local fec0::/10 */
	IP_LINK_LOCAL,
	IP_METADATA,     /* cloud metadata: 169.254.169.254, fd00:ec2::254, 168.63.129.16, 100.100.100.200, 192.0.0.192 */
	IP_CGNAT,        /* 100.64.0.0/10 */
	IP_MULTICAST,
	IP_BROADCAST,
	IP_MAPPED,       /* ::ffff:0:0/96, ::/96 */
	IP_NAT64,        /* 64:ff9b::/96, 64:ff9b:1::/48 */
	IP_6TO4,
	IP_TEREDO,
	IP_RESERVED,     /* documentation, benchmarking, 240/4, discard-only, 192.0.0.0/24, ... */
	IP_CLASS_COUNT
};

/* Text as in a URL or a policy: dotted quad with exactly four decimal parts and no leading zeros, or RFC 4291 with
 * or without brackets; no zone, no port. False: not an address. */
bool ip_parse(struct slice text, struct ip *out);
/* As ip_parse, then "/bits"; an address alone is /32 or /128. False also where host bits are set. */
bool ip_prefix_parse(struct slice text, struct ip_prefix *out);
/* RFC 5952 form, NUL-terminated, no brackets. Returns out. */
char *ip_format(const struct ip *ip, char out[IP_TEXT_MAX]);
bool ip_equals(const struct ip *a, const struct ip *b);
bool ip_in_prefix(const struct ip *ip, const struct ip_prefix *prefix);
enum ip_class ip_classify(const struct ip *ip);
/* The IPv4 address inside of an IPv4-mapped, -translated or -compatible one or of NAT64 (RFC 6052 section 2.2; of
 * 64:ff9b:1::/48 the translator's prefix is told in bits: 48, 56, 64, else 96). family 0: there is none. */
struct ip ip_carried(const struct ip *ip, unsigned translator_bits);
/* Whether somebody who names the network means this address of it, so that it may be dialled although it is not
 * public. A network of one address means it, whatever it is. A wider one means its public addresses, and private,
 * carrier-grade NAT and reserved ones where the whole network lies inside of such a range; never unspecified, loopback,
 * link-local, metadata, multicast, broadcast, 6to4 and Teredo addresses. Of addresses that carry another one (mapped,
 * NAT64), which the network has to lie inside of, the carried one has to be public or meant by what is left of the
 * network. Whether an address is the host's own is not asked here. */
bool ip_network_means(const struct ip_prefix *network, const struct ip *ip);
/* Whether one of the networks that the configuration permits means the address; of one that carries another and lies in
 * a translator's prefix, whether what it carries is permitted too. */
bool ip_networks_permit(const struct ip_prefix *networks, size_t count, const struct ip *ip);
/* Whether one of them is exactly this address. */
bool ip_networks_name(const struct ip_prefix *networks, size_t count, const struct ip *ip);
bool ip_network_is_one(const struct ip_prefix *network); /* it has one address */
/* The class that all addresses of the network have by its range, IP_PUBLIC where it lies in none. *mixed: it has ranges
 * of other classes inside. */
enum ip_class ip_network_class(const struct ip_prefix *network, bool *mixed);
/* Networks between whose borders all addresses have one class; by index, false behind the last one. */
bool ip_class_range(size_t index, struct ip_prefix *out);
/* A word for people: "private", "link-local", ... */
const char *ip_class_name(enum ip_class c);
/* family 0 where sa is of neither. port: in host order; may be NULL. */
struct ip ip_from_sockaddr(const struct sockaddr *sa, uint16_t *port);
/* Fills ss and returns its length in bytes. port: in host order. */
socklen_t ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ss);

#endif
