/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_response: reads a worker's responses in HTTP/1.1 (RFC 9112) for a program that sends them on in another
 * protocol: the head with its fields, and the content without its transfer coding. Pure and strict.
 */
#ifndef VETHGUARD_WIRE_HTTP1_RESPONSE_H
#define VETHGUARD_WIRE_HTTP1_RESPONSE_H

#include "vethguard/base/slice.h"

#define HTTP1_RESPONSE_HEAD_MAX (96u << 10) /* bytes of a head, with its empty line */
#define HTTP1_RESPONSE_FIELDS_MAX 300
#define HTTP1_RESPONSE_TRAILERS_MAX 16384

enum http1_response_status {
	HTTP1_RESPONSE_DONE,
	HTTP1_RESPONSE_MORE, /* valid so far but incomplete: read on */
	HTTP1_RESPONSE_BAD
};

/* The request that is answered, as far as it decides where the content ends (RFC 9112 section 6.3). */
enum http1_request_kind { HTTP1_REQUEST_OTHER, HTTP1_REQUEST_HEAD, HTTP1_REQUEST_CONNECT };

enum http1_content_kind {
	HTTP1_CONTENT_NONE,
	HTTP1_CONTENT_LENGTH,
	HTTP1_CONTENT_CHUNKED,
	HTTP1_CONTENT_REST /* until the connection ends: also what a tunnel carries */
};

struct http1_response {
	unsigned status; /* 100 to 599; below 200 another head follows */
	enum http1_content_kind content;
	uint64_t length; /* HTTP1_CONTENT_LENGTH */
	size_t used;     /* bytes of the head */
	size_t field_count;
};

/* Parses the n bytes received so far. *looked is 0 at first; the caller keeps it between calls for the same head. */
enum http1_response_status http1_response_parse(
        const uint8_t *p, size_t n, size_t *looked, enum http1_request_kind request, struct http1_response *out);
/* Gets the next field of a parsed head; *at is 0 at first. Returns false after the last field. */
bool http1_response_next_field(
        const uint8_t *p, const struct http1_response *head, size_t *at, struct slice *name, struct slice *value);
/* True for fields that concern one connection, Transfer-Encoding among them; false for Content-Length. */
bool http1_response_is_of_connection(struct slice name);

enum http1_content_state {
	HTTP1_CONTENT_OVER,
	HTTP1_CONTENT_DATA, /* `left` bytes, or all until the connection ends */
	HTTP1_CONTENT_SIZE, /* in the line of a chunk's size */
	HTTP1_CONTENT_CHUNK,
	HTTP1_CONTENT_CHUNK_END, /* CR LF behind a chunk */
	HTTP1_CONTENT_TRAILERS,
	HTTP1_CONTENT_BAD
};

struct http1_content {
	enum http1_content_state state;
	enum http1_content_kind kind;
	uint64_t left;   /* DATA of a length, CHUNK: bytes; SIZE: the size so far */
	unsigned digits; /* SIZE: hexadecimal digits so far */
	unsigned line;   /* TRAILERS: bytes of the line so far */
	unsigned bytes;  /* TRAILERS: in all */
	bool cr;         /* the last byte was CR */
};

/* Begins the content of a response whose head was parsed. */
void http1_content_begin(struct http1_content *c, const struct http1_response *head);
/* Takes some of n > 0 bytes, and returns how many. *data: those of them that are content, perhaps none. Takes nothing
 * in the states OVER and BAD. */
size_t http1_content_take(struct http1_content *c, const uint8_t *p, size_t n, struct slice *data);
/* True if the content may end here: it is whole, or ends with the connection. */
static inline bool http1_content_may_end(const struct http1_content *c)
{
	return c->state == HTTP1_CONTENT_OVER || (c->state == HTTP1_CONTENT_DATA && c->kind == HTTP1_CONTENT_REST);
}

#endif
