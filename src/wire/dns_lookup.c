/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stub resolver believes the first reply that fits, so a reply has to repeat all random parts of
 * the query: its id and which of its letters are upper case (its port is up to the socket). The
 * question must come back byte by byte, so it is compared and not parsed.
 *
 * Of the answer's records only those count that belong to the name or to an alias of it. The
 * records are scanned once for each alias, because servers put them in any order; names are
 * compared uncompressed and in lower case. A pointer in a name has to lead to an earlier place than
 * any before, so following pointers ends. Many records that all point to one long name, scanned for
 * each of many aliases, would still take long: DNS_LOOKUP_NAME_BYTES bounds that.
 */
#include "vethguard/wire/dns_lookup.h"

#define HEADER_BYTES 12
#define LABEL_MAX 63
#define TYPE_CNAME 5
#define TYPE_OPT 41
#define CLASS_IN 1
#define TTL_SIGN 0x80000000u

#define FLAG_RESPONSE 0x8000u
#define FLAG_TRUNCATED 0x0200u
#define FLAG_RECURSION_DESIRED 0x0100u
#define OPCODE_MASK 0x7800u
#define RCODE_MASK 0x000fu

/* A name as labels with a length byte before each, in lower case. */
struct name {
	uint8_t bytes[DNS_NAME_MAX];
	size_t n;
};

struct records {
	struct slice message;
	struct reader first; /* stands before the first record */
	unsigned count;
	size_t name_bytes; /* bytes of names that may still be read */
};

