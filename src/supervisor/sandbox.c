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

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

/* The recorder writes what is left of this sandbox. */
static enum sandbox_state sum_up(struct sandbox *s)
{
	struct supervisor *sv = s->supervisor;

	if (!s->recording || !role_runs(&sv->recorder))
		return SANDBOX_ENDED;
	tell_lifecycle(sv, s, EVENT_STOP);
	s->summary_request = supervisor_next_id(sv);
	if (recording_end(sv, s) != 0)
		return SANDBOX_ENDED;
	loop_timer_set(&s->timer, SANDBOX_SUM_MS);
	return SANDBOX_SUMMING;
}

static enum sandbox_state stop_worker(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	if (!role_runs(&s->worker))
		return sum_up(s);
	role_stop(&s->worker, supervisor_next_id(s->supervisor), SANDBOX_STOP_MS);
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
	s->worker.stopping = true;
	role_kill(&s->worker, "its sandbox is being cut off");
	log_debug("%s: %s", s->name[0] ? s->name : "sandbox", s->refusal ? s->refusal : s->failure);
	tell_finding(s->supervisor, s, EVENT_FINDING_ROLE_DIED, s->failure);
	s->owner->failed(s->owner, s->refusal ? s->refusal : s->failure);
	return role_runs(&s->worker) ? SANDBOX_STOPPING : sum_up(s);
}

static enum sandbox_state begin(struct sandbox *s)
{
	if (sandbox_set_up(s) != 0)
		return cut_off(s);
	loop_timer_set(&s->timer, SANDBOX_START_MS);
	return SANDBOX_STARTING;
}

/* The variables that env: sources read, one for each credential: two credentials may share a
 * variable, and each needs a pipe of its own. */
static enum sandbox_state ask_or_begin(struct sandbox *s)
{
	struct message_names names = {0};
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&s->settings.policy); i++) {
		policy_credential(&s->settings.policy, i, &c);
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
	if (!s->keeper_ready || !s->worker_ready || !s->supervisor->recorder_ready)
		return SANDBOX_STARTING;
	loop_timer_cancel(&s->timer);
	loop_timer_set(&s->fence, SANDBOX_FENCE_MS);
	tell_lifecycle(s->supervisor, s, EVENT_START);
	log_info("%s: ready", s->name);
	s->owner->ready(s->owner, s);
	return SANDBOX_SERVING;
}

static enum sandbox_state too_late(struct sandbox *s)
{
	snprintf(s->failure, sizeof s->failure, "not ready after %d s: waiting for%s%s%s",
	        SANDBOX_START_MS / 1000, s->keeper_ready ? "" : " the keeper",
	        s->worker_ready ? "" : " the worker",
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
	log_warn("%s: the recorder did not finish within %d s", s->name, SANDBOX_SUM_MS / 1000);
	return SANDBOX_ENDED;
}

typedef enum sandbox_state (*handler)(struct sandbox *s);

static const handler table[SANDBOX_STATE_COUNT][SANDBOX_EVENT_COUNT] = {
        [SANDBOX_NEW] =
                {
                        [SANDBOX_START] = ask_or_begin,
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
                        [SANDBOX_END] = stop_worker,
                        [SANDBOX_FAIL] = cut_off,
                        [SANDBOX_TIMEOUT] = too_late,
                },
        [SANDBOX_SERVING] =
                {
                        [SANDBOX_END] = stop_worker,
                        [SANDBOX_FAIL] = cut_off,
                },
        [SANDBOX_STOPPING] =
                {
                        [SANDBOX_WORKER_GONE] = sum_up,
                },
        [SANDBOX_SUMMING] =
                {
                        [SANDBOX_SUMMED] = end_early,
                        [SANDBOX_RECORDER_GONE] = end_early,
                        [SANDBOX_TIMEOUT] = no_summary,
                },
};

void sandbox_event(struct sandbox *s, enum sandbox_event event)
{
	handler handle = table[s->state][event];

	if (!handle)
		return;
	s->state = handle(s);
	if (s->state == SANDBOX_ENDED)
		s->owner->ended(s->owner, s);
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

/* Rules are only ours to change. Whoever did is root on this machine, by mistake as a rule:
 * flushing the ruleset of every namespace, say. */
static void on_fence_time(struct loop_timer *timer)
{
	struct sandbox *s = container_of(timer, struct sandbox, fence);

	if (s->state != SANDBOX_SERVING)
		return;
	int result = gate_mend(&s->gate);
	if (result == 0) {
		loop_timer_set(&s->fence, SANDBOX_FENCE_MS);
	} else if (result > 0) {
		log_warn("%s: the rules of its fence were changed from outside; they are set again",
		        s->name);
		tell_finding(s->supervisor, s, EVENT_FINDING_FENCE_CHANGED,
		        "The kernel's rules around the sandbox were changed from outside and have "
		        "been set again.");
		loop_timer_set(&s->fence, SANDBOX_FENCE_MS);
	} else {
		sandbox_fail(s,
		        "its fence cannot be examined or set again (%s); the sandbox is cut off "
		        "from every "
		        "network",
		        strerror(-result));
	}
}

static int on_worker_message(struct role *role, struct ipc_message *message)
{
	struct sandbox *s = container_of(role, struct sandbox, worker);

	if (message->head.type != MESSAGE_WORKER_READY || !reader_done(&message->body) ||
	        s->worker_request == 0 || message->head.id != s->worker_request || s->worker_ready)
		return -EBADMSG;
	s->worker_ready = true;
	sandbox_event(s, SANDBOX_PROGRESS);
	return 0;
}

static void on_worker_dead(struct role *role, const char *how)
{
	struct sandbox *s = container_of(role, struct sandbox, worker);

	if (s->state == SANDBOX_STOPPING)
		sandbox_event(s, SANDBOX_WORKER_GONE);
	else
		sandbox_fail(s, "the worker %s; the sandbox is cut off from every network", how);
}

struct sandbox *sandbox_new(struct supervisor *sv, struct sandbox_owner *owner)
{
	struct sandbox *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->supervisor = sv;
	s->owner = owner;
	s->id = supervisor_next_id(sv);
	s->netns = s->names = s->ring[0] = s->ring[1] = s->ring[2] = -1;
	gate_init(&s->gate);
	sources_init(&s->sources, sv->loop, &s->settings.policy, supervisor_on_source);
	int error = loop_timer_open(sv->loop, &s->timer, on_time);
	if (!error)
		error = loop_timer_open(sv->loop, &s->fence, on_fence_time);
	if (!error)
		error = role_start(sv->loop, &s->worker, "vethguard-worker", "the worker",
		        on_worker_message, on_worker_dead);
	if (error) {
		loop_timer_close(&s->timer);
		loop_timer_close(&s->fence);
		free(s);
		errno = -error;
		return NULL;
	}
	HASH_ADD(hh, sv->sandboxes, id, sizeof s->id, s);
	return s;
}

void sandbox_free(struct sandbox *s)
{
	HASH_DEL(s->supervisor->sandboxes, s);
	role_fini(&s->worker);
	recording_forget(s);
	sources_fini(&s->sources);
	gate_close(&s->gate);
	settings_fini(&s->settings);
	loop_timer_close(&s->timer);
	loop_timer_close(&s->fence);
	if (s->netns >= 0)
		close(s->netns);
	if (s->names >= 0)
		close(s->names);
	free(s);
}
