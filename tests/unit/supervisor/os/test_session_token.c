/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: their form, that no two are alike, and that the hash is that of the text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "supervisor/os/session_token.h"
#include "vethguard/tls/digest.h"

static void the_hash_is_of_the_text(void **state)
{
	struct session_token token = {.from_count = 1};
	char text[SESSION_TOKEN_TEXT + 1];
	uint8_t hash[MESSAGE_TOKEN_HASH_BYTES];
	struct digest digest = {0};
	struct slice all;

	(void)state;
	assert_int_equal(session_token_make(&token, text), 0);
	assert_int_equal(strlen(text), SESSION_TOKEN_TEXT);
	assert_int_equal(token.from_count, 1);
	all = slice_from_string(text);
	assert_int_equal(digest_init(&digest), 0);
	assert_int_equal(digest_sha256(&digest, &all, 1, hash), 0);
	digest_fini(&digest);
	assert_memory_equal(hash, token.hash, sizeof(hash));
}

static void each_is_another(void **state)
{
	static char texts[200][SESSION_TOKEN_TEXT + 1];
	bool seen[256] = {false};
	struct session_token token = {0};
	size_t letters = 0;

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		assert_int_equal(session_token_make(&token, texts[i]), 0);
		assert_memory_equal(
		        texts[i], SESSION_TOKEN_PREFIX, sizeof(SESSION_TOKEN_PREFIX) - 1);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(texts[i], texts[k]);
		for (const char *p = texts[i] + sizeof(SESSION_TOKEN_PREFIX) - 1; *p; p++)
			seen[(uint8_t)*p] = true;
	}
	for (size_t i = 0; i < 256; i++) {
		letters += seen[i];
		if (seen[i])
			assert_non_null(
			        strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			               "0123456789-_",
			                (int)i));
	}
	assert_int_equal(letters, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_hash_is_of_the_text), cmocka_unit_test(each_is_another)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
