/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string without escapes stays where it is in the text. One with escapes is decoded into a second
 * text, at the same offset, so that both places are known; decoded text is never longer.
 */
#include "policy/json/json_cursor.h"

#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/utf8.h"

bool json_cursor_refuse(struct json_cursor *c, const char *fault)
{
	if (c->rc == 0) {
		c->rc = -EBADMSG;
		c->tree->fault = fault;
	}
	return false;
}

bool json_cursor_break(struct json_cursor *c)
{
	return json_cursor_refuse(c, "the request's body is not JSON");
}

struct json_value *json_cursor_add(struct json_cursor *c, enum json_kind kind)
{
	struct json_tree *tree = c->tree;
	struct json_value *value;

	if (tree->count == JSON_VALUES_MAX) {
		json_cursor_refuse(c, "the request's body has more than 65,536 JSON values");
		return NULL;
	}
	if (tree->count == tree->room) {
		uint32_t room = tree->room ? tree->room * 2 : 64;
		struct json_value *values = realloc(tree->values, room * sizeof(*values));

		if (!values) {
			c->rc = -ENOMEM;
			return NULL;
		}
		tree->values = values;
		tree->room = room;
	}
	value = &tree->values[tree->count++];
	*value = (struct json_value){.kind = (uint8_t)kind, .next = tree->count};
	return value;
}

/* --- strings --- */

/* Reads four hex digits at p, or returns -1. */
static int32_t read_unit(const struct json_cursor *c, const char *p)
{
	int32_t unit = 0;

	if (c->end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = slice_hex_digit(p[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static size_t put_utf8(char *out, uint32_t point)
{
	size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; point >>= 6)
		out[i] = (char)(0x80 | (point & 0x3f));
	out[0] = (char)(n == 1 ? point : (0xf0u << (4 - n) & 0xff) | point);
	return n;
}

/* Decodes "\uXXXX" whose digits are at c->p, and the second half of a pair. */
static bool decode_unicode(struct json_cursor *c)
{
	int32_t unit = read_unit(c, c->p), low;
	uint32_t point = (uint32_t)unit;

	if (unit < 0)
		return json_cursor_break(c);
	c->p += 4;
	if (unit == 0)
		return json_cursor_refuse(c, "a string in the request's body has an escaped NUL");
	if (unit >= 0xd800 && unit < 0xe000) {
		low = c->end - c->p >= 2 && c->p[0] == '\\' && c->p[1] == 'u'
		              ? read_unit(c, c->p + 2)
		              : -1;
		if (unit >= 0xdc00 || low < 0xdc00 || low >= 0xe000)
			return json_cursor_refuse(
			        c, "a string in the request's body has half of a surrogate pair");
		c->p += 6;
		point = 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
	}
	c->out += put_utf8(c->out, point);
	return true;
}

/* Decodes the escape behind the backslash that was read. */
static bool decode_escape(struct json_cursor *c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (c->p == c->end)
		return json_cursor_break(c);
	if (*c->p == 'u') {
		c->p++;
		return decode_unicode(c);
	}
	found = *c->p ? strchr(from, *c->p) : NULL;
	if (!found)
		return json_cursor_break(c);
	*c->out++ = to[found - from];
	c->p++;
	return true;
}

/* The bytes up to the next quote, backslash or control. Sets *high if one is beyond ASCII. */
static size_t plain_run(const struct json_cursor *c, bool *high)
{
	const char *p = c->p;

	while (p < c->end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ')
		*high |= (unsigned char)*p++ >= 0x80;
	return (size_t)(p - c->p);
}

static bool is_utf8(const char *p, size_t n)
{
	struct utf8 u = {0};

	return utf8_feed(&u, (const uint8_t *)p, n) && utf8_is_whole(&u);
}

/* The rest of a string in which an escape was found; its first n bytes are plain. */
static bool read_escaped(
        struct json_cursor *c, const char *begin, size_t n, struct json_value *value)
{
	struct json_tree *tree = c->tree;

	if (!tree->decoded)
		tree->decoded = malloc(tree->text.n);
	if (!tree->decoded) {
		c->rc = -ENOMEM;
		return false;
	}
	c->out = tree->decoded + value->at;
	value->decoded = 1;
	for (;;) {
		bool high = false;

		memcpy(c->out, begin, n);
		c->out += n;
		if (c->p == c->end || (unsigned char)*c->p < ' ')
			return json_cursor_break(c);
		if (*c->p++ == '"')
			break;
		if (!decode_escape(c))
			return false;
		begin = c->p;
		n = plain_run(c, &high);
		if (high && !is_utf8(begin, n))
			return json_cursor_refuse(c, "a string in the request's body is not UTF-8");
		c->p += n;
	}
	value->n = (uint32_t)(c->out - tree->decoded) - value->at;
	return true;
}

bool json_cursor_read_string(struct json_cursor *c, enum json_kind kind)
{
	struct json_value *value = json_cursor_add(c, kind);
	const char *begin = ++c->p;
	bool high = false;
	size_t n;

	if (!value)
		return false;
	n = plain_run(c, &high);
	if (high && !is_utf8(begin, n))
		return json_cursor_refuse(c, "a string in the request's body is not UTF-8");
	c->p += n;
	if (c->p == c->end || (unsigned char)*c->p < ' ')
		return json_cursor_break(c);
	value->at = (uint32_t)(begin - c->tree->text.p);
	if (*c->p == '\\')
		return read_escaped(c, begin, n, value);
	c->p++;
	value->n = (uint32_t)n;
	return true;
}
