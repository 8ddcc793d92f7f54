/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that credentials come from: the ones that give a value, and all the ways in which they
 * give none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/secret.h"
#include "supervisor/os/helper_child.h"
#include "supervisor/config/sources.h"

#define SOMEBODY 61000

static struct loop *loop;
static struct sources sources;
static int ends, output;
static char said[SOURCE_ERROR_MAX], value[200000];
static uint64_t answered;
static struct loop_timer look;

static void on_look(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static void on_source(struct sources *s, uint64_t id, const struct source_result *result)
{
	(void)s;
	assert_int_equal(result->ttl_s, 0);
	ends++;
	output = result->fd;
	answered = id;
	snprintf(said, sizeof(said), "%s", result->error ? result->error : "");
	loop_stop(loop);
}

static int setup(void **state)
{
	(void)state;
	loop = loop_new();
	sources_init(&sources, loop, NULL, on_source);
	sources.identity = (struct identity){
	        getuid() ? getuid() : SOMEBODY, getuid() ? getgid() : SOMEBODY, false};
	ends = 0;
	output = -1;
	return loop_timer_open(loop, &look, on_look);
}

static int teardown(void **state)
{
	(void)state;
	sources_fini(&sources);
	helper_child_close_all(loop);
	loop_timer_close(&look);
	loop_free(loop);
	if (output >= 0)
		close(output);
	return 0;
}

static struct policy_credential shell(const char *script, uint32_t timeout_ms)
{
	struct policy_credential c = {
	        .source = POLICY_SOURCE_EXEC, .argc = 3, .timeout_ms = timeout_ms};

	c.argv[0] = SLICE("sh");
	c.argv[1] = SLICE("-c");
	c.argv[2] = slice_from_string(script);
	return c;
}

static void start(const struct policy_credential *c)
{
	sources.runs[0] = source_run_start(&sources, c, 42, 0, said);
}

static void run(const char *script, uint32_t timeout_ms)
{
	struct policy_credential c = shell(script, timeout_ms);

	start(&c);
	assert_non_null(sources.runs[0]);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ends, 1);
	assert_null(sources.runs[0]);
	assert_int_equal(answered, 42);
}

/* What the keeper would read, to the end. */
static const char *read_value(void)
{
	size_t n = 0;
	ssize_t got;

	assert_true(output >= 0);
	while ((got = read(output, value + n, sizeof(value) - 1 - n)) > 0)
		n += (size_t)got;
	assert_int_equal(got, 0);
	value[n] = 0;
	return value;
}

static void a_value(void **state)
{
	(void)state;
	run("printf s3cret", 5000);
	assert_string_equal(read_value(), "s3cret");
}

static void who_and_where_it_runs(void **state)
{
	char expect[128];

	(void)state;
	snprintf(sources.directory, sizeof(sources.directory), "/usr");
	run("echo $(id -u) $(id -G) $(pwd) $(ls /proc/self/fd | wc -l) $(ulimit -c)", 5000);
	snprintf(expect, sizeof(expect), "%u %u /usr 4 0\n", sources.identity.uid,
	        sources.identity.gid);
	if (getuid() == 0)
		assert_string_equal(read_value(), expect);
}

static void nothing_of_our_environment(void **state)
{
	(void)state;
	setenv("VETHGUARD_TEST_LEAK", "leak", 1);
	run("env", 5000);
	assert_null(strstr(read_value(), "VETHGUARD_TEST_LEAK"));
	assert_non_null(strstr(value, "PATH=/usr/local/sbin:"));
	unsetenv("VETHGUARD_TEST_LEAK");
}

static void a_value_as_long_as_allowed(void **state)
{
	(void)state;
	run("head -c 65536 /dev/zero | tr '\\0' x", 5000);
	assert_int_equal(strlen(read_value()), 65536);
}

static void a_failed_program_gives_nothing(void **state)
{
	(void)state;
	run("printf partial; exit 3", 5000);
	assert_int_equal(output, -1);
	assert_string_equal(said, "sh ended with status 3");
}

static void a_killed_program_gives_nothing(void **state)
{
	(void)state;
	run("printf partial; kill -SEGV $$", 5000);
	assert_int_equal(output, -1);
	assert_string_equal(said, "sh was killed by signal 11");
}

static void a_program_that_does_not_end(void **state)
{
	(void)state;
	run("printf partial; sleep 60", 50);
	assert_int_equal(output, -1);
	assert_non_null(strstr(said, "had not ended after 50 ms"));
}

