/* SPDX-License-Identifier: Apache-2.0 */
/* Starts further workers of a sandbox, and others when they die. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/team.h"
#include "supervisor/supervisor.h"

#define FILL_MS 1 /* between two starts, so that the loop handles other things */
/* With so many workers of all sandboxes no further ones are started: the keeper has room for twice
 * as many, and each sandbox needs its first one. */
#define INSTANCES_MAX 2048

struct sandbox_team {
	struct sandbox *sandbox;
	struct loop_timer timer; /* the next start of a worker */
	bool due;                /* the timer is set */
	bool out_of_resources;   /* no worker could be started, and the log says so */
};

static bool may_fill(const struct sandbox *s)
{
	return s->state == SANDBOX_SERVING && !s->paused && !s->successor && s->current &&
	       s->current->state == INSTANCE_SERVING;
}

static bool is_missing(const struct sandbox *s)
{
	const struct instance *i;
	uint32_t count = 1;

	DL_FOREACH(s->instances, i)
	{
		count += team_has(s, i);
	}
	return count < team_size(s, s->generation);
}

static int start_one(struct sandbox *s)
{
	if (HASH_CNT(by_id, s->supervisor->instances) >= INSTANCES_MAX)
		return sandbox_failed(s, -ENOSPC, "%d workers run already", INSTANCES_MAX);
	return sandbox_start_further(s);
}

static void on_time(struct loop_timer *timer)
{
	struct sandbox_team *team = container_of(timer, struct sandbox_team, timer);
	struct sandbox *s = team->sandbox;

	team->due = false;
	if (!may_fill(s) || !is_missing(s))
		return;
	if (start_one(s) == 0) {
		team->out_of_resources = false;
		team_fill(s);
		return;
	}
	if (!team->out_of_resources)
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "no further worker can be started: %s; tried again every %d s", s->failure,
		        SANDBOX_RETRY_MS / 1000);
	s->failure[0] = 0;
	team->out_of_resources = true;
	team->due = true;
	loop_timer_set(&team->timer, SANDBOX_RETRY_MS);
}

static struct sandbox_team *team_of(struct sandbox *s)
{
	struct sandbox_team *team = s->team ? s->team : calloc(1, sizeof(*team));

	if (s->team || !team)
		return team;
	team->sandbox = s;
	if (loop_timer_open(s->supervisor->loop, &team->timer, on_time) != 0) {
		free(team);
		return NULL;
	}
	s->team = team;
	return team;
}

static void fill_after(struct sandbox *s, int64_t after_ms)
{
	struct sandbox_team *team = team_of(s);

	if (!team || team->due) /* without memory for the timer, the next event tries again */
		return;
	team->due = true;
	loop_timer_set(&team->timer, after_ms);
}

void team_fill(struct sandbox *s)
{
	if (may_fill(s) && is_missing(s))
		fill_after(s, FILL_MS);
}

/* Every death counts, whichever worker it was: a sandbox that crashes its workers gets no more
 * attempts because it has several. */
void team_member_died(struct sandbox *s, const char *how)
{
	const int64_t delay_ms = sandbox_delay_after_death(s);
	char text[SANDBOX_FAILURE_MAX];

	if (delay_ms < 0) {
		sandbox_fail(s,
		        "A further worker %.1800s; that was too often: no worker is started any "
		        "more",
		        how);
		return;
	}
	s->restarts++;
	snprintf(text, sizeof(text),
	        "A further worker %.1800s. Another one is started; the others serve.", how);
	log_sandbox(LOG_LEVEL_WARN, s->name, "%s", text);
	outbox_observed(s->supervisor, s, EVENT_FINDING_ROLE_DIED, text);
	fill_after(s, delay_ms ? delay_ms : FILL_MS);
}

void team_free(struct sandbox *s)
{
	team_free_questions(s);
	if (!s->team)
		return;
	loop_timer_close(&s->team->timer);
	free(s->team);
	s->team = NULL;
}
