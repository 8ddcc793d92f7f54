/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox's life is one table: for each state, which event it may meet and what is done then. A
 * handler does its work and returns the next state; the dispatcher alone changes the state and, at
 * the end, hands the sandbox back to its owner. What a state has no handler for is passed over:
 * such events come from races between programs that end.
 *
 * Whatever goes wrong, the order of undoing is the same: first the worker is killed, so that
 * nothing leaves; then the finding is recorded and the recorder drains what the worker wrote; last
 * the sandbox is given back, and its namespaces go with the descriptors that hold them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

/* The recorder writes what is left of this sandbox. */
static enum sandbox_state sum_up(struct sandbox *s)
{
	struct supervisor *sv = s->supervisor;

	if (!s->recorded.open)
		return SANDBOX_ENDED;
	s->unsummed = true;
	if (!sv->lasting)
		outage_tell(
		        sv); /* what it says is about this sandbox: nobody would hear it later */
	if (!s->is_given)
		tell_lifecycle(sv, s, EVENT_STOP, NULL);
	if (!role_runs(&sv->recorder))
		return SANDBOX_ENDED;
	s->summary_request = supervisor_next_id(sv);
	HASH_ADD(at_summary, sv->summing, summary_request, sizeof s->summary_request, s);
	if (!s->at_summary.tbl || recording_end(sv, s) != 0)
		return SANDBOX_ENDED;
	loop_timer_set(&s->timer, s->lasting ? SANDBOX_SUM_LASTING_MS : SANDBOX_SUM_MS);
	return SANDBOX_SUMMING;
}

/* Those that were told nothing yet have nothing to finish. */
static void stop_instances(struct sandbox *s)
{
	struct instance *i, *next;

	DL_FOREACH_SAFE(s->instances, i, next)
	{
		loop_timer_cancel(&i->timer);
		if (i->state == INSTANCE_RETIRED)
			i->worker.stopping = false; /* so far at its own pace, now with patience */
		i->state = INSTANCE_ENDING;
		role_stop(&i->worker, supervisor_next_id(s->supervisor), SANDBOX_STOP_MS);
	}
	s->current = NULL;
}

static void kill_instances(struct sandbox *s, const char *why)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		loop_timer_cancel(&i->timer);
		i->state = INSTANCE_ENDING;
		i->worker.stopping = true;
		role_kill(&i->worker, why);
	}
	s->current = NULL;
}

static enum sandbox_state stop_workers(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	if (!s->instances)
		return sum_up(s);
	stop_instances(s);
	return SANDBOX_STOPPING;
}

static enum sandbox_state end_early(struct sandbox *s)
{
	(void)s;
	return SANDBOX_ENDED; /* nothing of it was seen by anybody: sandbox_free() undoes it */
}

static enum sandbox_state cut_off(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	kill_instances(s, "its sandbox is being cut off");
	log_debug("%s: %s", s->name[0] ? s->name : "sandbox", s->refusal ? s->refusal : s->failure);
	tell_finding(s->supervisor, s, EVENT_FINDING_ROLE_DIED, s->failure);
	s->owner->failed(s->owner, s->refusal ? s->refusal : s->failure);
	return s->instances ? SANDBOX_STOPPING : sum_up(s);
}

static enum sandbox_state begin(struct sandbox *s)
{
	return sandbox_set_up(s) == 0 ? SANDBOX_STARTING : cut_off(s);
}

/* The variables that env: sources read, one for each credential: two credentials may share a
 * variable, and each needs a pipe of its own. */
static enum sandbox_state ask_or_begin(struct sandbox *s)
{
	struct message_names names = {0};
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&s->generation->settings->policy); i++) {
		policy_credential(&s->generation->settings->policy, i, &c);
		if (c.source == POLICY_SOURCE_ENV && names.count < MESSAGE_ENV_MAX)
			names.names[names.count++] = c.location;
	}
	if (names.count == 0)
		return begin(s);
	loop_timer_set(&s->timer, SANDBOX_START_MS);
	s->owner->variables_needed(s->owner, &names);
	return SANDBOX_VARIABLES;
}

static enum sandbox_state serve_when_ready(struct sandbox *s)
{
	if (!instance_is_ready(s->current) || !s->supervisor->recorder_ready)
		return SANDBOX_STARTING;
	instance_serves(s->current);
	loop_timer_cancel(&s->timer);
	tell_lifecycle(s->supervisor, s, EVENT_START, NULL);
	log_sandbox(LOG_LEVEL_INFO, s->name, "ready");
	return SANDBOX_SERVING;
}

static enum sandbox_state too_late(struct sandbox *s)
{
	snprintf(s->failure, sizeof s->failure, "not ready after %d s: waiting for%s%s%s",
	        SANDBOX_START_MS / 1000, s->current->keeper_ready ? "" : " the keeper",
	        s->current->worker_ready ? "" : " the worker",
	        s->supervisor->recorder_ready ? "" : " the recorder");
	return cut_off(s);
}

