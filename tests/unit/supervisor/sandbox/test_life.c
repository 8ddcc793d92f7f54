/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's life where something fails: a worker that cannot be started, workers that die, a
 * recorder that is lost, answers that do not come. The table's real handlers, with a supervisor
 * that has no keeper, sandboxes without a gate, and an owner who counts. Workers and the recorder
 * are this program itself: each lives until it is asked to stop. None gets as far as serving,
 * which the tests of whole runs and daemons show. (Links to such programs lie beside the test,
 * so there is one test of the kind in a folder.)
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/resource.h>

#include "no_memory.h"
#include "../fake_role.h"
#include "vethguard/base/clock.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

static struct supervisor sv;
static struct loop_timer look;
static bool (*awaited)(void);

static unsigned ready, ended, changed, quiesced;
static char failed[SANDBOX_FAILURE_MAX];

static void on_ready(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	(void)s;
	ready++;
}

static void on_ended(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	(void)s;
	ended++;
}

static void on_changed(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	(void)s;
	changed++;
}

static void on_quiesced(struct sandbox_owner *owner, struct sandbox *s)
{
	(void)owner;
	(void)s;
	quiesced++;
}

static void on_failed(struct sandbox_owner *owner, const char *text)
{
	(void)owner;
	snprintf(failed, sizeof(failed), "%s", text);
}

static struct sandbox_owner owner = {.ready = on_ready,
        .failed = on_failed,
        .ended = on_ended,
        .changed = on_changed,
        .quiesced = on_quiesced};

static void on_look(struct loop_timer *timer)
{
	if (awaited())
		loop_stop(sv.loop);
	else
		loop_timer_set(timer, 1);
}

/* Bounded by the time that a test may take. */
static void await(bool (*what)(void))
{
	awaited = what;
	loop_timer_set(&look, 0);
	assert_int_equal(loop_run(sv.loop), 0);
}

static struct sandbox *one_in(enum sandbox_state state, bool persistent)
{
	struct sandbox *s = sandbox_new(&sv, &owner, persistent);

	assert_non_null(s);
	snprintf(s->name, sizeof(s->name), "x");
	s->state = state;
	s->recorded.id = s->id;
	ready = ended = changed = quiesced = 0;
	failed[0] = 0;
	return s;
}

/* As if it had been told of the sandbox. */
static struct instance *give_worker(struct sandbox *s, enum instance_state state)
{
	struct instance *i = instance_new(&sv, slice_of("", 0));

	assert_non_null(i);
	instance_give(i, s);
	i->state = state;
	i->worker_request = supervisor_next_id(&sv);
	return i;
}

static struct rlimit descriptors;

/* From here on nothing can be started. */
static void take_descriptors(void)
{
	struct rlimit few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	few = (struct rlimit){3, descriptors.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void give_descriptors(void)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&sv, 0, sizeof(sv));
	sv.loop = loop_new();
	sv.persistent = true;
	sv.mounts = sv.names = -1;
	assert_non_null(sv.loop);
	assert_int_equal(gate_host_open(&sv.gates, sv.loop), 0);
	fake_link("vethguard-worker", true);
	fake_link("vethguard-recorder", true);
	fake_link("vethguard-fetch", true);
	return loop_timer_open(sv.loop, &look, on_look);
}

static int tear_down(void **state)
{
	(void)state;
	fake_link("vethguard-worker", false);
	fake_link("vethguard-recorder", false);
	fake_link("vethguard-fetch", false);
	assert_null(sv.sandboxes);
	assert_null(sv.instances);
	role_fini(&sv.recorder);
	recording_fini(&sv);
	gate_host_close(sv.gates);
	loop_timer_close(&look);
	loop_free(sv.loop);
	return 0;
}

/* Such a role reads everything, and ends when it is asked to. */
static int live_until_stop(void)
{
	struct ipc_message m;

	while (ipc_receive_blocking(IPC_SUPERVISOR_FD, -1, fake_in, &m) == 0) {
		for (size_t i = 0; i < m.fd_count; i++)
			close(m.fds[i]);
		if (m.head.type == MESSAGE_STOP)
			return 0;
	}
	return 0;
}

