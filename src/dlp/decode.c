/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 and hex digits.
 *
 * Theory of operation: runs of base64 are found by leaps. A run has DECODE_RUN_MIN characters at
 * least, so looking at every DECODE_RUN_MINth byte, and backwards from there to the first byte that
 * does not belong, passes over ordinary text at a fraction of a byte's cost.
 */
#include "dlp/decode.h"

#include <endian.h>
#include <string.h>

#include "vethguard/base/slice.h"
#include "vethguard/base/vector.h"

#define NO_DIGIT 64

/* The value of each character in base64, of either alphabet; NO_DIGIT for all others. */
static uint8_t digits[256];
/* The value of each hex digit; 0xff for all others. */
static uint8_t nibbles[256];
/* The characters of base64, for vectors. */
static struct vector_groups alphabet;
static bool by_vectors;
_Static_assert(DECODE_RUN_MIN >= 2 * VECTOR_RUN - 1, "vectors find each run");

/* A group for each high half of a byte tells members exactly. */
static void add_to_alphabet(uint8_t c)
{
	vector_add(&alphabet, c >> 4, 0, c);
}

static void prepare(void)
{
	static const char upper[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	if (digits[0] == NO_DIGIT)
		return;
	memset(digits, NO_DIGIT, sizeof(digits));
	for (size_t i = 0; upper[i]; i++)
		digits[(uint8_t)upper[i]] = (uint8_t)i;
	digits['+'] = digits['-'] = 62;
	digits['/'] = digits['_'] = 63;
	for (unsigned i = 0; i < 256; i++)
		nibbles[i] = (uint8_t)slice_hex_digit((char)i);
	for (unsigned i = 0; i < 256; i++)
		if (digits[i] != NO_DIGIT)
			add_to_alphabet((uint8_t)i);
	by_vectors = vector_finds_runs();
}

static bool is_digit(uint8_t c)
{
	return digits[c] != NO_DIGIT;
}

/* The bytes of a line end at text[at], as it is or as an escape; 0: there is none. */
static size_t line_end(const uint8_t *text, size_t n, size_t at)
{
	const uint8_t *p = text + at;
	size_t left = n - at;

	if (left == 0)
		return 0;
	if (*p == '\n')
		return 1;
	if (*p == '\r')
		return left > 1 && p[1] == '\n' ? 2 : 0;
	if (*p != '\\' || left < 2)
		return 0;
	if (p[1] == 'r')
		return left > 3 && p[2] == '\\' && p[3] == 'n' ? 4 : 0;
	return p[1] == 'n' ? 2 : 0;
}

/* Returns the end of a run that reaches at least to text[at], with the lines that continue it. */
static size_t run_end(const uint8_t *text, size_t n, size_t at)
{
	size_t end = at, gap;

	for (;;) {
		while (end < n && is_digit(text[end]))
			end++;
		gap = end < n ? line_end(text, n, end) : 0;
		if (!gap || end + gap >= n || !is_digit(text[end + gap]))
			return end;
		end += gap;
	}
}

/* The next place from at on where a run of DECODE_RUN_MIN characters may be; n: there is none. */
static size_t next_place(const uint8_t *text, size_t n, size_t at)
{
	while (n - at >= DECODE_RUN_MIN) {
		size_t back = DECODE_RUN_MIN;

		while (back > 0 && is_digit(text[at + back - 1]))
			back--;
		if (back == 0)
			return at;
		at += back;
	}
	return n;
}

/* The same with vectors: goes to where a run is, and back to its beginning, but not before at.
 * *end: up to where the run's characters were looked at. */
static size_t next_place_by_vectors(const uint8_t *text, size_t n, size_t at, size_t *end)
{
	size_t from = at;

	while (vector_find_run(&alphabet, text, n, &at)) {
		size_t start = at;

		*end = at + VECTOR_RUN;
		while (start > from && is_digit(text[start - 1]))
			start--;
		while (*end < n && is_digit(text[*end]))
			++*end;
		if (*end - start >= DECODE_RUN_MIN)
			return start;
		from = at = *end;
	}
	while (at > from && is_digit(text[at - 1]))
		at--;
	return *end = next_place(text, n, at);
}

bool decode_next_run(const uint8_t *text, size_t n, size_t at, struct decode_run *out)
{
	size_t end;

	prepare();
	at = by_vectors ? next_place_by_vectors(text, n, at, &end)
	                : (end = next_place(text, n, at));
	if (at >= n)
		return false;
	out->at = at;
	out->n = run_end(text, n, end) - at;
	return true;
}

/* By leaps, as next_place(). */
bool decode_next_hex(const uint8_t *text, size_t n, size_t at, struct decode_run *out)
{
	while (n - at >= DECODE_HEX_MIN) {
		size_t back = DECODE_HEX_MIN, end;

		while (back > 0 && nibbles[text[at + back - 1]] < 16)
			back--;
		if (back > 0) {
			at += back;
			continue;
		}
		for (end = at + DECODE_HEX_MIN; end < n && nibbles[text[end]] < 16;)
			end++;
		*out = (struct decode_run){at, end - at};
		return true;
	}
	return false;
}

size_t decode_base64(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t at = 0, length = 0;
	uint32_t bits = 0;
	unsigned count = 0;

	prepare();
	while (at < n) {
		/* Four characters at a time, as long as all are of the alphabet. */
		while (count == 0 && n - at >= 4) {
			uint32_t a = digits[text[at]], b = digits[text[at + 1]],
			         c = digits[text[at + 2]], d = digits[text[at + 3]];

			if ((a | b | c | d) & NO_DIGIT)
				break;
			bits = a << 18 | b << 12 | c << 6 | d;
			out[length] = (uint8_t)(bits >> 16);
			out[length + 1] = (uint8_t)(bits >> 8);
			out[length + 2] = (uint8_t)bits;
			length += 3;
			at += 4;
		}
		if (at == n)
			break;
		if (line_end(text, n, at)) {
			at += line_end(text, n, at);
			continue;
		}
		if (is_digit(text[at])) {
			bits = bits << 6 | digits[text[at]];
			count++;
		}
		at++;
		if (count > 1)
			out[length++] = (uint8_t)(bits >> (6 * count - 8 * (count - 1)));
		count %= 4;
	}
	if (count) /* what is left of one, two or three characters: six, four or two bits */
		out[length] = (uint8_t)(bits << (2 + 2 * (count - 1)));
	return 8 * length + (count ? 8 - 2 * count : 0);
}

static uint64_t load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return be64toh(word);
}

