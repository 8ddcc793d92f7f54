/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a question of another proxy: the head of a question by path, and the JSON of a
 * callback. Beyond memory safety: the request that is written from either is one request to a plain
 * host, whose head the strict parser reads, whose host is said once, and whose body has the length
 * that its head says.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/callback.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

/* Takes what off the beginning of *s. */
static void takes(struct slice *s, struct slice what)
{
	require(slice_starts_with(*s, what));
	*s = slice_of(s->p + what.n, s->n - what.n);
}

static struct slice until(struct slice s, char end)
{
	const ptrdiff_t at = slice_find_byte(s, end);

	require(at >= 0);
	return slice_of(s.p, (size_t)at);
}

/* Reads text as the worker will: the proxy's parser knows no https:// target, so the scheme is
 * written as http. */
static void check_request(struct slice text, bool has_body)
{
	struct slice rest = text, method = until(text, ' '), authority;
	struct proxy_head head;
	struct buf plain;
	size_t looked = 0;
	bool https;

	takes(&rest, method);
	https = slice_starts_with(rest, SLICE(" https://"));
	takes(&rest, https ? SLICE(" https://") : SLICE(" http://"));
	authority = until(rest, '/');
	buf_init(&plain, text.n + 16);
	require(buf_append_slice(&plain, method) == 0);
	require(buf_append_slice(&plain, SLICE(" http://")) == 0);
	require(buf_append_slice(&plain, rest) == 0);
	require(proxy_head_parse(buf_bytes(&plain), plain.len, &looked, &head) != PROXY_HEAD_MORE ||
	        plain.len > PROXY_HEAD_MAX);
	if (head.used) {
		require(slice_equals(head.host, authority));
		require(slice_find_byte(authority, '@') < 0);
		require(head.form == PROXY_FORM_ABSOLUTE);
		require(!has_body || plain.len - head.used == head.length);
	}
	buf_fini(&plain);
}

static void try_head(const uint8_t *data, size_t size)
{
	struct proxy_head head;
	struct callback q;
	struct buf out;
	size_t looked = 0;

	if (proxy_head_parse(data, size, &looked, &head) != PROXY_HEAD_DONE ||
	        callback_parse(data, &head, &q) || q.kind != CALLBACK_CHECK)
		return;
	require(!base_url_check_path(q.url.path) && base_url_is_authority(q.url.authority));
	buf_init(&out, 4 * PROXY_HEAD_MAX);
	require(callback_write_check(data, &head, &q, &out) == 0);
	check_request(buf_slice(&out), false);
	buf_fini(&out);
}

static void try_json(const uint8_t *data, size_t size)
{
	bool tells_body;
	struct buf out;

	buf_init(&out, CALLBACK_REQUEST_MAX);
	if (size <= CALLBACK_BODY_MAX &&
	        !callback_write_described(slice_of(data, size), false, &tells_body, &out))
		check_request(buf_slice(&out), tells_body);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_head(data, size);
	try_json(data, size);
	return 0;
}