/* Whichever allocation fails: there is no sandbox, and no worker that nobody would ever end. */
static void one_with_a_worker_needs_memory(void **state)
{
	unsigned nth = 0;
	bool met;

	(void)state;
	do {
		no_memory_at(++nth);
		struct sandbox *s = sandbox_new(&sv, &owner, false);
		int error = errno;

		met = no_memory_met();
		assert_int_equal(s == NULL, met);
		if (s) {
			assert_ptr_equal(s->current, s->instances);
			sandbox_free(s);
		} else {
			assert_int_equal(error, ENOMEM);
		}
		assert_null(sv.sandboxes);
		assert_null(sv.instances);
	} while (met);
	assert_true(nth > 3);
}

/* Another worker. */

static uint64_t ids_before;

static void worker_dies(struct sandbox *s)
{
	snprintf(s->failure, sizeof(s->failure), "The worker died (signal 11)");
	sandbox_event(s, SANDBOX_WORKER_DIED);
}

static void expect_out_of_resources(const struct sandbox *s, const char *why)
{
	assert_int_equal(s->state, SANDBOX_RESTARTING);
	assert_true(s->out_of_resources);
	assert_null(s->current);
	assert_null(s->instances);
	assert_null(sv.instances);
	if (strncmp(s->failure, why, strlen(why)) != 0)
		print_error("said: %s\n", s->failure);
	assert_memory_equal(s->failure, why, strlen(why));
}

/* Again and again, and nothing of it counts as a death. */
static void one_that_cannot_be_started_is_tried_again(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	take_descriptors();
	worker_dies(s);
	expect_out_of_resources(s, "starting a worker: Too many open files");
	assert_int_equal(s->restarts, 1);
	assert_int_equal(changed, 1);
	for (unsigned i = 0; i < 3 * SANDBOX_DEATHS_MAX; i++) {
		ids_before = sv.last_id;
		sandbox_event(s, SANDBOX_TIMEOUT);
		assert_true(sv.last_id > ids_before); /* it was tried */
		expect_out_of_resources(s, "starting a worker: Too many open files");
	}
	give_descriptors();
	assert_int_equal(s->death_count, 1);
	assert_int_equal(changed, 1);
	sandbox_event(s, SANDBOX_TOOK_OVER);
	assert_int_equal(s->state, SANDBOX_SERVING);
	assert_false(s->out_of_resources);
	assert_int_equal(s->death_count, 0);
	sandbox_free(s);
}

/* Whichever allocation fails; with all of them its gate, which does not exist, has nowhere to
 * listen. */
static void without_memory_it_is_tried_again(void **state)
{
	struct sandbox *s = one_in(SANDBOX_RESTARTING, true);
	unsigned nth = 0;
	bool met;

	(void)state;
	do {
		no_memory_at(++nth);
		sandbox_event(s, SANDBOX_TIMEOUT);
		met = no_memory_met();
		expect_out_of_resources(
		        s, met ? "starting a worker: Cannot allocate memory"
		               : "entering the gate's namespace: Bad file descriptor");
	} while (met);
	assert_true(nth > 3);
	sandbox_free(s);
}

static bool was_tried(void)
{
	return sv.last_id > ids_before;
}

/* The first at once, the others after pauses that double. */
static void deaths_are_followed_by_growing_pauses(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);
	int64_t since_ms, pause_ms = SANDBOX_BACKOFF_MS;

	(void)state;
	ids_before = sv.last_id;
	worker_dies(s);
	assert_true(was_tried());
	for (unsigned deaths = 2; deaths <= 4; deaths++) {
		ids_before = sv.last_id;
		since_ms = clock_monotonic_ms();
		worker_dies(s);
		assert_int_equal(s->state, SANDBOX_RESTARTING);
		assert_false(was_tried());
		await(was_tried);
		assert_true(clock_monotonic_ms() - since_ms >= pause_ms - 1);
		pause_ms *= 2;
	}
	assert_int_equal(s->restarts, 4);
	sandbox_free(s);
}

