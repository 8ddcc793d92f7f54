/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal: theory of operation
 *
 * The format is fixed byte for byte, so a line is checked without a JSON parser: literals must
 * stand at their places. The only search is for the start of the attestation. A string from the
 * sandbox cannot mislead it: a quotation mark inside a JSON string always follows a backslash, so
 * `,"attestation_list":` does not occur inside one.
 */
#include <errno.h>

#include "vethguard/wire/seal.h"

#define ATTESTATION ",\"attestation_list\":[{\"chain_uid\":\""
#define PREVIOUS "\",\"prev_event\":{\"fingerprint\":{\"algorithm_id\":3,\"value\":\""
#define PREVIOUS_TYPE "\"},\"type_uid\":"
#define PREVIOUS_UID ",\"uid\":\""
#define PREVIOUS_CLOSE "\"}"
#define FINGERPRINT                                                                              \
	",\"fingerprint\":{\"algorithm\":\"SHA-256\",\"algorithm_id\":3,\"serialization_id\":1," \
	"\"value\":\""
#define FINGERPRINT_CLOSE "\"}"
#define TAIL_BYTES                                                                    \
	(sizeof(FINGERPRINT) - 1 + SEAL_HASH_DIGITS + sizeof(FINGERPRINT_CLOSE) - 1 + \
	        sizeof(SEAL_CLOSE) - 1)
#define NUMBER_DIGITS_MAX 19

/* The rest to read. After the first mismatch failed stays set. */
struct scan {
	struct slice left;
	bool failed;
};

