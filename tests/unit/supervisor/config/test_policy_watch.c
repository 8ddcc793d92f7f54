/* SPDX-License-Identifier: Apache-2.0 */
/* Watched files: every way of changing them is reported, once, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/config/policy_watch.h"

static struct loop *loop;
static struct policy_watch *watch;
static struct loop_timer deadline;
static char folder[64], main_file[128], part_file[160];
static int told, owner, other, others;
static bool late;

static void on_changed(void *context, void *who)
{
	assert_ptr_equal(context, &loop);
	told += who == &owner;
	others += who == &other;
	loop_stop(loop);
}

static void on_deadline(struct loop_timer *timer)
{
	(void)timer;
	late = true;
	loop_stop(loop);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Runs until something is told, or for that long. */
static bool run(int64_t ms)
{
	late = false;
	loop_timer_set(&deadline, ms);
	assert_int_equal(loop_run(loop), 0);
	loop_timer_cancel(&deadline);
	return !late;
}

#define TOLD_MS 60000
#define QUIET_MS (3 * POLICY_WATCH_QUIET_MS)

static void set(void)
{
	const char *const files[] = {main_file, part_file};

	assert_int_equal(policy_watch_set(watch, &owner, files, 2), 0);
	told = others = 0;
}

static int setup(void **state)
{
	int error;

	(void)state;
	strcpy(folder, "/tmp/vethguard-watch-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(main_file, sizeof(main_file), "%s/main.yaml", folder);
	snprintf(part_file, sizeof(part_file), "%s/sub/part.yaml", folder);
	write_file(main_file, "a");
	loop = loop_new();
	assert_non_null(loop);
	assert_int_equal(loop_timer_open(loop, &deadline, on_deadline), 0);
	watch = policy_watch_new(loop, on_changed, &loop, &error);
	assert_non_null(watch);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	policy_watch_free(watch);
	loop_timer_close(&deadline);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void test_changes(void **state)
{
	char new_file[160];

	(void)state;
	set();
	write_file(main_file, "ab");
	assert_true(run(TOLD_MS));
	assert_int_equal(told, 1);
	/* as editors do: another file takes its name */
	snprintf(new_file, sizeof(new_file), "%s.new", main_file);
	write_file(new_file, "ab");
	assert_int_equal(rename(new_file, main_file), 0);
	assert_true(run(TOLD_MS));
	assert_int_equal(told, 2);
	/* gone, which is not told, and back */
	assert_int_equal(unlink(main_file), 0);
	assert_false(run(QUIET_MS));
	write_file(main_file, "ab");
	assert_true(run(TOLD_MS));
	assert_int_equal(told, 3);
	assert_false(run(QUIET_MS));
}

static struct {
	struct loop_task task;
	int fd, before;
	bool in_parts;
} turns;

static int find_inotify(void)
{
	char path[32], to[64];

	for (int fd = 3; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = '\0';
		if (strcmp(to, "anon_inode:inotify") == 0)
			return fd;
	}
	return -1;
}

static int unread(void)
{
	int bytes = 0;

	assert_int_equal(ioctl(turns.fd, FIONREAD, &bytes), 0);
	return bytes;
}

static void on_turn(struct loop_task *task)
{
	int now = unread();

	turns.in_parts = turns.in_parts || (now > 0 && now < turns.before);
	if (now > 0)
		loop_task_queue(loop, task);
}

/* Writes into a policy's folder do not hold the daemon up. */
static void test_flood(void **state)
{
	char one[160], two[160];

	(void)state;
	set();
	snprintf(one, sizeof(one), "%s/1", folder);
	snprintf(two, sizeof(two), "%s/2", folder);
	write_file(one, "");
	for (int i = 0; i < 3000; i++)
		assert_int_equal(rename(i % 2 ? two : one, i % 2 ? one : two), 0);
	turns.fd = find_inotify();
	turns.before = unread();
	assert_true(turns.before > 2 * 65536);
	turns.task.run = on_turn;
	loop_task_queue(loop, &turns.task);
	assert_false(run(QUIET_MS));
	assert_true(turns.in_parts);
	assert_int_equal(unread(), 0);
}

static void test_nothing_else(void **state)
{
	char beside[160];

	(void)state;
	set();
	snprintf(beside, sizeof(beside), "%s/beside", folder);
	write_file(beside, "x");
	assert_false(run(QUIET_MS));
	policy_watch_forget(watch, &owner);
	policy_watch_forget(watch, &owner);
	write_file(main_file, "other");
	assert_false(run(QUIET_MS));
	assert_int_equal(told, 0);
}

/* Many writes are one change. */
static void test_once(void **state)
{
	(void)state;
	set();
	for (int i = 0; i < 50; i++)
		write_file(main_file, i % 2 ? "odd" : "even");
	assert_true(run(TOLD_MS));
	assert_false(run(QUIET_MS));
	assert_int_equal(told, 1);
}

/* A folder that comes later is found; a link that is exchanged is a change. */
static void test_late_folder_and_links(void **state)
{
	char sub[128], one[128], two[128], link[160];

	(void)state;
	set();
	snprintf(one, sizeof(one), "%s/one", folder);
	snprintf(two, sizeof(two), "%s/two", folder);
	snprintf(sub, sizeof(sub), "%s/sub", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_true(mkdir(one, 0700) == 0 && mkdir(two, 0700) == 0);
	snprintf(part_file, sizeof(part_file), "%s/part.yaml", one);
	write_file(part_file, "a");
	snprintf(part_file, sizeof(part_file), "%s/part.yaml", two);
	write_file(part_file, "b");
	snprintf(part_file, sizeof(part_file), "%s/part.yaml", sub);
	assert_int_equal(symlink("one", sub), 0);
	assert_true(run(TOLD_MS));
	assert_int_equal(told, 1);
	assert_int_equal(symlink("two", link), 0);
	assert_int_equal(rename(link, sub), 0);
	assert_true(run(TOLD_MS));
	assert_int_equal(told, 2);
}

/* A callback may forget other watches, and its own. */
static void test_two_owners(void **state)
{
	const char *const files[] = {main_file};

	(void)state;
	set();
	assert_int_equal(policy_watch_set(watch, &other, files, 1), 0);
	write_file(main_file, "xyz");
	assert_true(run(TOLD_MS));
	run(QUIET_MS);
	assert_int_equal(told, 1);
	assert_int_equal(others, 1);
	policy_watch_forget(watch, &other);
	write_file(main_file, "xyzz");
	assert_true(run(TOLD_MS));
	run(QUIET_MS);
	assert_int_equal(told, 2);
	assert_int_equal(others, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_changes), TEST(test_flood),
	        TEST(test_nothing_else), TEST(test_once), TEST(test_late_folder_and_links),
	        TEST(test_two_owners)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
