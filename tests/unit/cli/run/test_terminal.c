/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal, passed through: on a pseudo-terminal this test plays the shell that starts
 * `vethguard run` as a job, types at it, and watches who is in the foreground.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pty.h>
#include <sys/ioctl.h>

#include "run_fixture.h"

static struct fixture f;
static struct outcome o;

/* The shell's part, in the child that owns the terminal: runs the job; each time it stops, takes
 * the terminal back, says so, and continues it in the foreground. Leaves with the job's status. */
static void play_shell(const char *script)
{
	int status = 0;
	pid_t job;

	signal(SIGTTOU, SIG_IGN);
	job = fork();
	if (job == 0) {
		setpgid(0, 0);
		tcsetpgrp(0, getpid());
		signal(SIGTTOU, SIG_DFL);
		execl(f.program, "vethguard", "--policy", f.policy, "--", "sh", "-c", script, NULL);
		_exit(99);
	}
	setpgid(job, job);
	tcsetpgrp(0, job);
	while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
		tcsetpgrp(0, getpgrp());
		dprintf(1, "SHELL: stopped\n");
		tcsetpgrp(0, job);
		kill(-job, SIGCONT);
	}
	dprintf(1, "SHELL: %s\n", tcgetpgrp(0) == job ? "terminal is back" : "terminal is lost");
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

/* Runs the script on a terminal; types what stands in keys as soon as "up" was seen. */
static void on_terminal(const char *script, const char *keys)
{
	struct winsize size = {.ws_row = 33, .ws_col = 77};
	int terminal, status;
	pid_t pid;

	memset(&o, 0, sizeof(o));
	pid = forkpty(&terminal, NULL, NULL, &size);
	if (pid == 0)
		play_shell(script);
	assert_true(pid > 0);
	assert_true(fixture_await(terminal, o.out, sizeof(o.out), "up\r\n"));
	assert_true(write(terminal, keys, strlen(keys)) == (ssize_t)strlen(keys));
	fixture_await(terminal, o.out, sizeof(o.out), "\001 never");
	close(terminal);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool said(const char *text)
{
	if (strstr(o.out, text) != NULL)
		return true;
	print_message("status %d, said: %s\n", o.status, o.out);
	return false;
}

static void interrupt_reaches_the_command_alone(void **state)
{
	char script[PATH_MAX + 64];

	(void)state;
	on_terminal(
	        "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.02; done", "\003");
	assert_true(said("caught"));
	assert_int_equal(o.status, 5);
	assert_true(said("SHELL: terminal is back"));
	/* Not a sleep started by sh: dash loses an interrupt that comes while it forks. */
	snprintf(script, sizeof(script), "exec tail -f %s", f.policy);
	on_terminal(script, "\003");
	assert_int_equal(o.status, 130);
}

static void stopping_and_continuing(void **state)
{
	(void)state;
	on_terminal("echo up; read line; echo \"line:$line\"", "\032hello\n");
	assert_true(said("SHELL: stopped"));
	assert_int_equal(o.status, 0);
	assert_true(said("SHELL: terminal is back"));
}

static void input_size_and_summary(void **state)
{
	(void)state;
	on_terminal("stty size; echo up; read a; echo \"got $a\"; exit 4", "word\n");
	assert_true(said("33 77"));
	assert_true(said("got word"));
	assert_int_equal(o.status, 4);
	assert_true(said("vethguard: test: 3 allowed, 2 denied"));
	assert_true(said("POST https://paste.example/"));
}

static void nothing_can_be_typed_into_the_outer_shell(void **state)
{
	(void)state;
	on_terminal("echo up; read a; python3 -c 'import fcntl,termios; fcntl.ioctl(0, "
	            "termios.TIOCSTI, b\"x\")' 2>&1 | tail -1",
	        "\n");
	assert_true(said("Operation not permitted") || said("not found"));
}

static int open_fixture(void **state)
{
	(void)state;
	fixture_open(&f);
	fixture_policy(&f, "ready up\n");
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	fixture_close(&f);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(interrupt_reaches_the_command_alone),
	        cmocka_unit_test(stopping_and_continuing),
	        cmocka_unit_test(input_size_and_summary),
	        cmocka_unit_test(nothing_can_be_typed_into_the_outer_shell),
	};
	int status;

	if (fixture_play(argc, argv, &status))
		return status;
	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
