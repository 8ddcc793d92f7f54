/* SPDX-License-Identifier: Apache-2.0 */
/* Events that the supervisor sends and waits to have in the log: bounded, in order, and sent again.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "loop_for.h"
#include "vethguard/base/clock.h"
#include "supervisor/events/private.h"

#define SANDBOX 4242

static void an_outage_becomes_a_finding(void **state)
{
	struct supervisor sv = {.loop = loop_new(),
	        .persistent = true,
	        .recording.daemon = {.id = SANDBOX, .open = true}};
	const struct outbox_call look = {
	        .operation = "sandboxes.list", .looks = true, .status = 200};

	(void)state;
	assert_non_null(sv.loop);
	outage_ends(&sv); /* of none */
	outage_tell(&sv);
	assert_int_equal(sv.recording.told_count, 0);
	outage_begins(&sv, "The disk is full.");
	outage_begins(&sv, "The disk is still full.");
	assert_int_equal(sv.recording.outage.count, 1);
	sv.recording.told_count = RECORDING_LOOKS_MAX;
	outbox_api(&sv, NULL, &look);
	assert_int_equal(sv.recording.outage.looks, 1);
	sv.recording.told_count = 0;
	outage_ends(&sv);
	assert_int_equal(sv.recording.told_count, 1);
	assert_int_equal(sv.recording.outage.looks, 0);
	/* A role that reports endlessly fills nothing; its reports are told later. */
	for (unsigned i = 0; i < 100; i++) {
		outage_begins(&sv, "The disk is full.");
		outage_ends(&sv);
	}
	assert_int_equal(sv.recording.told_count, 1);
	assert_int_equal(sv.recording.outage.count, 100);
	sv.recording.outage.next_told_ms = 0;
	outage_begins(&sv, "The disk is full.");
	outage_ends(&sv);
	assert_int_equal(sv.recording.told_count, 2);
	assert_int_equal(sv.recording.outage.count, 0);
	recording_taken(&sv, sv.last_id);
	assert_null(sv.recording.daemon.told);
	loop_timer_close(&sv.recording.outage_time);
	loop_free(sv.loop);
}

/* Gathered reports are told when their time comes, once, and never during an outage. */
static void outages_in_a_row_are_told_in_time(void **state)
{
	struct supervisor sv = {.loop = loop_new(),
	        .persistent = true,
	        .recording.daemon = {.id = SANDBOX, .open = true}};
	struct outage *o = &sv.recording.outage;

	(void)state;
	assert_non_null(sv.loop);
	o->next_told_ms = clock_monotonic_ms() + 50;
	for (unsigned i = 0; i < 3; i++) {
		outage_begins(&sv, "The disk is full.");
		outage_ends(&sv);
	}
	assert_int_equal(sv.recording.told_count, 0);
	loop_for(sv.loop, 200);
	assert_int_equal(sv.recording.told_count, 1);
	assert_int_equal(o->count, 0);

	o->next_told_ms = clock_monotonic_ms() + 50;
	outage_begins(&sv, "The disk is full.");
	outage_ends(&sv);
	outage_begins(&sv, "The disk is full again.");
	loop_for(sv.loop, 200);
	outage_tell(&sv);
	assert_int_equal(sv.recording.told_count, 1);
	assert_int_equal(o->count, 2);
	outage_ends(&sv); /* its time is over: at once */
	assert_int_equal(sv.recording.told_count, 2);

	outage_begins(&sv, "The disk is full.");
	outage_ends(&sv);
	assert_int_equal(sv.recording.told_count, 2);
	outage_tell(&sv); /* the daemon ends: not later, and not twice */
	outage_tell(&sv);
	assert_int_equal(sv.recording.told_count, 3);
	for (uint64_t id = 1; id <= sv.last_id; id++)
		recording_taken(&sv, id);
	assert_null(sv.recording.daemon.told);
	loop_timer_close(&sv.recording.outage_time);
	loop_free(sv.loop);
}

