/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_reader: walks through the values of a JSON text (RFC 8259), to replace strings in it. It reads strictly, and
 * copies nothing: another reader might understand what this one does not.
 */
#ifndef VETHGUARD_CREDENTIAL_JSON_READER_H
#define VETHGUARD_CREDENTIAL_JSON_READER_H

#include "vethguard/base/buf.h"

#define JSON_DEPTH_MAX 32

struct json_reader {
	const char *p, *end;
	const char *fault; /* static; NULL: none so far */
	unsigned depth;
	uint32_t objects; /* bit: that level is an object */
	bool begun, opened;
};

enum json_kind {
	JSON_VALUE_STRING,
	JSON_VALUE_NULL,
	JSON_VALUE_WORD,  /* a number, true, false */
	JSON_VALUE_OPENS, /* an object or a list; what is in it comes next */
};

struct json_value {
	bool named;        /* a member of an object */
	struct slice name; /* its name, as it is written, without quotes */
	enum json_kind kind;
	struct slice text; /* STRING: as it is written, without quotes */
};

void json_reader_init(struct json_reader *r, struct slice text);
/* Takes the next value. Returns false at the end, with r->fault if the text is not JSON. */
bool json_reader_next(struct json_reader *r, struct json_value *out);
/* Appends a string with its escapes decoded. Returns 0; -EBADMSG: it has half of a surrogate pair, or an
 * invalid escape; or -errno. */
int json_decode(struct buf *out, struct slice text);
/* Appends a string's text with escapes, without quotes. Returns 0 or -errno. */
int json_encode(struct buf *out, struct slice text);

#endif
