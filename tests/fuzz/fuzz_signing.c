/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parsers for signing a request. The first byte says which: the keys that a source gave; a body
 * in signed chunks, cut into pieces, whose output is as long as its input and changes nothing but
 * signatures; a request's head, whose own signature is read, and whose query is written in one way.
 */
#include <stdlib.h>

#include "proxy/signing/signature.h"
#include "vethguard/credential/aws_keys.h"
#include "vethguard/sign/aws_chunked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static bool is_inside(struct slice part, struct slice whole)
{
	return !part.n || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void read_keys(struct slice value)
{
	const char *error = NULL;
	struct aws_keys *keys = aws_keys_new(value, &error);

	require(keys || error);
	if (!keys)
		return;
	require(keys->id.n && keys->id.n <= AWS_KEY_ID_MAX && keys->secret.n >= AWS_SECRET_MIN);
	require(is_inside(keys->id, secret_slice(&keys->memory)));
	require(is_inside(keys->secret, secret_slice(&keys->memory)));
	require(is_inside(keys->token, secret_slice(&keys->memory)));
	aws_keys_free(keys);
}

static void read_chunks(struct hmac *hmac, const uint8_t *p, size_t n, size_t piece, bool trailer)
{
	static const uint8_t key[HMAC_BYTES];
	struct sigv4_scope scope = {
	        .time = "20130524T000000Z", .region = SLICE("us-east-1"), .service = SLICE("s3")};
	struct aws_chunked c;
	const uint8_t *sent = p;
	size_t at = 0;
	int rc = aws_chunked_init(&c, hmac, key, &scope, SIGV4_EMPTY, trailer);

	require(rc == 0);
	while (at < n && rc == 0) {
		size_t take = piece < n - at ? piece : n - at;

		rc = aws_chunked_take(&c, p + at, take);
		at += take;
		require(c.ready <= c.out.len && c.out.len <= at - (size_t)(sent - p));
		for (size_t i = 0; i < c.ready; i++) {
			uint8_t was = sent[i], now = buf_bytes(&c.out)[i];

			require(was == now || (slice_hex_digit((char)was) >= 0 &&
			                              slice_hex_digit((char)now) >= 0));
		}
		sent += c.ready;
		aws_chunked_sent(&c, c.ready);
	}
	require(!rc == !c.why);
	if (rc == 0 && aws_chunked_is_whole(&c))
		require(sent == p + n);
	aws_chunked_fini(&c);
}

static void write_query(struct slice query)
{
	struct buf once, twice;

	buf_init(&once, 1 << 16);
	buf_init(&twice, 1 << 16);
	if (sigv4_write_query(&once, query) == 0) {
		require(sigv4_write_query(&twice, buf_slice(&once)) == 0);
		require(slice_equals(buf_slice(&once), buf_slice(&twice)));
	}
	buf_fini(&once);
	buf_fini(&twice);
}

/* Lines: the query, then fields. */
static void read_request(struct slice text)
{
	static struct http_request r;
	static struct signature signature;
	const struct policy_credential spec = {.field = SLICE("us-east-1"), .prefix = SLICE("s3")};
	bool first = true;

	r.fields.count = 0;
	while (text.n) {
		ptrdiff_t end = slice_find_byte(text, '\n');
		struct slice line = slice_of(text.p, end < 0 ? text.n : (size_t)end);
		ptrdiff_t colon = slice_find_byte(line, ':');

		if (first) {
			r.has_query = true;
			r.query = line;
		} else if (colon > 0) {
			http_add(&r.fields, slice_of(line.p, (size_t)colon),
			        slice_trim(
			                slice_of(line.p + colon + 1, line.n - (size_t)colon - 1)));
		}
		first = false;
		text = end < 0 ? SLICE("") : slice_of(text.p + end + 1, text.n - (size_t)end - 1);
	}
	signature_read(&r, &signature);
	write_query(r.query);
	if (signature_check(&signature, &spec))
		return;
	require(slice_equals(signature.region, SLICE("us-east-1")));
	require(slice_equals(signature.service, SLICE("s3")));
	require(signature.decoded_n <= sizeof(signature.decoded));
	signature_covers(&signature, SLICE("host"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hmac hmac;

	if (!hmac.pads.p)
		require(hmac_init(&hmac) == 0);
	if (size < 2)
		return 0;
	switch (data[0] % 4) {
	case 0:
		read_keys(slice_of(data + 1, size - 1));
		break;
	case 1:
		read_request(slice_of(data + 1, size - 1));
		break;
	default:
		read_chunks(&hmac, data + 2, size - 2, 1u + data[1], data[0] % 4 == 3);
	}
	return 0;
}
