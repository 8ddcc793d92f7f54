/* SPDX-License-Identifier: Apache-2.0 */
/* dns_lookup: what vethguard itself asks of a name server, and what comes back (RFC 1035, 2181, 5452, 6891). Pure. */
#ifndef VETHGUARD_WIRE_DNS_LOOKUP_H
#define VETHGUARD_WIRE_DNS_LOOKUP_H

#include "vethguard/wire/dns.h"

#define DNS_LOOKUP_BYTES (12 + DNS_NAME_MAX + 4 + 11) /* header, question, OPT */
#define DNS_LOOKUP_REPLY_MAX 1232                     /* offered to the server (EDNS); longer datagrams are no answer */
#define DNS_LOOKUP_STREAM_MAX 16384                   /* bytes of a reply over TCP */
#define DNS_LOOKUP_NAME_BYTES 262144                  /* of all names that are looked at in one reply */
#define DNS_LOOKUP_ADDRESSES 16
#define DNS_LOOKUP_ALIASES 16 /* followed from the name that was asked for */
#define DNS_LOOKUP_MIX 32     /* bytes of chance: a bit for each byte of a name */

struct dns_lookup {
	uint8_t bytes[DNS_LOOKUP_BYTES]; /* the query, as it is sent */
	size_t n;
	size_t question_n; /* of them, behind the header */
	uint16_t type;
	bool plain;
	size_t reply_max; /* DNS_LOOKUP_REPLY_MAX; whoever sends it over TCP says otherwise */
};

/* What a reply is to a lookup. */
enum dns_lookup_reply {
	DNS_LOOKUP_STRANGE,   /* of another question, or of nobody: the answer may still come */
	DNS_LOOKUP_ASK_PLAIN, /* the server does not bear EDNS or does not keep letters' case; nothing else of it counts */
	DNS_LOOKUP_BROKEN,    /* the answer, but it makes no sense */
	DNS_LOOKUP_ANSWER     /* struct dns_found says which */
};

struct dns_found {
	uint8_t rcode;
	bool truncated; /* then nothing of it counts */
	size_t count;   /* 0: the name has no address of that type, or rcode says why */
	struct ip addresses[DNS_LOOKUP_ADDRESSES];
	uint32_t ttl_s; /* the least of the addresses and of the aliases that led to them */
};

/* Asks for a host's addresses: type DNS_A or DNS_AAAA. id and mix are chance, which an answer has to repeat: mix says
 * which letters are large. mix NULL: as plainly as can be, all letters small and no EDNS. False: no name that can be
 * asked for. */
bool dns_lookup_write(struct dns_lookup *lookup, struct slice host, uint16_t type, uint16_t id, const uint8_t *mix);
/* Of an answer only what belongs to the question counts: records of the name itself and of names that it is an alias
 * for, in whatever order. What stands in other sections, or has another owner, is nobody's. */
enum dns_lookup_reply dns_lookup_read(const struct dns_lookup *lookup, const uint8_t *p, size_t n, struct dns_found *found);

#endif