static uint8_t small_letter(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

/* --- the question --- */

static void write_name(struct writer *w, struct slice host, const uint8_t *mix)
{
	size_t at = 0;

	while (at < host.n && !w->failed) {
		struct slice rest = slice_of(host.p + at, host.n - at);
		ptrdiff_t dot = slice_find_byte(rest, '.');
		size_t n = dot < 0 ? rest.n : (size_t)dot;

		if (n == 0 || n > LABEL_MAX || at + n > DNS_TEXT_MAX - 1)
			w->failed = true;
		writer_u8(w, (uint8_t)n);
		for (size_t i = 0; i < n && !w->failed; i++, at++) {
			uint8_t c = small_letter((uint8_t)host.p[at]);
			bool large = mix && c >= 'a' && c <= 'z' && (mix[at / 8] >> at % 8 & 1);

			writer_u8(w, large ? (uint8_t)(c - ('a' - 'A')) : c);
		}
		at += dot >= 0;
	}
	writer_u8(w, 0);
}

static void write_opt(struct writer *w)
{
	writer_u8(w, 0);
	writer_u16(w, TYPE_OPT);
	writer_u16(w, DNS_LOOKUP_REPLY_MAX);
	writer_u32(w, 0);
	writer_u16(w, 0);
}

bool dns_lookup_write(struct dns_lookup *lookup, struct slice host, uint16_t type, uint16_t id,
        const uint8_t *mix)
{
	struct writer w = writer_over(lookup->bytes, sizeof(lookup->bytes));

	writer_u16(&w, id);
	writer_u16(&w, FLAG_RECURSION_DESIRED);
	writer_u16(&w, 1);
	writer_u32(&w, 0);
	writer_u16(&w, mix != NULL);
	write_name(&w, host, mix);
	writer_u16(&w, type);
	writer_u16(&w, CLASS_IN);
	lookup->question_n = w.len - HEADER_BYTES;
	if (mix)
		write_opt(&w);
	lookup->n = w.len;
	lookup->type = type;
	lookup->plain = !mix;
	lookup->reply_max = DNS_LOOKUP_REPLY_MAX;
	return !w.failed && host.n > 0;
}

/* --- the answer's records --- */

static void append_label(struct name *name, struct slice label)
{
	name->bytes[name->n++] = (uint8_t)label.n;
	for (size_t i = 0; i < label.n; i++)
		name->bytes[name->n++] = small_letter((uint8_t)label.p[i]);
}

static void read_name(struct reader *r, struct records *all, struct name *name)
{
	struct slice message = all->message;
	size_t before = message.n - r->left; /* a pointer has to lead before this */
	struct reader at = *r;
	bool jumped = false;

	name->n = 0;
	for (;;) {
		uint8_t n = reader_u8(&at);
		struct slice label;
		size_t to;

		if (all->name_bytes <= n)
			break;
		if ((n & 0xc0) == 0xc0) {
			all->name_bytes--;
			to = (size_t)(n & 0x3f) << 8 | reader_u8(&at);

			if (!jumped)
				*r = at;
			jumped = true;
			if (at.failed || to >= before)
				break;
			before = to;
			at = reader_over(message.p + to, message.n - to);
			continue;
		}
		if (n > LABEL_MAX || name->n + 1u + n > DNS_NAME_MAX)
			break;
		label = reader_bytes(&at, n);
		if (at.failed)
			break;
		all->name_bytes -= 1u + n;
		append_label(name, label);
		if (n > 0)
			continue;
		if (!jumped)
			*r = at;
		return;
	}
	r->failed = true;
}

static bool same_name(const struct name *a, const struct name *b)
{
	return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

static void take_ttl(struct dns_found *found, uint32_t ttl_s)
{
	if (ttl_s & TTL_SIGN) /* RFC 2181 section 8 */
		ttl_s = 0;
	if (ttl_s < found->ttl_s)
		found->ttl_s = ttl_s;
}

static bool take_address(struct dns_found *found, uint16_t type, struct slice data)
{
	size_t width = type == DNS_A ? 4 : 16;
	struct ip *ip;

	if (data.n != width)
		return false;
	if (found->count == DNS_LOOKUP_ADDRESSES)
		return true;
	ip = &found->addresses[found->count++];
	*ip = (struct ip){.family = type == DNS_A ? 4 : 6};
	memcpy(ip->bytes, data.p, width);
	return true;
}

/* Reads one record. Adds what belongs to the wanted name to found; *alias becomes the name it is an
 * alias for. */
static void read_record(struct reader *r, struct records *all, const struct name *wanted,
        uint16_t wanted_type, struct dns_found *found, struct name *alias)
{
	struct name owner;
	struct reader data_at;
	uint16_t type, class;
	uint32_t ttl_s;
	struct slice data;

	read_name(r, all, &owner);
	type = reader_u16(r);
	class = reader_u16(r);
	ttl_s = reader_u32(r);
	data_at = *r;
	data = reader_vector(r, 2, UINT16_MAX);
	if (r->failed || class != CLASS_IN || !same_name(&owner, wanted))
		return;
	if (type == wanted_type) {
		if (!take_address(found, type, data))
			r->failed = true;
		take_ttl(found, ttl_s);
	} else if (type == TYPE_CNAME && alias->n == 0) {
		reader_u16(&data_at);
		read_name(&data_at, all, alias);
		if (data_at.failed || data_at.left != r->left)
			r->failed = true;
		take_ttl(found, ttl_s);
	}
}

/* Scans the records for those of the name and of the names it is an alias for. False: the records
 * are malformed. */
static bool read_records(
        struct records *all, struct name *wanted, uint16_t type, struct dns_found *found)
{
	for (unsigned aliases = 0; aliases <= DNS_LOOKUP_ALIASES; aliases++) {
		struct reader r = all->first;
		struct name alias = {.n = 0};

		for (unsigned i = 0; i < all->count && !r.failed; i++)
			read_record(&r, all, wanted, type, found, &alias);
		if (r.failed)
			return false;
		if (found->count || alias.n == 0)
			return true;
		*wanted = alias;
	}
	return false;
}

/* --- the answer --- */

/* Servers that do not know EDNS refuse with a bare header (RFC 6891 section 7). */
static bool knows_no_edns(const struct dns_lookup *lookup, unsigned rcode)
{
	return !lookup->plain && (rcode == DNS_FORMERR || rcode == DNS_NOTIMP);
}

static enum dns_lookup_reply compare_question(
        const struct dns_lookup *lookup, struct reader *r, unsigned questions, unsigned rcode)
{
	struct slice asked = slice_of(lookup->bytes + HEADER_BYTES, lookup->question_n);
	struct slice said;

	if (questions == 0 && r->left == 0 && knows_no_edns(lookup, rcode))
		return DNS_LOOKUP_ASK_PLAIN;
	said = reader_bytes(r, asked.n);
	if (r->failed || questions != 1 || !slice_equals_ignoring_case(asked, said))
		return DNS_LOOKUP_STRANGE;
	if (!lookup->plain && (!slice_equals(asked, said) || knows_no_edns(lookup, rcode)))
		return DNS_LOOKUP_ASK_PLAIN;
	return slice_equals(asked, said) ? DNS_LOOKUP_ANSWER : DNS_LOOKUP_STRANGE;
}

enum dns_lookup_reply dns_lookup_read(
        const struct dns_lookup *lookup, const uint8_t *p, size_t n, struct dns_found *found)
{
	struct reader r = reader_over(p, n), question;
	uint16_t id = reader_u16(&r);
	uint16_t flags = reader_u16(&r);
	unsigned questions = reader_u16(&r);
	unsigned answers = reader_u16(&r);
	struct records all = {
	        .message = slice_of(p, n), .count = answers, .name_bytes = DNS_LOOKUP_NAME_BYTES};
	enum dns_lookup_reply reply;
	struct name wanted;

	reader_u32(&r); /* skips the counts of the other sections */
	*found = (struct dns_found){.rcode = flags & RCODE_MASK, .ttl_s = UINT32_MAX};
	if (r.failed || n > lookup->reply_max || id != (lookup->bytes[0] << 8 | lookup->bytes[1]) ||
	        (flags & (FLAG_RESPONSE | OPCODE_MASK)) != FLAG_RESPONSE)
		return DNS_LOOKUP_STRANGE;
	question = r;
	reply = compare_question(lookup, &r, questions, found->rcode);
	if (reply != DNS_LOOKUP_ANSWER)
		return reply;
	found->truncated = flags & FLAG_TRUNCATED;
	if (found->rcode != DNS_NOERROR || found->truncated)
		return DNS_LOOKUP_ANSWER;
	read_name(&question, &all, &wanted);
	all.first = r;
	if (read_records(&all, &wanted, lookup->type, found))
		return DNS_LOOKUP_ANSWER;
	found->count = 0;
	return DNS_LOOKUP_BROKEN;
}
