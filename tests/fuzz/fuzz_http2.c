/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header blocks of HTTP/2. The first byte says: request or response, ended or not, small limit or
 * not; the rest is a block as HPACK writes it, which nghttp2's inflater opens as it does for a
 * session, or the fields themselves, a length byte each for name and value. Bounds
 * hold whatever comes, and what is taken is canonical.
 */
#include <stdio.h>
#include <stdlib.h>

#include "proxy/http/http2.h"

#define MUST(condition)                                                                 \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

#define SMALL 200

static void add_copy(
        struct http2_block *b, const uint8_t *name, size_t n, const uint8_t *value, size_t m)
{
	char *copy = malloc(n + m + 1); /* a read beyond it shows */

	if (n)
		memcpy(copy, name, n);
	if (m)
		memcpy(copy + n, value, m);
	http2_block_add(b, slice_of(copy, n), slice_of(copy + n, m));
	free(copy);
	MUST(b->text.len <= b->text.max && b->cookies.len <= b->limit);
	MUST(b->count <= HTTP_FIELDS_MAX + HTTP2_PSEUDO_MAX);
	MUST(b->too_large || b->size <= b->limit);
}

static void add_inflated(struct http2_block *b, const uint8_t *p, size_t n)
{
	nghttp2_hd_inflater *inflater;

	MUST(nghttp2_hd_inflate_new(&inflater) == 0);
	for (;;) {
		nghttp2_nv field;
		int flags = 0;
		ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, p, n, 1);

		if (used < 0)
			break;
		p += used;
		n -= (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			add_copy(b, field.name, field.namelen, field.value, field.valuelen);
		else if (flags & NGHTTP2_HD_INFLATE_FINAL || !n)
			break;
	}
	nghttp2_hd_inflate_del(inflater);
}

static void add_plain(struct http2_block *b, const uint8_t *p, size_t n)
{
	while (n >= 2) {
		size_t name = p[0], value = p[1];

		p += 2;
		n -= 2;
		name = name < n ? name : n;
		value = value < n - name ? value : n - name;
		add_copy(b, p, name, p + name, value);
		p += name + value;
		n -= name + value;
	}
}

static void check_fields(const struct http_fields *fields)
{
	MUST(fields->count <= HTTP_FIELDS_MAX);
	for (size_t i = 0; i < fields->count; i++) {
		const struct http_field *f = &fields->items[i];

		MUST(!http2_check_field(f->name, f->value) && f->name.p[0] != ':');
		MUST(f->known == http_name_of(f->name));
		MUST(f->known != HTTP_CONNECTION && f->known != HTTP_TRANSFER_ENCODING &&
		        f->known != HTTP_UPGRADE && f->known != HTTP_KEEP_ALIVE);
	}
}

static void check_request(const struct http2_block *b, bool ended)
{
	static struct http_request r;
	struct http_fault fault = http2_read_request(b, ended, &r);

	MUST((fault.status != 0) == (fault.why != NULL));
	MUST(!b->too_large || fault.status == HTTP_FIELDS_TOO_LARGE ||
	        fault.status == HTTP_TARGET_TOO_LONG);
	if (fault.why)
		return;
	check_fields(&r.fields);
	MUST(!r.has_authority || r.authority.host_n <= POLICY_HOST_MAX);
	MUST(!r.has_authority || strlen(r.authority.host) == r.authority.host_n);
	MUST(r.method.n && r.method.n <= POLICY_METHOD_MAX);
	MUST(slice_token_length(r.method) == r.method.n);
	MUST(r.path_n <= sizeof(r.path) && !memchr(r.path, 0, r.path_n));
	MUST(!memmem(r.path, r.path_n, "/../", 4) && !memmem(r.path, r.path_n, "/./", 3));
	for (size_t i = 0; i < r.path_n; i++)
		MUST((uint8_t)r.path[i] > ' ' && (uint8_t)r.path[i] < 0x7f && r.path[i] != '#' &&
		        r.path[i] != '?');
	MUST(!ended || !r.content_length || r.body == HTTP_BODY_NONE);
	MUST(r.body != HTTP_BODY_UNTIL_CLOSE);
}

static void check_response(const struct http2_block *b, bool ended, bool no_body)
{
	static struct http_response r;
	const char *why = http2_read_response(b, ended, no_body, &r);

	if (why)
		return;
	check_fields(&r.fields);
	MUST(r.status >= HTTP_STATUS_MIN && r.status <= HTTP_STATUS_MAX);
	MUST(r.body != HTTP_BODY_UNTIL_CLOSE);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static nghttp2_nv trailers[8];
	struct http2_block block;
	uint8_t how;

	if (n < 2 || n > 100000)
		return 0;
	how = p[0];
	http2_block_init(&block, how & 4 ? SMALL : HTTP_HEAD_MAX);
	for (int again = 0; again < 2; again++) { /* an earlier block leaves nothing behind */
		http2_block_reset(&block);
		if (how & 8)
			add_plain(&block, p + 1, n - 1);
		else
			add_inflated(&block, p + 1, n - 1);
		if (how & 1)
			check_response(&block, how & 2, how & 16);
		else
			check_request(&block, how & 2);
	}
	http2_block_fini(&block);
	MUST(http2_put_lines(slice_of((const char *)p, n), trailers, 8) <= 8);
	return 0;
}
