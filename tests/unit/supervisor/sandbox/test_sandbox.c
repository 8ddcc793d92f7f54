/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's table of states: every event in every state. The handlers are the test's own (all
 * of states.h), so this tests which of them is called, that only the state one returns
 * becomes the next, and what the owner learns of that; further the registry, without memory
 * and without descriptors. What the handlers do is tried in test_life.c and by whole runs and
 * daemons.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "no_memory.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

/* Handlers that note who was called, and return what the test wants. */

static const char *called;
static unsigned calls, quiesces;
static enum sandbox_state returned;

static enum sandbox_state note(const char *name)
{
	called = name;
	calls++;
	return returned;
}

#define HANDLER(name)                              \
	enum sandbox_state name(struct sandbox *s) \
	{                                          \
		(void)s;                           \
		return note(#name);                \
	}

HANDLER(sandbox_ask_or_begin)
HANDLER(sandbox_begin)
HANDLER(sandbox_serve_when_ready)
HANDLER(sandbox_no_variables)
HANDLER(sandbox_too_late)
HANDLER(sandbox_end_early)
HANDLER(sandbox_stop_workers)
HANDLER(sandbox_cut_off)
HANDLER(sandbox_sum_up)
HANDLER(sandbox_summed)
HANDLER(sandbox_no_summary)
HANDLER(sandbox_adopt)
HANDLER(sandbox_claim)
HANDLER(sandbox_restart)
HANDLER(sandbox_start_another)
HANDLER(sandbox_serve_again)
HANDLER(sandbox_took_over)
HANDLER(sandbox_close_down)
HANDLER(sandbox_fail_closed)
HANDLER(sandbox_hand_off)
HANDLER(sandbox_roll_back)
HANDLER(sandbox_finish_hand_off)
HANDLER(sandbox_fail_handed_off)
HANDLER(sandbox_quiesced)
HANDLER(sandbox_sleep_when_ready)
HANDLER(sandbox_wake)
HANDLER(sandbox_look)
HANDLER(sandbox_fall_asleep)
HANDLER(sandbox_pause_asleep)

/* The rest of what those files have: nobody calls it here. */

void sandbox_kill_workers(struct sandbox *s, const char *why)
{
	(void)s;
	(void)why;
	fail();
}

void sandbox_pause(struct sandbox *s, const char *reason)
{
	(void)s;
	(void)reason;
	fail();
}

void sandbox_check_quiesced(struct sandbox *s)
{
	(void)s;
	quiesces++;
}

int sandbox_know_root(struct sandbox *s)
{
	(void)s;
	fail();
	return 0;
}

void sandbox_begin_looking(struct sandbox *s)
{
	(void)s;
	fail(); /* none of them is a session */
}

bool sandbox_take_look(
        struct sandbox *s, struct instance *i, uint64_t id, const struct message_worker_stats *m)
{
	(void)s;
	(void)i;
	(void)id;
	(void)m;
	fail();
	return false;
}

void sandbox_add_past(const struct sandbox *s, struct message_worker_stats *m)
{
	(void)s;
	(void)m;
	fail();
}

void sandbox_examine_sources(
        const struct sandbox *s, void (*tell)(void *context, const char *fault), void *context)
{
	(void)s;
	(void)tell;
	(void)context;
	fail();
}

/* What is expected: all that is not here is passed over. */

struct cell {
	enum sandbox_state state;
	enum sandbox_event event;
	const char *handler;
};

static const struct cell cells[] = {
        {SANDBOX_NEW, SANDBOX_START, "sandbox_ask_or_begin"},
        {SANDBOX_NEW, SANDBOX_ADOPT, "sandbox_adopt"},
        {SANDBOX_NEW, SANDBOX_CLAIM, "sandbox_claim"},
        {SANDBOX_NEW, SANDBOX_END, "sandbox_end_early"},
        {SANDBOX_NEW, SANDBOX_FAIL, "sandbox_cut_off"},
        {SANDBOX_VARIABLES, SANDBOX_GIVEN, "sandbox_begin"},
        {SANDBOX_VARIABLES, SANDBOX_END, "sandbox_end_early"},
        {SANDBOX_VARIABLES, SANDBOX_FAIL, "sandbox_cut_off"},
        {SANDBOX_VARIABLES, SANDBOX_TIMEOUT, "sandbox_no_variables"},
        {SANDBOX_STARTING, SANDBOX_PROGRESS, "sandbox_serve_when_ready"},
        {SANDBOX_STARTING, SANDBOX_END, "sandbox_stop_workers"},
        {SANDBOX_STARTING, SANDBOX_FAIL, "sandbox_cut_off"},
        {SANDBOX_STARTING, SANDBOX_TIMEOUT, "sandbox_too_late"},
        {SANDBOX_SERVING, SANDBOX_END, "sandbox_stop_workers"},
        {SANDBOX_SERVING, SANDBOX_FAIL, "sandbox_fail_closed"},
        {SANDBOX_SERVING, SANDBOX_WORKER_DIED, "sandbox_restart"},
        {SANDBOX_SERVING, SANDBOX_PAUSE, "sandbox_quiesced"},
        {SANDBOX_SERVING, SANDBOX_TOOK_OVER, "sandbox_took_over"},
        {SANDBOX_SERVING, SANDBOX_HAND_OFF, "sandbox_hand_off"},
        {SANDBOX_SERVING, SANDBOX_IDLE, "sandbox_fall_asleep"},
        {SANDBOX_SERVING, SANDBOX_TIMEOUT, "sandbox_look"},
        {SANDBOX_ASLEEP, SANDBOX_END, "sandbox_stop_workers"},
        {SANDBOX_ASLEEP, SANDBOX_FAIL, "sandbox_fail_closed"},
        {SANDBOX_ASLEEP, SANDBOX_PAUSE, "sandbox_pause_asleep"},
        {SANDBOX_ASLEEP, SANDBOX_WAKE, "sandbox_wake"},
        {SANDBOX_ASLEEP, SANDBOX_HAND_OFF, "sandbox_hand_off"},
        {SANDBOX_RESTARTING, SANDBOX_PROGRESS, "sandbox_serve_again"},
        {SANDBOX_RESTARTING, SANDBOX_END, "sandbox_stop_workers"},
        {SANDBOX_RESTARTING, SANDBOX_FAIL, "sandbox_fail_closed"},
        {SANDBOX_RESTARTING, SANDBOX_WORKER_DIED, "sandbox_restart"},
        {SANDBOX_RESTARTING, SANDBOX_PAUSE, "sandbox_quiesced"},
        {SANDBOX_RESTARTING, SANDBOX_TOOK_OVER, "sandbox_took_over"},
        {SANDBOX_RESTARTING, SANDBOX_HAND_OFF, "sandbox_hand_off"},
        {SANDBOX_RESTARTING, SANDBOX_TIMEOUT, "sandbox_start_another"},
        {SANDBOX_CLOSED, SANDBOX_END, "sandbox_stop_workers"},
        {SANDBOX_CLOSED, SANDBOX_TOOK_OVER, "sandbox_took_over"},
        {SANDBOX_CLOSED, SANDBOX_HAND_OFF, "sandbox_hand_off"},
        {SANDBOX_HANDED_OFF, SANDBOX_END, "sandbox_stop_workers"},
        {SANDBOX_HANDED_OFF, SANDBOX_FAIL, "sandbox_fail_handed_off"},
        {SANDBOX_HANDED_OFF, SANDBOX_ROLL_BACK, "sandbox_roll_back"},
        {SANDBOX_HANDED_OFF, SANDBOX_WORKERS_GONE, "sandbox_finish_hand_off"},
        {SANDBOX_STOPPING, SANDBOX_WORKERS_GONE, "sandbox_sum_up"},
        {SANDBOX_SUMMING, SANDBOX_SUMMED, "sandbox_summed"},
        {SANDBOX_SUMMING, SANDBOX_RECORDER_GONE, "sandbox_end_early"},
        {SANDBOX_SUMMING, SANDBOX_TIMEOUT, "sandbox_no_summary"},
};

static const char *expected(int state, int event)
{
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		if ((int)cells[i].state == state && (int)cells[i].event == event)
			return cells[i].handler;
	return NULL;
}

/* An owner who counts. */

static unsigned ready, ended, changed, failed;

static void on_ready(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	assert_true(s->state == SANDBOX_SERVING || s->state == SANDBOX_ASLEEP);
	ready++;
}

static void on_ended(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	assert_int_equal(s->state, SANDBOX_ENDED);
	ended++;
}

static void on_changed(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	assert_true(s->persistent);
	changed++;
}

static void on_failed(struct sandbox_owner *owner, const char *text)
{
	(void)owner;
	(void)text;
	failed++;
}

static struct sandbox_owner owner = {
        .ready = on_ready, .ended = on_ended, .changed = on_changed, .failed = on_failed};

static struct sandbox one_in(int state, bool persistent)
{
	called = NULL;
	calls = quiesces = ready = ended = changed = failed = 0;
	return (struct sandbox){
	        .owner = &owner, .state = (enum sandbox_state)state, .persistent = persistent};
}

static void expect_passed_over(const struct sandbox *s, int state)
{
	assert_int_equal(s->state, state);
	assert_int_equal(calls + quiesces + ready + ended + changed + failed, 0);
}

/* The owner is told once, of one thing only. */
static void expect_owner_told(const struct sandbox *s, int before)
{
	const int now = (int)s->state;
	const bool begins =
	        (now == SANDBOX_SERVING || now == SANDBOX_ASLEEP) && before == SANDBOX_STARTING;

	assert_int_equal(ended, now == SANDBOX_ENDED);
	assert_int_equal(ready, begins);
	assert_int_equal(
	        changed, s->persistent && now != before && !begins && now != SANDBOX_ENDED);
	assert_int_equal(quiesces, now == SANDBOX_SERVING || now == SANDBOX_ASLEEP ||
	                                   now == SANDBOX_CLOSED || now == SANDBOX_RESTARTING);
	assert_int_equal(failed, 0); /* the handlers' to tell */
}

static void meet(int state, int event, int next, bool persistent)
{
	struct sandbox s = one_in(state, persistent);
	const char *handler = expected(state, event);

	returned = (enum sandbox_state)next;
	sandbox_event(&s, (enum sandbox_event)event);
	if (!handler) {
		expect_passed_over(&s, state);
		return;
	}
	if (!called || strcmp(called, handler) != 0)
		print_error("state %d, event %d\n", state, event);
	assert_string_equal(called, handler);
	assert_int_equal(calls, 1);
	assert_int_equal(s.state, next);
	expect_owner_told(&s, state);
}

/* Whatever a handler returns, also the state it was called in, is the next one. */
static void every_event_in_every_state(void **state)
{
	unsigned handled = 0;

	(void)state;
	for (int of = 0; of < SANDBOX_STATE_COUNT; of++)
		for (int event = 0; event < SANDBOX_EVENT_COUNT; event++) {
			handled += expected(of, event) != NULL;
			for (int next = 0; next < SANDBOX_STATE_COUNT; next++) {
				meet(of, event, next, false);
				meet(of, event, next, true);
			}
		}
	assert_int_equal(handled, sizeof(cells) / sizeof(cells[0])); /* none is written twice */
}

/* Nothing follows the end, and nobody is told of it twice. */
static void one_that_has_ended_meets_nothing(void **state)
{
	(void)state;
	for (int event = 0; event < SANDBOX_EVENT_COUNT; event++)
		assert_null(expected(SANDBOX_ENDED, event));
}

static void the_first_failure_stands(void **state)
{
	char longer[2 * SANDBOX_FAILURE_MAX];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	for (int of = 0; of < SANDBOX_STATE_COUNT; of++) {
		struct sandbox s = one_in(of, true);
		const char *handler = expected(of, SANDBOX_FAIL);

		returned = SANDBOX_STOPPING;
		snprintf(s.failure, sizeof(s.failure), "the first");
		sandbox_fail(&s, "%d of %s", 2, "them");
		if (!handler) {
			expect_passed_over(&s, of);
			assert_string_equal(s.failure, "the first");
			continue;
		}
		assert_string_equal(called, handler);
		assert_string_equal(s.failure, "2 of them");
		sandbox_fail(&s, "late"); /* it is stopping */
		assert_string_equal(s.failure, "2 of them");
		assert_int_equal(calls, 1);
		s.state = (enum sandbox_state)of;
		sandbox_fail(&s, "%s", longer);
		assert_int_equal(strlen(s.failure), SANDBOX_FAILURE_MAX - 1);
	}
}

/* A borrowed text is not kept where nobody reads it. */
static void a_refusal_is_a_failure_with_a_longer_text(void **state)
{
	static const char text[] = "all that is wrong with the policy";

	(void)state;
	for (int of = 0; of < SANDBOX_STATE_COUNT; of++) {
		struct sandbox s = one_in(of, false);
		const char *handler = expected(of, SANDBOX_FAIL);

		returned = SANDBOX_STOPPING;
		sandbox_refuse(&s, text);
		if (!handler) {
			expect_passed_over(&s, of);
			assert_null(s.refusal);
			continue;
		}
		assert_string_equal(called, handler);
		assert_ptr_equal(s.refusal, text);
		assert_int_equal(calls, 1);
	}
}

/* The registry, and what a new one has. */

static struct supervisor sv;
static struct loop_timer stop;

static void on_stop(struct loop_timer *timer)
{
	(void)timer;
	loop_stop(sv.loop);
}

static int setup(void **state)
{
	(void)state;
	sv.loop = loop_new();
	sv.mounts = -1;
	assert_non_null(sv.loop);
	return loop_timer_open(sv.loop, &stop, on_stop);
}

static int teardown(void **state)
{
	(void)state;
	loop_timer_close(&stop);
	loop_free(sv.loop);
	return 0;
}

static void a_new_one_is_found_and_its_time_passes(void **state)
{
	struct sandbox *s = sandbox_new(&sv, &owner, true);
	uint64_t id;

	(void)state;
	assert_non_null(s);
	id = s->id;
	assert_int_equal(s->state, SANDBOX_NEW);
	assert_null(s->current);
	assert_ptr_equal(supervisor_find(&sv, id), s);
	assert_int_equal(sandbox_set_id(s, id + 1000), 0);
	assert_null(supervisor_find(&sv, id));
	assert_ptr_equal(supervisor_find(&sv, id + 1000), s);

	s->state = SANDBOX_VARIABLES;
	called = NULL;
	returned = SANDBOX_STOPPING;
	loop_timer_set(&s->timer, 0);
	loop_timer_set(&stop, 50);
	assert_int_equal(loop_run(sv.loop), 0);
	assert_string_equal(called, "sandbox_no_variables");
	assert_int_equal(s->state, SANDBOX_STOPPING);
	sandbox_free(s);
	assert_null(sv.sandboxes);
}

/* Whichever allocation fails: there is no sandbox. */
static void without_memory(void **state)
{
	unsigned nth = 0;
	bool met;

	(void)state;
	do {
		no_memory_at(++nth);
		struct sandbox *s = sandbox_new(&sv, &owner, true);
		int error = errno;

		met = no_memory_met();
		assert_int_equal(s == NULL, met);
		if (s)
			sandbox_free(s);
		else
			assert_int_equal(error, ENOMEM);
		assert_null(sv.sandboxes);
	} while (met);
	assert_true(nth > 2);
}

static void another_id_without_memory(void **state)
{
	struct sandbox *s = sandbox_new(&sv, &owner, true);

	(void)state;
	assert_non_null(s);
	no_memory_at(1);
	assert_int_equal(sandbox_set_id(s, s->id + 1), -ENOMEM);
	assert_true(no_memory_met());
	assert_null(sv.sandboxes);
	sandbox_free(s);
}

/* One that does not last has its worker from the beginning; without one there is none. */
static void without_descriptors(void **state)
{
	struct rlimit before, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){3, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_null(sandbox_new(&sv, &owner, false));
	assert_int_equal(errno, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(sv.sandboxes);
	assert_null(sv.instances);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_event_in_every_state),
	        cmocka_unit_test(one_that_has_ended_meets_nothing),
	        cmocka_unit_test(the_first_failure_stands),
	        cmocka_unit_test(a_refusal_is_a_failure_with_a_longer_text),
	        cmocka_unit_test(a_new_one_is_found_and_its_time_passes),
	        cmocka_unit_test(without_memory),
	        cmocka_unit_test(another_id_without_memory),
	        cmocka_unit_test(without_descriptors),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