/* A recorder that confirms nothing costs so much memory and no more. */
static void what_waits_is_bounded(void **state)
{
	struct supervisor sv = {.recording.daemon = {.id = SANDBOX, .open = true}};
	const struct told *t;

	(void)state;
	for (size_t i = 0; i < RECORDING_TOLD_MAX + 10; i++)
		outbox_lifecycle(&sv, NULL, EVENT_PAUSED, NULL);
	assert_int_equal(sv.recording.told_count, RECORDING_TOLD_MAX);
	recording_taken(&sv, RECORDING_TOLD_MAX - 1);
	assert_int_equal(sv.recording.told_count, 1);
	outbox_lifecycle(&sv, NULL, EVENT_PAUSED, NULL);
	t = sv.recording.daemon.told;
	assert_non_null(t);
	recording_taken(&sv, sv.last_id);
	assert_int_equal(sv.recording.told_count, 0);
	assert_null(sv.recording.daemon.told);
}

/* The recorder says why it takes nothing: starting another one would not help. */
static void one_that_cannot_write_is_left_alone(void **state)
{
	(void)state;
	for (int stalled = 0; stalled < 2; stalled++) {
		struct supervisor sv = {.recording = {.daemon = {.id = SANDBOX, .open = true},
		                                .told_count = RECORDING_TOLD_MAX},
		        .recorder = {.pid = getpid(), .pidfd = -1}};

		snprintf(sv.recorder_life.stall.why, sizeof(sv.recorder_life.stall.why), "%s",
		        stalled ? "The disk is full." : "");
		outbox_lifecycle(&sv, NULL, EVENT_PAUSED, NULL);
		assert_int_equal(sv.recorder.killed, !stalled);
	}
}

/* Repeated questions, while nothing is written, take no room from events of what was done. */
static void who_looks_leaves_room(void **state)
{
	struct supervisor sv = {.recording.daemon = {.id = SANDBOX, .open = true}};
	const struct outbox_call look = {
	        .operation = "sandboxes.list", .looks = true, .status = 200};
	const struct outbox_call change = {.operation = "sandboxes.pause", .status = 200};

	(void)state;
	for (size_t i = 0; i < RECORDING_LOOKS_MAX + 10; i++)
		outbox_api(&sv, NULL, &look);
	assert_int_equal(sv.recording.told_count, RECORDING_LOOKS_MAX);
	outbox_api(&sv, NULL, &change);
	assert_int_equal(sv.recording.told_count, RECORDING_LOOKS_MAX + 1);
	recording_taken(&sv, sv.last_id);
	assert_int_equal(sv.recording.told_count, 0);
	outbox_api(&sv, NULL, &look);
	assert_int_equal(sv.recording.told_count, 1);
	recording_taken(&sv, sv.last_id);
}

/* Else the recorder is told of a sandbox that it has forgotten, and ends. */
static void nothing_follows_the_end_of_a_sandbox(void **state)
{
	struct supervisor sv = {.recording.daemon = {.id = SANDBOX, .open = true}};
	struct sandbox s = {.name = "one",
	        .persistent = true,
	        .state = SANDBOX_SERVING,
	        .recorded = {.id = SANDBOX + 1, .open = true}};
	const struct outbox_call call = {.operation = "sandboxes.pause", .status = 503};

	(void)state;
	outbox_api(&sv, &s, &call);
	assert_non_null(s.recorded.told);
	assert_null(sv.recording.daemon.told);
	outbox_forget(&sv, &s.recorded, sv.last_id, true);
	s.state = SANDBOX_SUMMING;
	outbox_api(&sv, &s, &call);
	assert_null(s.recorded.told);
	assert_non_null(sv.recording.daemon.told);
	recording_taken(&sv, sv.last_id);
}

/* While the log cannot be written: more than the recorder has room for waits here, the end behind
 * it. */
