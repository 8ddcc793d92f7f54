/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one pass over the text, without recursion: open arrays and objects stand on
 * a small stack. Values go into one array in the order of the text, so a tree costs two allocations
 * that grow. A string without escapes stays where it is; one with escapes is decoded into a second
 * text, which never gets longer than the first. When an object ends its keys are compared
 * (json_keys.c).
 */
#include "policy/json.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/json_keys.h"
#include "vethguard/base/utf8.h"

enum expect { EXPECT_VALUE, EXPECT_VALUE_OR_END, EXPECT_KEY, EXPECT_KEY_OR_END, EXPECT_MORE };

struct reader {
	struct json_tree *tree;
	const char *p, *end;
	size_t decoded_n;
	uint32_t open[JSON_DEPTH_MAX]; /* indices of what is open */
	unsigned depth;
	int rc;
};

static bool refuse(struct reader *r, const char *fault)
{
	if (r->rc == 0) {
		r->rc = -EBADMSG;
		r->tree->fault = fault;
	}
	return false;
}

static const char no_json[] = "the request's body is not JSON";

static void skip_space(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
		r->p++;
}

/* Adds a value, whose subtree ends right behind it at first. Returns NULL if it is refused. */
static struct json_value *add(struct reader *r, enum json_kind kind)
{
	struct json_tree *tree = r->tree;
	struct json_value *value;

