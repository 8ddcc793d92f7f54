/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: reads a JSON text (RFC 8259) strictly, for conditions on bodies, and for strings in bodies that are replaced. A
 * text that two readers could take differently is refused: a key that an object has twice, invalid UTF-8, a byte order
 * mark, a lone surrogate, an escaped NUL, comments, anything behind the value.
 */
#ifndef VETHGUARD_POLICY_JSON_H
#define VETHGUARD_POLICY_JSON_H

#include "vethguard/base/slice.h"

struct buf;

#define JSON_BYTES_MAX (16u << 20) /* of a text */
#define JSON_DEPTH_MAX 64          /* of arrays and objects inside of each other */
#define JSON_VALUES_MAX 65536      /* of a text, keys included */

enum json_kind {
	JSON_IS_OBJECT,
	JSON_IS_ARRAY,
	JSON_IS_STRING,
	JSON_IS_NUMBER,
	JSON_IS_TRUE,
	JSON_IS_FALSE,
	JSON_IS_NULL,
	JSON_IS_KEY, /* in an object; the member's value follows */
	JSON_KIND_COUNT
};

/* A value. The values inside it follow it; `next` is the index behind all of them. */
struct json_value {
	uint32_t at; /* of a key, string or number: where it begins in the text, behind the quote */
	uint32_t n;  /* of a key or string: bytes of its decoded text; of a number: as written */
	uint32_t next;
	uint8_t kind;    /* enum json_kind */
	uint8_t decoded; /* it has escapes: its decoded text lies at the same place in json_tree.decoded */
};

struct json_tree {
	struct slice text; /* borrowed */
	char *decoded;     /* as large as text, once a string has escapes */
	bool lent;         /* decoded is the caller's */
	struct json_value *values;
	uint32_t count, room;
	const char *fault; /* static: why the text was refused */
};

/* Reads a value with all values inside it. text is borrowed as long as the tree is used. Returns 0; -EBADMSG with
 * tree->fault; or -ENOMEM. Call json_fini() in each case. */
int json_read(struct json_tree *tree, struct slice text);
/* The same, but strings with escapes are decoded into `decoded`, which is borrowed and has room for text.n bytes: a
 * caller whose text holds secrets brings locked memory. */
int json_read_into(struct json_tree *tree, struct slice text, char *decoded);
void json_fini(struct json_tree *tree);

static inline const struct json_value *json_at(const struct json_tree *tree, uint32_t index)
{
	return &tree->values[index];
}

/* The text of a key, string or number. */
static inline struct slice json_text(const struct json_tree *tree, const struct json_value *value)
{
	return slice_of((value->decoded ? tree->decoded : tree->text.p) + value->at, value->n);
}

/* The text of a key, string or number as it is written, without quotes: a part of tree->text. */
struct slice json_written(const struct json_tree *tree, const struct json_value *value);
/* Appends a string's text with escapes, without quotes. Returns 0 or -errno. */
int json_escape(struct buf *out, struct slice text);

/* The number as a double. False if its text has more than 15 digits, or an exponent beyond 99: such numbers are rounded
 * differently. */
bool json_number(struct slice text, double *out);

#endif
