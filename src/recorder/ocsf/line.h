/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: writes JSON members into a buffer that usually has room already; every event of every
 * sandbox passes here. Names of members are literals, so that the compiler knows their lengths;
 * texts that may need escaping go to wire/json.h. Both share a line's struct json.
 */
#ifndef VETHGUARD_SRC_RECORDER_OCSF_LINE_H
#define VETHGUARD_SRC_RECORDER_OCSF_LINE_H

#include "vethguard/wire/json.h"

#define LINE_INLINE static inline __attribute__((always_inline))

LINE_INLINE void line_put(struct json *j, const char *p, size_t n)
{
	struct buf *b = j->out;

	if (b->mem && n <= b->cap - b->start - b->len && n <= b->max - b->len) {
		memcpy(b->mem + b->start + b->len, p, n);
		b->len += n;
	} else if (buf_append(b, p, n) != 0) {
		j->failed = true;
	}
}

/* Writes a comma if one is due, and the name. */
LINE_INLINE void line_name(struct json *j, const char *key)
{
	if (j->comma)
		line_put(j, ",\"", 2);
	else
		line_put(j, "\"", 1);
	line_put(j, key, strlen(key));
	line_put(j, "\":", 2);
	j->comma = true;
}

LINE_INLINE void line_object(struct json *j, const char *key)
{
	line_name(j, key);
	line_put(j, "{", 1);
	j->comma = false;
}

LINE_INLINE void line_end_object(struct json *j)
{
	line_put(j, "}", 1);
	j->comma = true;
}

/* Writes the digits of v, ending at end. Returns their start. */
static inline char *line_digits(uint64_t v, char *end)
{
	do {
		*--end = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return end;
}

LINE_INLINE void line_uint(struct json *j, const char *key, uint64_t v)
{
	char digits[20], *start = line_digits(v, digits + sizeof(digits));

	line_name(j, key);
	line_put(j, start, (size_t)(digits + sizeof(digits) - start));
}

LINE_INLINE void line_bool(struct json *j, const char *key, bool v)
{
	line_name(j, key);
	line_put(j, v ? "true" : "false", v ? 4 : 5);
}

/* Writes a text that needs no escaping. */
LINE_INLINE void line_plain(struct json *j, const char *key, const char *text)
{
	line_name(j, key);
	line_put(j, "\"", 1);
	line_put(j, text, strlen(text));
	line_put(j, "\"", 1);
}

/* Writes the value of a member whose name is written: any text. */
void line_text_value(struct json *j, struct slice text, size_t max);

LINE_INLINE void line_text(struct json *j, const char *key, struct slice text, size_t max)
{
	line_name(j, key);
	line_text_value(j, text, max);
}

/* The same, left out if empty. */
LINE_INLINE void line_some_text(struct json *j, const char *key, struct slice text, size_t max)
{
	if (text.n)
		line_text(j, key, text, max);
}

/* Writes members that are JSON already. */
LINE_INLINE void line_raw(struct json *j, struct slice members)
{
	if (j->comma)
		line_put(j, ",", 1);
	line_put(j, members.p, members.n);
	j->comma = true;
}

#endif