static enum sandbox_state no_variables(struct sandbox *s)
{
	snprintf(s->failure, sizeof s->failure, "the values of environment variables did not come");
	return cut_off(s);
}

static enum sandbox_state no_summary(struct sandbox *s)
{
	log_sandbox(LOG_LEVEL_WARN, s->name, "the recorder did not finish within %d s%s",
	        (s->lasting ? SANDBOX_SUM_LASTING_MS : SANDBOX_SUM_MS) / 1000,
	        s->lasting ? ": what it has not written is kept for later" : "");
	return SANDBOX_ENDED;
}

static enum sandbox_state summed(struct sandbox *s)
{
	s->unsummed = false;
	return SANDBOX_ENDED;
}

/* Of those that last. */

/* Nobody serves it: its fence stands, nothing listens, so everything is refused. */
static enum sandbox_state close_down(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	kill_instances(s, "its sandbox is being cut off");
	gate_close_handed_out(&s->gate); /* where no worker was given them yet */
	log_sandbox(LOG_LEVEL_ERROR, s->name, "%s", s->failure);
	tell_finding(s->supervisor, s, EVENT_FINDING_ROLE_DIED, s->failure);
	return SANDBOX_CLOSED;
}

static enum sandbox_state fail_closed(struct sandbox *s)
{
	return s->lasting ? close_down(s) : cut_off(s);
}

/* Remembers this death. How long to wait before another one is started, or -1: it is one too many.
 */
static int64_t delay_after_death(struct sandbox *s)
{
	int64_t now_ms = loop_now_ms(s->supervisor->loop);
	int64_t *oldest = &s->deaths_ms[s->death_count++ % SANDBOX_DEATHS_MAX];
	int64_t before_ms = *oldest, delay_ms = 0;

	*oldest = now_ms;
	if (s->death_count > SANDBOX_DEATHS_MAX && now_ms - before_ms <= SANDBOX_DEATHS_MS)
		return -1;
	for (size_t i = 0; i < SANDBOX_DEATHS_MAX && i < s->death_count; i++)
		if (&s->deaths_ms[i] != oldest && now_ms - s->deaths_ms[i] <= SANDBOX_DEATHS_MS)
			delay_ms = delay_ms ? 2 * delay_ms : SANDBOX_BACKOFF_MS;
	return delay_ms;
}

/* Where none can be started (no descriptors, no memory, no processes, no room for its ring) the
 * machine lacks something: that is no death, and is tried again until there is enough. */
static enum sandbox_state start_another(struct sandbox *s)
{
	if (s->current || sandbox_start_worker(s) == 0)
		return SANDBOX_RESTARTING;
	if (!s->lacking)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "no worker can be started: %s; tried again every %d s", s->failure,
		        SANDBOX_RETRY_MS / 1000);
	s->lacking = true;
	loop_timer_set(&s->timer, SANDBOX_RETRY_MS);
	return SANDBOX_RESTARTING;
}

static enum sandbox_state restart(struct sandbox *s)
{
	int64_t delay_ms = delay_after_death(s);
	char text[SANDBOX_FAILURE_MAX];

	if (delay_ms < 0) {
		memcpy(text, s->failure, sizeof text);
		snprintf(s->failure, sizeof s->failure,
		        "%.1900s; that was too often: nobody serves it any more", text);
		return close_down(s);
	}
	s->restarts++;
	log_sandbox(LOG_LEVEL_WARN, s->name, "%s; another one is started", s->failure);
	snprintf(text, sizeof text,
	        "%.1900s. Another one is started; until it serves, all is refused.", s->failure);
	tell_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
	if (delay_ms == 0)
		return start_another(s);
	loop_timer_set(&s->timer, delay_ms);
	return SANDBOX_RESTARTING;
}

/* Its gate listens already. */
static enum sandbox_state adopt(struct sandbox *s)
{
	if (sandbox_look_again(s) != 0 || sandbox_record(s) != 0)
		return close_down(s);
	int error = recording_adopt_told(s->supervisor, s->id);
	if (error)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "events from before the restart cannot be read: %s", strerror(-error));
	tell_lifecycle(s->supervisor, s, EVENT_ADOPTED, NULL);
	return start_another(s);
}

/* Of an upgrade: another daemon's worker serves. */
static enum sandbox_state give_away(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	gate_close_handed_out(&s->gate);
	sandbox_retire_all(s);
	return SANDBOX_AWAY;
}

static enum sandbox_state take_back(struct sandbox *s)
{
	return sandbox_look_again(s) == 0 ? start_another(s) : close_down(s);
}

/* What it had is finished: nothing is left to be done here, once it is certain that it stays away.
 */
