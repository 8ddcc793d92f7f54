/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a query, and which of them a server may take for one of a given name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/policy/url.h"

static void test_next(void **state)
{
	struct slice rest = SLICE("&&a=b;c&=d;;&"), pair;

	(void)state;
	assert_true(url_parameter_next(&rest, &pair));
	assert_true(slice_equals(pair, SLICE("a=b")));
	assert_true(url_parameter_next(&rest, &pair));
	assert_true(slice_equals(pair, SLICE("c")));
	assert_true(url_parameter_next(&rest, &pair));
	assert_true(slice_equals(pair, SLICE("=d")));
	assert_false(url_parameter_next(&rest, &pair));
	rest = SLICE("");
	assert_false(url_parameter_next(&rest, &pair));
}

static void test_names(void **state)
{
	static const char *const same[] = {"key=1", "key", "key=", "%6bey=1", "k%65%79=1"};
	static const char *const other[] = {"", "=key", "ke=1", "keys=1", "xkey=1", "a=key=1",
	        "%6key=1", "%zzey=1", "k+ey=1", "%256bey=1"};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_true(url_parameter_is(slice_from_string(same[i]), SLICE("key")));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(url_parameter_is(slice_from_string(other[i]), SLICE("key")));
	assert_false(url_parameter_is(SLICE("KEY=1"), SLICE("key")));
	assert_true(url_parameter_is(SLICE("a+b=1"), SLICE("a b")));
}

static void test_resemblance(void **state)
{
	static const char *const same[] = {"api_key=1", "API%5fKEY=1", "api-key", "api.key=1",
	        "api+key=1", "+%20api_key=1", "api_key[]=1", "api_key%5Bx%5D=1"};
	static const char *const other[] = {"", "=api_key", "+", "[api_key]=1", "apikey=1",
	        "api_keys=1", "api__key=1", "x+api_key=1", "api_ke[y=1", "%2561pi_key=1"};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_true(url_parameter_resembles(slice_from_string(same[i]), SLICE("api_key")));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(
		        url_parameter_resembles(slice_from_string(other[i]), SLICE("api_key")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_next),
	        cmocka_unit_test(test_names),
	        cmocka_unit_test(test_resemblance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
