/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's life is one table: for each state, the events it handles. A handler does its work and
 * returns the next state; the dispatcher alone changes the state and, at the end, hands the sandbox
 * back to its owner. Events without a handler in a state are ignored: they come from races between
 * programs that end.
 */
#include <inttypes.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "vethguard/base/hash.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/sandbox/asks.h"
#include "supervisor/sandbox/quotas.h"
#include "supervisor/supervisor.h"

typedef enum sandbox_state (*handler)(struct sandbox *s);

static const handler table[SANDBOX_STATE_COUNT][SANDBOX_EVENT_COUNT] = {
        [SANDBOX_NEW] =
                {
                        [SANDBOX_START] = sandbox_ask_or_begin,
                        [SANDBOX_ADOPT] = sandbox_adopt,
                        [SANDBOX_CLAIM] = sandbox_claim,
                        [SANDBOX_END] = sandbox_end_early,
                        [SANDBOX_FAIL] = sandbox_cut_off,
                },
        [SANDBOX_VARIABLES] =
                {
                        [SANDBOX_GIVEN] = sandbox_begin,
                        [SANDBOX_END] = sandbox_end_early,
                        [SANDBOX_FAIL] = sandbox_cut_off,
                        [SANDBOX_TIMEOUT] = sandbox_no_variables,
                },
        [SANDBOX_STARTING] =
                {
                        [SANDBOX_PROGRESS] = sandbox_serve_when_ready,
                        [SANDBOX_END] = sandbox_stop_workers,
                        [SANDBOX_FAIL] = sandbox_cut_off,
                        [SANDBOX_TIMEOUT] = sandbox_too_late,
                },
        [SANDBOX_SERVING] =
                {
                        [SANDBOX_END] = sandbox_stop_workers,
                        [SANDBOX_FAIL] = sandbox_fail_closed,
                        [SANDBOX_WORKER_DIED] = sandbox_restart,
                        [SANDBOX_PAUSE] = sandbox_quiesced,
                        [SANDBOX_IDLE] = sandbox_fall_asleep,
                        [SANDBOX_TOOK_OVER] = sandbox_took_over,
                        [SANDBOX_HAND_OFF] = sandbox_hand_off,
                        [SANDBOX_TIMEOUT] = sandbox_look,
                },
        [SANDBOX_ASLEEP] =
                {
                        [SANDBOX_END] = sandbox_stop_workers,
                        [SANDBOX_FAIL] = sandbox_fail_closed,
                        [SANDBOX_PAUSE] = sandbox_pause_asleep,
                        [SANDBOX_WAKE] = sandbox_wake,
                        [SANDBOX_HAND_OFF] = sandbox_hand_off,
                },
        [SANDBOX_RESTARTING] =
                {
                        [SANDBOX_PROGRESS] = sandbox_serve_again,
                        [SANDBOX_END] = sandbox_stop_workers,
                        [SANDBOX_FAIL] = sandbox_fail_closed,
                        [SANDBOX_WORKER_DIED] = sandbox_restart,
                        [SANDBOX_PAUSE] = sandbox_quiesced,
                        [SANDBOX_TOOK_OVER] = sandbox_took_over,
                        [SANDBOX_HAND_OFF] = sandbox_hand_off,
                        [SANDBOX_TIMEOUT] = sandbox_start_another,
                },
        [SANDBOX_CLOSED] =
                {
                        [SANDBOX_END] = sandbox_stop_workers,
                        [SANDBOX_TOOK_OVER] = sandbox_took_over,
                        [SANDBOX_HAND_OFF] = sandbox_hand_off,
                },
        [SANDBOX_HANDED_OFF] =
                {
                        [SANDBOX_END] = sandbox_stop_workers,
                        [SANDBOX_FAIL] = sandbox_fail_handed_off,
                        [SANDBOX_ROLL_BACK] = sandbox_roll_back,
                        [SANDBOX_WORKERS_GONE] = sandbox_finish_hand_off,
                },
        [SANDBOX_STOPPING] =
                {
                        [SANDBOX_WORKERS_GONE] = sandbox_sum_up,
                },
        [SANDBOX_SUMMING] =
                {
                        [SANDBOX_SUMMED] = sandbox_summed,
                        [SANDBOX_RECORDER_GONE] = sandbox_end_early,
                        [SANDBOX_TIMEOUT] = sandbox_no_summary,
                },
};

