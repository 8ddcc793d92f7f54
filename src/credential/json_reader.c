/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cursor whose first fault sticks. Nesting is bounded by a counter, and kinds of brackets are
 * remembered in bits, so nothing here calls itself.
 */
#include "vethguard/credential/json_reader.h"

#include <errno.h>

_Static_assert(JSON_DEPTH_MAX <= 32, "a bit for each level");

static const char broken[] = "it is not JSON (RFC 8259)";
static const char deep[] = "it is JSON that is nested too deeply";

void json_reader_init(struct json_reader *r, struct slice text)
{
	*r = (struct json_reader){.p = text.p, .end = text.p + text.n};
}

static bool fail(struct json_reader *r)
{
	if (!r->fault)
		r->fault = broken;
	return false;
}

static char peek(struct json_reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
	return r->p < r->end ? *r->p : '\0';
}

static bool take(struct json_reader *r, char c)
{
	if (peek(r) != c || r->p == r->end)
		return false;
	r->p++;
	return true;
}

/* True if an escape is at p, with its backslash; *n: its length. */
static bool is_escape(const char *p, const char *end, size_t *n)
{
	*n = 2;
	if (end - p < 2)
		return false;
	if (p[1] != 'u')
		return p[1] && strchr("\"\\/bfnrt", p[1]);
	*n = 6;
	for (size_t i = 2; i < 6; i++)
		if (end - p < 6 || slice_hex_digit(p[i]) < 0)
			return false;
	return true;
}

static bool take_string(struct json_reader *r, struct slice *out)
{
	const char *from;
	size_t n;

	if (!take(r, '"'))
		return fail(r);
	from = r->p;
	while (r->p < r->end && *r->p != '"') {
		if ((uint8_t)*r->p < 0x20)
			return fail(r);
		if (*r->p != '\\')
			r->p++;
		else if (is_escape(r->p, r->end, &n))
			r->p += n;
		else
			return fail(r);
	}
	if (r->p == r->end)
		return fail(r);
	*out = slice_of(from, (size_t)(r->p++ - from));
	return true;
}

static size_t digits(struct json_reader *r)
{
	const char *from = r->p;

	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	return (size_t)(r->p - from);
}

static bool at(const struct json_reader *r, const char *chars)
{
	return r->p < r->end && *r->p && strchr(chars, *r->p);
}

static bool take_number(struct json_reader *r)
{
	const char *from;
	size_t n;

	r->p += at(r, "-");
	from = r->p;
	n = digits(r);
	if (n == 0 || (n > 1 && *from == '0'))
		return fail(r);
	if (at(r, ".")) {
		r->p++;
		if (!digits(r))
			return fail(r);
	}
	if (at(r, "eE")) {
		r->p++;
		r->p += at(r, "+-");
		if (!digits(r))
			return fail(r);
	}
	return true;
}

static bool take_word(struct json_reader *r, struct json_value *out)
{
	static const struct slice words[] = {{"null", 4}, {"true", 4}, {"false", 5}};
	struct slice rest = slice_of(r->p, (size_t)(r->end - r->p));

	out->kind = JSON_VALUE_WORD;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (slice_starts_with(rest, words[i])) {
			out->kind = i ? JSON_VALUE_WORD : JSON_VALUE_NULL;
			r->p += words[i].n;
			return true;
		}
	return take_number(r);
}

static bool is_object(const struct json_reader *r)
{
	return r->depth && (r->objects >> (r->depth - 1) & 1);
}

/* Moves on to where a value begins. Returns false at the end of the text. */
static bool step(struct json_reader *r)
{
	if (r->opened && peek(r) != (is_object(r) ? '}' : ']')) {
		r->opened = false;
		return true;
	}
	while (r->depth) {
		if (!r->opened && take(r, ','))
			return true;
		r->opened = false;
		if (!take(r, is_object(r) ? '}' : ']'))
			return fail(r);
		r->depth--;
	}
	peek(r);
	return r->p < r->end && fail(r);
}

static bool open_bracket(struct json_reader *r, bool object)
{
	if (r->depth == JSON_DEPTH_MAX) {
		r->fault = deep;
		return false;
	}
	r->p++;
	r->objects = (r->objects & ~(UINT32_C(1) << r->depth)) | (uint32_t)object << r->depth;
	r->depth++;
	r->opened = true;
	return true;
}

bool json_reader_next(struct json_reader *r, struct json_value *out)
{
	char c;

	*out = (struct json_value){.name = SLICE(""), .text = SLICE("")};
	if (r->fault || (r->begun && !step(r)))
		return false;
	r->begun = true;
	out->named = is_object(r);
	if (out->named && (!take_string(r, &out->name) || !take(r, ':')))
		return fail(r);
	c = peek(r);
	if (c == '{' || c == '[') {
		out->kind = JSON_VALUE_OPENS;
		return open_bracket(r, c == '{');
	}
	if (c != '"')
		return take_word(r, out);
	out->kind = JSON_VALUE_STRING;
	return take_string(r, &out->text);
}

/* --- escapes --- */

static uint32_t four_digits(const char *p)
{
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)slice_hex_digit(p[i]);
	return v;
}

static int put_code_point(struct buf *out, uint32_t c)
{
	uint8_t text[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		text[i] = (uint8_t)(0x80 | (c & 0x3f));
	text[0] = (uint8_t)(n == 1 ? c : (0xf0u << (4 - n) & 0xff) | c);
	return buf_append(out, text, n);
}

/* Takes an escape, which is one, with its backslash, off text. */
static int decode_escape(struct buf *out, struct slice *text)
{
	static const char marks[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	uint32_t c, low;
	size_t n = 2;

	if (text->p[1] != 'u') {
		const char *mark = strchr(marks, text->p[1]);

		*text = slice_of(text->p + 2, text->n - 2);
		return mark ? buf_append(out, meant + (mark - marks), 1) : -EBADMSG;
	}
	n = 6;
	c = four_digits(text->p + 2);
	if (c >= 0xd800 && c < 0xe000) {
		if (c >= 0xdc00 || text->n < 12 || text->p[6] != '\\' || text->p[7] != 'u')
			return -EBADMSG;
		low = four_digits(text->p + 8);
		if (low < 0xdc00 || low >= 0xe000)
			return -EBADMSG;
		c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
		n = 12;
	}
	*text = slice_of(text->p + n, text->n - n);
	return put_code_point(out, c);
}

int json_decode(struct buf *out, struct slice text)
{
	size_t escape;
	int rc = 0;

	while (rc == 0 && text.n) {
		ptrdiff_t plain = slice_find_byte(text, '\\');
		size_t n = plain < 0 ? text.n : (size_t)plain;

		rc = buf_append(out, text.p, n);
		text = slice_of(text.p + n, text.n - n);
		if (rc == 0 && text.n && !is_escape(text.p, text.p + text.n, &escape))
			rc = -EBADMSG;
		else if (rc == 0 && text.n)
			rc = decode_escape(out, &text);
	}
	return rc;
}

int json_encode(struct buf *out, struct slice text)
{
	int rc = 0;

	for (size_t i = 0; i < text.n && rc == 0; i++) {
		uint8_t c = (uint8_t)text.p[i];

		if (c == '"' || c == '\\')
			rc = buf_append(out, "\\", 1);
		if (rc == 0 && c < 0x20)
			rc = buf_printf(out, "\\u%04x", c);
		else if (rc == 0)
			rc = buf_append(out, &text.p[i], 1);
	}
	return rc;
}
