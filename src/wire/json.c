/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text goes straight into the caller's buffer; the only state is whether the next value needs a
 * comma before it. After the first append that fails, the writer stays failed. Strings come from
 * sandboxes, so they may not be UTF-8 at all (RFC 3629), and valid text may still move a terminal's
 * cursor. So DEL and the C1 controls are escaped like the C0 ones, which changes the text but not
 * its meaning.
 */
#include <inttypes.h>
#include <stdio.h>

#include "vethguard/wire/json.h"

static const struct slice replacement = {"\xef\xbf\xbd", 3}; /* U+FFFD */

/* Copies a piece without a call if there is room: a list of a thousand sandboxes has a hundred
 * thousand pieces. */
static inline void put(struct json *j, const char *p, size_t n)
{
	struct buf *b = j->out;

	if (!j->failed && b->mem && n <= b->cap - b->start - b->len && n <= b->max - b->len) {
		memcpy(b->mem + b->start + b->len, p, n);
		b->len += n;
	} else if (!j->failed && buf_append(b, p, n) < 0) {
		j->failed = true;
	}
}

static void put_byte(struct json *j, char c)
{
	put(j, &c, 1);
}

/* Writes what precedes a value: comma, key, colon. */
static void lead(struct json *j, const char *key)
{
	if (j->comma)
		put_byte(j, ',');
	j->comma = true;
	if (!key)
		return;
	put_byte(j, '"');
	put(j, key, strlen(key));
	put(j, "\":", 2);
}

void json_begin(struct json *j, struct buf *out)
{
	*j = (struct json){.out = out};
}

static void open_with(struct json *j, const char *key, char bracket)
{
	lead(j, key);
	put_byte(j, bracket);
	j->comma = false;
}

static void close_with(struct json *j, char bracket)
{
	put_byte(j, bracket);
	j->comma = true;
}

void json_put_object(struct json *j, const char *key)
{
	open_with(j, key, '{');
}

void json_put_array(struct json *j, const char *key)
{
	open_with(j, key, '[');
}

void json_put_end_object(struct json *j)
{
	close_with(j, '}');
}

void json_put_end_array(struct json *j)
{
	close_with(j, ']');
}

/* Without printf, since a list of a thousand sandboxes has six thousand numbers. */
static void put_number(struct json *j, bool negative, uint64_t v)
{
	char text[24], *at = text + sizeof(text);

	do {
		*--at = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	if (negative)
		*--at = '-';
	put(j, at, (size_t)(text + sizeof(text) - at));
}

void json_put_int(struct json *j, const char *key, int64_t v)
{
	lead(j, key);
	put_number(j, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_put_uint(struct json *j, const char *key, uint64_t v)
{
	lead(j, key);
	put_number(j, false, v);
}

void json_put_bool(struct json *j, const char *key, bool v)
{
	lead(j, key);
	put(j, v ? "true" : "false", v ? 4 : 5);
}

void json_put_null(struct json *j, const char *key)
{
	lead(j, key);
	put(j, "null", 4);
}

static bool is_continuation(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes of the character at the front of s, or 0 if there is no valid one. Overlong forms,
 * surrogates and code points beyond U+10FFFF are invalid (RFC 3629 section 4). */
static size_t character_bytes(struct slice s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	uint8_t low = 0x80, high = 0xbf; /* bounds of the second byte */
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (s.n < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (!is_continuation(p[i]))
			return 0;
	return n;
}

static void put_escape(struct json *j, uint32_t c)
{
	char text[12];

	switch (c) {
	case '"':
		put(j, "\\\"", 2);
		return;
	case '\\':
		put(j, "\\\\", 2);
		return;
	case '\n':
		put(j, "\\n", 2);
		return;
	case '\r':
		put(j, "\\r", 2);
		return;
	case '\t':
		put(j, "\\t", 2);
		return;
	default:
		put(j, text, (size_t)snprintf(text, sizeof(text), "\\u%04" PRIx32, c));
	}
}

/* The code point of a character of two or three bytes. */
static uint32_t code_point(const uint8_t *p, size_t n)
{
	return n == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
	              : (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

/* Characters that are invisible but change how others are shown: C1 controls, line and paragraph
 * separators, and the format characters that change the direction of writing (UAX #9). */
static bool is_unseen(uint32_t c)
{
	return (c >= 0x80 && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Writes the character or stray byte at the front of s and returns its length. */
static size_t put_character(struct json *j, struct slice s)
{
	uint8_t c = (uint8_t)s.p[0];
	size_t n = character_bytes(s);

	if (n == 0) {
		put(j, replacement.p, replacement.n);
		return 1;
	}
	if ((n == 2 || n == 3) && is_unseen(code_point((const uint8_t *)s.p, n)))
		put_escape(j, code_point((const uint8_t *)s.p, n));
	else if (n > 1)
		put(j, s.p, n);
	else
		put_escape(j, c);
	return n;
}

static bool is_plain(char byte)
{
	uint8_t c = (uint8_t)byte;

	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* s without the bytes beyond max. A character that max would split is left out completely. */
static struct slice cut(struct slice s, size_t max)
{
	size_t n = max;

	for (size_t back = 1; back <= 3 && back <= max; back++) {
		if (is_continuation((uint8_t)s.p[max - back]))
			continue;
		if (character_bytes(slice_of(s.p + max - back, s.n - max + back)) > back)
			n = max - back;
		break;
	}
	return slice_of(s.p, n);
}

void json_put_string(struct json *j, const char *key, struct slice v, size_t max)
{
	bool whole = max == 0 || v.n <= max;
	struct slice rest = whole ? v : cut(v, max);

	lead(j, key);
	put_byte(j, '"');
	while (rest.n && !j->failed) {
		size_t run = 0;

		while (run < rest.n && is_plain(rest.p[run]))
			run++;
		put(j, rest.p, run);
		if (run < rest.n)
			run += put_character(j, slice_of(rest.p + run, rest.n - run));
		rest = slice_of(rest.p + run, rest.n - run);
	}
	if (!whole)
		put(j, "...", 3);
	put_byte(j, '"');
}

void json_put_literal(struct json *j, const char *key, const char *v)
{
	json_put_string(j, key, slice_from_string(v), 0);
}
