/* SPDX-License-Identifier: Apache-2.0 */
/* dns: queries from the sandbox, and the answers vethguard synthesizes (RFC 1035, 6891, 9460). Pure. */
#ifndef VETHGUARD_WIRE_DNS_H
#define VETHGUARD_WIRE_DNS_H

#include "vethguard/base/cursor.h"
#include "vethguard/base/ip.h"

#define DNS_NAME_MAX 255 /* bytes on the wire, with the root label */
#define DNS_TEXT_MAX 254 /* bytes of a name as text without the final dot, with the NUL */
#define DNS_UDP_MAX 4096 /* largest query read from UDP */
#define DNS_TCP_MAX 65535
#define DNS_ANSWER_MAX 1232 /* largest answer built */

enum dns_type { DNS_A = 1, DNS_PTR = 12, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65, DNS_ANY = 255 };
enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16 /* an EDNS version other than 0 (RFC 6891); only in answers to EDNS queries */
};

struct dns_query {
	uint16_t id;
	uint16_t flags; /* as sent */
	uint8_t opcode;
	uint16_t type, class;
	char name[DNS_TEXT_MAX + 1]; /* as text: original case, labels joined by '.', no final dot; the root is "" */
	size_t name_n;
	bool name_is_host; /* every label has only letters, digits, '-' and '_' */
	bool edns;
	uint16_t edns_size;
	uint8_t edns_version;
	struct slice question; /* wire bytes of the question, borrowed; copied into the answer unchanged */
};

/* Parses a query, which has exactly one question; a compressed name in the question is malformed. Returns
 * - 0;
 * - -EBADMSG: not even a header, or a response: send nothing;
 * - -EPROTO: answer with FORMERR (id, flags and opcode are set);
 * - -ENOTSUP: answer with NOTIMP. */
int dns_query_parse(const uint8_t *p, size_t n, struct dns_query *q);
/* Builds an answer with rcode and at most one address of the query's type with its ttl (NULL or another family:
 * NODATA with a SOA, so that it is cached). Repeats the question byte for byte (0x20). Returns the size, or 0 if it
 * does not fit. */
size_t dns_answer_build(const struct dns_query *q, enum dns_rcode rcode, const struct ip *address, uint32_t ttl_s,
        uint8_t *out, size_t cap);
/* Writes "A", "AAAA", "TXT", ... or "TYPE123" into out. Returns out. */
const char *dns_type_name(uint16_t type, char out[16]);
/* Converts an in-addr.arpa or ip6.arpa name to its address. Returns false for other names. */
bool dns_reverse_name(struct slice name, struct ip *out);

#endif