static const char *const state_names[] = {
        [SANDBOX_NEW] = "NEW",
        [SANDBOX_VARIABLES] = "VARIABLES",
        [SANDBOX_STARTING] = "STARTING",
        [SANDBOX_SERVING] = "SERVING",
        [SANDBOX_ASLEEP] = "ASLEEP",
        [SANDBOX_RESTARTING] = "RESTARTING",
        [SANDBOX_CLOSED] = "CLOSED",
        [SANDBOX_HANDED_OFF] = "HANDED_OFF",
        [SANDBOX_STOPPING] = "STOPPING",
        [SANDBOX_SUMMING] = "SUMMING",
        [SANDBOX_ENDED] = "ENDED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == SANDBOX_STATE_COUNT, "a name per state");

/* Sets the state; nothing else does. */
static void set_state(struct sandbox *s, enum sandbox_state state)
{
	if (s->state != state)
		log_sandbox(LOG_LEVEL_DEBUG, s->name, "sandbox %" PRIu64 ": %s -> %s", s->id,
		        state_names[s->state], state_names[state]);
	s->state = state;
}

/* Tells the owner about the new state. Call this last: the owner may free s. */
static void tell_owner(struct sandbox *s, enum sandbox_state before)
{
	if (s->state == SANDBOX_ENDED) {
		s->owner->ended(s->owner, s);
		return;
	}
	if (before == SANDBOX_STARTING &&
	        (s->state == SANDBOX_SERVING || s->state == SANDBOX_ASLEEP))
		s->owner->ready(s->owner, s);
	else if (s->state != before && s->persistent)
		s->owner->changed(s->owner, s);
	if (s->state == SANDBOX_SERVING || s->state == SANDBOX_ASLEEP ||
	        s->state == SANDBOX_CLOSED || s->state == SANDBOX_RESTARTING)
		sandbox_check_quiesced(s);
}

/* Goes on with connections that wait for a worker, and begins to look at one that now serves. */
static void tell_gateway(struct sandbox *s, enum sandbox_state before)
{
	if (s->state == SANDBOX_SERVING && before != SANDBOX_SERVING)
		sandbox_begin_looking(s);
	gateway_session_changed(s);
}

/* Tells the recorder of a claimed sandbox, at the first event after the claim, whatever it is.
 * Returns the event to be handled: SANDBOX_FAIL if the recorder cannot be told. */
static enum sandbox_event release_record(struct sandbox *s, enum sandbox_event event)
{
	const int rc = s->recorded.held ? recording_release(s->supervisor, s) : 0;

	if (!rc || !table[s->state][SANDBOX_FAIL])
		return event;
	sandbox_failed(s, rc, "the recorder");
	return SANDBOX_FAIL;
}

void sandbox_event(struct sandbox *s, enum sandbox_event event)
{
	enum sandbox_state before = s->state;
	handler handle;

	event = release_record(s, event);
	handle = table[s->state][event];
	if (!handle)
		return;
	set_state(s, handle(s));
	if (s->session)
		tell_gateway(s, before);
	team_fill(s);
	tell_owner(s, before);
}

void sandbox_fail(struct sandbox *s, const char *format, ...)
{
	va_list arguments;

	if (!table[s->state][SANDBOX_FAIL])
		return; /* the first failure stands */
	va_start(arguments, format);
	vsnprintf(s->failure, sizeof(s->failure), format, arguments);
	va_end(arguments);
	sandbox_event(s, SANDBOX_FAIL);
}

void sandbox_blame_asker(struct sandbox *s)
{
	s->fault = GATE_FAULT_ASKED;
}

void sandbox_take_root(struct sandbox *s, const struct message_keeper_root *m)
{
	sandbox_trust(s, m->root_pem);
	memcpy(s->root, m->root.p, sizeof(s->root));
	memcpy(s->ca, m->ca.p, sizeof(s->ca));
	s->root_known = s->ca_known = true;
}

void sandbox_refuse(struct sandbox *s, const char *text)
{
	if (!table[s->state][SANDBOX_FAIL])
		return;
	s->refusal = text;
	sandbox_event(s, SANDBOX_FAIL); /* may free s */
}

static void on_time(struct loop_timer *timer)
{
	sandbox_event(container_of(timer, struct sandbox, timer), SANDBOX_TIMEOUT);
}

/* Adds s to the registry. Returns 0 or -ENOMEM. */
static int enter(struct sandbox *s)
{
	HASH_ADD(hh, s->supervisor->sandboxes, id, sizeof(s->id), s);
	return s->hh.tbl ? 0 : -ENOMEM;
}

/* Starts the worker of a sandbox that is not persistent: it starts while the policy is loaded. */
static int start_first(struct sandbox *s)
{
	struct instance *first = instance_new(s->supervisor, slice_of("", 0));

	if (!first)
		return -errno;
	instance_give(first, s);
	s->current = first;
	return 0;
}

struct sandbox *sandbox_new(struct supervisor *sv, struct sandbox_owner *owner, bool persistent)
{
	struct sandbox *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return NULL;
	s->supervisor = sv;
	s->owner = owner;
	s->persistent = persistent;
	s->id = supervisor_next_id(sv);
	s->netns = s->names = s->counters = s->tools = s->shared_packets = -1;
	random_bytes(s->seed, sizeof(s->seed));
	gate_init(&s->gate);
	rc = loop_timer_open(sv->loop, &s->timer, on_time);
	if (!rc && !persistent)
		rc = start_first(s);
	if (!rc)
		rc = enter(s);
	if (!rc)
		return s;
	sandbox_free(s);
	errno = -rc;
	return NULL;
}

int sandbox_set_id(struct sandbox *s, uint64_t id)
{
	HASH_DEL(s->supervisor->sandboxes, s);
	s->id = id;
	return enter(s);
}

void sandbox_free(struct sandbox *s)
{
	struct instance *i, *next;

	quotas_forget(s);
	if (s->hh.tbl)
		HASH_DEL(s->supervisor->sandboxes, s);
	if (s->at_summary.tbl)
		HASH_DELETE(at_summary, s->supervisor->summing, s);
	team_free(s); /* first: nobody is told of figures any more */
	DL_FOREACH_SAFE(s->instances, i, next)
	instance_free(i);
	if (s->persistent && s->unsummed)
		recording_leave(s->supervisor, &s->recorded);
	recording_forget(s->supervisor, &s->recorded, s->state == SANDBOX_ENDED);
	free(s->labels);
	sandbox_expose_close(s);
	loop_timer_close(&s->exposed.again);
	gate_close(&s->gate);
	generation_put(s->generation);
	loop_timer_close(&s->timer);
	if (s->netns >= 0)
		close(s->netns);
	if (s->names >= 0)
		close(s->names);
	gateway_session_forget(s);
	asks_free(s);
	if (s->counters >= 0)
		close(s->counters);
	if (s->tools >= 0)
		close(s->tools);
	if (s->shared_packets >= 0)
		close(s->shared_packets);
	free(s);
}
