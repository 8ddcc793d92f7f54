/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2_head: turns the fields of an HTTP/2 request to the gateway (RFC 9113 section 8.3) into the head of a request
 * in HTTP/1.1 (proxy_head.h), so that the same code judges both versions. CONNECT stays CONNECT. A request with the
 * scheme http becomes one to a proxy, in absolute form; one with the scheme https becomes one to the gateway itself,
 * in origin form. Pure and strict: no field can become another line of the head.
 */
#ifndef VETHGUARD_WIRE_HTTP2_HEAD_H
#define VETHGUARD_WIRE_HTTP2_HEAD_H

#include "vethguard/wire/proxy_head.h"

enum http2_pseudo { HTTP2_METHOD, HTTP2_SCHEME, HTTP2_AUTHORITY, HTTP2_PATH, HTTP2_PSEUDO_COUNT };

struct http2_head {
	struct buf lines;   /* the fields, as lines */
	struct buf cookies; /* the values of cookie fields, joined (section 8.2.3) */
	struct buf pseudo[HTTP2_PSEUDO_COUNT];
	size_t size;     /* bytes of all fields so far, kept or not */
	size_t count;    /* fields so far */
	bool regular;    /* a field that is no pseudo-header field has come */
	bool too_large;  /* beyond PROXY_HEAD_MAX or PROXY_HEAD_FIELDS_MAX: nothing more is kept */
	bool counted;    /* there is a Content-Length */
	bool host;       /* there is a Host, equal to :authority */
	const char *why; /* a field is malformed: nothing more is kept */
};

void http2_head_init(struct http2_head *h);
/* Frees and wipes. */
void http2_head_fini(struct http2_head *h);
/* Adds one field; the names of pseudo-header fields have their colon. */
void http2_head_add(struct http2_head *h, struct slice name, struct slice value);
bool http2_head_method_is(const struct http2_head *h, struct slice method);
/* Appends the head to out. ended: no content follows. *chunked: the caller has to send the content in chunks. Returns
 * 0; -EFBIG: the head is too large; -EBADMSG: it is malformed, h->why says why; or -errno of buf_append(). */
int http2_head_write(struct http2_head *h, bool ended, bool *chunked, struct buf *out);

#endif
