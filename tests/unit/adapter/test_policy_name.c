/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name: a name cannot lead to any other file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/adapter/policy_name.h"

static char directory[] = "/tmp/policy-name-XXXXXX";

static void put(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	put("agent.yaml");
	put("build-7.yaml");
	put("notes.txt");
	put(".hidden.yaml");
	return 0;
}

static int clean(void **state)
{
	char command[PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static void test_a_policy_that_is_there(void **state)
{
	char path[PATH_MAX], expected[PATH_MAX], fault[POLICY_NAME_FAULT_MAX];

	(void)state;
	assert_true(policy_name_resolve(directory, "build-7", path, fault));
	snprintf(expected, sizeof(expected), "%s/build-7.yaml", directory);
	assert_string_equal(path, expected);
}

static void test_names_that_are_none(void **state)
{
	static const char *const names[] = {"", ".", "..", "../agent", "/etc/passwd", "a/b",
	        ".hidden", "-x", "_x", "a b", "a\n", "\xc3\xa4", "a%", "a\\b"};
	char path[PATH_MAX], fault[POLICY_NAME_FAULT_MAX], longer[POLICY_FILE_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(policy_name_is_valid(names[i]));
		assert_false(policy_name_resolve(directory, names[i], path, fault));
		assert_non_null(strstr(fault, "is not a policy's name"));
		assert_null(strchr(fault, '\n'));
	}
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_false(policy_name_is_valid(longer));
	longer[POLICY_FILE_NAME_MAX] = '\0';
	assert_true(policy_name_is_valid(longer));
}

static void test_a_policy_that_is_missing(void **state)
{
	char path[PATH_MAX], fault[POLICY_NAME_FAULT_MAX];

	(void)state;
	assert_false(policy_name_resolve(directory, "agnet", path, fault));
	assert_non_null(strstr(fault, "there is no policy agnet in /tmp/policy-name-"));
	assert_non_null(strstr(fault, "there are: agent, build-7)"));
	assert_false(policy_name_resolve("/nonexistent", "agent", path, fault));
	assert_non_null(strstr(fault, "put agent.yaml there"));
}

static void test_a_folder_is_no_policy(void **state)
{
	char path[PATH_MAX], fault[POLICY_NAME_FAULT_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/folder.yaml", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(policy_name_resolve(directory, "folder", path, fault));
}

static void test_many_policies_are_cut(void **state)
{
	char path[PATH_MAX], fault[POLICY_NAME_FAULT_MAX], name[64];

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "policy-with-a-rather-long-name-%03u.yaml", i);
		put(name);
	}
	assert_false(policy_name_resolve(directory, "none", path, fault));
	assert_non_null(strstr(fault, ", ...)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_a_policy_that_is_there),
	        cmocka_unit_test(test_names_that_are_none),
	        cmocka_unit_test(test_a_policy_that_is_missing),
	        cmocka_unit_test(test_a_folder_is_no_policy),
	        cmocka_unit_test(test_many_policies_are_cut),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
