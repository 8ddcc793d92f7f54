/* SPDX-License-Identifier: Apache-2.0 */
/* json: writes JSON (RFC 8259) into a buffer, without a tree. Programs read JSON with jansson; the functions here are
 * called json_put_ so that a program can link both. */
#ifndef VETHGUARD_WIRE_JSON_H
#define VETHGUARD_WIRE_JSON_H

#include "vethguard/base/buf.h"

/* The writer places commas. failed: the buffer's bound was reached, and the text is unusable. */
struct json {
	struct buf *out;
	bool comma;
	bool failed;
};

void json_begin(struct json *j, struct buf *out);
/* key: a literal, or NULL inside arrays and at the top. */
void json_put_object(struct json *j, const char *key);
void json_put_array(struct json *j, const char *key);
void json_put_end_object(struct json *j);
void json_put_end_array(struct json *j);
void json_put_int(struct json *j, const char *key, int64_t v);
void json_put_uint(struct json *j, const char *key, uint64_t v);
void json_put_bool(struct json *j, const char *key, bool v);
void json_put_null(struct json *j, const char *key);
/* Writes a string. Valid UTF-8 passes. Controls, '"', '\\' and invisible characters, such as those that change the
 * direction of writing, are escaped; a byte that is not valid UTF-8 becomes U+FFFD. More than max bytes are cut at a
 * character and end in "..."; max 0 means no cut. */
void json_put_string(struct json *j, const char *key, struct slice v, size_t max);
void json_put_literal(struct json *j, const char *key, const char *v);

/* Shorter names for files that do not include jansson.h. */
#ifndef JANSSON_H
#define json_object json_put_object
#define json_array json_put_array
#define json_end_object json_put_end_object
#define json_end_array json_put_end_array
#define json_uint json_put_uint
#define json_bool json_put_bool
#define json_null json_put_null
#define json_string json_put_string
#define json_literal json_put_literal
#endif

#endif
