/* SPDX-License-Identifier: Apache-2.0 */
/* The list of variables that a command gets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/adapter/environment.h"

#define WORDS(...)                \
	(char *[])                \
	{                         \
		__VA_ARGS__, NULL \
	}
#define W(literal) ((char[]){literal})

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
	        cmocka_unit_test(a_list_of_variables),
	        cmocka_unit_test(wiping_leaves_no_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
