/* SPDX-License-Identifier: Apache-2.0 */
/* Writing HTTP/1.1 heads from structs: start line, fields that were not dropped, framing made anew.
 */
#include <errno.h>
#include <stdio.h>

#include "proxy/http1.h"

/* Appends several slices with one bounds check. */
static int put(struct buf *out, const struct slice *parts, size_t count)
{
	size_t n = 0;
	uint8_t *p;

	for (size_t i = 0; i < count; i++)
		n += parts[i].n;
	p = buf_reserve(out, n);
	if (!p)
		return -ENOBUFS;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].n)
			memcpy(p, parts[i].p, parts[i].n);
		p += parts[i].n;
	}
	buf_commit(out, n);
	return 0;
}

#define PUT(out, ...)                                   \
	put((out), (const struct slice[]){__VA_ARGS__}, \
	        sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))

static int put_fields(struct buf *out, const struct http_fields *fields)
{
	int r = 0;

	for (size_t i = 0; i < fields->count && r == 0; i++) {
		const struct http_field *f = &fields->items[i];

		if (!f->dropped)
			r = PUT(out, f->name, SLICE(": "), f->value, SLICE("\r\n"));
	}
	return r;
}

static struct slice decimal(uint64_t v, char digits[24])
{
	char *p = digits + 24;

	do
		*--p = (char)('0' + v % 10);
	while ((v /= 10) != 0);
	return slice_of(p, (size_t)(digits + 24 - p));
}

static int put_framing(struct buf *out, enum http_body body, uint64_t length)
{
	char digits[24];

	if (body == HTTP_BODY_LENGTH)
		return PUT(out, SLICE("content-length: "), decimal(length, digits), SLICE("\r\n"));
	if (body == HTTP_BODY_CHUNKED)
		return PUT(out, SLICE("transfer-encoding: chunked\r\n"));
	return 0;
}

/* The host as it goes into the Host field; of an address the brackets too. */
static struct slice host_text(const struct url_authority *a, char text[POLICY_HOST_MAX + 16])
{
	char ip[IP_TEXT_MAX];
	int n;

	if (!a->address.family)
		return slice_of(a->host, a->host_n);
	n = snprintf(text, POLICY_HOST_MAX + 16, a->address.family == 6 ? "[%s]" : "%s",
	        ip_format(&a->address, ip));
	return slice_of(text, (size_t)n);
}

/* ":port", or nothing where the scheme implies it. */
static struct slice port_text(const struct http_request *r, char text[24])
{
	struct slice digits;

	if (!r->authority.port || r->authority.port == policy_scheme_default_port(r->scheme))
		return SLICE("");
	digits = decimal(r->authority.port, text);
	text[23 - digits.n] = ':';
	return slice_of(digits.p - 1, digits.n + 1);
}

int http1_write_request(struct buf *out, const struct http_request *r, bool has_query,
        struct slice query, struct slice extra)
{
	char host[POLICY_HOST_MAX + 16], port[24];
	int e = PUT(out, r->method, SLICE(" "), slice_of(r->path, r->path_n),
	        has_query ? SLICE("?") : SLICE(""), has_query ? query : SLICE(""),
	        SLICE(" HTTP/1.1\r\nHost: "), host_text(&r->authority, host), port_text(r, port),
	        SLICE("\r\n"));

	if (e == 0)
		e = put_fields(out, &r->fields);
	if (e == 0)
		e = put_framing(out, r->body, r->content_length);
	if (e == 0 && r->expects_continue)
		e = PUT(out, SLICE("Expect: 100-continue\r\n"));
	if (e == 0 && r->wants_websocket)
		e = PUT(out, SLICE("Connection: upgrade\r\nUpgrade: websocket\r\n"));
	if (e == 0)
		e = PUT(out, extra, SLICE("\r\n"));
	return e;
}

int http1_write_response(struct buf *out, const struct http_response *r, uint8_t client_version,
        bool keep_alive, struct slice upgrade)
{
	char status[24];
	int e = PUT(out, SLICE("HTTP/1.1 "), decimal(r->status, status), SLICE(" "), r->reason,
	        SLICE("\r\n"));

	if (e == 0)
		e = put_fields(out, &r->fields);
	if (e == 0)
		e = put_framing(out, r->body, r->content_length);
	if (e == 0 && upgrade.n)
		e = PUT(out, SLICE("Connection: upgrade\r\nUpgrade: "), upgrade, SLICE("\r\n"));
	else if (e == 0 && r->status / 100 != 1 && !keep_alive)
		e = PUT(out, SLICE("Connection: close\r\n"));
	else if (e == 0 && r->status / 100 != 1 && client_version < 11)
		e = PUT(out, SLICE("Connection: keep-alive\r\n"));
	if (e == 0)
		e = PUT(out, SLICE("\r\n"));
	return e;
}

size_t http1_chunk_head(char *out, size_t n)
{
	return (size_t)snprintf(out, 20, "%zx\r\n", n);
}
