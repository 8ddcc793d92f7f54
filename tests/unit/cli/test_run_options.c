/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `vethguard run`. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/run_options.h"

#define WORDS(...)                \
	(char *[])                \
	{                         \
		__VA_ARGS__, NULL \
	}
#define W(literal) ((char[]){literal})

static void run_needs_policy_and_command(void **state)
{
	struct run_options o;
	int status = 0;

	(void)state;
	assert_int_equal(run_options_parse(WORDS(W("--"), W("true")), &o, &status), -1);
	assert_int_equal(status, 125);
	assert_int_equal(run_options_parse(WORDS(W("--policy="), W("true")), &o, &status), -1);
	assert_int_equal(run_options_parse(WORDS(W("--policy=p")), &o, &status), -1);
	assert_int_equal(run_options_parse(WORDS(W("--policy=p"), W("")), &o, &status), -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("-vv"), W("true"), W("-v")), &o, &status), 0);
	assert_int_equal(o.verbose, 2);
	assert_string_equal(o.command[1], "-v");
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--name"), W("../x"), W("true")), &o, &status),
	        -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--env"), W("=x"), W("true")), &o, &status),
	        -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--env"), W("A B=x"), W("true")), &o, &status),
	        -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("-eA=b=c"), W("true")), &o, &status), 0);
	assert_string_equal(o.env[0], "A=b=c");
	assert_int_equal(
	        run_options_parse(WORDS(W("-pp"), W("--policy=q"), W("true")), &o, &status), -1);
	assert_int_equal(
	        run_options_parse(WORDS(W("a.yaml"), W("--"), W("true")), &o, &status), -1);
}

static void more_variables_than_there_is_room_for_are_refused(void **state)
{
	static char policy[] = "-pp", variable[] = "-eA=1", command[] = "true";
	char *words[RUN_ENV_MAX + 4];
	struct run_options o;
	int status = 0;
	size_t n = 0;

	(void)state;
	words[n++] = policy;
	for (size_t i = 0; i < RUN_ENV_MAX; i++)
		words[n++] = variable;
	words[n] = command;
	words[n + 1] = NULL;
	assert_int_equal(run_options_parse(words, &o, &status), 0);
	words[n++] = variable;
	words[n] = command;
	words[n + 1] = NULL;
	assert_int_equal(run_options_parse(words, &o, &status), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(run_needs_policy_and_command),
	        cmocka_unit_test(more_variables_than_there_is_room_for_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
