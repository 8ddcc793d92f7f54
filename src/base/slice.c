/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices are borrowed bytes that may come from an attacker, so nothing here depends on a NUL, on
 * the locale, or on a byte being text. slice_escape() is the only gate between such bytes and a
 * terminal or a log line.
 */
#include "vethguard/base/slice.h"

#define ESCAPE_BYTES 4 /* \xNN */

static unsigned char ascii_lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

bool slice_equals_ignoring_case(struct slice a, struct slice b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (ascii_lower((unsigned char)a.p[i]) != ascii_lower((unsigned char)b.p[i]))
			return false;
	return true;
}

bool slice_starts_with(struct slice s, struct slice prefix)
{
	return s.n >= prefix.n && slice_equals(slice_of(s.p, prefix.n), prefix);
}

bool slice_ends_with(struct slice s, struct slice suffix)
{
	if (s.n < suffix.n)
		return false;
	return suffix.n == 0 || slice_equals(slice_of(s.p + (s.n - suffix.n), suffix.n), suffix);
}

ptrdiff_t slice_find_byte(struct slice s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? at - s.p : -1;
}

static bool is_ows(char c)
{
	return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice s)
{
	while (s.n && is_ows(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_ows(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool slice_to_u64(struct slice s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	if (v > max)
		return false;
	*out = v;
	return true;
}

/* Writes the printable form of one byte and returns its length. */
static size_t escape_byte(unsigned char c, bool backslash, char unit[ESCAPE_BYTES])
{
	static const char hex[] = "0123456789abcdef";

	if (c >= 0x20 && c < 0x7f && (c != '\\' || !backslash)) {
		unit[0] = (char)c;
		return 1;
	}
	unit[0] = '\\';
	unit[1] = 'x';
	unit[2] = hex[c >> 4];
	unit[3] = hex[c & 15];
	return ESCAPE_BYTES;
}

static char *escape(struct slice s, bool backslash, char *out, size_t out_size)
{
	static const char dots[] = "...";
	size_t room = out_size - 1; /* without the NUL */
	size_t len = 0;
	size_t cut = 0; /* the last border between two units that leaves room for the dots */

	for (size_t i = 0; i < s.n; i++) {
		char unit[ESCAPE_BYTES];
		size_t n = escape_byte((unsigned char)s.p[i], backslash, unit);

		if (n > room - len) {
			size_t dots_n =
			        room - cut < sizeof(dots) - 1 ? room - cut : sizeof(dots) - 1;

			memcpy(out + cut, dots, dots_n);
			len = cut + dots_n;
			break;
		}
		memcpy(out + len, unit, n);
		len += n;
		if (room - len >= sizeof(dots) - 1)
			cut = len;
	}
	out[len] = '\0';
	return out;
}

char *slice_escape(struct slice s, char *out, size_t out_size)
{
	return escape(s, true, out, out_size);
}

char *slice_escape_controls(struct slice s, char *out, size_t out_size)
{
	return escape(s, false, out, out_size);
}

/* Bit b of word w: byte 32 * w + b is allowed in a token: letters, digits and !#$%&'*+-.^_`|~. */
static const uint32_t token_bytes[8] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};

size_t slice_token_length(struct slice s)
{
	size_t n = 0;

	while (n < s.n) {
		unsigned char c = (unsigned char)s.p[n];

		if (!(token_bytes[c >> 5] >> (c & 31) & 1))
			break;
		n++;
	}
	return n;
}
