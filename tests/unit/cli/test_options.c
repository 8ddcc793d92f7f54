/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables and the environment list. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/environment.h"
#include "cli/options.h"
#include "cli/run_options.h"

enum { COLOR, FLAG, LOUD };

static const struct option_spec specs[] = {
        [COLOR] = {"color", 'c', "NAME", "a colour"},
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
	options_init(&o, "test", specs, WORDS(W("-")));
	assert_int_equal(options_next(&o), OPTIONS_END);
	assert_string_equal(*o.argv, "-");
}

static void mistakes_are_refused(void **state)
{
	char *const wrong[] = {W("--colour"), W("--colo"), W("-x"), W("--flag=1"), W("--color"),
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

static void a_list_of_variables(void **state)
{
	struct environment env;

	(void)state;
	environment_init(&env);
	environment_copy(&env, WORDS(W("A=1"), W("AB=2"), W("broken"), W("=x"), W("A=3")));
	assert_int_equal(env.count, 2);
	assert_string_equal(environment_get(&env, "A"), "3");
	environment_unset(&env, SLICE("A"));
	environment_unset(&env, SLICE("B"));
	assert_null(environment_get(&env, "A"));
	assert_string_equal(environment_get(&env, "AB"), "2");
	for (int i = 0; i < 1000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "V%d", i);
		environment_set(&env, slice_from_string(name), SLICE("x"));
	}
	assert_false(env.failed);
	assert_int_equal(env.count, 1001);
	assert_null(env.vars[1001]);
	environment_fini(&env);
	environment_copy_basic(&env,
	        WORDS(W("PATH=/bin"), W("LC_ALL=C"), W("AWS_SECRET_ACCESS_KEY=x"), W("PATHX=y")));
	assert_int_equal(env.count, 2);
	environment_fini(&env);
}

static void wiping_leaves_no_byte(void **state)
{
	char *value, *before;

	(void)state;
	setenv("VG_WIPE", "topsecret", 1);
	value = environment_own(SLICE("VG_WIPE"));
	before = value;
	assert_string_equal(value, "topsecret");
	assert_null(environment_own(SLICE("VG_WIP")));
	environment_wipe_own(SLICE("VG_WIPE"));
	assert_null(environment_own(SLICE("VG_WIPE")));
	assert_null(getenv("VG_WIPE"));
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(before[i], 0);
	environment_wipe_own(SLICE("VG_WIPE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_forms_of_values),
	        cmocka_unit_test(dashes_end_the_options),
	        cmocka_unit_test(mistakes_are_refused),
	        cmocka_unit_test(run_needs_policy_and_command),
	        cmocka_unit_test(more_variables_than_there_is_room_for_are_refused),
	        cmocka_unit_test(a_list_of_variables),
	        cmocka_unit_test(wiping_leaves_no_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
