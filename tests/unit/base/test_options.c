/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/base/options.h"

enum { COLOR, FLAG, LOUD };

static const struct option_spec specs[] = {
        [COLOR] = {"color", 'c', "NAME", "a color"},
        [FLAG] = {"flag", 0, NULL, "a flag"},
        [LOUD] = {"loud", 'l', NULL, "louder"},
        {NULL, 0, NULL, NULL},
};

#define WORDS(...)                \
	(char *[])                \
	{                         \
		__VA_ARGS__, NULL \
	}
#define W(literal) ((char[]){literal})

static void both_forms_of_values(void **state)
{
	struct options o;

	(void)state;
	options_init(&o, "test", specs,
	        WORDS(W("--color=red"), W("--color"), W("blue"), W("-c"), W("x"), W("-cy"),
	                W("-lcz"), W("--color="), W("rest"), W("--flag")));
	assert_int_equal(options_next(&o), COLOR);
	assert_string_equal(o.value, "red");
	assert_int_equal(options_next(&o), COLOR);
	assert_string_equal(o.value, "blue");
	assert_int_equal(options_next(&o), COLOR);
	assert_string_equal(o.value, "x");
	assert_int_equal(options_next(&o), COLOR);
	assert_string_equal(o.value, "y");
	assert_int_equal(options_next(&o), LOUD);
	assert_int_equal(options_next(&o), COLOR);
	assert_string_equal(o.value, "z");
	assert_int_equal(options_next(&o), COLOR);
	assert_string_equal(o.value, "");
	assert_int_equal(options_next(&o), OPTIONS_END);
	assert_string_equal(*o.argv, "rest");
}

static void dashes_end_the_options(void **state)
{
	struct options o;

	(void)state;
	options_init(&o, "test", specs, WORDS(W("-ll"), W("--"), W("--flag")));
	assert_int_equal(options_next(&o), LOUD);
	assert_int_equal(options_next(&o), LOUD);
	assert_int_equal(options_next(&o), OPTIONS_END);
	assert_string_equal(*o.argv, "--flag");
	assert_int_equal(options_next(&o), OPTIONS_END); /* nor is any behind it */
	assert_string_equal(*o.argv, "--flag");
	options_init(&o, "test", specs, WORDS(W("-")));
	assert_int_equal(options_next(&o), OPTIONS_END);
	assert_string_equal(*o.argv, "-");
}

static void mistakes_are_refused(void **state)
{
	char *const wrong[] = {W("--color"), W("--colo"), W("-x"), W("--flag=1"), W("--color"),
	        W("-c"), W("---color"), W("--=x"), W("-l-"), W("--\x1b[31m")};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct options o;
		int got;

		options_init(&o, "test", specs, WORDS(wrong[i]));
		do
			got = options_next(&o);
		while (got == LOUD);
		if (got != OPTIONS_WRONG)
			fail_msg("%s was taken as %d", wrong[i], got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_forms_of_values),
	        cmocka_unit_test(dashes_end_the_options),
	        cmocka_unit_test(mistakes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