static void too_many_deaths_close_it(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	for (unsigned i = 0; i < SANDBOX_DEATHS_MAX; i++) {
		worker_dies(s);
		assert_int_equal(s->state, SANDBOX_RESTARTING);
	}
	worker_dies(s);
	assert_int_equal(s->state, SANDBOX_CLOSED);
	assert_non_null(strstr(s->failure, "The worker died (signal 11); that was too often"));
	assert_int_equal(s->restarts, SANDBOX_DEATHS_MAX);
	ids_before = sv.last_id;
	worker_dies(s); /* whose, there is none? */
	sandbox_event(s, SANDBOX_TIMEOUT);
	assert_int_equal(s->state, SANDBOX_CLOSED);
	assert_false(was_tried());
	sandbox_free(s);
}

/* Any number of deaths, if each is long after the eighth before it. */
static void deaths_of_long_ago_do_not_count(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	for (unsigned i = 0; i < 3 * SANDBOX_DEATHS_MAX; i++) {
		ids_before = sv.last_id;
		worker_dies(s);
		assert_int_equal(s->state, SANDBOX_RESTARTING);
		assert_true(was_tried());
		for (unsigned n = 0; n < SANDBOX_DEATHS_MAX; n++)
			s->deaths_ms[n] -= SANDBOX_DEATHS_MS + 1;
	}
	sandbox_free(s);
}

/* No worker serves behind a fence that nobody watches. */
static void one_that_is_found_and_cannot_be_watched_is_closed(void **state)
{
	struct sandbox *s = one_in(SANDBOX_NEW, true);

	(void)state;
	no_memory_at(1);
	sandbox_event(s, SANDBOX_ADOPT);
	assert_true(no_memory_met());
	assert_int_equal(s->state, SANDBOX_CLOSED);
	assert_string_equal(s->failure, "watching the fence: Cannot allocate memory");
	sandbox_free(s);
}

/* Its gate cannot be entered: nothing is told of it, and nothing is served. */
static void one_that_is_claimed_without_a_gate_is_closed(void **state)
{
	struct sandbox *s = one_in(SANDBOX_NEW, true);

	(void)state;
	sandbox_event(s, SANDBOX_CLAIM);
	assert_int_equal(s->state, SANDBOX_CLOSED);
	assert_string_equal(s->failure, "entering the gate's namespace: Bad file descriptor");
	assert_false(s->recorded.open);
	assert_null(sv.instances);
	sandbox_free(s);
}

static void one_that_is_taken_back_and_cannot_be_watched_is_closed(void **state)
{
	struct sandbox *s = one_in(SANDBOX_HANDED_OFF, true);

	(void)state;
	no_memory_at(1);
	sandbox_event(s, SANDBOX_ROLL_BACK);
	assert_true(no_memory_met());
	assert_int_equal(s->state, SANDBOX_CLOSED);
	sandbox_free(s);
}

static bool no_worker(void)
{
	return !sv.instances;
}

static bool is_quiesced(void)
{
	return quiesced > 0;
}

/* The caller that asked for the pause gets its answer when no worker runs any more and none can
 * be started, not before. */
static void a_pause_needs_no_other_worker(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	s->current = give_worker(s, INSTANCE_SERVING);
	give_worker(s, INSTANCE_RETIRED);
	take_descriptors();
	sandbox_pause(s, "enough");
	give_descriptors();
	assert_int_equal(s->state, SANDBOX_RESTARTING);
	assert_null(s->current);
	assert_true(s->paused);
	assert_int_equal(quiesced, 0);
	await(no_worker); /* both were asked to stop, and did */
	if (!s->out_of_resources)
		assert_int_equal(quiesced, 0);
	await(is_quiesced);
	assert_int_equal(quiesced, 1);
	expect_out_of_resources(s, "entering the gate's namespace");
	sandbox_free(s);
}

/* The worker of the pair that dies is not the one that serves. */
static void a_retired_workers_death_changes_nothing(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);
	struct instance *retired;

	(void)state;
	retired = give_worker(s, INSTANCE_RETIRED);
	s->current = give_worker(s, INSTANCE_SERVING);
	sandbox_instance_dead(s, retired, "died (signal 11)");
	assert_int_equal(s->state, SANDBOX_SERVING);
	assert_int_equal(s->death_count, 0);
	assert_int_equal(changed, 0);
	take_descriptors();
	sandbox_instance_dead(s, s->current, "died (signal 11)");
	give_descriptors();
	assert_int_equal(s->state, SANDBOX_RESTARTING);
	assert_int_equal(s->death_count, 1);
	assert_int_equal(changed, 1);
	sandbox_free(s);
}

