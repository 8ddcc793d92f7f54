/* SPDX-License-Identifier: Apache-2.0 */
/* The pairs of a Cookie field, and which of them a server may take for one of a given name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/http/cookie.h"

static void expect_pairs(const char *field, const char *const *pairs)
{
	struct slice rest = slice_from_string(field), pair;

	for (; *pairs; pairs++) {
		assert_true(cookie_next(&rest, &pair));
		assert_true(slice_equals(pair, slice_from_string(*pairs)));
	}
	assert_false(cookie_next(&rest, &pair));
}

static void test_pairs(void **state)
{
	(void)state;
	expect_pairs("", (const char *const[]){NULL});
	expect_pairs(" ;; ; ", (const char *const[]){NULL});
	expect_pairs("a=b", (const char *const[]){"a=b", NULL});
	expect_pairs("a=b; c = d;e;  f=\"g\" ",
	        (const char *const[]){"a=b", "c = d", "e", "f=\"g\"", NULL});
}

static void test_names(void **state)
{
	static const char *const same[] = {"session=1", "session", "session=", "SESSION=1",
	        "Session =1", "sess%69on=1", "session\t=2", "%73%65ssion=1", "a=1 session=2",
	        "a=1,session=2", "a=1\tsession", "a=1, Session =2"};
	static const char *const other[] = {"", "=session", "sessio=1", "session2=1", "xsession=1",
	        "a=session=1", "sess%6=1", "sess%zzion=1", "$session=1", "%2573ession=1",
	        "a=1 xsession=2", "a=1 sessions=2", "a=1, ", "a=1 =session"};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_true(cookie_is(slice_from_string(same[i]), SLICE("session")));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(cookie_is(slice_from_string(other[i]), SLICE("session")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_pairs),
	        cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
