/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a sandbox begins to serve: it waits for the values of env: sources, then for keeper, worker
 * and recorder to be ready. Each of the two waits takes at most SANDBOX_START_MS.
 */
#include <stdio.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

enum sandbox_state sandbox_begin(struct sandbox *s)
{
	return sandbox_set_up(s) == 0 ? SANDBOX_STARTING : sandbox_cut_off(s);
}

/* One name for each credential with an env: source: two credentials may share a variable, and each
 * needs its own pipe. */
enum sandbox_state sandbox_ask_or_begin(struct sandbox *s)
{
	struct message_names names = {0};
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(&s->generation->settings->policy); i++) {
		policy_credential(&s->generation->settings->policy, i, &c);
		if (c.source == POLICY_SOURCE_ENV && names.count < MESSAGE_ENV_MAX)
			names.names[names.count++] = c.location;
	}
	if (names.count == 0)
		return sandbox_begin(s);
	loop_timer_set(&s->timer, SANDBOX_START_MS);
	s->owner->variables_needed(s->owner, &names);
	return SANDBOX_VARIABLES;
}

enum sandbox_state sandbox_serve_when_ready(struct sandbox *s)
{
	if (s->session)
		return sandbox_sleep_when_ready(s);
	if (!instance_is_ready(s->current) || !s->supervisor->recorder_life.ready)
		return SANDBOX_STARTING;
	instance_serves(s->current);
	loop_timer_cancel(&s->timer);
	outbox_lifecycle(s->supervisor, s, EVENT_START, NULL);
	log_sandbox(LOG_LEVEL_INFO, s->name, "ready");
	return SANDBOX_SERVING;
}

enum sandbox_state sandbox_too_late(struct sandbox *s)
{
	if (s->session)
		return sandbox_sleep_when_ready(s);
	snprintf(s->failure, sizeof(s->failure), "not ready after %d s: waiting for%s%s%s",
	        SANDBOX_START_MS / 1000, s->current->keeper_ready ? "" : " the keeper",
	        s->current->worker_ready ? "" : " the worker",
	        s->supervisor->recorder_life.ready ? "" : " the recorder");
	return sandbox_cut_off(s);
}

enum sandbox_state sandbox_no_variables(struct sandbox *s)
{
	snprintf(
	        s->failure, sizeof(s->failure), "the values of environment variables did not come");
	return sandbox_cut_off(s);
}
