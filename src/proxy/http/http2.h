/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2: what both sides of the proxy need of HTTP/2 (RFC 9113) beside nghttp2: the fields of one
 * header block, gathered within bounds and then read as a request or a response head, and heads
 * from structs back to fields.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP2_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "proxy/http/http.h"

#define HTTP2_PSEUDO_MAX 5 /* pseudo-header fields of one head */
/* ... and content-length, te, an injected field */
#define HTTP2_NV_MAX (HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX + 3)
#define HTTP2_FIELD_COST 4 /* bytes counted beside name and value: as many as HTTP/1 needs */
/* A header block to be sent, as nghttp2 reckons it before it packs it (each field takes a dozen
 * bytes more): beyond what any head comes to that was read within HTTP_HEAD_MAX, with a credential.
 */
#define HTTP2_BLOCK_MAX (4 * HTTP_HEAD_MAX)

/* One header block while it is received, and as long as what was read from it is used. */
struct http2_block {
	struct buf text;    /* of each field: its two lengths, its name, its value */
	struct buf cookies; /* the crumbs of cookie fields, joined (RFC 9113 section 8.2.3) */
	size_t limit;       /* bytes of a head */
	size_t size;        /* bytes so far, kept or not */
	size_t count;
	bool plain;      /* one of them is no pseudo-header field */
	bool too_large;  /* beyond a bound: nothing more is kept */
	const char *why; /* a field is malformed: neither */
};

/* limit: bytes, at most HTTP_HEAD_MAX. */
void http2_block_init(struct http2_block *block, size_t limit);
void http2_block_fini(struct http2_block *block);
/* Empty again; a little memory is kept for the next one. */
void http2_block_reset(struct http2_block *block);
/* Takes a copy of one field; names of pseudo-header fields with their colon. */
void http2_block_add(struct http2_block *block, struct slice name, struct slice value);
/* The next field of what is left of block->text; cookies are not among them. False: none. */
bool http2_block_next(struct slice *rest, struct slice *name, struct slice *value);
/* NULL, or what is wrong with one field by itself. */
const char *http2_check_field(struct slice name, struct slice value);
/* ... of a trailer section. */
const char *http2_check_trailer(struct slice name, struct slice value);
/* A field that HTTP/2 has no use for, since it is about one connection (RFC 9113 section 8.2.2). */
bool http2_is_of_connection(enum http_name known);

/* The block as a request's head; its slices point into the block. ended: no body follows. */
struct http_fault http2_read_request(
        const struct http2_block *block, bool ended, struct http_request *out);
/* ... as a response's. no_body: it was asked for with HEAD. NULL, or what is wrong. */
const char *http2_read_response(
        const struct http2_block *block, bool ended, bool no_body, struct http_response *out);

/* --- writing --- */

static inline nghttp2_nv http2_nv(struct slice name, struct slice value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
	        value.n, NGHTTP2_NV_FLAG_NONE};
}
/* The fields that were not dropped, onto nv[]; their count. nghttp2 writes names in lower case. */
size_t http2_put_fields(const struct http_fields *fields, nghttp2_nv *nv);
/* Trailer lines ("name: value" CRLF each), at most max of them. */
size_t http2_put_lines(struct slice lines, nghttp2_nv *nv, size_t max);

#endif