static enum sandbox_state finish_away(struct sandbox *s)
{
	return s->is_given ? sum_up(s) : SANDBOX_AWAY;
}

static enum sandbox_state fail_away(struct sandbox *s)
{
	log_sandbox(LOG_LEVEL_ERROR, s->name, "%s", s->failure);
	kill_instances(s, "its sandbox is being cut off");
	return SANDBOX_AWAY;
}

static enum sandbox_state took_over(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	s->death_count = 0;
	s->lacking = false;
	return SANDBOX_SERVING;
}

static enum sandbox_state serve_again(struct sandbox *s)
{
	if (!s->current || !instance_is_ready(s->current))
		return SANDBOX_RESTARTING;
	instance_serves(s->current);
	loop_timer_cancel(&s->timer);
	s->lacking = false;
	if (s->failure[0])
		tell_lifecycle(s->supervisor, s, EVENT_WORKER_REPLACED, s->failure);
	s->failure[0] = 0;
	log_sandbox(LOG_LEVEL_INFO, s->name, "served again%s", s->paused ? ", paused" : "");
	return SANDBOX_SERVING;
}

typedef enum sandbox_state (*handler)(struct sandbox *s);

static const handler table[SANDBOX_STATE_COUNT][SANDBOX_EVENT_COUNT] = {
        [SANDBOX_NEW] =
                {
                        [SANDBOX_START] = ask_or_begin,
                        [SANDBOX_ADOPT] = adopt,
                        [SANDBOX_END] = end_early,
                        [SANDBOX_FAIL] = cut_off,
                },
        [SANDBOX_VARIABLES] =
                {
                        [SANDBOX_GIVEN] = begin,
                        [SANDBOX_END] = end_early,
                        [SANDBOX_FAIL] = cut_off,
                        [SANDBOX_TIMEOUT] = no_variables,
                },
        [SANDBOX_STARTING] =
                {
                        [SANDBOX_PROGRESS] = serve_when_ready,
                        [SANDBOX_END] = stop_workers,
                        [SANDBOX_FAIL] = cut_off,
                        [SANDBOX_TIMEOUT] = too_late,
                },
        [SANDBOX_SERVING] =
                {
                        [SANDBOX_END] = stop_workers,
                        [SANDBOX_FAIL] = fail_closed,
                        [SANDBOX_WORKER_DIED] = restart,
                        [SANDBOX_PAUSE] = sandbox_still,
                        [SANDBOX_TOOK_OVER] = took_over,
                        [SANDBOX_GIVEN_AWAY] = give_away,
                },
        [SANDBOX_RESTARTING] =
                {
                        [SANDBOX_PROGRESS] = serve_again,
                        [SANDBOX_END] = stop_workers,
                        [SANDBOX_FAIL] = fail_closed,
                        [SANDBOX_WORKER_DIED] = restart,
                        [SANDBOX_PAUSE] = sandbox_still,
                        [SANDBOX_TOOK_OVER] = took_over,
                        [SANDBOX_GIVEN_AWAY] = give_away,
                        [SANDBOX_TIMEOUT] = start_another,
                },
        [SANDBOX_CLOSED] =
                {
                        [SANDBOX_END] = stop_workers,
                        [SANDBOX_TOOK_OVER] = took_over,
                        [SANDBOX_GIVEN_AWAY] = give_away,
                },
        [SANDBOX_AWAY] =
                {
                        [SANDBOX_END] = stop_workers,
                        [SANDBOX_FAIL] = fail_away,
                        [SANDBOX_TAKEN_BACK] = take_back,
                        [SANDBOX_WORKERS_GONE] = finish_away,
                },
        [SANDBOX_STOPPING] =
                {
                        [SANDBOX_WORKERS_GONE] = sum_up,
                },
        [SANDBOX_SUMMING] =
                {
                        [SANDBOX_SUMMED] = summed,
                        [SANDBOX_RECORDER_GONE] = end_early,
                        [SANDBOX_TIMEOUT] = no_summary,
                },
};

/* Whoever owns it sees the new state. Last of all: it may be freed. */
static void tell_owner(struct sandbox *s, enum sandbox_state before)
{
	if (s->state == SANDBOX_ENDED) {
		s->owner->ended(s->owner, s);
		return;
	}
	if (s->state == SANDBOX_SERVING && before == SANDBOX_STARTING)
		s->owner->ready(s->owner, s);
	else if (s->state != before && s->lasting)
		s->owner->changed(s->owner, s);
	if (s->state == SANDBOX_SERVING || s->state == SANDBOX_CLOSED ||
	        s->state == SANDBOX_RESTARTING)
		sandbox_look_still(s);
}

void sandbox_event(struct sandbox *s, enum sandbox_event event)
{
	enum sandbox_state before = s->state;
	handler handle = table[s->state][event];

	if (!handle)
		return;
	s->state = handle(s);
	tell_owner(s, before);
}

