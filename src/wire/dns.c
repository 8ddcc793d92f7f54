/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query is read once from front to back with a sticky cursor: header, one question, and
 * additional records, of which only OPT counts. Compression is accepted only where it does not
 * matter (the owner of an additional record is skipped, never followed), so no pointer from the
 * sender is ever dereferenced. The answer repeats the question's own bytes, which preserves the
 * random letter case that some resolvers use as a weak cookie.
 */
#include <errno.h>
#include <stdio.h>

#include "vethguard/wire/dns.h"

#define HEADER_BYTES 12
#define LABEL_MAX 63
#define TYPE_SOA 6
#define TYPE_OPT 41
#define CLASS_IN 1
#define QUESTION_OFFSET (0xc000u | HEADER_BYTES) /* a pointer to the question's name */

#define FLAG_RESPONSE 0x8000u
#define FLAG_RECURSION_DESIRED 0x0100u
#define FLAG_RECURSION_AVAILABLE 0x0080u
#define FLAG_CHECKING_DISABLED 0x0010u
#define OPCODE_SHIFT 11
#define OPCODE_MASK 0x7800u

static bool is_host_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static void append_label(struct dns_query *q, struct slice label)
{
	if (q->name_n)
		q->name[q->name_n++] = '.';
	memcpy(q->name + q->name_n, label.p, label.n);
	q->name_n += label.n;
	for (size_t i = 0; i < label.n; i++)
		q->name_is_host = q->name_is_host && is_host_byte(label.p[i]);
}

static void read_name(struct reader *r, struct dns_query *q)
{
	size_t wire = 1; /* the root label */

	q->name_is_host = true;
	for (;;) {
		struct slice label =
		        reader_vector(r, 1, LABEL_MAX); /* a pointer has a length over 63 */

		if (r->failed || label.n == 0)
			break;
		wire += 1 + label.n;
		if (wire > DNS_NAME_MAX) {
			r->failed = true;
			break;
		}
		append_label(q, label);
	}
	q->name_is_host = q->name_is_host && q->name_n > 0;
	q->name[q->name_n] = '\0';
}

static void read_question(struct reader *r, struct dns_query *q)
{
	const uint8_t *start = r->p;

	read_name(r, q);
	q->type = reader_u16(r);
	q->class = reader_u16(r);
	if (!r->failed)
		q->question = slice_of(start, (size_t)(r->p - start));
}

/* Skips the owner of an additional record. True if it is the root. */
static bool skip_name(struct reader *r)
{
	for (size_t wire = 0; wire < DNS_NAME_MAX && !r->failed;) {
		uint8_t n = reader_u8(r);

		if (n == 0)
			return wire == 0;
		if ((n & 0xc0) == 0xc0) {
			reader_u8(r);
			return false;
		}
		if (n > LABEL_MAX)
			break;
		reader_bytes(r, n);
		wire += 1 + (size_t)n;
	}
	r->failed = true;
	return false;
}

static void read_additional(struct reader *r, struct dns_query *q)
{
	bool root = skip_name(r);
	uint16_t type = reader_u16(r);
	uint16_t class = reader_u16(r);
	uint32_t ttl = reader_u32(r);

	reader_vector(r, 2, UINT16_MAX);
	if (type != TYPE_OPT)
		return;
	if (!root || q->edns) { /* RFC 6891 sections 6.1.1 and 6.1.2 */
		r->failed = true;
		return;
	}
	q->edns = true;
	q->edns_size = class;
	q->edns_version = (uint8_t)(ttl >> 16);
}

int dns_query_parse(const uint8_t *p, size_t n, struct dns_query *q)
{
	struct reader r = reader_over(p, n);
	uint16_t questions, answers, authorities, additionals;

	memset(q, 0, sizeof(*q));
	q->question = SLICE("");
	if (n < HEADER_BYTES)
		return -EBADMSG;
	q->id = reader_u16(&r);
	q->flags = reader_u16(&r);
	q->opcode = (uint8_t)((q->flags & OPCODE_MASK) >> OPCODE_SHIFT);
	if (q->flags & FLAG_RESPONSE)
		return -EBADMSG;
	if (q->opcode != 0)
		return -ENOTSUP;
	questions = reader_u16(&r);
	answers = reader_u16(&r);
	authorities = reader_u16(&r);
	additionals = reader_u16(&r);
	if (questions != 1 || answers != 0 || authorities != 0)
		return -EPROTO;
	read_question(&r, q);
	for (unsigned i = 0; i < additionals && !r.failed; i++)
		read_additional(&r, q);
	if (reader_done(&r))
		return 0;
	q->question = SLICE("");
	return -EPROTO;
}

static void write_address(struct writer *w, uint16_t type, const struct ip *address, uint32_t ttl_s)
{
	writer_u16(w, QUESTION_OFFSET);
	writer_u16(w, type);
	writer_u16(w, CLASS_IN);
	writer_u32(w, ttl_s);
	writer_vector(w, 2, slice_of(address->bytes, address->family == 4 ? 4 : 16));
}

/* Without a SOA a negative answer is not cached, and the query is repeated again and again (RFC
 * 2308 section 5). The root owns the SOA, because it is above every name. */
static void write_soa(struct writer *w, uint32_t ttl_s)
{
	writer_u8(w, 0);
	writer_u16(w, TYPE_SOA);
	writer_u16(w, CLASS_IN);
	writer_u32(w, ttl_s);
	writer_u16(w, 2 + 5 * 4);
	writer_u16(w, 0);     /* MNAME and RNAME: both the root */
	writer_u32(w, 1);     /* SERIAL */
	writer_u32(w, 3600);  /* REFRESH */
	writer_u32(w, 600);   /* RETRY */
	writer_u32(w, 86400); /* EXPIRE */
	writer_u32(w, ttl_s); /* MINIMUM */
}

