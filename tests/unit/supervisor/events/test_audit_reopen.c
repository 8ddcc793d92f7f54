/* SPDX-License-Identifier: Apache-2.0 */
/* The log opened by a child: what comes back, and what does not. One whose file system hangs is
 * tests/integration/test_slow_files.py's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/events/audit_reopen.h"
#include "supervisor/os/helper_child.h"

static struct loop *loop;
static struct loop_timer look;
static struct audit_opened got;
static unsigned count;
static char folder[64], path[96];

/* Until no child is left. */
static void on_look(struct loop_timer *timer)
{
	if (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0)
		loop_timer_set(timer, 5);
	else
		loop_stop(loop);
}

static void on_done(void *context, const struct audit_opened *opened)
{
	assert_ptr_equal(context, &got);
	got = *opened;
	count++;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_audit_opening.XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/audit.jsonl", folder);
	loop = loop_new();
	count = 0;
	return loop_timer_open(loop, &look, on_look);
}

static int tear_down(void **state)
{
	(void)state;
	helper_child_close_all(loop);
	loop_timer_close(&look);
	loop_free(loop);
	unlink(path);
	return rmdir(folder);
}

static void run(void)
{
	loop_timer_set(&look, 0);
	assert_int_equal(loop_run(loop), 0);
}

static int open_with(const struct identity *opener)
{
	struct audit_opening *opening;

	assert_int_equal(audit_reopen_start(loop, path, opener, on_done, &got, &opening), 0);
	run();
	assert_int_equal(count, 1);
	return got.error;
}

static void assert_opened(void)
{
	struct audit_identity found;
	struct stat st;
	char text[8] = "";

	assert_int_equal(audit_identify(got.reader, &found), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(found.inode == st.st_ino && found.device == st.st_dev);
	assert_true(got.identity.inode == st.st_ino && got.identity.device == st.st_dev);
	assert_int_equal(fcntl(got.log, F_GETFL) & (O_ACCMODE | O_APPEND), O_WRONLY | O_APPEND);
	assert_int_equal(fcntl(got.reader, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(fcntl(got.log, F_GETFD) & fcntl(got.reader, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(got.log, "line", 4), 4);
	assert_int_equal(read(got.reader, text, sizeof(text)), 4);
	close(got.log);
	close(got.reader);
}

static void a_new_file(void **state)
{
	(void)state;
	assert_int_equal(open_with(NULL), 0);
	assert_opened();
}

static void of_somebody(void **state)
{
	const struct identity own = {.uid = geteuid(), .gid = getegid()};

	(void)state;
	assert_int_equal(open_with(&own), 0);
	assert_opened();
}

static void no_directory(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/none/audit.jsonl", folder);
	assert_int_equal(open_with(NULL), -ENOENT);
	assert_true(got.log < 0 && got.reader < 0);
}

static void a_symbolic_link(void **state)
{
	(void)state;
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(open_with(NULL), -ELOOP);
}

static void no_file(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_with(NULL), -EINVAL);
}

static void nobody_waits_any_more(void **state)
{
	struct audit_opening *opening;

	(void)state;
	assert_int_equal(audit_reopen_start(loop, path, NULL, on_done, &got, &opening), 0);
	audit_reopen_cancel(opening);
	audit_reopen_cancel(NULL);
	run();
	assert_int_equal(count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	        TEST(a_new_file),
	        TEST(of_somebody),
	        TEST(no_directory),
	        TEST(a_symbolic_link),
	        TEST(no_file),
	        TEST(nobody_waits_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
