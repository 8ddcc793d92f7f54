/* SPDX-License-Identifier: Apache-2.0 */
/* dns_lookup: vethguard's own queries to name servers, and their replies (RFC 1035, 2181, 5452, 6891). Pure. */
#ifndef VETHGUARD_WIRE_DNS_LOOKUP_H
#define VETHGUARD_WIRE_DNS_LOOKUP_H

#include "vethguard/wire/dns.h"

#define DNS_LOOKUP_BYTES (12 + DNS_NAME_MAX + 4 + 11) /* header, question, OPT */
/* The size offered to the server (EDNS); longer datagrams do not count as replies. */
#define DNS_LOOKUP_REPLY_MAX 1232
#define DNS_LOOKUP_STREAM_MAX 16384  /* bytes of a reply over TCP */
#define DNS_LOOKUP_NAME_BYTES 262144 /* of all names that are read in one reply */
#define DNS_LOOKUP_ADDRESSES 16
#define DNS_LOOKUP_ALIASES 16 /* followed from the queried name on */
#define DNS_LOOKUP_MIX 32     /* random bytes: one bit for each byte of a name */

struct dns_lookup {
	uint8_t bytes[DNS_LOOKUP_BYTES]; /* the query as sent */
	size_t n;
	size_t question_n; /* of the question, which follows the header */
	uint16_t type;
	bool plain;
	size_t reply_max; /* DNS_LOOKUP_REPLY_MAX; a caller that sends the query over TCP sets another value */
};

/* How a reply relates to a lookup. */
enum dns_lookup_reply {
	DNS_LOOKUP_STRANGE,   /* for another question, or forged: the real reply may still come */
	DNS_LOOKUP_ASK_PLAIN, /* the server does not support EDNS or does not keep letter case; ignore the rest of
	                         the reply */
	DNS_LOOKUP_BROKEN,    /* the reply to this lookup, but malformed */
	DNS_LOOKUP_ANSWER     /* the reply; see struct dns_found */
};

struct dns_found {
	uint8_t rcode;
	bool truncated; /* if set, ignore everything else */
	size_t count;   /* 0: the name has no address of that type, or rcode says why */
	struct ip addresses[DNS_LOOKUP_ADDRESSES];
	uint32_t ttl_s; /* the lowest of the addresses and of the aliases that led to them */
};

/* Writes a query for a host's addresses: type DNS_A or DNS_AAAA. id and mix are random, and a reply has to repeat
 * both: mix says which letters are upper case. mix NULL: a plain query, in lower case and without EDNS. Returns false
 * if host is not a name that can be queried. */
bool dns_lookup_write(struct dns_lookup *lookup, struct slice host, uint16_t type, uint16_t id, const uint8_t *mix);
/* Reads a reply. Only records that belong to the question count: those of the name itself and of names it is an alias
 * for, in any order. Other sections and records with other owners are ignored. */
enum dns_lookup_reply dns_lookup_read(
        const struct dns_lookup *lookup, const uint8_t *p, size_t n, struct dns_found *found);

#endif
