/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one pass over the text, without recursion: open arrays and objects stand on
 * a small stack. Values go into one array in the order of the text, so a tree costs two allocations
 * that grow (json_cursor.c). When an object ends its keys are compared (json_keys.c).
 */
#include "vethguard/policy/json.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/json/json_cursor.h"
#include "policy/json/json_keys.h"
#include "vethguard/base/buf.h"

enum expect { EXPECT_VALUE, EXPECT_VALUE_OR_END, EXPECT_KEY, EXPECT_KEY_OR_END, EXPECT_MORE };

static void skip_space(struct json_cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
		c->p++;
}

static size_t digits(const struct json_cursor *c)
{
	size_t n = 0;

	while (n < (size_t)(c->end - c->p) && c->p[n] >= '0' && c->p[n] <= '9')
		n++;
	return n;
}

static bool read_number(struct json_cursor *c)
{
	const char *begin = c->p;
	struct json_value *value = json_cursor_add(c, JSON_IS_NUMBER);
	size_t n;

	if (!value)
		return false;
	c->p += *c->p == '-';
	n = digits(c);
	if (n == 0 || (n > 1 && *c->p == '0'))
		return json_cursor_break(c);
	c->p += n;
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		n = digits(c);
		c->p += n;
	}
	if (n > 0 && c->p < c->end && (*c->p | 0x20) == 'e') {
		c->p++;
		c->p += c->p < c->end && (*c->p == '-' || *c->p == '+');
		n = digits(c);
		c->p += n;
	}
	value->at = (uint32_t)(begin - c->tree->text.p);
	value->n = (uint32_t)(c->p - begin);
	return n > 0 || json_cursor_break(c);
}

static bool read_word(struct json_cursor *c, struct slice word, enum json_kind kind)
{
	if (!slice_starts_with(slice_of(c->p, (size_t)(c->end - c->p)), word))
		return json_cursor_break(c);
	c->p += word.n;
	return json_cursor_add(c, kind) != NULL;
}

static bool open_value(struct json_cursor *c, enum json_kind kind)
{
	if (c->depth == JSON_DEPTH_MAX)
		return json_cursor_refuse(c,
		        "the request's body has arrays and objects that are nested more "
		        "than 64 deep");
	if (!json_cursor_add(c, kind))
		return false;
	c->open[c->depth++] = c->tree->count - 1;
	c->p++;
	return true;
}

static bool close_value(struct json_cursor *c)
{
	uint32_t index = c->open[--c->depth];
	struct json_value *value = &c->tree->values[index];
	int rc;

	c->p++;
	value->next = c->tree->count;
	if (value->kind != JSON_IS_OBJECT)
		return true;
	rc = json_keys_differ(c->tree, index);
	if (rc == -EEXIST)
		return json_cursor_refuse(c, "an object in the request's body has a key twice");
	if (rc < 0)
		c->rc = rc;
	return rc == 0;
}

/* --- the whole --- */

static bool read_value(struct json_cursor *c, enum expect *expect)
{
	*expect = EXPECT_MORE;
	switch (*c->p) {
	case '{':
		*expect = EXPECT_KEY_OR_END;
		return open_value(c, JSON_IS_OBJECT);
	case '[':
		*expect = EXPECT_VALUE_OR_END;
		return open_value(c, JSON_IS_ARRAY);
	case '"':
		return json_cursor_read_string(c, JSON_IS_STRING);
	case 't':
		return read_word(c, SLICE("true"), JSON_IS_TRUE);
	case 'f':
		return read_word(c, SLICE("false"), JSON_IS_FALSE);
	case 'n':
		return read_word(c, SLICE("null"), JSON_IS_NULL);
	default:
		return read_number(c);
	}
}

static bool read_key(struct json_cursor *c, enum expect *expect)
{
	if (*c->p != '"' || !json_cursor_read_string(c, JSON_IS_KEY))
		return json_cursor_break(c);
	skip_space(c);
	if (c->p == c->end || *c->p++ != ':')
		return json_cursor_break(c);
	*expect = EXPECT_VALUE;
	return true;
}

static bool read_more(struct json_cursor *c, enum expect *expect)
{
	bool object = c->tree->values[c->open[c->depth - 1]].kind == JSON_IS_OBJECT;

	if (*c->p == (object ? '}' : ']'))
		return close_value(c);
	if (*c->p++ != ',')
		return json_cursor_break(c);
	*expect = object ? EXPECT_KEY : EXPECT_VALUE;
	return true;
}

static bool read_step(struct json_cursor *c, enum expect *expect)
{
	bool ends = (*expect == EXPECT_VALUE_OR_END && *c->p == ']') ||
	            (*expect == EXPECT_KEY_OR_END && *c->p == '}');

	if (ends) {
		*expect = EXPECT_MORE;
		return close_value(c);
	}
	if (*expect == EXPECT_MORE)
		return read_more(c, expect);
	return *expect == EXPECT_KEY || *expect == EXPECT_KEY_OR_END ? read_key(c, expect)
	                                                             : read_value(c, expect);
}

int json_read_into(struct json_tree *tree, struct slice text, char *decoded)
{
	struct json_cursor c = {.tree = tree, .p = text.p, .end = text.p + text.n};
	enum expect expect = EXPECT_VALUE;

	*tree = (struct json_tree){.text = text, .lent = decoded != NULL};
	tree->decoded = decoded;
	if (text.n > JSON_BYTES_MAX) {
		json_cursor_refuse(&c, "the request's body is too large for JSON");
		return c.rc;
	}
	while (c.rc == 0) {
		skip_space(&c);
		if (c.p == c.end) {
			json_cursor_break(&c);
		} else if (read_step(&c, &expect) && c.depth == 0) {
			break;
		}
	}
	skip_space(&c);
	if (c.rc == 0 && c.p < c.end)
		json_cursor_refuse(&c, "something follows the JSON text in the request's body");
	return c.rc;
}

int json_read(struct json_tree *tree, struct slice text)
{
	return json_read_into(tree, text, NULL);
}

void json_fini(struct json_tree *tree)
{
	free(tree->values);
	if (!tree->lent)
		free(tree->decoded);
	*tree = (struct json_tree){.count = 0};
}

struct slice json_written(const struct json_tree *tree, const struct json_value *value)
{
	const char *begin = tree->text.p + value->at, *p = begin;

	if (!value->decoded)
		return slice_of(begin, value->n);
	while (*p != '"')
		p += *p == '\\' ? 2 : 1;
	return slice_of(begin, (size_t)(p - begin));
}

int json_escape(struct buf *out, struct slice text)
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