void sandbox_fail(struct sandbox *s, const char *format, ...)
{
	va_list arguments;

	if (!table[s->state][SANDBOX_FAIL])
		return; /* the first failure stands */
	va_start(arguments, format);
	vsnprintf(s->failure, sizeof s->failure, format, arguments);
	va_end(arguments);
	sandbox_event(s, SANDBOX_FAIL);
}

void sandbox_refuse(struct sandbox *s, const char *text)
{
	s->refusal = text;
	if (table[s->state][SANDBOX_FAIL])
		sandbox_event(s, SANDBOX_FAIL); /* may free s */
}

static void on_time(struct loop_timer *timer)
{
	sandbox_event(container_of(timer, struct sandbox, timer), SANDBOX_TIMEOUT);
}

/* Its workers. */

void sandbox_instance_progress(struct sandbox *s, struct instance *i)
{
	if (i == s->coming && i->state == INSTANCE_STARTING && instance_is_ready(i))
		sandbox_hand_over(s);
	else if (i == s->current)
		sandbox_event(s, SANDBOX_PROGRESS);
}

void sandbox_instance_late(struct sandbox *s, struct instance *i)
{
	if (s->state == SANDBOX_STARTING)
		sandbox_event(s, SANDBOX_TIMEOUT);
	else
		role_kill(&i->worker, i->revising ? "it did not judge what it had open in time"
		                                  : "it was not ready in time");
}

static void tell_disobedience(struct sandbox *s, const char *how)
{
	char text[SANDBOX_FAILURE_MAX];

	snprintf(text, sizeof text,
	        "A worker of the paused sandbox did not end by itself: it %.900s.", how);
	log_sandbox(LOG_LEVEL_WARN, s->name, "%s", text);
	tell_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
}

void sandbox_instance_dead(struct sandbox *s, struct instance *i, const char *how)
{
	bool was_current = i == s->current, was_coming = i == s->coming;

	if (was_current)
		s->current = NULL;
	if (s->stilling && i->worker.killed && i->state == INSTANCE_ENDING)
		tell_disobedience(s, how);
	instance_free(i);
	sandbox_look_still(s);
	if (was_coming)
		sandbox_keep_generation(s, how);
	sandbox_revised(s);
	if (s->state == SANDBOX_STOPPING || s->state == SANDBOX_AWAY) {
		if (!s->instances)
			sandbox_event(s, SANDBOX_WORKERS_GONE);
	} else if (was_current && s->lasting && s->state != SANDBOX_STARTING) {
		snprintf(s->failure, sizeof s->failure, "The worker %s", how);
		sandbox_event(s, SANDBOX_WORKER_DIED);
	} else if (was_current) {
		sandbox_fail(s, "the worker %s; the sandbox is cut off from every network", how);
	}
}

/* Into the registry. 0 or -ENOMEM. */
static int enter(struct sandbox *s)
{
	HASH_ADD(hh, s->supervisor->sandboxes, id, sizeof s->id, s);
	return s->hh.tbl ? 0 : -ENOMEM;
}

struct sandbox *sandbox_new(struct supervisor *sv, struct sandbox_owner *owner, bool lasting)
{
	struct sandbox *s = calloc(1, sizeof *s);
	struct instance *first = lasting ? NULL : instance_new(sv);

	if (!s || (!first && !lasting)) {
		free(s);
		return NULL;
	}
	s->supervisor = sv;
	s->owner = owner;
	s->lasting = lasting;
	s->id = supervisor_next_id(sv);
	s->netns = s->names = -1;
	random_bytes(s->seed, sizeof s->seed);
	gate_init(&s->gate);
	int error = loop_timer_open(sv->loop, &s->timer, on_time);
	if (error) {
		if (first)
			instance_free(first);
		free(s);
		errno = -error;
		return NULL;
	}
	if (first)
		instance_give(first, s);
	s->current = first;
	if (enter(s) == 0)
		return s;
	sandbox_free(s);
	errno = ENOMEM;
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

	if (s->hh.tbl)
		HASH_DEL(s->supervisor->sandboxes, s);
	if (s->at_summary.tbl)
		HASH_DELETE(at_summary, s->supervisor->summing, s);
	DL_FOREACH_SAFE(s->instances, i, next)
	instance_free(i);
	if (s->lasting && s->unsummed)
		recording_leave(s->supervisor, &s->recorded);
	recording_forget(s->supervisor, &s->recorded, s->state == SANDBOX_ENDED);
	gate_close(&s->gate);
	generation_put(s->generation);
	loop_timer_close(&s->timer);
	if (s->netns >= 0)
		close(s->netns);
	if (s->names >= 0)
		close(s->names);
	free(s);
}