static void write_opt(struct writer *w, enum dns_rcode rcode)
{
	writer_u8(w, 0);
	writer_u16(w, TYPE_OPT);
	writer_u16(w, DNS_ANSWER_MAX);
	writer_u32(w, (uint32_t)rcode >> 4 << 24); /* upper bits of the rcode, version 0, no
	                                              flags */
	writer_u16(w, 0);
}

static bool address_fits(const struct dns_query *q, const struct ip *address)
{
	return (q->type == DNS_A && address->family == 4) ||
	       (q->type == DNS_AAAA && address->family == 6);
}

size_t dns_answer_build(const struct dns_query *q, enum dns_rcode rcode, const struct ip *address,
        uint32_t ttl_s, uint8_t *out, size_t cap)
{
	struct writer w = writer_over(out, cap < DNS_ANSWER_MAX ? cap : DNS_ANSWER_MAX);
	bool asked = q->question.n > 0;
	bool answered = asked && rcode == DNS_NOERROR && address && address_fits(q, address);
	bool negative = asked && !answered && (rcode == DNS_NOERROR || rcode == DNS_NXDOMAIN);

	writer_u16(&w, q->id);
	writer_u16(&w, (uint16_t)(FLAG_RESPONSE |
	                          (q->flags & (OPCODE_MASK | FLAG_RECURSION_DESIRED |
	                                              FLAG_CHECKING_DISABLED)) |
	                          FLAG_RECURSION_AVAILABLE | ((unsigned)rcode & 15)));
	writer_u16(&w, asked);
	writer_u16(&w, answered);
	writer_u16(&w, negative);
	writer_u16(&w, q->edns);
	writer_bytes(&w, q->question.p, q->question.n);
	if (answered)
		write_address(&w, q->type, address, ttl_s);
	if (negative)
		write_soa(&w, ttl_s);
	if (q->edns)
		write_opt(&w, rcode);
	return w.failed ? 0 : w.len;
}

const char *dns_type_name(uint16_t type, char out[16])
{
	static const struct {
		uint16_t type;
		const char *name;
	} names[] = {{1, "A"}, {2, "NS"}, {5, "CNAME"}, {6, "SOA"}, {10, "NULL"}, {12, "PTR"},
	        {13, "HINFO"}, {15, "MX"}, {16, "TXT"}, {17, "RP"}, {18, "AFSDB"}, {24, "SIG"},
	        {25, "KEY"}, {28, "AAAA"}, {29, "LOC"}, {33, "SRV"}, {35, "NAPTR"}, {37, "CERT"},
	        {39, "DNAME"}, {41, "OPT"}, {42, "APL"}, {43, "DS"}, {44, "SSHFP"}, {46, "RRSIG"},
	        {47, "NSEC"}, {48, "DNSKEY"}, {50, "NSEC3"}, {51, "NSEC3PARAM"}, {52, "TLSA"},
	        {53, "SMIMEA"}, {59, "CDS"}, {60, "CDNSKEY"}, {61, "OPENPGPKEY"}, {64, "SVCB"},
	        {65, "HTTPS"}, {99, "SPF"}, {249, "TKEY"}, {250, "TSIG"}, {251, "IXFR"},
	        {252, "AXFR"}, {255, "ANY"}, {256, "URI"}, {257, "CAA"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].type == type) {
			snprintf(out, 16, "%s", names[i].name);
			return out;
		}
	}
	snprintf(out, 16, "TYPE%u", type);
	return out;
}

/* Removes the last label of *name with the dot before it, and returns the label. */
static struct slice take_last_label(struct slice *name)
{
	size_t at = name->n;
	struct slice label;

	while (at > 0 && name->p[at - 1] != '.')
		at--;
	label = slice_of(name->p + at, name->n - at);
	name->n = at ? at - 1 : 0;
	return label;
}

static bool take_suffix(struct slice *name, struct slice suffix)
{
	if (name->n <= suffix.n)
		return false;
	if (!slice_equals_ignoring_case(slice_of(name->p + (name->n - suffix.n), suffix.n), suffix))
		return false;
	name->n -= suffix.n;
	return true;
}

static bool reverse_of_ipv4(struct slice name, struct ip *out)
{
	unsigned dots = 0;

	for (size_t i = 0; i < name.n; i++)
		dots += name.p[i] == '.';
	if (dots != 3)
		return false;
	*out = (struct ip){.family = 4};
	for (int i = 0; i < 4; i++) {
		struct slice label = take_last_label(&name);
		uint64_t v;

		if (!slice_to_u64(label, 255, &v) || (label.n > 1 && label.p[0] == '0'))
			return false;
		out->bytes[i] = (uint8_t)v;
	}
	return true;
}

static bool reverse_of_ipv6(struct slice name, struct ip *out)
{
	if (name.n != 32 + 31)
		return false;
	*out = (struct ip){.family = 6};
	for (size_t i = 0; i < 32; i++) {
		int v = slice_hex_digit(name.p[2 * (31 - i)]);

		if (v < 0 || (i > 0 && name.p[2 * (31 - i) + 1] != '.'))
			return false;
		out->bytes[i / 2] = (uint8_t)(out->bytes[i / 2] << 4 | v);
	}
	return true;
}

bool dns_reverse_name(struct slice name, struct ip *out)
{
	bool found = false;

	if (take_suffix(&name, SLICE(".in-addr.arpa")))
		found = reverse_of_ipv4(name, out);
	else if (take_suffix(&name, SLICE(".ip6.arpa")))
		found = reverse_of_ipv6(name, out);
	if (!found)
		*out = (struct ip){0};
	return found;
}
