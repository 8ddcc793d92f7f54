/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What seals logins. The data are read as a jar: a sound one consists of tokens, and stays sound
 * with one more. They are read as a multipart body, which succeeds or not. They are read as JSON:
 * the values that the reader reports lie inside it, one after the other, and a decoded string means
 * the same once it is written anew.
 */
#include <stdlib.h>

#include "proxy/exchange/fill.h"
#include "vethguard/credential/jar.h"
#include "vethguard/credential/json_reader.h"

#define TEXT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void add(struct slice bytes, struct slice value)
{
	struct secret jar = {0};
	char end[JAR_END_MAX];
	struct jar_token token, found;

	require(secret_copy(&jar, bytes.p, bytes.n) == 0);
	jar_seal(&token, value, SLICE("vethguard-login-0123456789abcdef"), end);
	require(token.end.n > 0 && token.end.n <= JAR_END_MAX);
	require((jar_add(&jar, &token) == 0) == jar_can_hold(value));
	require(jar_is_sound(secret_slice(&jar)));
	require(!jar_can_hold(value) || jar_has(secret_slice(&jar), value, &found));
	secret_free(&jar);
}

static void try_jar(struct slice bytes)
{
	struct slice secrets[JAR_TOKENS_MAX];
	struct jar_token token;
	size_t at, n;

	if (!jar_is_sound(bytes))
		return;
	require(jar_secrets(bytes, secrets) <= JAR_TOKENS_MAX);
	if (jar_find(bytes, bytes, &at, &n, &token))
		require(at <= bytes.n && n <= bytes.n - at);
	if (bytes.n)
		add(bytes, bytes);
}

static void try_string(struct slice text)
{
	static uint8_t plain[TEXT_MAX], written[6 * TEXT_MAX], again[TEXT_MAX];
	struct buf out = {.mem = plain, .cap = sizeof(plain), .max = sizeof(plain)};
	struct buf anew = {.mem = written, .cap = sizeof(written), .max = sizeof(written)};
	struct buf back = {.mem = again, .cap = sizeof(again), .max = sizeof(again)};

	if (json_decode(&out, text) < 0)
		return;
	require(out.len <= text.n);
	require(json_encode(&anew, buf_slice(&out)) == 0);
	require(json_decode(&back, buf_slice(&anew)) == 0);
	require(slice_equals(buf_slice(&out), buf_slice(&back)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(size ? data : (const uint8_t *)"", size);
	const char *last = text.p;
	struct json_reader r;
	struct json_value v;

	if (size > TEXT_MAX)
		return 0;
	try_jar(text);
	if (size >= 6)
		add(slice_of("\0\1\0\6xvalue1", 11), text);
	fill_check(&(struct fill_kind){FILL_MULTIPART, SLICE("b")}, text);
	try_string(text);
	json_reader_init(&r, text);
	while (json_reader_next(&r, &v)) {
		require(v.kind != JSON_VALUE_STRING ||
		        (v.text.p > last && v.text.p + v.text.n < text.p + text.n));
		last = v.kind == JSON_VALUE_STRING ? v.text.p + v.text.n : last;
		try_string(v.text);
		try_string(v.name);
	}
	return 0;
}
