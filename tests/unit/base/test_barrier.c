/* SPDX-License-Identifier: Apache-2.0 */
/* Which directory keeps a user from a file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/barrier.h"

static char folder[] = "/tmp/vethguard-test-XXXXXX";
static char file[64];

static int make(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(file, sizeof(file), "%s/a/b/file", folder);
	for (size_t n = strlen(folder); file[n] != '\0'; n++)
		if (file[n] == '/' && n > strlen(folder)) {
			file[n] = '\0';
			if (mkdir(file, 0755) != 0)
				return -1;
			file[n] = '/';
		}
	return chmod(folder, 0755);
}

static int clean(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/a/b", folder);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/a", folder);
	rmdir(path);
	return rmdir(folder);
}

/* Asks as a user whom file modes bind. Expects n bytes of the file, or 0 for none. */
static void expect_for_others(mode_t a, mode_t b, const char *path, size_t n, mode_t mode)
{
	char one[64], two[64], out[PATH_MAX];
	int status = -1;
	pid_t pid;

	snprintf(one, sizeof(one), "%s/a", folder);
	snprintf(two, sizeof(two), "%s/a/b", folder);
	assert_int_equal(chmod(two, b) | chmod(one, a), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct stat st = {0};
		bool found;

		if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
			_exit(9);
		found = barrier_find(path, out, sizeof(out), &st);
		_exit(found != (n > 0)                                             ? 1
		        : found && (strlen(out) != n || memcmp(out, path, n) != 0) ? 2
		        : found && (st.st_mode & 07777) != mode                    ? 3
		                                                                   : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	chmod(one, 0755);
	chmod(two, 0755);
	assert_int_equal(status, 0);
}

static void the_first_closed_directory_is_found(void **state)
{
	size_t top = strlen(folder);

	(void)state;
	expect_for_others(0600, 0755, file, top + 2, 0600);
	expect_for_others(0755, 0600, file, top + 4, 0600);
	expect_for_others(0600, 0600, file, top + 2, 0600);
	expect_for_others(0644, 0755, file, top + 2, 0644);
}

static void nothing_is_found_where_nothing_is_closed(void **state)
{
	char missing[80];

	(void)state;
	expect_for_others(0755, 0755, file, 0, 0);
	expect_for_others(0711, 0711, file, 0, 0); /* a user who may not list it may enter it */
	snprintf(missing, sizeof(missing), "%s/none/file", folder);
	expect_for_others(0755, 0755, missing, 0, 0);
	expect_for_others(0755, 0755, "relative/file", 0, 0);
	expect_for_others(0755, 0755, "", 0, 0);
	expect_for_others(0755, 0755, "/", 0, 0);
}

static void what_has_no_room_is_not_found(void **state)
{
	char out[4];
	struct stat st;

	(void)state;
	assert_false(barrier_find("/etc/passwd", out, sizeof(out), &st));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_first_closed_directory_is_found),
	        cmocka_unit_test(nothing_is_found_where_nothing_is_closed),
	        cmocka_unit_test(what_has_no_room_is_not_found),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
