/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any fields as the head of a request in HTTP/2: lines "name=value" of the input. Beyond memory
 * safety: what is written is one head in HTTP/1.1 that the gateway's parser takes whole (or finds
 * too large), with the method and the form that the fields ask for.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/http2_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* Lines end with 0xff, so that fields may hold CR and LF. */
static void add_lines(struct http2_head *head, struct slice rest)
{
	while (rest.n) {
		ptrdiff_t end = slice_find_byte(rest, (char)0xff), equals;
		struct slice line = slice_of(rest.p, end < 0 ? rest.n : (size_t)end);

		equals = slice_find_byte(line, '=');
		if (equals >= 0)
			http2_head_add(head, slice_of(line.p, (size_t)equals),
			        slice_of(line.p + equals + 1, line.n - (size_t)equals - 1));
		rest = slice_of(rest.p + line.n, rest.n - line.n);
		if (rest.n)
			rest = slice_of(rest.p + 1, rest.n - 1);
	}
}

static void check(const struct http2_head *h, const struct buf *out, bool chunked)
{
	struct slice method = buf_slice(&h->pseudo[HTTP2_METHOD]),
	             scheme = buf_slice(&h->pseudo[HTTP2_SCHEME]);
	struct proxy_head head;
	size_t looked = 0;
	enum proxy_head_status status = proxy_head_parse(buf_bytes(out), out->len, &looked, &head);

	require(status != PROXY_HEAD_MORE || out->len >= PROXY_HEAD_MAX);
	if (status != PROXY_HEAD_DONE)
		return;
	require(head.used == out->len);
	require(slice_equals(head.method, method));
	require((head.form == PROXY_FORM_CONNECT) == slice_equals(method, SLICE("CONNECT")));
	require((head.form == PROXY_FORM_ABSOLUTE) == slice_equals(scheme, SLICE("http")));
	require((head.form == PROXY_FORM_ORIGIN) == slice_equals(scheme, SLICE("https")));
	require(chunked == (head.body == PROXY_BODY_CHUNKED));
	require(head.last && slice_equals(head.host, buf_slice(&h->pseudo[HTTP2_AUTHORITY])));
	require(head.form == PROXY_FORM_CONNECT || !head.upgrade);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const bool ended = size && data[0] & 1;
	struct http2_head head;
	struct buf out;
	bool chunked;

	if (!size)
		return 0;
	http2_head_init(&head);
	buf_init(&out, 4 * PROXY_HEAD_MAX);
	add_lines(&head, slice_of(data + 1, size - 1));
	if (http2_head_write(&head, ended, &chunked, &out) == 0)
		check(&head, &out, chunked);
	else
		require(out.len == 0);
	http2_head_fini(&head);
	buf_fini(&out);
	return 0;
}
