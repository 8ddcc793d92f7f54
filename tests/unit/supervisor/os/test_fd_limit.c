/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: how many there are left, and what the limit is raised to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/os/fd_limit.h"

#define ENOUGH 4096
#define NEEDED (FD_LIMIT_EACH + FD_LIMIT_KEPT)

static void limit(rlim_t soft)
{
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = soft;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* The lowest that is free: there are none above it here. */
static int first_free(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

static void none_is_left_below_what_is_kept(void **state)
{
	int first = first_free();

	(void)state;
	limit((rlim_t)first + NEEDED);
	assert_true(fd_limit_left());
	assert_int_equal(first_free(), first); /* all are given back */
	limit((rlim_t)first + NEEDED - 1);
	assert_int_equal(fd_limit_get(), first + NEEDED - 1);
	assert_false(fd_limit_left());
	assert_int_equal(first_free(), first);
	limit((rlim_t)first); /* not one */
	assert_false(fd_limit_left());
	limit(ENOUGH);
	assert_true(fd_limit_left());
}

static void what_others_hold_is_not_left(void **state)
{
	int first = first_free(), held;

	(void)state;
	limit((rlim_t)first + NEEDED);
	held = fcntl(0, F_DUPFD, first + NEEDED / 2);
	assert_true(held >= 0);
	assert_false(fd_limit_left());
	close(held);
	assert_true(fd_limit_left());
	limit(ENOUGH);
}

/* Before Linux 6.2, or where there is no /proc: as in an empty root. */
static void the_same_where_the_kernel_does_not_count(void **state)
{
	char root[] = "/tmp/vethguard-test-XXXXXX";
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(root));
	pid = fork();
	if (pid == 0) {
		int first = first_free();

		if (unshare(CLONE_NEWUSER) < 0 || chroot(root) < 0)
			_exit(2);
		limit((rlim_t)first + NEEDED);
		bool enough = fd_limit_left();
		limit((rlim_t)first + NEEDED - 1);
		_exit(enough && !fd_limit_left() && first_free() == first ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rmdir(root), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Without the right to raise it, which root need not have (containers), up to the hard one. */
static void the_limit_is_raised_as_far_as_it_goes(void **state)
{
	struct rlimit before, after;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	before.rlim_cur = 256;
	before.rlim_max = ENOUGH;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	fd_limit_raise(ENOUGH);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
	assert_int_equal(after.rlim_cur, after.rlim_max);
	assert_true(after.rlim_max == ENOUGH || after.rlim_max >= (rlim_t)ENOUGH * FD_LIMIT_EACH);
	fd_limit_raise(1); /* it is never lowered */
	assert_int_equal(fd_limit_get(), after.rlim_cur);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(none_is_left_below_what_is_kept),
	        cmocka_unit_test(what_others_hold_is_not_left),
	        cmocka_unit_test(the_same_where_the_kernel_does_not_count),
	        cmocka_unit_test(the_limit_is_raised_as_far_as_it_goes),
	};

	close_range(STDERR_FILENO + 1, ~0U, 0); /* whoever started it may have left some */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
