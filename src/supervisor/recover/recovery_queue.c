/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves all sandboxes again: after a restart (recover.c), or when an upgrade has failed and those
 * that were handed off are taken back (recover/hold.c). There may be a thousand, so it is done in
 * turns, and the loop handles everything else in between.
 *
 * First every gate listens, some at a time: from then on clients wait instead of being refused. The
 * sandboxes are started a few at a time, so that each is served as soon as the machine can: those
 * with a waiting client at once, the others when all gates listen. Namespaces that are only
 * prepared come last: nobody uses them.
 */
#include <utlist.h>

#include "supervisor/attach/attachment.h"
#include "supervisor/recover/recover.h"

#define TURN_MS 1000      /* limit of a turn whose sandbox is not served */
#define LISTEN_AT_ONCE 16 /* gates, about five milliseconds */

void attachment_forget_knock(struct attachment *a)
{
	if (a->knock_prev)
		DL_DELETE2(a->all->knocked, a, knock_prev, knock_next);
	a->knock_prev = NULL;
}

void attachment_knocked(struct attachment *a)
{
	DL_APPEND2(a->all->knocked, a, knock_prev, knock_next);
	loop_timer_set(&a->all->recovery, 0);
}

/* A few at a time, so that the loop notices waiting clients in between. */
static void listen_further(struct attachments *all)
{
	for (size_t i = 0; i < LISTEN_AT_ONCE && all->to_listen; i++) {
		struct attachment *a = all->to_listen;

		all->to_listen = a->hh.next;
		if (a->left)
			all->turns.listen(a);
	}
}

static bool may_go(const struct attachment *a)
{
	return a->left && !(a->slow && a->all->readings >= RECOVERY_READINGS);
}

static struct attachment *next_left(struct attachments *all)
{
	struct attachment *a, *next, *prepared = NULL;

	DL_FOREACH2(all->knocked, a, knock_next)
	{
		if (may_go(a)) {
			a->left = false;
			return a;
		}
	}
	HASH_ITER(hh, all->by_name, a, next)
	{
		if (may_go(a) && !a->record.prepared) {
			a->left = false;
			return a;
		}
		if (may_go(a) && !prepared)
			prepared = a;
	}
	if (prepared)
		prepared->left = false;
	return prepared;
}

/* A turn lasts until its sandbox is served or known to have failed, at most TURN_MS. */
static bool has_turn(const struct recovery_entry *turn, int64_t now_ms)
{
	const struct sandbox *s = turn->attachment ? turn->attachment->sandbox : NULL;

	return s && s->state == SANDBOX_RESTARTING && now_ms - turn->since_ms < TURN_MS;
}

/* Returns NULL if all turns are in use. Sandboxes with a waiting client come first. */
static struct recovery_entry *free_turn(struct attachments *all, int64_t now_ms)
{
	size_t quiet = all->to_listen ? 0 : RECOVERY_TURNS_QUIET;
	size_t count = all->knocked ? RECOVERY_TURNS : quiet;

	for (size_t i = 0; i < count; i++)
		if (!has_turn(&all->turn[i], now_ms))
			return &all->turn[i];
	return NULL;
}

static void on_turn(struct loop_timer *timer)
{
	struct attachments *all = container_of(timer, struct attachments, recovery);
	int64_t now_ms = loop_now_ms(all->supervisor->loop);
	struct recovery_entry *turn;
	struct attachment *a;

	if (all->stopping || !all->recovering)
		return;
	listen_further(all);
	turn = free_turn(all, now_ms);
	a = turn ? next_left(all) : NULL;
	if (a) {
		*turn = (struct recovery_entry){a, now_ms};
		all->turns.take(a); /* may free it */
	}
	if (turn && !a && !all->readings) {
		all->recovering = false;
		all->turns.finish(all);
	} else if (!turn || a || all->to_listen) { /* else the end of a reading continues */
		loop_timer_set(timer, turn || all->to_listen ? 0 : TURN_MS);
	}
}

void recovery_queue_end(struct attachments *all)
{
	if (all->recovering)
		loop_timer_set(&all->recovery, 0);
}

void recovery_queue_forget(struct attachment *a)
{
	attachment_forget_knock(a);
	if (a->all->to_listen == a)
		a->all->to_listen = a->hh.next;
	for (size_t i = 0; i < RECOVERY_TURNS; i++)
		if (a->all->turn[i].attachment == a)
			a->all->turn[i].attachment = NULL;
}

int recovery_queue_run(struct attachments *all, const struct recovery_queue *turns)
{
	int rc = all->recovery.event
	                 ? 0
	                 : loop_timer_open(all->supervisor->loop, &all->recovery, on_turn);

	all->turns = *turns;
	all->recovering = true;
	all->to_listen = turns->listen ? all->by_name : NULL;
	if (!rc)
		loop_timer_set(&all->recovery, 0);
	return rc;
}