static void a_program_that_writes_for_ever(void **state)
{
	(void)state;
	run("cat /dev/zero", 100);
	assert_int_equal(output, -1);
	assert_non_null(strstr(said, "was killed"));
}

/* A process that it left behind would keep the pipe open, and the keeper waiting. */
static void what_it_leaves_running_is_killed(void **state)
{
	(void)state;
	run("sleep 60 & printf s3cret", 5000);
	assert_string_equal(read_value(), "s3cret");
}

static void a_program_that_is_not_there(void **state)
{
	struct policy_credential c = {.source = POLICY_SOURCE_EXEC, .argc = 1, .timeout_ms = 5000};

	(void)state;
	c.argv[0] = SLICE("/nowhere/vethguard-test\x1b[2J");
	start(&c);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(output, -1);
	assert_string_equal(said, "/nowhere/vethguard-test\\x1b[2J was not found");
}

static void no_program_at_all(void **state)
{
	struct policy_credential c = {.source = POLICY_SOURCE_EXEC};

	(void)state;
	start(&c);
	assert_null(sources.runs[0]);
	assert_non_null(strstr(said, "could not be started"));
}

static void the_end_of_the_sandbox_ends_the_program(void **state)
{
	struct policy_credential c = shell("sleep 60", 60000);

	(void)state;
	start(&c);
	assert_non_null(sources.runs[0]);
	sources_fini(&sources); /* the loop reaps it */
	assert_null(sources.runs[0]);
	assert_int_equal(ends, 0);
	while (waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) == 0) {
		loop_timer_set(&look, 5);
		assert_int_equal(loop_run(loop), 0);
	}
}

static void put_file(char path[64], size_t n)
{
	int fd = mkstemp(strcpy(path, "/tmp/vethguard-source-XXXXXX"));

	assert_true(fd >= 0);
	memset(value, 'v', n);
	assert_int_equal(write(fd, value, n), n);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
}

static void read_file(const char *path)
{
	sources.reads[0] = source_read_start(&sources, path, 43, 0, said);
	assert_non_null(sources.reads[0]);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(ends, 1);
	assert_null(sources.reads[0]);
	assert_int_equal(answered, 43);
}

/* By a child, which hands on the whole file or nothing. */
static void a_file(void **state)
{
	char path[64];

	(void)state;
	put_file(path, SECRET_MAX - 1);
	read_file(path);
	assert_int_equal(strlen(read_value()), SECRET_MAX - 1);
	unlink(path);
}

static void a_file_that_is_too_long(void **state)
{
	char path[64];

	(void)state;
	put_file(path, SECRET_MAX);
	read_file(path);
	assert_int_equal(output, -1);
	assert_non_null(strstr(said, "more than the 65536 bytes"));
	unlink(path);
}

static void a_file_that_may_not_serve(void **state)
{
	char path[64];

	(void)state;
	put_file(path, 5);
	assert_int_equal(chmod(path, 0666), 0);
	read_file(path);
	assert_int_equal(output, -1);
	assert_non_null(strstr(said, "can be written by"));
	unlink(path);
	ends = 0;
	read_file(path);
	assert_int_equal(output, -1);
	assert_non_null(strstr(said, "No such file"));
}

static void the_end_of_the_sandbox_ends_the_reader(void **state)
{
	char path[64];

	(void)state;
	put_file(path, 5);
	sources.reads[0] = source_read_start(&sources, path, 43, 0, said);
	assert_non_null(sources.reads[0]);
	sources_fini(&sources);
	assert_null(sources.reads[0]);
	assert_int_equal(ends, 0);
	unlink(path);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(a_value),
	        T(who_and_where_it_runs),
	        T(nothing_of_our_environment),
	        T(a_value_as_long_as_allowed),
	        T(a_failed_program_gives_nothing),
	        T(a_killed_program_gives_nothing),
	        T(a_program_that_does_not_end),
	        T(a_program_that_writes_for_ever),
	        T(what_it_leaves_running_is_killed),
	        T(a_program_that_is_not_there),
	        T(no_program_at_all),
	        T(the_end_of_the_sandbox_ends_the_program),
	        T(a_file),
	        T(a_file_that_is_too_long),
	        T(a_file_that_may_not_serve),
	        T(the_end_of_the_sandbox_ends_the_reader),
	};

	alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
