/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a sandbox when one of its workers is ready, late or dead. */
#include <stdio.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

void sandbox_instance_progress(struct sandbox *s, struct instance *i)
{
	if (i == s->successor && i->state == INSTANCE_STARTING && instance_is_ready(i))
		sandbox_promote_successor(s);
	else if (i == s->current)
		sandbox_event(s, SANDBOX_PROGRESS);
	else if (i->further && i->state == INSTANCE_STARTING && instance_is_ready(i))
		instance_serves(i);
}

void instance_keeper_answered(struct instance *i)
{
	i->keeper_ready = true;
	if (i->state == INSTANCE_STARTING)
		sandbox_instance_progress(i->sandbox, i);
}

void sandbox_instance_late(struct sandbox *s, struct instance *i)
{
	if (s->state == SANDBOX_STARTING)
		sandbox_event(s, SANDBOX_TIMEOUT);
	else
		role_kill(&i->worker, i->reauthorizing ? "it did not check its open connections "
		                                         "against the new policy in time"
		                                       : "it was not ready in time");
}

static void tell_disobedience(struct sandbox *s, const char *how)
{
	char text[SANDBOX_FAILURE_MAX];

	snprintf(text, sizeof(text),
	        "A worker of the paused sandbox did not end by itself: it %.900s.", how);
	log_sandbox(LOG_LEVEL_WARN, s->name, "%s", text);
	outbox_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
}

void sandbox_instance_dead(struct sandbox *s, struct instance *i, const char *how)
{
	bool was_current = i == s->current, was_successor = i == s->successor;
	bool was_further = team_has(s, i);

	if (was_current)
		s->current = NULL;
	/* A worker that was already ending when the pause came was not asked by the pause. */
	if (i->quiesced && i->worker.killed)
		tell_disobedience(s, how);
	instance_free(i);
	sandbox_check_quiesced(s);
	if (was_successor)
		sandbox_keep_generation(s, how);
	sandbox_reauthorized(s);
	if (s->state == SANDBOX_STOPPING || s->state == SANDBOX_HANDED_OFF) {
		if (!s->instances)
			sandbox_event(s, SANDBOX_WORKERS_GONE);
	} else if (was_current && s->persistent && s->state != SANDBOX_STARTING) {
		snprintf(s->failure, sizeof(s->failure), "The worker %s", how);
		sandbox_event(s, SANDBOX_WORKER_DIED);
	} else if (was_current) {
		sandbox_fail(s, "the worker %s; the sandbox is cut off from every network", how);
	} else if (was_further) {
		team_member_died(s, how);
	}
}
