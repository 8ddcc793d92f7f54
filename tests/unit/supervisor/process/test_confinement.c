/* SPDX-License-Identifier: Apache-2.0 */
/* Asking roles how they are confined: an answer in time counts, however many came before.
 * roles.c sets the timer; a test makes it longer where answers have to come in
 * time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../fake_role.h"
#include "supervisor/process/confinement.h"
#include "vethguard/base/clock.h"

/* The linker wraps: loop_timer_set */
void __real_loop_timer_set(struct loop_timer *timer, int64_t delay_ms);
void __wrap_loop_timer_set(struct loop_timer *timer, int64_t delay_ms);

static const char *const programs[] = {"fake-soon", "fake-late", "fake-silent"};

#define PLENTY_MS 100000

static unsigned waits;      /* times that the patience began, or began anew */
static unsigned long_waits; /* the first so many of them have plenty of time */

void __wrap_loop_timer_set(struct loop_timer *timer, int64_t delay_ms)
{
	bool is_long = delay_ms == CONFINEMENT_PATIENCE_MS && waits++ < long_waits;

	__real_loop_timer_set(timer, is_long ? PLENTY_MS : delay_ms);
}

/* The other side. */
static int play(const char *name)
{
	struct ipc_message m;

	alarm(900);
	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		if (strcmp(name, "fake-silent") == 0)
			continue;
		if (strcmp(name, "fake-late") == 0)
			usleep(200 * 1000);
		fake_say_text(MESSAGE_DESCRIPTION, m.head.id, name);
	}
	return 0;
}

static struct supervisor sv;
static char texts[3][32];
static size_t told_count;

static int on_message(struct role *role, struct ipc_message *message)
{
	(void)role;
	(void)message;
	return -EBADMSG;
}

static void on_dead(struct role *role, const char *how)
{
	(void)role;
	(void)how;
}

static void on_told(
        void *context, uint64_t id, const struct confinement_report *reports, size_t count)
{
	assert_ptr_equal(context, &sv);
	assert_int_equal(id, 5);
	told_count = count;
	for (size_t i = 0; i < count && i < 3; i++)
		snprintf(texts[i], sizeof(texts[i]), "%s", reports[i].text ? reports[i].text : "");
	loop_stop(sv.loop);
}

/* Keeper and recorder are such programs. How long it took. */
static int64_t ask(const char *keeper, const char *recorder, unsigned in_time)
{
	int64_t began_ms = clock_monotonic_ms();

	waits = 0;
	long_waits = in_time;
	assert_int_equal(
	        role_start(sv.loop, &sv.keeper, keeper, "the keeper", -1, on_message, on_dead), 0);
	assert_int_equal(role_start(sv.loop, &sv.recorder, recorder, "the recorder", -1, on_message,
	                         on_dead),
	        0);
	sv.recorder_life.ready = true;
	assert_int_equal(confinement_ask(&sv, 5, on_told, &sv), 0);
	assert_int_equal(confinement_ask(&sv, 6, on_told, &sv), -EBUSY);
	assert_int_equal(loop_run(sv.loop), 0);
	assert_null(sv.confinement);
	role_fini(&sv.keeper);
	role_fini(&sv.recorder);
	assert_int_equal(told_count, 3);
	assert_string_not_equal(texts[0], ""); /* its own */
	return clock_monotonic_ms() - began_ms;
}

static void an_answer_in_time_is_heard(void **state)
{
	(void)state;
	ask("fake-soon", "fake-late", 2);
	assert_int_equal(waits, 3); /* from the question, and anew from each answer */
	assert_string_equal(texts[1], "fake-soon");
	assert_string_equal(texts[2], "fake-late");
}

static void one_that_hangs_is_told_of_without(void **state)
{
	(void)state;
	assert_true(ask("fake-soon", "fake-silent", 1) >= CONFINEMENT_PATIENCE_MS);
	assert_int_equal(waits, 2);
	assert_string_equal(texts[1], "fake-soon");
	assert_string_equal(texts[2], "");
}

/* The memory that the caller keeps for the answer would be lost. */
static void the_end_answers_a_question_under_way(void **state)
{
	(void)state;
	told_count = SIZE_MAX;
	assert_int_equal(role_start(sv.loop, &sv.keeper, "fake-silent", "the keeper", -1,
	                         on_message, on_dead),
	        0);
	assert_int_equal(confinement_ask(&sv, 5, on_told, &sv), 0);
	confinement_fini(&sv);
	assert_int_equal(told_count, 0);
	assert_null(sv.confinement);
	confinement_fini(&sv);
	role_fini(&sv.keeper);
}

static int group_setup(void **state)
{
	(void)state;
	sv.loop = loop_new();
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		fake_link(programs[i], true);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		fake_link(programs[i], false);
	loop_free(sv.loop);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_answer_in_time_is_heard),
	        cmocka_unit_test(the_end_answers_a_question_under_way),
	        cmocka_unit_test(one_that_hangs_is_told_of_without),
	};

	if (argc > 0 && strncmp(argv[0], "fake-", 5) == 0)
		return play(argv[0]);
	alarm(900);
	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
