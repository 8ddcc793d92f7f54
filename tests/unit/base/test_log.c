/* SPDX-License-Identifier: Apache-2.0 */
/* log: one line is one write, levels hold, and no message can start a line of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/log.h"

/* stderr as a datagram socket, so that each write(2) can be told from the next. */
static int ends[2];
static int real_stderr;

static int capture(void **state)
{
	(void)state;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) < 0)
		return -1;
	real_stderr = dup(STDERR_FILENO);
	return dup2(ends[1], STDERR_FILENO) < 0 ? -1 : 0;
}

static int restore(void **state)
{
	(void)state;
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static const char *next_line(void)
{
	static char line[8192];
	ssize_t n = recv(ends[0], line, sizeof(line) - 1, MSG_DONTWAIT);

	if (n < 0)
		return NULL;
	line[n] = '\0';
	return line;
}

static void writes_lines(void **state)
{
	(void)state;
	log_open("vethguard-test", LOG_LEVEL_DEBUG);
	log_error("a %d", 1);
	log_warn("b");
	log_info("c");
	log_debug("d");
	assert_string_equal(next_line(), "vethguard-test: error: a 1\n");
	assert_string_equal(next_line(), "vethguard-test: warning: b\n");
	assert_string_equal(next_line(), "vethguard-test: info: c\n");
	assert_string_equal(next_line(), "vethguard-test: debug: d\n");
	assert_null(next_line());
}

static void holds_the_level(void **state)
{
	(void)state;
	log_open("p", LOG_LEVEL_ERROR);
	assert_int_equal(log_level(), LOG_LEVEL_ERROR);
	log_warn("no");
	log_info("no");
	log_debug("no");
	assert_null(next_line());
	log_open("p", LOG_LEVEL_WARN);
	log_info("no");
	log_warn("yes");
	assert_string_equal(next_line(), "p: warning: yes\n");
	log_open("p", LOG_LEVEL_INFO);
	log_debug("no");
	log_info("yes");
	assert_string_equal(next_line(), "p: info: yes\n");
	assert_null(next_line());
}

static void a_message_stays_one_line(void **state)
{
	(void)state;
	log_open("p", LOG_LEVEL_ERROR);
	log_error("%s", "a\nb\r\x1b[2J\x7f\tc");
	assert_string_equal(next_line(), "p: error: a?b??[2J??c\n");
	assert_null(next_line());
}

static void long_messages_are_cut(void **state)
{
	static char huge[10000];

	(void)state;
	memset(huge, 'x', sizeof(huge) - 1);
	log_open("p", LOG_LEVEL_ERROR);
	for (int n = 2000; n < 2100; n++) {
		const char *line;

		log_error("%.*s", n, huge);
		line = next_line();
		assert_true(strlen(line) <= 2048);
		assert_int_equal(line[strlen(line) - 1], '\n');
		assert_int_equal(line[strlen(line) - 2], 'x');
		assert_null(next_line());
	}
	log_open(huge, LOG_LEVEL_ERROR);
	log_error("%s", huge);
	assert_true(strlen(next_line()) <= 2048);
}

static void die_exits(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	log_open("p", LOG_LEVEL_ERROR);
	if (pid == 0)
		die(125, "because %s", "so");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 125);
	assert_string_equal(next_line(), "p: error: because so\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(writes_lines, capture, restore),
	        cmocka_unit_test_setup_teardown(holds_the_level, capture, restore),
	        cmocka_unit_test_setup_teardown(a_message_stays_one_line, capture, restore),
	        cmocka_unit_test_setup_teardown(long_messages_are_cut, capture, restore),
	        cmocka_unit_test_setup_teardown(die_exits, capture, restore),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
