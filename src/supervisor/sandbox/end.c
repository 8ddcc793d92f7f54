/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a sandbox ends. The order is the same for every cause: the worker is stopped or killed, so
 * that nothing leaves; a finding is recorded, and the recorder drains what the worker wrote; the
 * sandbox is given back to its owner, and its namespaces go with the descriptors that hold them.
 */
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/states.h"
#include "supervisor/supervisor.h"

enum sandbox_state sandbox_sum_up(struct sandbox *s)
{
	struct supervisor *sv = s->supervisor;

	sandbox_stop_verifying(s); /* nothing can be recorded of it after its end */
	if (!s->recorded.open)
		return SANDBOX_ENDED;
	s->unsummed = true;
	if (!sv->persistent)
		outage_tell(sv); /* it concerns this sandbox, and later nobody would read it */
	if (!s->is_given)
		outbox_lifecycle(sv, s, EVENT_STOP, NULL);
	if (!role_runs(&sv->recorder))
		return SANDBOX_ENDED;
	s->summary_request = supervisor_next_id(sv);
	HASH_ADD(at_summary, sv->summing, summary_request, sizeof(s->summary_request), s);
	if (!s->at_summary.tbl || recording_end(sv, s) != 0)
		return SANDBOX_ENDED;
	loop_timer_set(&s->timer, s->persistent ? SANDBOX_SUM_PERSISTENT_MS : SANDBOX_SUM_MS);
	return SANDBOX_SUMMING;
}

/* Workers that were told nothing yet have nothing to finish. */
static void stop_instances(struct sandbox *s)
{
	struct instance *i, *next;

	DL_FOREACH_SAFE(s->instances, i, next)
	{
		loop_timer_cancel(&i->timer);
		if (i->state == INSTANCE_RETIRED)
			role_expect_end(&i->worker, false); /* from now on with a time limit */
		instance_enter(i, INSTANCE_ENDING);
		role_stop(&i->worker, supervisor_next_id(s->supervisor), SANDBOX_STOP_MS);
	}
	s->current = NULL;
}

void sandbox_give_away(struct sandbox *s)
{
	s->is_given = true;
	if (s->state != SANDBOX_HANDED_OFF)
		sandbox_event(s, SANDBOX_END);
	else if (!s->instances)
		sandbox_event(s, SANDBOX_WORKERS_GONE);
}

void sandbox_kill_workers(struct sandbox *s, const char *why)
{
	struct instance *i;

	sandbox_expose_close(s);
	DL_FOREACH(s->instances, i)
	{
		loop_timer_cancel(&i->timer);
		instance_enter(i, INSTANCE_ENDING);
		role_expect_end(&i->worker, true);
		role_kill(&i->worker, why);
	}
	s->current = NULL;
}

enum sandbox_state sandbox_stop_workers(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	sandbox_expose_close(s);
	if (!s->instances)
		return sandbox_sum_up(s);
	stop_instances(s);
	return SANDBOX_STOPPING;
}

enum sandbox_state sandbox_end_early(struct sandbox *s)
{
	(void)s;
	return SANDBOX_ENDED; /* nothing was visible yet: sandbox_free() undoes it */
}

enum sandbox_state sandbox_cut_off(struct sandbox *s)
{
	loop_timer_cancel(&s->timer);
	sandbox_kill_workers(s, "its sandbox is being cut off");
	log_debug("%s: %s", s->name[0] ? s->name : "sandbox", s->refusal ? s->refusal : s->failure);
	outbox_finding(s->supervisor, s, EVENT_FINDING_ROLE_DIED, s->failure);
	s->owner->failed(s->owner, s->refusal ? s->refusal : s->failure);
	return s->instances ? SANDBOX_STOPPING : sandbox_sum_up(s);
}

enum sandbox_state sandbox_no_summary(struct sandbox *s)
{
	log_sandbox(LOG_LEVEL_WARN, s->name, "the recorder did not finish within %d s%s",
	        (s->persistent ? SANDBOX_SUM_PERSISTENT_MS : SANDBOX_SUM_MS) / 1000,
	        s->persistent ? ": what it has not written is kept for later" : "");
	return SANDBOX_ENDED;
}

enum sandbox_state sandbox_summed(struct sandbox *s)
{
	s->unsummed = false;
	return SANDBOX_ENDED;
}