static void scan_literal(struct scan *s, struct slice literal)
{
	if (s->failed || !slice_starts_with(s->left, literal)) {
		s->failed = true;
		return;
	}
	s->left = slice_of(s->left.p + literal.n, s->left.n - literal.n);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static void scan_hex(struct scan *s, char *out, size_t digits)
{
	out[0] = '\0';
	if (s->failed || digits > s->left.n) {
		s->failed = true;
		return;
	}
	for (size_t i = 0; i < digits; i++)
		s->failed = s->failed || !is_hex(s->left.p[i]);
	if (s->failed)
		return;
	memcpy(out, s->left.p, digits);
	out[digits] = '\0';
	s->left = slice_of(s->left.p + digits, s->left.n - digits);
}

static uint64_t scan_number(struct scan *s)
{
	uint64_t v = 0;
	size_t n = 0;

	while (n < s->left.n && s->left.p[n] >= '0' && s->left.p[n] <= '9')
		n++;
	if (s->failed || n > NUMBER_DIGITS_MAX ||
	        !slice_to_u64(slice_of(s->left.p, n), UINT64_MAX, &v)) {
		s->failed = true;
		return 0;
	}
	s->left = slice_of(s->left.p + n, s->left.n - n);
	return v;
}

static void scan_start(struct scan *s, struct seal_link *own)
{
	scan_literal(s, SLICE("{\"time\":"));
	scan_number(s);
	scan_literal(s, SLICE(",\"type_uid\":"));
	own->type_uid = scan_number(s);
	scan_literal(s, SLICE(",\"metadata\":{\"uid\":\""));
	scan_hex(s, own->uid, SEAL_UID_DIGITS);
	scan_literal(s, SLICE("\""));
}

static void scan_attestation(struct scan *s, struct seal_link *previous)
{
	scan_literal(s, SLICE(ATTESTATION));
	scan_hex(s, previous->chain_uid, SEAL_CHAIN_DIGITS);
	if (!s->failed && slice_equals(s->left, SLICE("\"")))
		return;
	previous->has_previous = true;
	scan_literal(s, SLICE(PREVIOUS));
	scan_hex(s, previous->hash, SEAL_HASH_DIGITS);
	scan_literal(s, SLICE(PREVIOUS_TYPE));
	previous->type_uid = scan_number(s);
	scan_literal(s, SLICE(PREVIOUS_UID));
	scan_hex(s, previous->uid, SEAL_UID_DIGITS);
	scan_literal(s, SLICE(PREVIOUS_CLOSE));
	s->failed = s->failed || s->left.n != 0;
}

static void scan_tail(struct scan *s, struct seal_link *own)
{
	scan_literal(s, SLICE(FINGERPRINT));
	scan_hex(s, own->hash, SEAL_HASH_DIGITS);
	scan_literal(s, SLICE(FINGERPRINT_CLOSE SEAL_CLOSE));
}

int seal_parse(struct slice line, struct seal *out)
{
	struct scan start, middle, tail;
	const char *attestation;

	memset(out, 0, sizeof(*out));
	if (line.n < TAIL_BYTES)
		return -EBADMSG;
	out->covered = slice_of(line.p, line.n - TAIL_BYTES);
	attestation = memmem(out->covered.p, out->covered.n, ATTESTATION, sizeof(ATTESTATION) - 1);
	if (!attestation)
		return -EBADMSG;
	start = (struct scan){slice_of(line.p, (size_t)(attestation - line.p)), false};
	middle = (struct scan){
	        slice_of(attestation, out->covered.n - (size_t)(attestation - line.p)), false};
	tail = (struct scan){slice_of(line.p + out->covered.n, TAIL_BYTES), false};
	scan_start(&start, &out->own);
	scan_attestation(&middle, &out->previous);
	scan_tail(&tail, &out->own);
	out->own.has_previous = true;
	memcpy(out->own.chain_uid, out->previous.chain_uid, sizeof(out->own.chain_uid));
	return start.failed || middle.failed || tail.failed ? -EBADMSG : 0;
}

/* Copies into reserved memory; the sizes below are the sums of what is copied. */
static uint8_t *put(uint8_t *out, const char *p, size_t n)
{
	memcpy(out, p, n);
	return out + n;
}

static uint8_t *put_number(uint8_t *out, uint64_t v)
{
	char digits[NUMBER_DIGITS_MAX + 1];
	size_t n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return put(out, digits + n, sizeof(digits) - n);
}

#define PUT_LITERAL(out, literal) put(out, literal, sizeof(literal) - 1)
#define LINK_BYTES_MAX                                                                   \
	(sizeof(ATTESTATION) + SEAL_CHAIN_DIGITS + sizeof(PREVIOUS) + SEAL_HASH_DIGITS + \
	        sizeof(PREVIOUS_TYPE) + NUMBER_DIGITS_MAX + 1 + sizeof(PREVIOUS_UID) +   \
	        SEAL_UID_DIGITS + sizeof(PREVIOUS_CLOSE))

int seal_append_link(struct buf *out, const struct seal_link *previous)
{
	uint8_t *start = buf_reserve(out, LINK_BYTES_MAX), *p = start;

	if (!start)
		return -ENOBUFS;
	p = PUT_LITERAL(p, ATTESTATION);
	p = put(p, previous->chain_uid, SEAL_CHAIN_DIGITS);
	if (previous->has_previous) {
		p = PUT_LITERAL(p, PREVIOUS);
		p = put(p, previous->hash, SEAL_HASH_DIGITS);
		p = PUT_LITERAL(p, PREVIOUS_TYPE);
		p = put_number(p, previous->type_uid);
		p = PUT_LITERAL(p, PREVIOUS_UID);
		p = put(p, previous->uid, SEAL_UID_DIGITS);
		p = PUT_LITERAL(p, PREVIOUS_CLOSE);
	} else {
		p = PUT_LITERAL(p, "\"");
	}
	buf_commit(out, (size_t)(p - start));
	return 0;
}

int seal_append_hash(struct buf *out, const char hash[SEAL_HASH_DIGITS])
{
	uint8_t *start = buf_reserve(out, TAIL_BYTES + 1), *p = start;

	if (!start)
		return -ENOBUFS;
	p = PUT_LITERAL(p, FINGERPRINT);
	p = put(p, hash, SEAL_HASH_DIGITS);
	p = PUT_LITERAL(p, FINGERPRINT_CLOSE SEAL_CLOSE "\n");
	buf_commit(out, (size_t)(p - start));
	return 0;
}
