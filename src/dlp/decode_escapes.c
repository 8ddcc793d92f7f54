/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes escapes that stand for one byte (percent-encoding, JSON, programming languages), and
 * takes invisible characters out. */
#include "dlp/decode.h"

#include <string.h>

#include "vethguard/base/slice.h"
#include "vethguard/base/vector.h"

/* --- places with escapes or compressed data --- */

static struct vector_groups special;

static void add_pairs(unsigned group, uint8_t first, const char *second, size_t n)
{
	vector_add(&special, group, 0, first);
	for (size_t i = 0; i < n; i++)
		vector_add(&special, group, 1, (uint8_t)second[i]);
	vector_add_any(&special, group, 2);
}

static void prepare_special(void)
{
	add_pairs(0, '%', "0123456789abcdefABCDEF", 22);
	add_pairs(1, '\\', "ux/\\", 4);
	add_pairs(2, 0xe2, "\x80\x81", 2);
	add_pairs(3, 0xef, "\xbb", 1);
	add_pairs(4, 0xc2, "\xad", 1);
	add_pairs(5, 0x1f, "\x8b", 1);
	add_pairs(6, 0x78, "\x01\x5e\x9c\xda", 4);
}

/* --- percent-encoding --- */

static bool is_hex(uint8_t c)
{
	return slice_hex_digit((char)c) >= 0;
}

size_t decode_find_percent(const uint8_t *text, size_t n, size_t at)
{
	while (n - at >= 3) {
		const uint8_t *next = memchr(text + at, '%', n - at - 2);

		if (!next)
			break;
		if (is_hex(next[1]) && is_hex(next[2]))
			return (size_t)(next - text);
		at = (size_t)(next - text) + 1;
	}
	return n;
}

size_t decode_percent(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t at = 0, length = 0;

	while (at < n) {
		size_t next = decode_find_percent(text, n, at);

		memcpy(out + length, text + at, next - at);
		length += next - at;
		at = next;
		if (at == n)
			break;
		length += decode_hex(text + at + 1, 2, out + length);
		at += 3;
	}
	return length;
}

size_t decode_form(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t at = 0, length = 0;

	while (at < n) {
		const uint8_t *plus = memchr(text + at, '+', n - at);
		size_t next = plus ? (size_t)(plus - text) : n;

		length += decode_percent(text + at, next - at, out + length);
		if (plus)
			out[length++] = ' ';
		at = next + 1;
	}
	return length;
}

/* --- escapes with a backslash --- */