size_t decode_base64_next(uint8_t *decoded, size_t bits)
{
	size_t n = (bits + 7) / 8, at = 0;

	if (bits < 6)
		return 0;
	for (; n - at > sizeof(uint64_t); at += sizeof(uint64_t)) {
		uint64_t word = load(decoded + at) << 6 | decoded[at + sizeof(word)] >> 2;

		word = htobe64(word);
		memcpy(decoded + at, &word, sizeof(word));
	}
	for (; at < n; at++)
		decoded[at] = (uint8_t)(decoded[at] << 6 | (at + 1 < n ? decoded[at + 1] >> 2 : 0));
	return bits - 6;
}

size_t decode_hex(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t length = 0;

	prepare();
	for (size_t at = 0; at + 1 < n; at += 2)
		out[length++] = (uint8_t)(nibbles[text[at]] << 4 | (nibbles[text[at + 1]] & 15));
	return length;
}

#define PAIRS_MIN 14

static bool is_pair(const uint8_t *p)
{
	return nibbles[p[0]] < 16 && nibbles[p[1]] < 16;
}

/* Decodes the pairs that begin at text. */
static size_t decode_pairs(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t length = 0;

	for (size_t at = 0; at + 1 < n; at += 3) {
		if (!is_pair(text + at) || (at >= 3 && text[at - 1] != text[2]))
			break;
		length += decode_hex(text + at, 2, out + length);
	}
	return length >= PAIRS_MIN ? length : 0;
}

#define PAIRS_N (3 * PAIRS_MIN - 1) /* bytes of the fewest pairs */
#define PROBE_N 10                  /* bytes in which one sign stands three times, and one more */
#define PROBE_STEP (PAIRS_N - PROBE_N)

static uint32_t load32(const uint8_t *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return le32toh(word);
}

/* True if signs stand in these PROBE_N bytes as they do between pairs: one of the first three bytes
 * is no digit, and stands three and six bytes later, too. */
static bool may_be_pairs(const uint8_t *p)
{
	uint32_t first = load32(p), differ = (first ^ load32(p + 3)) | (first ^ load32(p + 6));
	uint32_t same =
	        (differ - 0x010101) & ~differ & 0x808080; /* a byte of the first three is 0 */

	for (size_t i = 0; same && i < 3; i++)
		if (nibbles[p[i]] > 15 && p[i] == p[i + 3] && p[i] == p[i + 6])
			return true;
	return false;
}

/* Looks at places that are PROBE_STEP apart: one of them is in the fewest pairs. */
static size_t next_pairs(const uint8_t *text, size_t n, size_t at)
{
	while (at + PROBE_STEP + PROBE_N <= n && !may_be_pairs(text + at + PROBE_STEP))
		at += PROBE_STEP;
	return at;
}

size_t decode_next_pairs(const uint8_t *text, size_t n, size_t *from, uint8_t *out)
{
	size_t leap = *from;

	prepare();
	for (size_t at = *from; at + 3 * PAIRS_MIN <= n + 1; at++) {
		if (at == leap) {
			at = next_pairs(text, n, at);
			leap = at + PROBE_STEP;
			if (at + 3 * PAIRS_MIN > n + 1)
				break;
		}
		if (nibbles[text[at + 2]] > 15 && text[at + 2] == text[at + 5] &&
		        is_pair(text + at) && is_pair(text + at + 3)) {
			size_t length = decode_pairs(text + at, n - at, out);

			*from = at + 3 * length;
			if (length)
				return length;
		}
	}
	return 0;
}