/* The end. */

static int hear(struct role *role, struct ipc_message *message)
{
	(void)role;
	(void)message;
	return -EBADMSG;
}

static void on_recorder_dead(struct role *role, const char *how)
{
	(void)role;
	(void)how;
}

static void start_recorder(void)
{
	if (!role_runs(&sv.recorder))
		assert_int_equal(role_start(sv.loop, &sv.recorder, "vethguard-recorder",
		                         "the recorder", -1, hear, on_recorder_dead),
		        0);
}

/* One that the recorder knows, on its way to be summed up. */
static struct sandbox *one_summing(bool persistent)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	s->persistent = persistent; /* one that does not has its worker from the beginning */
	start_recorder();
	s->recorded.open = true;
	sandbox_event(s, SANDBOX_END);
	assert_int_equal(s->state, SANDBOX_SUMMING);
	assert_true(s->unsummed);
	assert_int_equal(ended, 0);
	return s;
}

static void expect_ended(const struct sandbox *s)
{
	assert_int_equal(s->state, SANDBOX_ENDED);
	assert_int_equal(ended, 1);
}

static void one_that_nobody_knows_ends_at_once(void **state)
{
	static const enum sandbox_state states[] = {
	        SANDBOX_STARTING, SANDBOX_SERVING, SANDBOX_RESTARTING, SANDBOX_CLOSED};

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct sandbox *s = one_in(states[i], true);

		sandbox_event(s, SANDBOX_END);
		expect_ended(s);
		assert_false(s->unsummed);
		sandbox_free(s);
	}
}

static void the_summary_ends_it(void **state)
{
	struct sandbox *s = one_summing(true);

	(void)state;
	sandbox_event(s, SANDBOX_SUMMED);
	expect_ended(s);
	assert_false(s->unsummed);
	sandbox_free(s);
	assert_int_equal(recording_count_orphans(&sv), 0);
	assert_int_equal(sv.recording.told_count, 0);
}

/* If the recorder is lost or too slow, events for it wait for the next one. */
static void without_a_summary_it_ends_and_is_kept(enum sandbox_event event)
{
	struct sandbox *s = one_summing(true);
	uint64_t id = s->id;

	sandbox_event(s, event);
	expect_ended(s);
	assert_true(s->unsummed);
	sandbox_free(s);
	assert_int_equal(recording_count_orphans(&sv), 1);
	assert_int_equal(sv.recording.left->id, id);
	assert_int_equal(sv.recording.told_count, 1);
	recording_taken(&sv, sv.last_id);
	for (uint64_t i = id; i <= sv.last_id; i++)
		recording_taken(&sv, i);
	assert_int_equal(recording_count_orphans(&sv), 0);
}

static void the_recorder_is_lost(void **state)
{
	(void)state;
	without_a_summary_it_ends_and_is_kept(SANDBOX_RECORDER_GONE);
}

static void the_recorder_is_late(void **state)
{
	(void)state;
	without_a_summary_it_ends_and_is_kept(SANDBOX_TIMEOUT);
}

/* A run has nobody who would tell it to another recorder. */
static void of_a_run_nothing_is_kept(void **state)
{
	struct sandbox *s = one_summing(false);

	(void)state;
	sandbox_event(s, SANDBOX_RECORDER_GONE);
	expect_ended(s);
	sandbox_free(s);
	assert_int_equal(recording_count_orphans(&sv), 0);
	assert_int_equal(sv.recording.told_count, 0);
}

static void without_a_recorder_it_does_not_wait(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	role_fini(&sv.recorder);
	s->recorded.open = true;
	sandbox_event(s, SANDBOX_END);
	expect_ended(s);
	assert_true(s->unsummed);
	s->persistent = false; /* and nothing is kept */
	sandbox_free(s);
}