/* Reads n hex digits. Returns their value, or -1 if there are fewer. */
static int read_hex(const uint8_t *p, size_t left, size_t n)
{
	int value = 0;

	if (left < n)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int digit = slice_hex_digit((char)p[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* Returns the byte for which the escape at p, after a backslash, stands; *used: the escape's bytes.
 * Returns -1 if there is no such escape. */
static int read_escape(const uint8_t *p, size_t left, size_t *used)
{
	int value = -1;

	*used = 1;
	if (left == 0)
		return -1;
	if (*p == '/' || *p == '\\')
		return *p;
	if (*p == 'u') {
		value = read_hex(p + 1, left - 1, 4);
		*used = 5;
	} else if (*p == 'x') {
		value = read_hex(p + 1, left - 1, 2);
		*used = 3;
	}
	return value < 0x100 ? value : -1;
}

size_t decode_find_escape(const uint8_t *text, size_t n, size_t at)
{
	size_t used;

	while (at < n) {
		const uint8_t *next = memchr(text + at, '\\', n - at);

		if (!next)
			break;
		at = (size_t)(next - text);
		if (read_escape(next + 1, n - at - 1, &used) >= 0)
			return at;
		at++;
	}
	return n;
}

/* Reads short escapes such as \n too. They alone are no reason to decode: every text has them. */
static int read_any_escape(const uint8_t *p, size_t left, size_t *used)
{
	static const char names[] = "bfnrt\"", meanings[] = "\b\f\n\r\t\"";
	const char *name = left ? memchr(names, *p, sizeof(names) - 1) : NULL;

	*used = 1;
	return name ? meanings[name - names] : read_escape(p, left, used);
}

size_t decode_escapes(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t at = 0, length = 0, used;

	while (at < n) {
		const uint8_t *next = memchr(text + at, '\\', n - at);
		size_t plain = next ? (size_t)(next - text) - at : n - at;
		int c;

		memcpy(out + length, text + at, plain);
		length += plain;
		at += plain;
		if (at == n)
			break;
		c = read_any_escape(text + at + 1, n - at - 1, &used);
		out[length++] = (uint8_t)(c < 0 ? '\\' : c);
		at += c < 0 ? 1 : 1 + used;
	}
	return length;
}

/* --- invisible characters --- */

/* Invisible characters, as UTF-8 and as escapes of JSON. */
static const char *const invisible[] = {"\xe2\x80\x8b", "\xe2\x80\x8c", "\xe2\x80\x8d",
        "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x81\xa0", "\xef\xbb\xbf", "\xc2\xad", "\\u200b",
        "\\u200B", "\\u200c", "\\u200C", "\\u200d", "\\u200D", "\\u2060", "\\ufeff", "\\uFEFF",
        "\\u00ad", "\\u00AD"};

/* Returns how many bytes the invisible character at p has; 0: there is none. */
static size_t invisible_at(const uint8_t *p, size_t left)
{
	if (*p == '\\' ? left < 6 || p[1] != 'u' : left < 2 || p[1] < 0x80)
		return 0;
	for (size_t i = 0; i < sizeof(invisible) / sizeof(*invisible); i++) {
		const char *sign = invisible[i];

		if (*p != (uint8_t)sign[0] || p[1] != (uint8_t)sign[1])
			continue;
		if (left >= strlen(sign) && memcmp(p, sign, strlen(sign)) == 0)
			return strlen(sign);
	}
	return 0;
}

/* Returns the place of the first invisible character from at on, before end, that begins with this
 * byte; end: there is none. */
static size_t find_invisible(const uint8_t *text, size_t n, size_t at, size_t end, uint8_t first)
{
	while (at < end) {
		const uint8_t *next = memchr(text + at, first, end - at);

		if (!next)
			break;
		at = (size_t)(next - text);
		if (invisible_at(next, n - at))
			return at;
		at++;
	}
	return end;
}

size_t decode_find_invisible(const uint8_t *text, size_t n, size_t at)
{
	static const uint8_t firsts[] = {0xe2, 0xc2, 0xef, '\\'};
	size_t end = n;

	for (size_t i = 0; i < sizeof(firsts); i++)
		end = find_invisible(text, n, at, end, firsts[i]);
	return end;
}

size_t decode_invisible(const uint8_t *text, size_t n, uint8_t *out)
{
	size_t at = 0, length = 0;

	while (at < n) {
		size_t next = decode_find_invisible(text, n, at);

		memcpy(out + length, text + at, next - at);
		length += next - at;
		at = next;
		if (at < n)
			at += invisible_at(text + at, n - at);
	}
	return length;
}

/* --- all kinds at once --- */

/* Returns the kinds of the place at text[at]. 0: it is none, and vectors only took it for one. */
static unsigned kind_at(const uint8_t *text, size_t n, size_t at)
{
	const uint8_t *p = text + at;
	size_t left = n - at, used;

	if (left < 2)
		return 0;
	if (*p == '%')
		return left > 2 && is_hex(p[1]) && is_hex(p[2]) ? DECODE_PERCENT : 0;
	if (*p == '\\')
		return (read_escape(p + 1, left - 1, &used) >= 0 ? DECODE_ESCAPE : 0u) |
		       (invisible_at(p, left) ? DECODE_INVISIBLE : 0u);
	if (*p == 0x1f)
		return p[1] == 0x8b ? DECODE_GZIP : 0;
	if (*p == 0x78)
		return p[1] == 0x01 || p[1] == 0x5e || p[1] == 0x9c || p[1] == 0xda ? DECODE_ZLIB
		                                                                    : 0;
	return *p >= 0x80 && invisible_at(p, left) ? DECODE_INVISIBLE : 0;
}

/* Vectors go from one place to the next. Without them each kind may be there. */
unsigned decode_kinds(const uint8_t *text, size_t n)
{
	unsigned kinds = 0;
	size_t at = 0;

	if (n < DECODE_RUN_MIN || !vector_works())
		return DECODE_ALL_KINDS;
	if (!special.low[1][0])
		prepare_special();
	while (kinds != DECODE_ALL_KINDS && vector_find(&special, text, n, &at))
		kinds |= kind_at(text, n, at++);
	for (; kinds != DECODE_ALL_KINDS && at < n; at++)
		kinds |= kind_at(text, n, at);
	return kinds;
}
