/* SPDX-License-Identifier: Apache-2.0 */
/* Names are lower case (RFC 9113 section 8.2.1). Fields of a connection are refused, not dropped:
 * no client has a reason to send them in HTTP/2 (section 8.2.2). */
#include <errno.h>

#include "vethguard/wire/http2_head.h"
#include "wire/http/http_text.h"

static const struct slice pseudo_names[HTTP2_PSEUDO_COUNT] = {
        [HTTP2_METHOD] = {":method", 7},
        [HTTP2_SCHEME] = {":scheme", 7},
        [HTTP2_AUTHORITY] = {":authority", 10},
        [HTTP2_PATH] = {":path", 5},
};

#define FIELD_COST 4 /* bytes of a line besides its texts */

void http2_head_init(struct http2_head *h)
{
	*h = (struct http2_head){.why = NULL};
	buf_init_secret(&h->lines, PROXY_HEAD_MAX);
	buf_init_secret(&h->cookies, PROXY_HEAD_MAX);
	for (size_t i = 0; i < HTTP2_PSEUDO_COUNT; i++)
		buf_init_secret(&h->pseudo[i], PROXY_HEAD_MAX);
}

void http2_head_fini(struct http2_head *h)
{
	buf_fini(&h->lines);
	buf_fini(&h->cookies);
	for (size_t i = 0; i < HTTP2_PSEUDO_COUNT; i++)
		buf_fini(&h->pseudo[i]);
}

static bool is_name(struct slice name)
{
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] >= 'A' && name.p[i] <= 'Z')
			return false;
	return name.n && slice_token_length(name) == name.n;
}

static bool is_of_connection(struct slice name)
{
	return slice_equals(name, SLICE("connection")) || slice_equals(name, SLICE("keep-alive")) ||
	       slice_equals(name, SLICE("proxy-connection")) ||
	       slice_equals(name, SLICE("transfer-encoding")) ||
	       slice_equals(name, SLICE("upgrade"));
}

static const char *add_pseudo(struct http2_head *h, struct slice name, struct slice value)
{
	if (h->regular)
		return "a pseudo-header field comes after other fields";
	for (size_t i = 0; i < HTTP2_PSEUDO_COUNT; i++) {
		if (!slice_equals(name, pseudo_names[i]))
			continue;
		if (h->pseudo[i].len)
			return "a pseudo-header field appears twice";
		if (!http_text_is_visible(value))
			return "a pseudo-header field is malformed";
		h->too_large = h->too_large || buf_append_slice(&h->pseudo[i], value) != 0;
		return NULL;
	}
	return "a pseudo-header field is not known";
}

/* Host stands for a missing :authority. If both are there, they have to be equal. */
static const char *add_host(struct http2_head *h, struct slice value)
{
	struct buf *authority = &h->pseudo[HTTP2_AUTHORITY];

	if (h->host)
		return "Host appears twice";
	h->host = true;
	if (!http_text_is_visible(value) ||
	        (authority->len && !slice_equals(buf_slice(authority), value)))
		return "Host is not the authority";
	if (!authority->len && buf_append_slice(authority, value) != 0)
		h->too_large = true;
	return NULL;
}

static int add_line(struct http2_head *h, struct slice name, struct slice value)
{
	if (slice_equals(name, SLICE("cookie"))) {
		int rc = h->cookies.len ? buf_append_slice(&h->cookies, SLICE("; ")) : 0;

		return rc ? rc : buf_append_slice(&h->cookies, value);
	}
	if (!buf_reserve(&h->lines, name.n + value.n + FIELD_COST))
		return -ENOBUFS;
	buf_append_slice(&h->lines, name);
	buf_append_slice(&h->lines, SLICE(": "));
	buf_append_slice(&h->lines, value);
	return buf_append_slice(&h->lines, SLICE("\r\n"));
}

static const char *add_regular(struct http2_head *h, struct slice name, struct slice value)
{
	h->regular = true;
	if (!is_name(name) || !http_text_is_value(value))
		return "a field of the head is malformed";
	if (is_of_connection(name))
		return "a field concerns the connection";
	if (slice_equals(name, SLICE("host")))
		return add_host(h, value);
	if (slice_equals(name, SLICE("te"))) /* not passed on */
		return slice_equals_ignoring_case(value, SLICE("trailers")) ? NULL
		                                                            : "TE is not trailers";
	h->counted |= slice_equals(name, SLICE("content-length"));
	h->too_large = add_line(h, name, value) != 0;
	return NULL;
}

