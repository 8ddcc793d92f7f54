/* SPDX-License-Identifier: Apache-2.0 */
/* slice: comparisons, numbers and escaping over bytes that are not text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>

#include "vethguard/base/slice.h"

static void compares(void **state)
{
	(void)state;
	assert_true(slice_equals(SLICE("ab"), SLICE("ab")));
	assert_true(slice_equals(slice_of(NULL, 0), SLICE("")));
	assert_false(slice_equals(SLICE("ab"), SLICE("aB")));
	assert_false(slice_equals(SLICE("ab"), SLICE("abc")));
	assert_true(slice_equals_ignoring_case(SLICE("Az-09"), SLICE("aZ-09")));
	assert_false(slice_equals_ignoring_case(SLICE("a"), SLICE("ab")));
	/* '@' and '`', '[' and '{' differ by the case bit but are not letters. */
	assert_false(slice_equals_ignoring_case(SLICE("@"), SLICE("`")));
	assert_false(slice_equals_ignoring_case(SLICE("["), SLICE("{")));
	assert_false(slice_equals_ignoring_case(SLICE("\xc4"), SLICE("\xe4")));
	assert_true(slice_starts_with(SLICE("abc"), SLICE("ab")));
	assert_true(slice_starts_with(SLICE(""), SLICE("")));
	assert_false(slice_starts_with(SLICE("a"), SLICE("ab")));
	assert_true(slice_ends_with(SLICE("abc"), SLICE("bc")));
	assert_true(slice_ends_with(SLICE("abc"), SLICE("")));
	assert_true(slice_ends_with(slice_of(NULL, 0), SLICE("")));
	assert_false(slice_ends_with(SLICE("c"), SLICE("bc")));
	assert_false(slice_ends_with(SLICE("abc"), SLICE("ab")));
}

static void finds_and_trims(void **state)
{
	(void)state;
	assert_int_equal(slice_find_byte(SLICE("a\0b"), 'b'), 2);
	assert_int_equal(slice_find_byte(SLICE("a\0b"), '\0'), 1);
	assert_int_equal(slice_find_byte(SLICE("abc"), 'd'), -1);
	assert_int_equal(slice_find_byte(slice_of(NULL, 0), 'd'), -1);
	assert_true(slice_equals(slice_trim(SLICE(" \t a b\t ")), SLICE("a b")));
	assert_true(slice_equals(slice_trim(SLICE(" \t ")), SLICE("")));
	assert_true(slice_equals(slice_trim(SLICE("\ra\n")), SLICE("\ra\n")));
}

static void reads_numbers(void **state)
{
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x1", "1a",
	        "18446744073709551616", "99999999999999999999", "101", "1.0"};
	uint64_t v = 7;

	(void)state;
	assert_true(slice_to_u64(SLICE("0"), 0, &v));
	assert_int_equal(v, 0);
	assert_true(slice_to_u64(SLICE("007"), 7, &v));
	assert_int_equal(v, 7);
	assert_true(slice_to_u64(SLICE("18446744073709551615"), UINT64_MAX, &v));
	assert_true(v == UINT64_MAX);
	v = 42;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(slice_to_u64(slice_from_string(bad[i]), 100, &v));
	assert_false(slice_to_u64(SLICE("18446744073709551616"), UINT64_MAX, &v));
	assert_false(slice_to_u64(SLICE("18446744073709551619"), UINT64_MAX, &v));
	assert_false(slice_to_u64(SLICE("1\0"), 100, &v));
	assert_int_equal(v, 42);
}

static void reads_hexadecimal_digits(void **state)
{
	static const char digits[] = "0123456789abcdefABCDEF";

	(void)state;
	for (int c = CHAR_MIN; c <= CHAR_MAX; c++) {
		const char *at = c ? strchr(digits, c) : NULL;
		int value = !at                ? -1
		            : at - digits < 16 ? (int)(at - digits)
		                               : (int)(at - digits) - 6;

		assert_int_equal(slice_hex_digit((char)c), value);
	}
}

static void escapes(void **state)
{
	char out[32];

	(void)state;
	assert_string_equal(slice_escape(SLICE("plain ~"), out, sizeof(out)), "plain ~");
	assert_string_equal(slice_escape(SLICE(""), out, sizeof(out)), "");
	assert_string_equal(slice_escape_controls(SLICE("\x1b[\\x1b\xc2\x9b"), out, sizeof(out)),
	        "\\x1b[\\x1b\\xc2\\x9b");
	assert_string_equal(slice_escape(SLICE("\x1b[0m\\\x7f\xff\0\n"), out, sizeof(out)),
	        "\\x1b[0m\\x5c\\x7f\\xff\\x00\\x0a");
}

/* Whatever fits, the result is terminated, is within bounds, and never ends inside an escape. */
static void cuts_with_dots(void **state)
{
	char out[16];

	(void)state;
	assert_string_equal(slice_escape(SLICE("12345678"), out, 9), "12345678");
	assert_string_equal(slice_escape(SLICE("123456789"), out, 9), "12345...");
	assert_string_equal(slice_escape(SLICE("1\n3\n"), out, 9), "1\\x0a...");
	assert_string_equal(slice_escape(SLICE("1\n34"), out, 9), "1\\x0a34");
	assert_string_equal(slice_escape(SLICE("\n\n\n"), out, 9), "\\x0a...");
	assert_string_equal(slice_escape(SLICE("abc"), out, 1), "");
	assert_string_equal(slice_escape(SLICE("abc"), out, 2), ".");
	assert_string_equal(slice_escape(SLICE("abc"), out, 3), "..");
	assert_string_equal(slice_escape(SLICE("abcd"), out, 4), "...");
	for (size_t size = 1; size < sizeof(out); size++) {
		memset(out, 'X', sizeof(out));
		slice_escape(SLICE("ab\nc\x80"
		                   "defghijklmnop"),
		        out, size);
		assert_true(strlen(out) < size);
		for (size_t i = size; i < sizeof(out); i++)
			assert_int_equal(out[i], 'X');
	}
}

static void test_tokens(void **state)
{
	static const char all[] = "!#$%&'*+-.^_`|~";

	(void)state;
	for (int c = 0; c < 256; c++) {
		char byte = (char)c;
		bool is = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		          (c >= 'A' && c <= 'Z') || (c && strchr(all, c));

		assert_int_equal(slice_token_length(slice_of(&byte, 1)), is);
	}
	assert_int_equal(slice_token_length(SLICE("")), 0);
	assert_int_equal(slice_token_length(SLICE("a-b c")), 3);
	assert_int_equal(slice_token_length(SLICE("abc")), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(compares),
	        cmocka_unit_test(finds_and_trims),
	        cmocka_unit_test(reads_numbers),
	        cmocka_unit_test(reads_hexadecimal_digits),
	        cmocka_unit_test(escapes),
	        cmocka_unit_test(cuts_with_dots),
	        cmocka_unit_test(test_tokens),
	};

	return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
