/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of AWS as sources give them, and invalid values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "vethguard/credential/aws_keys.h"

#define ID "AKIAIOSFODNN7EXAMPLE"
#define KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define TOKEN "FwoGZXIvYXdz//+token=="

static void test_read(void **state)
{
	static const struct {
		const char *value, *token;
	} rows[] = {
	        {ID ":" KEY, ""},
	        {ID ":" KEY ":" TOKEN, TOKEN},
	        {"{\"Version\": 1, \"AccessKeyId\": \"" ID "\", \"SecretAccessKey\": \"" KEY
	         "\", \"SessionToken\": \"" TOKEN "\", \"Expiration\": \"2026-01-01T00:00:00Z\"}",
	                TOKEN},
	        {"{\"Code\":\"Success\",\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY
	         "\",\"Token\":\"" TOKEN "\"}",
	                TOKEN},
	        {"{\"Credentials\": {\"SecretAccessKey\": \"" KEY "\", \"AccessKeyId\": \"" ID
	         "\"}, \"AssumedRoleUser\": {\"Arn\": \"a\", \"x\": [1, {\"y\": []}, {}]}}",
	                ""},
	        {"{\"access_key\":\"" ID "\",\"secret_key\":\"" KEY
	         "\",\"security_token\":null,\"n\":-1.5e3,\"b\":false}",
	                ""},
	        {"{\"AWS_ACCESS_KEY_ID\":\"" ID "\",\"AWS_SECRET_ACCESS_KEY\":\"" KEY
	         "\",\"AWS_SESSION_TOKEN\":\"\"}",
	                ""},
	        {"{ \"a\" : \"\\\"\\\\\" , \"AccessKeyId\" : \"" ID
	         "\" , \"SecretAccessKey\" : \"wJalrXUtnFEMI\\/K7MDENG\\/bPxRfiCYEXAMPLEKEY\" }  ",
	                ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *error;
		struct aws_keys *keys = aws_keys_new(slice_from_string(rows[i].value), &error);

		if (!keys)
			fail_msg("row %zu: %s", i, error);
		assert_true(slice_equals(keys->id, SLICE(ID)));
		assert_true(slice_equals(keys->secret, SLICE(KEY)));
		assert_true(slice_equals(keys->token, slice_from_string(rows[i].token)));
		aws_keys_free(keys);
	}
}

#define EIGHT(x) x x x x x x x x
#define DEEP EIGHT("[[[[[[[[") /* 64 arrays, inside of an object */
#define DEEP_END EIGHT("]]]]]]]]")

static void test_refused(void **state)
{
	static const char *const values[] = {
	        "",
	        ID,
	        ":" KEY,
	        ID ":",
	        ID "::" TOKEN,
	        ID ":short",
	        "AKIA/EXAMPLE:" KEY,
	        "AKIA EXAMPLE:" KEY,
	        ID ":with blank",
	        ID ":with\x01"
	           "control",
	        ID ":" KEY ":tok en",
	        ID ":" KEY ":\xc3\xa4",
	        "{",
	        "{}",
	        "{} x",
	        "{\"AccessKeyId\":\"" ID "\"}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\"",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\"}}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\",}",
	        "{\"AccessKeyId\":\"" ID "\" \"SecretAccessKey\":\"" KEY "\"}",
	        "{\"AccessKeyId\" \"" ID "\",\"SecretAccessKey\":\"" KEY "\"}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\"]",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":" KEY "}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\",\"x\":@}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"a\\u002bbcdefgh\"}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\\\"}",
	        "{\"AccessKeyId\":\"" ID "\",\"accesskeyid\":\"" ID "\",\"SecretAccessKey\":\"" KEY
	        "\"}",
	        "{\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY
	        "\",\"Token\":\"a\",\"SessionToken\":\"b\"}",
	        "{\"AccessKeyId\":\"a\nb\",\"SecretAccessKey\":\"" KEY "\"}",
	        "{\"a\":" DEEP "1" DEEP_END ",\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY
	        "\"}",
	        "{\"a\":1,\"a\":2,\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\"}",
	        "{\"a\":\"\\ud83d\",\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\"}",
	        "[\"AccessKeyId\"]",
	        "{\"x\":{\"y\":1],\"AccessKeyId\":\"" ID "\",\"SecretAccessKey\":\"" KEY "\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		const char *error = NULL;
		struct aws_keys *keys = aws_keys_new(slice_from_string(values[i]), &error);

		if (keys)
			fail_msg("row %zu was taken", i);
		assert_non_null(error);
		assert_null(strstr(error, "wJalr"));
	}
}

/* Each part at its bound, and one byte more. */
static void test_bounds(void **state)
{
	static const size_t bounds[] = {AWS_KEY_ID_MAX, SIGV4_SECRET_MAX, AWS_TOKEN_MAX};
	static char value[16384];

	(void)state;
	for (size_t which = 0; which < 3; which++)
		for (size_t more = 0; more < 2; more++) {
			size_t n[] = {20, 40, 8};
			const char *error;
			struct aws_keys *keys;
			size_t at = 0;

			n[which] = bounds[which] + more;
			for (size_t i = 0; i < 3; i++) {
				memset(value + at, 'k', n[i]);
				at += n[i];
				value[at++] = i < 2 ? ':' : '\0';
			}
			keys = aws_keys_new(slice_from_string(value), &error);
			assert_int_equal(keys != NULL, !more);
			aws_keys_free(keys);
		}
}

/* The day's key is made once for a day, region and service. */
static void test_day_key(void **state)
{
	struct sigv4_scope scope = {.region = SLICE("us-east-1"), .service = SLICE("s3")};
	uint8_t first[HMAC_BYTES], expected[HMAC_BYTES];
	struct hmac hmac;
	const char *error;
	struct aws_keys *keys = aws_keys_new(SLICE(ID ":" KEY), &error);

	(void)state;
	assert_non_null(keys);
	assert_int_equal(hmac_init(&hmac), 0);
	sigv4_time(1369353600, scope.time);
	assert_int_equal(sigv4_key(&hmac, SLICE(KEY), &scope, expected), 0);
	memcpy(first, aws_keys_for(keys, &hmac, &scope), HMAC_BYTES);
	assert_memory_equal(first, expected, HMAC_BYTES);
	sigv4_time(1369353600 + 86399, scope.time);
	assert_memory_equal(aws_keys_for(keys, &hmac, &scope), first, HMAC_BYTES);
	sigv4_time(1369353600 + 86400, scope.time);
	assert_memory_not_equal(aws_keys_for(keys, &hmac, &scope), first, HMAC_BYTES);
	sigv4_time(1369353600, scope.time);
	scope.service = SLICE("sts");
	assert_memory_not_equal(aws_keys_for(keys, &hmac, &scope), first, HMAC_BYTES);
	scope.service = SLICE("s3");
	assert_memory_equal(aws_keys_for(keys, &hmac, &scope), first, HMAC_BYTES);
	aws_keys_free(keys);
	hmac_fini(&hmac);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_read),
	        cmocka_unit_test(test_refused),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_day_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
