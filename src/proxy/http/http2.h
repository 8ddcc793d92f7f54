/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2: what both sides of the proxy need for HTTP/2 (RFC 9113) besides nghttp2: gathering the
 * fields of a header block within bounds, reading them as a request or response head, and making
 * fields of heads.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP2_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "proxy/http/http.h"

#define HTTP2_PSEUDO_MAX 5 /* pseudo-header fields of one head */
/* ... and content-length, te, an injected field */
#define HTTP2_NV_MAX (HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX + 2 + OUTGOING_FIELDS_MAX)
#define HTTP2_FIELD_COST 4 /* bytes counted per field besides its texts, as in HTTP/1 */
/* Bound on a header block to be sent, as nghttp2 counts it before compression (a dozen bytes
 * more per field): more than any head that was read within HTTP_HEAD_MAX, plus a credential, can
 * have. */
#define HTTP2_BLOCK_MAX (4 * HTTP_HEAD_MAX)

/* One header block: while it is received, and as long as what was read from it is used. */
struct http2_block {
	struct buf text;    /* for each field: two lengths, name, value */
	struct buf cookies; /* the values of cookie fields, joined (RFC 9113 section 8.2.3) */
	size_t limit;       /* bound on a head, in bytes */
	size_t size;        /* bytes so far, kept or not */
	size_t count;
	bool plain;      /* a field that is no pseudo-header field has come */
	bool too_large;  /* a bound was exceeded: nothing more is kept */
	const char *why; /* a field is malformed: nothing more is kept */
};

/* limit: in bytes, at most HTTP_HEAD_MAX. */
void http2_block_init(struct http2_block *block, size_t limit);
void http2_block_fini(struct http2_block *block);
/* Empties the block; a little memory is kept for the next use. */
void http2_block_reset(struct http2_block *block);
/* Copies one field; the names of pseudo-header fields have their colon. */
void http2_block_add(struct http2_block *block, struct slice name, struct slice value);
/* Takes the next field from *rest, the rest of block->text, which has no cookies. False: there is
 * none. */
bool http2_block_next(struct slice *rest, struct slice *name, struct slice *value);
/* Checks one field by itself. Returns NULL, or what is wrong. */
const char *http2_check_field(struct slice name, struct slice value);
/* ... of a trailer section. */
const char *http2_check_trailer(struct slice name, struct slice value);
/* True for fields that concern one connection and that HTTP/2 forbids (RFC 9113 section 8.2.2). */
bool http2_is_of_connection(enum http_name known);

/* Reads the block as a request's head; *out's slices point into the block. ended: no body
 * follows. */
struct http_fault http2_read_request(
        const struct http2_block *block, bool ended, struct http_request *out);
/* ... as a response's head. no_body: the request was HEAD. Returns NULL, or what is wrong. */
const char *http2_read_response(
        const struct http2_block *block, bool ended, bool no_body, struct http_response *out);

/* --- writing --- */

static inline nghttp2_nv http2_nv(struct slice name, struct slice value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n,
	        value.n, NGHTTP2_NV_FLAG_NONE};
}
/* Puts the fields that were not dropped into nv[]; returns their count. nghttp2 writes names in
 * lower case. */
size_t http2_put_fields(const struct http_fields *fields, nghttp2_nv *nv);
/* Puts at most max trailer lines ("name: value" CRLF each) into nv[]; returns their count. */
size_t http2_put_lines(struct slice lines, nghttp2_nv *nv, size_t max);

#endif
