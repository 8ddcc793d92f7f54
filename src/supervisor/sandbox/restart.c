/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts workers for a persistent sandbox whose worker died, or that existed before this
 * supervisor, until one serves. A sandbox whose workers die too often, or whose fence cannot be
 * set, is closed: its fence stands, nothing listens.
 */
#include <errno.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

enum sandbox_state sandbox_close_down(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	sandbox_kill_workers(s, "its sandbox is being cut off");
	gate_close_handed_out(&s->gate); /* if no worker was given them yet */
	log_sandbox(LOG_LEVEL_ERROR, s->name, "%s", s->failure);
	outbox_finding(s->supervisor, s, EVENT_FINDING_ROLE_DIED, s->failure);
	return SANDBOX_CLOSED;
}

enum sandbox_state sandbox_fail_closed(struct sandbox *s)
{
	return s->persistent ? sandbox_close_down(s) : sandbox_cut_off(s);
}

/* If no worker can be started (no descriptors, memory, processes or room for its ring), the machine
 * lacks resources: that is not counted as a death, and is tried again until it works. */
enum sandbox_state sandbox_start_another(struct sandbox *s)
{
	if (s->current || sandbox_start_worker(s) == 0)
		return SANDBOX_RESTARTING;
	if (!s->out_of_resources)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "no worker can be started: %s; tried again every %d s", s->failure,
		        SANDBOX_RETRY_MS / 1000);
	s->out_of_resources = true;
	loop_timer_set(&s->timer, SANDBOX_RETRY_MS);
	return SANDBOX_RESTARTING;
}

enum sandbox_state sandbox_restart(struct sandbox *s)
{
	int64_t delay_ms = sandbox_delay_after_death(s);
	char text[SANDBOX_FAILURE_MAX];

	if (delay_ms < 0) {
		memcpy(text, s->failure, sizeof(text));
		snprintf(s->failure, sizeof(s->failure),
		        "%.1900s; that was too often: no worker is started any more", text);
		return sandbox_close_down(s);
	}
	s->restarts++;
	log_sandbox(LOG_LEVEL_WARN, s->name, "%s; another one is started", s->failure);
	snprintf(text, sizeof(text), "%.1900s. Another one is started; until it serves, %s.",
	        s->failure,
	        team_serving(s, NULL, 0) ? "the others accept connections, and no name is answered"
	                                 : "all is refused");
	outbox_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
	if (delay_ms == 0)
		return sandbox_start_another(s);
	loop_timer_set(&s->timer, delay_ms);
	return SANDBOX_RESTARTING;
}

enum sandbox_state sandbox_adopt(struct sandbox *s)
{
	if (sandbox_resume_verifying(s) != 0 || sandbox_record(s) != 0)
		return sandbox_close_down(s);
	int rc = recording_adopt_event(s->supervisor, s->id);
	if (rc)
		log_sandbox(LOG_LEVEL_ERROR, s->name,
		        "events from before the restart cannot be read: %s", strerror(-rc));
	outbox_lifecycle(s->supervisor, s, EVENT_ADOPTED, NULL);
	recording_count_soon(s->supervisor, s);
	if (!s->session)
		return sandbox_start_another(s);
	generation_make_placeholders(s->generation, s->seed);
	(void)sandbox_know_root(s); /* if it fails, the next worker's start learns it */
	return SANDBOX_ASLEEP;
}

/* Before the worker is ready, clients wait at the gate. The worker is started, and the recorder
 * woken, only after the caller was answered, because they would take the answer's CPU. A worker
 * that does not become ready is replaced like any other. */
enum sandbox_state sandbox_claim(struct sandbox *s)
{
	int rc = gate_wake(&s->gate);

	if (rc) {
		sandbox_failed(s, rc, "%s", s->gate.step);
		return sandbox_close_down(s);
	}
	s->claimed = true;
	generation_make_placeholders(s->generation, s->seed);
	recording_hold(s);
	outbox_lifecycle(s->supervisor, s, EVENT_START, NULL);
	loop_timer_set(&s->timer, 0);
	return SANDBOX_RESTARTING;
}

enum sandbox_state sandbox_took_over(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	s->death_count = 0;
	s->out_of_resources = false;
	return SANDBOX_SERVING;
}

enum sandbox_state sandbox_serve_again(struct sandbox *s)
{
	if (!s->current || !instance_is_ready(s->current))
		return SANDBOX_RESTARTING;
	instance_serves(s->current);
	loop_timer_cancel(&s->timer);
	s->out_of_resources = false;
	if (s->failure[0])
		outbox_lifecycle(s->supervisor, s, EVENT_WORKER_REPLACED, s->failure);
	s->failure[0] = 0;
	log_sandbox(s->sleep.waking ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, s->name, "%s%s",
	        s->claimed ? "ready" : "served again", s->paused ? ", paused" : "");
	s->claimed = false;
	return SANDBOX_SERVING;
}