	if (tree->count == JSON_VALUES_MAX) {
		refuse(r, "the request's body has more than 65,536 JSON values");
		return NULL;
	}
	if (tree->count == tree->room) {
		uint32_t room = tree->room ? tree->room * 2 : 64;
		struct json_value *values = realloc(tree->values, room * sizeof(*values));

		if (!values) {
			r->rc = -ENOMEM;
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
static int32_t read_unit(const struct reader *r, const char *p)
{
	int32_t unit = 0;

	if (r->end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = slice_hex_digit(p[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Decodes "\uXXXX" whose digits are at r->p, and the second half of a pair. */
static bool decode_unicode(struct reader *r)
{
	int32_t unit = read_unit(r, r->p), low;
	uint32_t c = (uint32_t)unit;

	if (unit < 0)
		return refuse(r, no_json);
	r->p += 4;
	if (unit == 0)
		return refuse(r, "a string in the request's body has an escaped NUL");
	if (unit >= 0xd800 && unit < 0xe000) {
		low = r->end - r->p >= 2 && r->p[0] == '\\' && r->p[1] == 'u'
		              ? read_unit(r, r->p + 2)
		              : -1;
		if (unit >= 0xdc00 || low < 0xdc00 || low >= 0xe000)
			return refuse(
			        r, "a string in the request's body has half of a surrogate pair");
		r->p += 6;
		c = 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
	}
	r->decoded_n += put_utf8(r->tree->decoded + r->decoded_n, c);
	return true;
}

/* Decodes the escape behind the backslash that was read. */
static bool decode_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (r->p == r->end)
		return refuse(r, no_json);
	if (*r->p == 'u') {
		r->p++;
		return decode_unicode(r);
	}
	found = *r->p ? strchr(from, *r->p) : NULL;
	if (!found)
		return refuse(r, no_json);
	r->tree->decoded[r->decoded_n++] = to[found - from];
	r->p++;
	return true;
}

/* The bytes up to the next quote, backslash or control. Sets *high if one is beyond ASCII. */
static size_t plain_run(const struct reader *r, bool *high)
{
	const char *p = r->p;

	while (p < r->end && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ')
		*high |= (unsigned char)*p++ >= 0x80;
	return (size_t)(p - r->p);
}

static bool is_utf8(const char *p, size_t n)
{
	struct utf8 u = {0};

	return utf8_feed(&u, (const uint8_t *)p, n) && utf8_is_whole(&u);
}

/* The rest of a string in which an escape was found; its first n bytes are plain. */
static bool read_escaped(struct reader *r, const char *begin, size_t n, struct json_value *value)
{
	struct json_tree *tree = r->tree;

	if (!tree->decoded)
		tree->decoded = malloc(tree->text.n);
	if (!tree->decoded) {
		r->rc = -ENOMEM;
		return false;
	}
	value->at = (uint32_t)r->decoded_n;
	value->decoded = 1;
	for (;;) {
		bool high = false;

		memcpy(tree->decoded + r->decoded_n, begin, n);
		r->decoded_n += n;
		if (r->p == r->end || (unsigned char)*r->p < ' ')
			return refuse(r, no_json);
		if (*r->p++ == '"')
			break;
		if (!decode_escape(r))
			return false;
		begin = r->p;
		n = plain_run(r, &high);
		if (high && !is_utf8(begin, n))
			return refuse(r, "a string in the request's body is not UTF-8");
		r->p += n;
	}
	value->n = (uint32_t)r->decoded_n - value->at;
	return true;
}

/* Reads the string whose opening quote is at r->p. */
static bool read_string(struct reader *r, enum json_kind kind)
{
	struct json_value *value = add(r, kind);
	const char *begin = ++r->p;
	bool high = false;
	size_t n;

	if (!value)
		return false;
	n = plain_run(r, &high);
	if (high && !is_utf8(begin, n))
		return refuse(r, "a string in the request's body is not UTF-8");
	r->p += n;
	if (r->p == r->end || (unsigned char)*r->p < ' ')
		return refuse(r, no_json);
	if (*r->p == '\\')
		return read_escaped(r, begin, n, value);
	r->p++;
	value->at = (uint32_t)(begin - r->tree->text.p);
	value->n = (uint32_t)n;
	return true;
}

/* --- other values --- */

static size_t digits(const struct reader *r)
{
	size_t n = 0;

	while (n < (size_t)(r->end - r->p) && r->p[n] >= '0' && r->p[n] <= '9')
		n++;
	return n;
}

static bool read_number(struct reader *r)
{
	const char *begin = r->p;
	struct json_value *value = add(r, JSON_IS_NUMBER);
	size_t n;

	if (!value)
		return false;
	r->p += *r->p == '-';
	n = digits(r);
	if (n == 0 || (n > 1 && *r->p == '0'))
		return refuse(r, no_json);
	r->p += n;
	if (r->p < r->end && *r->p == '.') {
		r->p++;
		n = digits(r);
		r->p += n;
	}
	if (n > 0 && r->p < r->end && (*r->p | 0x20) == 'e') {
		r->p++;
		r->p += r->p < r->end && (*r->p == '-' || *r->p == '+');
		n = digits(r);
		r->p += n;
	}
	value->at = (uint32_t)(begin - r->tree->text.p);
	value->n = (uint32_t)(r->p - begin);
	return n > 0 || refuse(r, no_json);
}

static bool read_word(struct reader *r, struct slice word, enum json_kind kind)
{
	if (!slice_starts_with(slice_of(r->p, (size_t)(r->end - r->p)), word))
		return refuse(r, no_json);
	r->p += word.n;
	return add(r, kind) != NULL;
}

static bool open_value(struct reader *r, enum json_kind kind)
{
	if (r->depth == JSON_DEPTH_MAX)
		return refuse(r, "the request's body has arrays and objects that are nested more "
		                 "than 64 deep");
	if (!add(r, kind))
		return false;
	r->open[r->depth++] = r->tree->count - 1;
	r->p++;
	return true;
}

static bool close_value(struct reader *r)
{
	uint32_t index = r->open[--r->depth];
	struct json_value *value = &r->tree->values[index];
	int rc;

	r->p++;
	value->next = r->tree->count;
	if (value->kind != JSON_IS_OBJECT)
		return true;
	rc = json_keys_differ(r->tree, index);
	if (rc == -EEXIST)
		return refuse(r, "an object in the request's body has a key twice");
	if (rc < 0)
		r->rc = rc;
	return rc == 0;
}

/* --- the whole --- */

static bool read_value(struct reader *r, enum expect *expect)
{
	*expect = EXPECT_MORE;
	switch (*r->p) {
	case '{':
		*expect = EXPECT_KEY_OR_END;
		return open_value(r, JSON_IS_OBJECT);
	case '[':
		*expect = EXPECT_VALUE_OR_END;
		return open_value(r, JSON_IS_ARRAY);
	case '"':
		return read_string(r, JSON_IS_STRING);
	case 't':
		return read_word(r, SLICE("true"), JSON_IS_TRUE);
	case 'f':
		return read_word(r, SLICE("false"), JSON_IS_FALSE);
	case 'n':
		return read_word(r, SLICE("null"), JSON_IS_NULL);
	default:
		return read_number(r);
	}
}

static bool read_key(struct reader *r, enum expect *expect)
{
	if (*r->p != '"' || !read_string(r, JSON_IS_KEY))
		return refuse(r, no_json);
	skip_space(r);
	if (r->p == r->end || *r->p++ != ':')
		return refuse(r, no_json);
	*expect = EXPECT_VALUE;
	return true;
}

static bool read_more(struct reader *r, enum expect *expect)
{
	bool object = r->tree->values[r->open[r->depth - 1]].kind == JSON_IS_OBJECT;

	if (*r->p == (object ? '}' : ']'))
		return close_value(r);
	if (*r->p++ != ',')
		return refuse(r, no_json);
	*expect = object ? EXPECT_KEY : EXPECT_VALUE;
	return true;
}

static bool read_step(struct reader *r, enum expect *expect)
{
	bool ends = (*expect == EXPECT_VALUE_OR_END && *r->p == ']') ||
	            (*expect == EXPECT_KEY_OR_END && *r->p == '}');

	if (ends) {
		*expect = EXPECT_MORE;
		return close_value(r);
	}
	if (*expect == EXPECT_MORE)
		return read_more(r, expect);
	return *expect == EXPECT_KEY || *expect == EXPECT_KEY_OR_END ? read_key(r, expect)
	                                                             : read_value(r, expect);
}

int json_read(struct json_tree *tree, struct slice text)
{
	struct reader r = {.tree = tree, .p = text.p, .end = text.p + text.n};
	enum expect expect = EXPECT_VALUE;

	*tree = (struct json_tree){.text = text};
	if (text.n > JSON_BYTES_MAX) {
		refuse(&r, "the request's body is too large for JSON");
		return r.rc;
	}
	skip_space(&r);
	if (r.p == r.end || (*r.p != '{' && *r.p != '['))
		refuse(&r, no_json);
	while (r.rc == 0) {
		skip_space(&r);
		if (r.p == r.end) {
			refuse(&r, no_json);
		} else if (read_step(&r, &expect) && r.depth == 0) {
			break;
		}
	}
	skip_space(&r);
	if (r.rc == 0 && r.p < r.end)
		refuse(&r, "something follows the JSON text in the request's body");
	return r.rc;
}

void json_fini(struct json_tree *tree)
{
	free(tree->values);
	free(tree->decoded);
	*tree = (struct json_tree){.count = 0};
}
