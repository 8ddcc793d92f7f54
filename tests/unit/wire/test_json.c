/* SPDX-License-Identifier: Apache-2.0 */
/* json: what is written is read back by another implementation, whatever bytes the strings held. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <jansson.h>

#include "vethguard/wire/json.h"

static struct buf out;

static int setup(void **state)
{
	(void)state;
	buf_init(&out, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&out);
	return 0;
}

/* The string literal that v becomes, without its quotes. */
static void expect_text(struct slice v, size_t max, const char *expected)
{
	struct json j;
	struct slice s;

	buf_fini(&out);
	json_begin(&j, &out);
	json_put_string(&j, NULL, v, max);
	assert_false(j.failed);
	s = buf_slice(&out);
	assert_true(s.n >= 2);
	assert_int_equal(s.p[0], '"');
	assert_int_equal(s.p[s.n - 1], '"');
	if (!slice_equals(slice_of(s.p + 1, s.n - 2), slice_from_string(expected)))
		fail_msg("%.*s is not %s", SLICE_ARG(s), expected);
}

static void nests_with_commas(void **state)
{
	struct json j;

	(void)state;
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_int(&j, "a", INT64_MIN);
	json_put_uint(&j, "b", UINT64_MAX);
	json_put_array(&j, "c");
	json_put_end_array(&j);
	json_put_array(&j, "d");
	json_put_null(&j, NULL);
	json_put_bool(&j, NULL, true);
	json_put_object(&j, NULL);
	json_put_end_object(&j);
	json_put_object(&j, NULL);
	json_put_literal(&j, "x", "y");
	json_put_end_object(&j);
	json_put_end_array(&j);
	json_put_bool(&j, "e", false);
	json_put_end_object(&j);
	assert_false(j.failed);
	assert_true(slice_equals(buf_slice(&out),
	        SLICE("{\"a\":-9223372036854775808,\"b\":18446744073709551615,\"c\":[],"
	              "\"d\":[null,true,{},{\"x\":\"y\"}],\"e\":false}")));
}

static void escapes(void **state)
{
	(void)state;
	expect_text(SLICE(""), 0, "");
	expect_text(slice_of(NULL, 0), 0, "");
	expect_text(SLICE("a\"b\\c/"), 0, "a\\\"b\\\\c/");
	expect_text(SLICE("\n\r\t\b\0\x1f"), 0, "\\n\\r\\t\\u0008\\u0000\\u001f");
	expect_text(SLICE("\x7f \xc2\x80 \xc2\x9b\xc2\x9f \xc2\xa0"), 0,
	        "\\u007f \\u0080 \\u009b\\u009f \xc2\xa0");
}

static void valid_utf8_passes(void **state)
{
	static const char *const texts[] = {"\xc3\xa4", "\xdf\xbf", "\xe0\xa0\x80", "\xe2\x82\xac",
	        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
	        "\xf4\x8f\xbf\xbf",
	        "a\xe2\x82\xac"
	        "b"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_text(slice_from_string(texts[i]), 0, texts[i]);
}

#define R "\xef\xbf\xbd"

static void invalid_bytes_are_replaced(void **state)
{
	(void)state;
	expect_text(SLICE("\x80"), 0, R);
	expect_text(SLICE("\xff\xfe"), 0, R R);
	expect_text(SLICE("\xc0\x80"), 0, R R); /* overlong NUL */
	expect_text(SLICE("\xc1\xbf"), 0, R R);
	expect_text(SLICE("\xe0\x9f\xbf"), 0, R R R);       /* overlong */
	expect_text(SLICE("\xed\xa0\x80"), 0, R R R);       /* surrogate */
	expect_text(SLICE("\xf0\x8f\xbf\xbf"), 0, R R R R); /* overlong */
	expect_text(SLICE("\xf4\x90\x80\x80"), 0, R R R R); /* beyond U+10FFFF */
	expect_text(SLICE("\xf5\x80\x80\x80"), 0, R R R R);
	expect_text(SLICE("\xe2\x82"), 0, R R); /* cut short */
	expect_text(SLICE("\xe2\x82x"), 0, R R "x");
	expect_text(SLICE("\xc3\""), 0, R "\\\""); /* a quote is never swallowed */
	expect_text(SLICE("\xf0\x90\x80\""), 0, R R R "\\\"");
}

static void long_strings_are_cut_at_a_character(void **state)
{
	(void)state;
	expect_text(SLICE("abc"), 3, "abc");
	expect_text(SLICE("abcd"), 3, "abc...");
	expect_text(SLICE("abc\xe2\x82\xac"), 6, "abc\xe2\x82\xac");
	expect_text(SLICE("abc\xe2\x82\xac!"), 6, "abc\xe2\x82\xac...");
	expect_text(SLICE("abc\xe2\x82\xac!"), 5, "abc...");
	expect_text(SLICE("abc\xe2\x82\xac!"), 4, "abc...");
	expect_text(SLICE("\xf0\x90\x80\x80!"), 3, "...");
	expect_text(SLICE("\xf0\x90\x80\x80!"), 1, "...");
	expect_text(SLICE("\x80\x80\x80\x80\x80"), 3, R R R "...");
	expect_text(SLICE("\xe2\x82xyz"), 2, R R "...");
	expect_text(SLICE("a\"\"\"\""), 2, "a\\\"...");
}

/* Any bytes at all give text that a strict parser takes. */
static void any_bytes_make_valid_json(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (int turn = 0; turn < 3000; turn++) {
		char bytes[48];
		struct json j;
		json_error_t error;
		json_t *tree;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			static const char often[] = "\xc2\xe2\xf0\x80\x9b\xed\xa0\"\\\0";

			seed = seed * 1664525 + 1013904223;
			bytes[i] = (seed >> 30) ? often[(seed >> 8) % 10] : (char)(seed >> 16);
		}
		buf_fini(&out);
		json_begin(&j, &out);
		json_put_array(&j, NULL);
		json_put_string(&j, NULL, slice_of(bytes, sizeof(bytes)), (size_t)turn % 60);
		json_put_end_array(&j);
		assert_false(j.failed);
		tree = json_loadb(buf_slice(&out).p, out.len, JSON_ALLOW_NUL, &error);
		assert_non_null(tree);
		json_decref(tree);
	}
}

static void says_when_it_does_not_fit(void **state)
{
	(void)state;
	for (size_t max = 0; max < 20; max++) {
		struct buf small;
		struct json j;

		buf_init(&small, max);
		json_begin(&j, &small);
		json_put_object(&j, NULL);
		json_put_literal(&j, "key", "1234\n678");
		json_put_end_object(&j);
		assert_int_equal(j.failed, max < 19);
		assert_true(small.len <= max);
		buf_fini(&small);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(nests_with_commas, setup, teardown),
	        cmocka_unit_test_setup_teardown(escapes, setup, teardown),
	        cmocka_unit_test_setup_teardown(valid_utf8_passes, setup, teardown),
	        cmocka_unit_test_setup_teardown(invalid_bytes_are_replaced, setup, teardown),
	        cmocka_unit_test_setup_teardown(
	                long_strings_are_cut_at_a_character, setup, teardown),
	        cmocka_unit_test_setup_teardown(any_bytes_make_valid_json, setup, teardown),
	        cmocka_unit_test(says_when_it_does_not_fit),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
