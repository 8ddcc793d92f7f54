/* SPDX-License-Identifier: Apache-2.0 */
/* When a process began, whatever it calls itself; the signals of a child. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/process.h"

static void test_names_that_mislead(void **state)
{
	static const char *const names[] = {") 1 2 3 4 5", "a b", "((", "))", ") R 1 1 1 1"};
	uint64_t first, now;

	(void)state;
	assert_int_equal(process_start_time(getpid(), &first), 0);
	assert_true(first > 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		assert_int_equal(process_start_time(getpid(), &now), 0);
		assert_true(now == first);
	}
}

static void test_order(void **state)
{
	uint64_t init, own;

	(void)state;
	assert_int_equal(process_start_time(1, &init), 0);
	assert_int_equal(process_start_time(getpid(), &own), 0);
	assert_true(init <= own);
}

static void test_none(void **state)
{
	uint64_t unchanged = 7;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_start_time(pid, &unchanged), -ESRCH);
	assert_int_equal(process_start_time(0x7ffffff0, &unchanged), -ESRCH);
	assert_int_equal(process_start_time(-1, &unchanged), -ESRCH);
	assert_true(unchanged == 7);
}

static void caught(int signal_number)
{
	(void)signal_number;
}

/* How many signals are blocked, or have another action than their default. */
static int not_normal(void)
{
	struct sigaction action;
	sigset_t blocked;
	int count = 0;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int s = 1; s < NSIG; s++) {
		bool odd = sigaction(s, NULL, &action) == 0 && action.sa_handler != SIG_DFL;

		count += odd || sigismember(&blocked, s) == 1;
	}
	return count;
}

static void test_signals_of_a_child(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		sigset_t all;

		signal(SIGTERM, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		signal(SIGUSR1, caught);
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		if (not_normal() < 32)
			_exit(100);
		process_reset_signals();
		_exit(not_normal());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_names_that_mislead),
	        cmocka_unit_test(test_order),
	        cmocka_unit_test(test_none),
	        cmocka_unit_test(test_signals_of_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
