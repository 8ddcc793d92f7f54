/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "keeper/value.h"

static void test_good_values(void **state)
{
	static const struct {
		struct slice given, value;
	} rows[] = {
	        {SLICE("secret"), SLICE("secret")},
	        {SLICE("secret\n"), SLICE("secret")},
	        {SLICE("secret\r\n"), SLICE("secret")},
	        {SLICE("user:pass word"), SLICE("user:pass word")},
	        {SLICE("p\xc3\xa4ssword\n"), SLICE("p\xc3\xa4ssword")},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice v = rows[i].given;

		assert_null(value_check(&v));
		assert_true(slice_equals(v, rows[i].value));
	}
}

static void test_bad_values(void **state)
{
	static const struct slice rows[] = {
	        SLICE(""),
	        SLICE("\n"),
	        SLICE("\r\n"),
	        SLICE("\r"),
	        SLICE("short"),
	        SLICE("short\n"),
	        SLICE("short\r\n"),
	        SLICE("secret\n\n"),
	        SLICE("secret\r"),
	        SLICE("sec\nret"),
	        SLICE("sec\rret"),
	        SLICE("\nsecret"),
	        SLICE("\r\nsecret"),
	        SLICE("secret\0"),
	        SLICE("sec\0ret"),
	        SLICE("secret\0\n"),
	        SLICE("secret\n\r\n"),
	        SLICE("\0\0\0\0\0\0"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice v = rows[i];
		const char *why = value_check(&v);

		assert_non_null(why);
		assert_null(strstr(why, "secret"));
	}
}

static void test_size(void **state)
{
	static char big[VALUE_MAX + 1];
	struct slice v = slice_of(big, VALUE_MAX);

	(void)state;
	memset(big, 'x', sizeof(big));
	assert_null(value_check(&v));
	v.n = VALUE_MAX + 1;
	assert_non_null(value_check(&v));
	v.n = 6;
	assert_null(value_check(&v));
	v.n = 5;
	assert_non_null(value_check(&v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_good_values),
	        cmocka_unit_test(test_bad_values),
	        cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