/* A summary that could not be found again is not asked for. */
static void without_memory_it_does_not_wait(void **state)
{
	unsigned nth = 0, at_once = 0;
	bool met;

	(void)state;
	start_recorder();
	do {
		struct sandbox *s = one_in(SANDBOX_SERVING, true);

		s->recorded.open = true;
		no_memory_at(++nth);
		sandbox_event(s, SANDBOX_END);
		met = no_memory_met();
		assert_true(met || s->state == SANDBOX_SUMMING);
		if (s->state == SANDBOX_SUMMING) {
			assert_non_null(s->at_summary.tbl);
			sandbox_event(s, SANDBOX_SUMMED);
		} else {
			at_once++;
		}
		expect_ended(s);
		s->persistent = false;
		sandbox_free(s);
	} while (met);
	assert_true(at_once > 0);
}

/* Whatever was not ready in time is named. */
static void too_late(bool keeper, bool worker, bool recorder, const char *text)
{
	struct sandbox *s = one_in(SANDBOX_STARTING, true);

	s->current = give_worker(s, INSTANCE_STARTING);
	s->current->keeper_ready = keeper;
	s->current->worker_ready = worker;
	sv.recorder_life.ready = recorder;
	sandbox_instance_late(s, s->current);
	assert_string_equal(failed, text);
	assert_int_equal(s->state, SANDBOX_STOPPING);
	assert_null(s->current);
	assert_int_equal(s->instances->state, INSTANCE_ENDING);
	assert_true(s->instances->worker.killed);
	sandbox_instance_dead(s, s->instances, "was killed");
	expect_ended(s);
	sandbox_free(s);
}

static void what_did_not_become_ready_is_named(void **state)
{
	(void)state;
	too_late(false, false, false,
	        "not ready after 10 s: waiting for the keeper the worker the recorder");
	too_late(true, false, true, "not ready after 10 s: waiting for the worker");
	too_late(true, true, false, "not ready after 10 s: waiting for the recorder");
}

static void variables_that_do_not_come(void **state)
{
	struct sandbox *s = one_in(SANDBOX_VARIABLES, true);

	(void)state;
	sandbox_event(s, SANDBOX_TIMEOUT);
	assert_string_equal(failed, "the values of environment variables did not come");
	expect_ended(s);
	sandbox_free(s);
}

static bool is_over(void)
{
	return ended > 0;
}

/* Workers that serve and workers that finish, in any order. */
static void all_workers_are_asked_to_stop(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	give_worker(s, INSTANCE_RETIRED)->worker.stopping = true;
	s->current = give_worker(s, INSTANCE_SERVING);
	sandbox_event(s, SANDBOX_END);
	assert_int_equal(s->state, SANDBOX_STOPPING);
	sandbox_event(s, SANDBOX_END); /* once more is nothing */
	sandbox_fail(s, "and what happens meanwhile is no failure");
	assert_int_equal(s->state, SANDBOX_STOPPING);
	await(is_over);
	expect_ended(s);
	assert_string_equal(failed, "");
	sandbox_free(s);
}

/* A run is cut off, and its owner learns why. An attached sandbox is closed, and stays. */
static void a_failure_while_it_serves(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);

	(void)state;
	s->current = give_worker(s, INSTANCE_SERVING);
	sandbox_fail(s, "its fence is gone");
	assert_int_equal(s->state, SANDBOX_CLOSED);
	assert_string_equal(failed, "");
	assert_int_equal(changed, 1);
	sandbox_instance_dead(s, s->instances, "was killed");
	assert_int_equal(s->state, SANDBOX_CLOSED); /* it was not the current one any more */
	sandbox_free(s);

	s = one_in(SANDBOX_SERVING, true);
	s->persistent = false;
	s->current = give_worker(s, INSTANCE_SERVING);
	sandbox_fail(s, "its fence is gone");
	assert_int_equal(s->state, SANDBOX_STOPPING);
	assert_string_equal(failed, "its fence is gone");
	sandbox_instance_dead(s, s->instances, "was killed");
	expect_ended(s);
	sandbox_free(s);
}

