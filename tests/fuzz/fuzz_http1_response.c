/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a response in HTTP/1.1. Beyond memory safety: how the bytes are cut does not matter,
 * neither for the head nor for the content; what is content lies within what came.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/http1_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* Takes pieces of step bytes. Returns a hash of the content. */
static uint64_t take(const struct http1_response *head, const uint8_t *p, size_t n, size_t step,
        size_t *used, enum http1_content_state *end)
{
	struct http1_content c;
	uint64_t hash = 14695981039346656037u;

	http1_content_begin(&c, head);
	for (*used = 0; *used < n;) {
		const size_t piece = n - *used < step ? n - *used : step;
		struct slice part;
		const size_t took = http1_content_take(&c, p + *used, piece, &part);

		require(took <= piece && part.n <= took);
		require(!part.n || (const uint8_t *)part.p == p + *used);
		for (size_t i = 0; i < part.n; i++)
			hash = (hash ^ (uint8_t)part.p[i]) * 1099511628211u;
		*used += took;
		if (!took)
			break;
	}
	*end = c.state;
	return hash;
}

static void check_content(const struct http1_response *head, const uint8_t *p, size_t n)
{
	enum http1_content_state whole, cut;
	size_t used, used_cut;
	uint64_t hash = take(head, p, n, n ? n : 1, &used, &whole);

	require(take(head, p, n, 1, &used_cut, &cut) == hash);
	require(used == used_cut && whole == cut);
	require(used == n || whole == HTTP1_CONTENT_OVER || whole == HTTP1_CONTENT_BAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const enum http1_request_kind request = size ? data[0] % 3 : 0;
	const uint8_t *p = data + (size > 0);
	const size_t n = size - (size > 0);
	struct http1_response head, shorter;
	size_t looked = 0, half = 0, at = 0, count = 0;
	struct slice name, value;
	enum http1_response_status before =
	        http1_response_parse(p, n / 2, &half, request, &shorter);
	enum http1_response_status after = http1_response_parse(p, n, &half, request, &shorter);
	enum http1_response_status status = http1_response_parse(p, n, &looked, request, &head);

	require(before == HTTP1_RESPONSE_MORE || before == status);
	require(before != HTTP1_RESPONSE_MORE || after == status);
	if (status != HTTP1_RESPONSE_DONE)
		return 0;
	require(head.used <= n && head.used <= HTTP1_RESPONSE_HEAD_MAX);
	require(head.status >= 100 && head.status <= 599);
	while (http1_response_next_field(p, &head, &at, &name, &value)) {
		require(name.n && slice_token_length(name) == name.n);
		require(slice_find_byte(value, '\r') < 0 && slice_find_byte(value, '\n') < 0);
		count++;
	}
	require(count == head.field_count && count <= HTTP1_RESPONSE_FIELDS_MAX);
	check_content(&head, p + head.used, n - head.used);
	return 0;
}
