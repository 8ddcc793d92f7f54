/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What seals logins. The data are read as a jar: a sound one consists of tokens, and stays sound
 * with one more. They are read as a multipart body, which succeeds or not. They are read as JSON:
 * the strings that the reader reports lie inside it, one after the other, and mean the same once
 * they are written anew.
 */
#include <stdlib.h>

#include "proxy/inject/fill.h"
#include "vethguard/credential/jar.h"
#include "vethguard/policy/json.h"

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

static void try_string(struct slice meant)
{
	static uint8_t written[6 * TEXT_MAX + 2];
	struct buf anew = {.mem = written, .cap = sizeof(written), .max = sizeof(written)};
	struct json_tree tree;

	require(buf_append(&anew, "\"", 1) == 0 && json_escape(&anew, meant) == 0 &&
	        buf_append(&anew, "\"", 1) == 0);
	require(json_read(&tree, buf_slice(&anew)) == 0);
	require(slice_equals(json_text(&tree, json_at(&tree, 0)), meant));
	json_fini(&tree);
}

static void try_json(struct slice text)
{
	static char decoded[TEXT_MAX];
	const char *last = text.p;
	struct json_tree tree;

	if (json_read_into(&tree, text, decoded) == 0)
		for (uint32_t i = 0; i < tree.count; i++) {
			const struct json_value *v = json_at(&tree, i);
			struct slice written = json_written(&tree, v);

			if (v->kind != JSON_IS_KEY && v->kind != JSON_IS_STRING)
				continue;
			require(written.p > last && written.p + written.n < text.p + text.n);
			require(written.p[-1] == '"' && written.p[written.n] == '"');
			require(written.n >= json_text(&tree, v).n);
			last = written.p + written.n;
			try_string(json_text(&tree, v));
		}
	json_fini(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(size ? data : (const uint8_t *)"", size);

	if (size > TEXT_MAX)
		return 0;
	try_jar(text);
	if (size >= 6)
		add(slice_of("\0\1\0\6xvalue1", 11), text);
	fill_check(&(struct fill_kind){FILL_MULTIPART, SLICE("b")}, text);
	try_json(text);
	return 0;
}
