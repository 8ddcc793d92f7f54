/* SPDX-License-Identifier: Apache-2.0 */
/* Work done by a child: what it reports, its end, and all the ways in which it does not end well.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/os/helper_child.h"

#define LONG_MS 60000
#define SHORT_MS 30

static struct loop *loop;
static struct loop_timer look;
static struct helper_child_result told;
static unsigned count;
static char text[256];

static void on_done(void *context, const struct helper_child_result *result)
{
	ssize_t n = read(result->report, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = 0;
	assert_ptr_equal(context, &told);
	told = *result;
	count++;
	loop_stop(loop);
}

static bool has_children(void)
{
	return waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void on_look(struct loop_timer *timer)
{
	if (has_children())
		loop_timer_set(timer, 5);
	else
		loop_stop(loop);
}

static int setup(void **state)
{
	(void)state;
	loop = loop_new();
	count = 0;
	text[0] = 0;
	return loop_timer_open(loop, &look, on_look);
}

/* Nothing is left of any test. */
static int teardown(void **state)
{
	(void)state;
	loop_timer_set(&look, 0);
	assert_int_equal(loop_run(loop), 0);
	helper_child_close_all(loop);
	loop_timer_close(&look);
	loop_free(loop);
	return 0;
}

static int greet(void *context, int report, int output)
{
	(void)output;
	return write(report, context, strlen(context)) > 0 ? 0 : 1;
}

static int hang(void *context, int report, int output)
{
	(void)context, (void)output;
	(void)!write(report, "begun", 5);
	for (;;)
		pause();
	return 0;
}

static int give_seven(void *context, int report, int output)
{
	(void)context, (void)report, (void)output;
	return 7;
}

static int die(void *context, int report, int output)
{
	(void)context, (void)report, (void)output;
	raise(SIGKILL);
	return 0;
}

/* Counts what is open, and writes into output. */
static int look_around(void *context, int report, int output)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned open = 0;

	(void)context;
	while (d && readdir(d))
		open++;
	dprintf(report, "%u", open - 3); /* ".", "..", and the directory's own */
	return output >= 0 && write(output, "out", 3) != 3;
}

static struct helper_child *start_for(
        uid_t uid, int (*run)(void *context, int report, int output), int output, int64_t ms)
{
	const struct helper_child_plan plan = {
	        .run = run, .context = (void *)"hello", .output = output, .uid = uid, .ms = ms};
	struct helper_child *e = NULL;
	int error = helper_child_start(loop, &plan, on_done, &told, &e);

	errno = -error;
	return error ? NULL : e;
}

static void run_one(int (*run)(void *context, int report, int output), int output, int64_t ms)
{
	assert_non_null(start_for(0, run, output, ms));
	assert_int_equal(count, 0); /* never from inside of the call */
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(count, 1);
}

static void its_report(void **state)
{
	(void)state;
	run_one(greet, -1, LONG_MS);
	assert_false(told.late);
	assert_int_equal(told.status, 0);
	assert_string_equal(text, "hello");
}

static void its_end(void **state)
{
	(void)state;
	run_one(give_seven, -1, LONG_MS);
	assert_int_equal(told.status, 7);
	count = 0;
	run_one(die, -1, LONG_MS);
	assert_int_equal(told.status, -1);
	assert_false(told.late);
}

static void what_it_has_open(void **state)
{
	int pipe_fds[2], extra = open("/", O_RDONLY);
	char got[8];

	(void)state;
	assert_true(extra >= 0);
	run_one(look_around, -1, LONG_MS);
	assert_int_equal(told.status, 0);
	assert_string_equal(text, "4");
	assert_int_equal(pipe(pipe_fds), 0);
	count = 0;
	run_one(look_around, pipe_fds[1], LONG_MS);
	assert_int_equal(told.status, 0);
	assert_string_equal(text, "5");
	assert_int_equal(read(pipe_fds[0], got, sizeof(got)), 3);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(extra);
}

/* Told at once, though it may be long in dying; reaped all the same. */
static void one_that_is_late(void **state)
{
	(void)state;
	run_one(hang, -1, SHORT_MS);
	assert_true(told.late);
	assert_int_equal(told.status, -1);
}

static void one_that_is_cancelled(void **state)
{
	struct helper_child *e = start_for(0, hang, -1, SHORT_MS);

	(void)state;
	assert_non_null(e);
	helper_child_cancel(e);
	helper_child_cancel(NULL);
	loop_timer_set(&look, 0); /* until nothing is left */
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(count, 0);
}

static void bounds(void **state)
{
	struct helper_child *all[HELPER_CHILDREN_MAX];
	size_t n = 0;

	(void)state;
	for (uid_t uid = 1; n < HELPER_CHILDREN_MAX; uid++) {
		for (unsigned i = 0; i < HELPER_CHILDREN_OF_ONE_MAX; i++) {
			all[n] = start_for(uid, hang, -1, LONG_MS);
			assert_non_null(all[n++]);
		}
		assert_false(helper_child_has_room(uid));
		assert_null(start_for(uid, hang, -1, LONG_MS));
		assert_int_equal(errno, EAGAIN);
	}
	assert_null(start_for(9999, hang, -1, LONG_MS));
	assert_int_equal(errno, EAGAIN);
	for (size_t i = 0; i < n; i++)
		helper_child_cancel(all[i]);
	assert_null(start_for(1, hang, -1, LONG_MS)); /* as long as they are not gone */
	loop_timer_set(&look, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_true(helper_child_has_room(1));
	assert_int_equal(count, 0);
}

/* A child of somebody else's, which counts or does not. */
static void one_that_was_left(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * HELPER_CHILDREN_OF_ONE_MAX; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		helper_child_leave(loop, pid, pidfd_open(pid, 0),
		        i < HELPER_CHILDREN_OF_ONE_MAX ? HELPER_CHILD_NOBODY : 5);
		assert_int_equal(helper_child_has_room(5), i < 2 * HELPER_CHILDREN_OF_ONE_MAX - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(its_report, setup, teardown),
	        cmocka_unit_test_setup_teardown(its_end, setup, teardown),
	        cmocka_unit_test_setup_teardown(what_it_has_open, setup, teardown),
	        cmocka_unit_test_setup_teardown(one_that_is_late, setup, teardown),
	        cmocka_unit_test_setup_teardown(one_that_is_cancelled, setup, teardown),
	        cmocka_unit_test_setup_teardown(bounds, setup, teardown),
	        cmocka_unit_test_setup_teardown(one_that_was_left, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