void http2_head_add(struct http2_head *h, struct slice name, struct slice value)
{
	h->count++;
	h->size += name.n + value.n + FIELD_COST;
	h->too_large |= h->size > PROXY_HEAD_MAX || h->count > PROXY_HEAD_FIELDS_MAX;
	if (h->why || h->too_large)
		return;
	h->why = name.n && name.p[0] == ':' ? add_pseudo(h, name, value)
	                                    : add_regular(h, name, value);
}

/* --- the head --- */

static bool pseudo_is(const struct http2_head *h, enum http2_pseudo pseudo, struct slice text)
{
	const struct buf *b = &h->pseudo[pseudo];

	return b->mem && b->len == text.n && memcmp(buf_bytes(b), text.p, text.n) == 0;
}

bool http2_head_method_is(const struct http2_head *h, struct slice method)
{
	return pseudo_is(h, HTTP2_METHOD, method);
}

static const char *check(const struct http2_head *h)
{
	const struct buf *pseudo = h->pseudo;
	struct slice method = buf_slice(&pseudo[HTTP2_METHOD]);

	if (!method.n || slice_token_length(method) != method.n)
		return "the method is malformed";
	if (!pseudo[HTTP2_AUTHORITY].len)
		return "there is no authority";
	if (pseudo_is(h, HTTP2_METHOD, SLICE("CONNECT")))
		return pseudo[HTTP2_SCHEME].len || pseudo[HTTP2_PATH].len
		               ? "CONNECT has a scheme or a path"
		               : NULL;
	if (!pseudo_is(h, HTTP2_SCHEME, SLICE("http")) &&
	        !pseudo_is(h, HTTP2_SCHEME, SLICE("https")))
		return "the scheme is neither http nor https";
	if (!pseudo[HTTP2_PATH].len || buf_bytes(&pseudo[HTTP2_PATH])[0] != '/')
		return "the path does not begin with /";
	return NULL;
}

static int write_request_line(const struct http2_head *h, struct buf *out)
{
	struct slice parts[HTTP2_PSEUDO_COUNT];

	for (size_t i = 0; i < HTTP2_PSEUDO_COUNT; i++)
		parts[i] = buf_slice(&h->pseudo[i]);
	if (!parts[HTTP2_PATH].n)
		return buf_printf(
		        out, "CONNECT %.*s HTTP/1.1\r\n", SLICE_ARG(parts[HTTP2_AUTHORITY]));
	if (pseudo_is(h, HTTP2_SCHEME, SLICE("https")))
		return buf_printf(out, "%.*s %.*s HTTP/1.1\r\n", SLICE_ARG(parts[HTTP2_METHOD]),
		        SLICE_ARG(parts[HTTP2_PATH]));
	return buf_printf(out, "%.*s http://%.*s%.*s HTTP/1.1\r\n", SLICE_ARG(parts[HTTP2_METHOD]),
	        SLICE_ARG(parts[HTTP2_AUTHORITY]), SLICE_ARG(parts[HTTP2_PATH]));
}

static int write_cookies(const struct http2_head *h, struct buf *out)
{
	int rc = buf_append_slice(out, SLICE("cookie: "));

	if (!rc)
		rc = buf_append_slice(out, buf_slice(&h->cookies));
	return rc ? rc : buf_append_slice(out, SLICE("\r\n"));
}

static int write_all(const struct http2_head *h, bool chunked, struct buf *out)
{
	const bool connects = !h->pseudo[HTTP2_PATH].len;
	int rc = write_request_line(h, out);

	if (!rc)
		rc = buf_printf(
		        out, "host: %.*s\r\n", SLICE_ARG(buf_slice(&h->pseudo[HTTP2_AUTHORITY])));
	if (!rc)
		rc = buf_append_slice(out, buf_slice(&h->lines));
	if (!rc && h->cookies.len)
		rc = write_cookies(h, out);
	if (!rc && chunked)
		rc = buf_append_slice(out, SLICE("transfer-encoding: chunked\r\n"));
	if (!rc && !connects)
		rc = buf_append_slice(out, SLICE("connection: close\r\n"));
	return rc ? rc : buf_append_slice(out, SLICE("\r\n"));
}

int http2_head_write(struct http2_head *h, bool ended, bool *chunked, struct buf *out)
{
	*chunked = false;
	if (!h->why && !h->too_large)
		h->why = check(h);
	if (h->too_large || h->why)
		return h->why ? -EBADMSG : -EFBIG;
	*chunked = !ended && !h->counted && h->pseudo[HTTP2_PATH].len;
	return write_all(h, *chunked, out);
}