static void the_recorder_is_given_what_it_has_room_for(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {
	        .supervisor = &sv, .id = SANDBOX, .recorded = {.id = SANDBOX, .open = true}};
	struct recorded_ring *rings[RECORDING_RINGS_MAX];
	struct recorded *of = &s.recorded;

	(void)state;
	HASH_ADD(hh, sv.sandboxes, id, sizeof(s.id), &s);
	for (size_t i = 0; i < RECORDING_RINGS_MAX; i++) {
		rings[i] = recording_ring_new(&sv, &s);
		assert_non_null(rings[i]);
		assert_int_equal(rings[i]->given, i < MESSAGE_RECORDER_RINGS_MAX);
	}
	assert_null(recording_ring_new(&sv, &s));
	assert_int_equal(errno, ENOBUFS);
	while (of->ahead + EVENT_BYTES_MAX <= MESSAGE_RECORDER_AHEAD_MAX || !of->next_told) {
		outbox_lifecycle(&sv, &s, EVENT_PAUSED, "Why it is so.");
		assert_true(of->ahead <= MESSAGE_RECORDER_AHEAD_MAX);
	}
	assert_int_equal(recording_end(&sv, &s), 0);
	assert_true(of->end_waits);
	recording_taken(&sv, sv.last_id);
	assert_null(of->told);
	assert_null(of->next_told);
	assert_int_equal(of->ahead, 0);
	assert_true(of->end_waits); /* there are rings yet */
	for (size_t i = 0; i < RECORDING_RINGS_MAX; i++) {
		const size_t given = i + MESSAGE_RECORDER_RINGS_MAX;

		assert_int_equal(of->end_waits, given < RECORDING_RINGS_MAX);
		recording_ring_end(&sv, &s, rings[i]);
		recording_drained(&sv, rings[i]->end_request);
		if (given < RECORDING_RINGS_MAX)
			assert_true(rings[given]->given);
	}
	assert_null(of->rings);
	assert_int_equal(of->rings_given, 0);
	HASH_DEL(sv.sandboxes, &s);
}

/* One that takes over is given the oldest that is left, once. */
static void the_next_recorder_is_given_it_again(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {
	        .supervisor = &sv, .id = SANDBOX, .recorded = {.id = SANDBOX, .open = true}};
	struct recorded *of = &s.recorded;
	const struct told *first;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		outbox_lifecycle(&sv, &s, EVENT_PAUSED, NULL);
	assert_null(of->next_told);
	first = of->told;
	recording_taken(&sv, 1);
	assert_ptr_not_equal(of->told, first);
	const size_t ahead = of->ahead;
	outbox_say_again(&sv, of);
	assert_int_equal(of->ahead, ahead);
	assert_null(of->next_told);
	recording_leave(&sv, of);
	assert_null(of->told);
	assert_int_equal(of->ahead, 0);
	assert_int_equal(sv.recording.left->ahead, ahead);
	recording_taken(&sv, sv.last_id);
	assert_null(sv.recording.left);
}

/* Until a claim is answered nobody is woken. The end of the sandbox does not overtake its events.
 */
static void what_is_held_waits(void **state)
{
	struct supervisor sv = {0};
	struct sandbox s = {.supervisor = &sv, .id = SANDBOX};
	struct recorded *of = &s.recorded;

	(void)state;
	outbox_lifecycle(&sv, &s, EVENT_START, NULL);
	assert_null(of->told); /* neither open nor held */
	recording_hold(&s);
	assert_int_equal(of->id, SANDBOX);
	for (unsigned i = 0; i < 3; i++) {
		outbox_lifecycle(&sv, &s, EVENT_START, NULL);
		assert_non_null(of->told);
		assert_ptr_equal(of->next_told, of->told);
		assert_int_equal(of->ahead, 0);
	}
	assert_int_equal(sv.recording.told_count, 3);
	assert_int_equal(recording_end(&sv, &s), 0);
	assert_true(of->end_waits);
	of->held = false;
	outbox_say_again(&sv, of);
	assert_null(of->next_told);
	assert_int_not_equal(of->ahead, 0);
	recording_taken(&sv, sv.last_id);
	assert_null(of->told);
	assert_int_equal(sv.recording.told_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_outage_becomes_a_finding),
	        cmocka_unit_test(outages_in_a_row_are_told_in_time),
	        cmocka_unit_test(what_waits_is_bounded),
	        cmocka_unit_test(one_that_cannot_write_is_left_alone),
	        cmocka_unit_test(who_looks_leaves_room),
	        cmocka_unit_test(nothing_follows_the_end_of_a_sandbox),
	        cmocka_unit_test(the_recorder_is_given_what_it_has_room_for),
	        cmocka_unit_test(the_next_recorder_is_given_it_again),
	        cmocka_unit_test(what_is_held_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
