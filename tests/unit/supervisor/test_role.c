/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which a role may end, and that its end is told exactly once and truly. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_role.h"
#include "supervisor/role.h"

static const char *const programs[] = {"fake-good", "fake-crash", "fake-exit", "fake-deaf",
        "fake-nonsense", "fake-hangup", "fake-words", "fake-early"};

/* The other side. */
static int play(const char *name)
{
	struct ipc_message m;

	alarm(30);
	if (strcmp(name, "fake-crash") == 0)
		fake_die(SIGSEGV);
	if (strcmp(name, "fake-exit") == 0)
		return 3;
	if (strcmp(name, "fake-nonsense") == 0)
		(void)!write(IPC_SUPERVISOR_FD, "nonsense", 8);
	if (strcmp(name, "fake-hangup") == 0)
		close(IPC_SUPERVISOR_FD);
	if (strcmp(name, "fake-words") == 0) {
		fake_say_text(MESSAGE_FAILED, 0, "no memory\x1b[2J");
		return 1;
	}
	if (strcmp(name, "fake-early") == 0)
		fake_say_text(MESSAGE_STOPPED, 0, "");
	if (strcmp(name, "fake-good") != 0)
		for (;;)
			pause();
	fake_say(MESSAGE_WORKER_READY, 7);
	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		if (m.head.type != MESSAGE_STOP)
			continue;
		fake_say_text(MESSAGE_STOPPED, m.head.id, "");
		return 0;
	}
	return 1;
}

static struct loop *loop;
static struct role role;
static int messages, deaths;
static char how_it_died[ROLE_HOW_MAX];

static int on_message(struct role *r, struct ipc_message *message)
{
	messages++;
	assert_ptr_equal(r, &role);
	assert_int_equal(message->head.id, 7);
	loop_stop(loop);
	return 0;
}

static void on_dead(struct role *r, const char *how)
{
	assert_false(role_runs(r));
	deaths++;
	snprintf(how_it_died, sizeof how_it_died, "%s", how);
	loop_stop(loop);
}

static void start(const char *program)
{
	messages = deaths = 0;
	assert_int_equal(role_start(loop, &role, program, "the test", on_message, on_dead), 0);
	assert_true(role_runs(&role));
}

static void expect_end(const char *how)
{
	while (deaths == 0)
		assert_int_equal(loop_run(loop), 0);
	assert_int_equal(deaths, 1);
	assert_string_equal(how_it_died, how);
}

static void good_one_stops_when_asked(void **state)
{
	(void)state;
	start("fake-good");
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(messages, 1);
	role_stop(&role, 1, 10000);
	expect_end("exited (status 0)");
}

static void ends_of_its_own(void **state)
{
	(void)state;
	start("fake-crash");
	expect_end("died (signal 11)");
	start("fake-exit");
	expect_end("exited (status 3)");
}

static void last_words_are_escaped(void **state)
{
	(void)state;
	start("fake-words");
	expect_end("exited (status 1): no memory\\x1b[2J");
}

static void broken_protocol_kills(void **state)
{
	(void)state;
	start("fake-nonsense");
	expect_end("was killed: it broke the protocol");
	start("fake-early");
	expect_end("was killed: it broke the protocol");
}

static void hanging_up_kills(void **state)
{
	(void)state;
	start("fake-hangup");
	expect_end("died (signal 9)");
}

static void patience_ends(void **state)
{
	(void)state;
	start("fake-deaf");
	role_stop(&role, 1, 20);
	expect_end("was killed: it did not stop when asked to");
}

static void killing_says_why(void **state)
{
	(void)state;
	start("fake-deaf");
	role_kill(&role, "a test wants it");
	expect_end("was killed: a test wants it");
	role_kill(&role, "again");
	role_stop(&role, 1, 1);
	role_fini(&role);
	assert_int_equal(deaths, 1);
}

static void fini_reaps_without_a_word(void **state)
{
	(void)state;
	start("fake-deaf");
	pid_t pid = role.pid;
	role_fini(&role);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(deaths, 0);
}

static void a_program_that_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(
	        role_start(loop, &role, "fake-none", "the test", on_message, on_dead), -ENOENT);
	assert_false(role_runs(&role));
	role_fini(&role);
}

static int group_setup(void **state)
{
	(void)state;
	loop = loop_new();
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
		fake_link(programs[i], true);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
		fake_link(programs[i], false);
	loop_free(loop);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(good_one_stops_when_asked),
	        cmocka_unit_test(ends_of_its_own),
	        cmocka_unit_test(last_words_are_escaped),
	        cmocka_unit_test(broken_protocol_kills),
	        cmocka_unit_test(hanging_up_kills),
	        cmocka_unit_test(patience_ends),
	        cmocka_unit_test(killing_says_why),
	        cmocka_unit_test(fini_reaps_without_a_word),
	        cmocka_unit_test(a_program_that_is_not_there),
	};

	if (argc > 0 && strncmp(argv[0], "fake-", 5) == 0)
		return play(argv[0]);
	alarm(60);
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
