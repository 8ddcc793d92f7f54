/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a sandbox's workers, added up. */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "supervisor/sandbox/team.h"
#include "supervisor/supervisor.h"

/* Figures that are being added up. */
struct team_question {
	struct team_question *prev, *next;
	uint64_t id;
	const struct generation *generation; /* of the workers that were asked; compared only */
	uint64_t waits;                      /* bit i: the worker of seat i has not answered yet */
	struct message_worker_stats sum;
};

/* All figures are sums but names_kept, the largest one: all workers know the same names. */
static void add(struct message_worker_stats *sum, const struct message_worker_stats *m)
{
	sum->generation = m->generation;
	for (size_t i = 0; i < MESSAGE_STATS_KINDS; i++) {
		sum->kinds[i].allowed += m->kinds[i].allowed;
		sum->kinds[i].denied += m->kinds[i].denied;
		sum->kinds[i].failed += m->kinds[i].failed;
	}
	sum->findings += m->findings;
	sum->bytes_out += m->bytes_out;
	sum->bytes_in += m->bytes_in;
	sum->connections += m->connections;
	sum->connections_open += m->connections_open;
	sum->streams_open += m->streams_open;
	sum->exchanges_open += m->exchanges_open;
	sum->flows_open += m->flows_open;
	sum->visits_open += m->visits_open;
	sum->upstreams_open += m->upstreams_open;
	sum->upstreams_idle += m->upstreams_idle;
	if (m->names_kept > sum->names_kept)
		sum->names_kept = m->names_kept;
	sum->backlog_bytes += m->backlog_bytes;
	sum->heap_bytes += m->heap_bytes;
	sum->queries_refused += m->queries_refused;
	sum->refusals_delayed += m->refusals_delayed;
	sum->limits_met += m->limits_met;
}

static void answered(struct sandbox *s, struct team_question *q, const struct instance *i)
{
	const uint64_t id = q->id;
	const struct message_worker_stats sum = q->sum;

	q->waits &= ~(UINT64_C(1) << i->seat);
	if (q->waits)
		return;
	DL_DELETE(s->questions, q);
	free(q);
	s->owner->stats(s->owner, id, &sum);
}

static struct team_question *find(const struct sandbox *s, const struct instance *i, uint64_t id)
{
	struct team_question *q;

	DL_FOREACH(s->questions, q)
	{
		if (q->id == id && q->generation == i->generation && q->waits >> i->seat & 1)
			return q;
	}
	return NULL;
}

bool team_take_stats(struct sandbox *s, const struct instance *i, uint64_t id,
        const struct message_worker_stats *m)
{
	struct team_question *q = i->seated ? find(s, i, id) : NULL;

	if (!q)
		return false;
	add(&q->sum, m);
	answered(s, q, i);
	return true;
}

void team_forget_questions(const struct instance *i)
{
	struct sandbox *s = i->sandbox;
	struct team_question *q, *next;

	DL_FOREACH_SAFE(s->questions, q, next)
	{
		if (q->generation == i->generation && q->waits >> i->seat & 1)
			answered(s, q, i);
	}
}

void team_free_questions(struct sandbox *s)
{
	struct team_question *q, *next;

	DL_FOREACH_SAFE(s->questions, q, next)
	free(q);
	s->questions = NULL;
}

static int ask_all(struct sandbox *s, struct team_question *q)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (i->seated && i->generation == q->generation && i->state == INSTANCE_SERVING &&
		        instance_ask_stats(i, q->id) == 0)
			q->waits |= UINT64_C(1) << i->seat;
	}
	return q->waits ? 0 : -EPIPE;
}

int sandbox_ask_stats(struct sandbox *s, uint64_t id)
{
	const bool several = s->current && s->current->seated;
	struct team_question *q = several ? calloc(1, sizeof(*q)) : NULL;
	int rc;

	if (!q)
		return s->current ? instance_ask_stats(s->current, id) : -EPIPE;
	q->id = id;
	q->generation = s->current->generation;
	rc = ask_all(s, q);
	if (rc)
		free(q);
	else
		DL_APPEND(s->questions, q);
	return rc;
}
