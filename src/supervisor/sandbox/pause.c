/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kill switch. A worker reads what a hostile sandbox sends, so its word is no proof that it
 * obeys: the supervisor believes only its exit. Workers that have served are told to close
 * everything, which is recorded, and to end; after SANDBOX_QUIESCE_MS they are killed. A new
 * worker, which has received nothing from the sandbox, is started paused and tells clients why
 * nothing is served. Until it is ready nothing listens, and the fence rejects.
 */
#include <stdio.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

void sandbox_pause(struct sandbox *s, const char *reason)
{
	struct instance *i;

	s->paused = reason != NULL;
	snprintf(s->pause_reason, sizeof(s->pause_reason), "%s", reason ? reason : "");
	DL_FOREACH(s->instances, i)
	{
		if (i->worker_request != 0 && i->state != INSTANCE_ENDING)
			instance_pause(i, reason);
	}
	outbox_lifecycle(s->supervisor, s, s->paused ? EVENT_PAUSED : EVENT_RESUMED, reason);
	if (s->paused)
		sandbox_event(s, SANDBOX_PAUSE);
	else
		team_fill(s);
}

enum sandbox_state sandbox_quiesced(struct sandbox *s)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (i->state != INSTANCE_SERVING && i->state != INSTANCE_RETIRED)
			continue;
		if (i == s->current)
			s->current = NULL;
		instance_enter(i, INSTANCE_ENDING);
		i->quiesced = true;
		role_expect_end(
		        &i->worker, false); /* a retired worker had no time limit until now */
		role_stop(&i->worker, supervisor_next_id(s->supervisor), SANDBOX_QUIESCE_MS);
	}
	s->quiescing = true;
	s->failure[0] = 0;
	if (!s->current && s->session) /* its next connection starts a worker, paused */
		return SANDBOX_ASLEEP;
	if (!s->current && sandbox_start_worker(s) != 0)
		loop_timer_set(&s->timer, SANDBOX_BACKOFF_MS);
	return SANDBOX_RESTARTING;
}

void sandbox_check_quiesced(struct sandbox *s)
{
	struct instance *i;

	/* If no other worker can be started, nothing listens: the sandbox is quiesced too. */
	if (!s->quiescing || (s->state == SANDBOX_RESTARTING && !s->out_of_resources))
		return;
	DL_FOREACH(s->instances, i)
	{
		if (i->state == INSTANCE_ENDING)
			return;
	}
	s->quiescing = false;
	s->owner->quiesced(s->owner, s);
}
