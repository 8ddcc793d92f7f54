/* SPDX-License-Identifier: Apache-2.0 */
/* Which names and paths are those of prepared namespaces, and which are somebody else's: what is
 * not vethguard's is never removed. And the names that a tap can have. */
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

#include "cli/prepare/ready.h"
#include "cli/prepare/tap.h"

static void names(void **state)
{
	static const char *const ours[] = {"ready-1", "ready-0", "ready-99999"};
	static const char *const others[] = {"ready", "ready-", "ready-x", "ready-1x",
	        "ready-100000", "ready1", "already-1", "ready--1", "ready-1-2", "", "READY-1",
	        "ready-18446744073709551616"};
	const struct ready pool = {.directory = "/run/netns", .prefix = "ready"};

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_true(ready_owns(&pool, ours[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(ready_owns(&pool, others[i]));
}

static void paths(void **state)
{
	static const char *const others[] = {"/run/netns", "/run/netns/", "/run/netns/box",
	        "ready-1", "/run/netnsx/ready-1", "/run/netns/x/ready-1", "/run/netns//ready-1",
	        ""};
	const struct ready pool = {.directory = "/run/netns", .prefix = "ready"};
	const char *name = NULL;

	(void)state;
	assert_true(ready_owns_path(&pool, "/run/netns/ready-7", &name));
	assert_string_equal(name, "ready-7");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(ready_owns_path(&pool, others[i], &name));
}

static void the_next_name_has_no_file(void **state)
{
	char folder[] = "/tmp/test_ready.XXXXXX", path[64], name[MESSAGE_NAME_MAX + 1];
	struct ready pool = {.prefix = "r"};
	unsigned number = 0;

	(void)state;
	assert_non_null(mkdtemp(folder));
	pool.directory = folder;
	for (int i = 1; i <= 3; i += 2) { /* r-1 and r-3 */
		snprintf(path, sizeof(path), "%s/r-%d", folder, i);
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	assert_true(ready_next_name(&pool, &number, name));
	assert_string_equal(name, "r-2");
	assert_true(ready_next_name(&pool, &number, name));
	assert_string_equal(name, "r-4");
	number = READY_NUMBER_MAX;
	assert_false(ready_next_name(&pool, &number, name));
	/* A sweep leaves alone namespaces that may have a link, and files of others. */
	snprintf(path, sizeof(path), "%s/other", folder);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	ready_sweep(&pool, NULL, NULL);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	for (int i = 1; i <= 3;
	        i += 2) { /* gone, or left where this user may not enter namespaces */
		snprintf(path, sizeof(path), "%s/r-%d", folder, i);
		unlink(path);
	}
	assert_int_equal(rmdir(folder), 0);
}

static void names_of_taps(void **state)
{
	static const char *const bad[] = {"", "eth0", "lo", "vgbr0", ".", "..", "a/b", "a b",
	        "tap%d", "a:1", "sixteen-letters-", "a\tb"};

	(void)state;
	assert_true(tap_name_is_valid("tap0"));
	assert_true(tap_name_is_valid("fifteen-letters"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(tap_name_is_valid(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(paths),
	        cmocka_unit_test(the_next_name_has_no_file), cmocka_unit_test(names_of_taps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