/* One that another daemon serves: a failure here is not its end. */
static void one_that_is_away(void **state)
{
	struct sandbox *s = one_in(SANDBOX_HANDED_OFF, true);

	(void)state;
	give_worker(s, INSTANCE_RETIRED);
	sandbox_fail(s, "its fence cannot be looked at");
	assert_int_equal(s->state, SANDBOX_HANDED_OFF);
	sandbox_instance_dead(s, s->instances, "was killed");
	assert_int_equal(s->state, SANDBOX_HANDED_OFF); /* it may be taken back */
	s->is_given = true;
	sandbox_event(s, SANDBOX_WORKERS_GONE);
	expect_ended(s);
	sandbox_free(s);
}

/* The next keeper is told of the sandbox: one that ends takes no worker along. */
static void a_keeper_that_has_ended_is_no_fault_of_a_worker(void **state)
{
	static _Alignas(8) uint8_t no_credentials[4096];
	struct settings settings = {.policy = {no_credentials, sizeof(no_credentials)}};
	struct generation g = {.settings = &settings, .refs = 8};
	struct sandbox *s = one_in(SANDBOX_SERVING, true);
	struct instance *i = give_worker(s, INSTANCE_SERVING);

	(void)state;
	assert_false(role_runs(&sv.keeper));
	assert_int_equal(instance_change_credentials(i, &g), 0);
	i->generation = generation_get(&g);
	assert_int_equal(instance_new_keeper(i), 0);
	sandbox_free(s);
}

/* Its socket is closed, and the loop has not heard of it yet. */
static void end_worker(const struct instance *i)
{
	struct pollfd socket = {.fd = i->worker.peer.io.fd};

	assert_int_equal(kill(i->worker.pid, SIGTERM), 0);
	assert_int_equal(poll(&socket, 1, -1), 1);
	assert_true(socket.revents & POLLHUP);
}

/* A worker that ends by itself just then was not killed, and is not a finding. */
static void a_worker_that_ends_when_it_is_to_pause(void **state)
{
	struct sandbox *s = one_in(SANDBOX_SERVING, true);
	struct instance *i = give_worker(s, INSTANCE_RETIRED);

	(void)state;
	end_worker(i);
	instance_pause(i, "a test wants it");
	assert_false(i->worker.killed);
	assert_string_equal(i->worker.last_words, "");
	sandbox_free(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(one_with_a_worker_needs_memory),
	        cmocka_unit_test(one_that_cannot_be_started_is_tried_again),
	        cmocka_unit_test(without_memory_it_is_tried_again),
	        cmocka_unit_test(deaths_are_followed_by_growing_pauses),
	        cmocka_unit_test(too_many_deaths_close_it),
	        cmocka_unit_test(deaths_of_long_ago_do_not_count),
	        cmocka_unit_test(one_that_is_found_and_cannot_be_watched_is_closed),
	        cmocka_unit_test(one_that_is_claimed_without_a_gate_is_closed),
	        cmocka_unit_test(one_that_is_taken_back_and_cannot_be_watched_is_closed),
	        cmocka_unit_test(a_pause_needs_no_other_worker),
	        cmocka_unit_test(a_retired_workers_death_changes_nothing),
	        cmocka_unit_test(one_that_nobody_knows_ends_at_once),
	        cmocka_unit_test(the_summary_ends_it),
	        cmocka_unit_test(the_recorder_is_lost),
	        cmocka_unit_test(the_recorder_is_late),
	        cmocka_unit_test(of_a_run_nothing_is_kept),
	        cmocka_unit_test(without_a_recorder_it_does_not_wait),
	        cmocka_unit_test(without_memory_it_does_not_wait),
	        cmocka_unit_test(what_did_not_become_ready_is_named),
	        cmocka_unit_test(variables_that_do_not_come),
	        cmocka_unit_test(all_workers_are_asked_to_stop),
	        cmocka_unit_test(a_failure_while_it_serves),
	        cmocka_unit_test(one_that_is_away),
	        cmocka_unit_test(a_keeper_that_has_ended_is_no_fault_of_a_worker),
	        cmocka_unit_test(a_worker_that_ends_when_it_is_to_pause),
	};

	if (argc > 0 && (strcmp(argv[0], "vethguard-worker") == 0 ||
	                        strcmp(argv[0], "vethguard-recorder") == 0))
		return live_until_stop();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
