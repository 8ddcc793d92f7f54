/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of a sandbox that lasts come and go. Whatever the cause (a reload, a crash, another
 * version of the program), it is one mechanism: a new worker is started with listeners of its own
 * in the same gate, and only when it is ready the one before is told to retire. Until then nothing
 * has changed for anybody, and where the new one fails, nothing changes at all. Whoever asked is
 * told when the one before has judged again what it had open; one that does not say so in time is
 * killed.
 */
#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* A worker with listeners that are its own: those at which somebody may wait already, where there
 * are such. NULL with s->failure and *error. */
static struct instance *start_instance(struct sandbox *s, struct generation *g, int *error)
{
	struct instance *i = worker_pool_take(s->supervisor);

	if (!i) {
		*error = sandbox_failed(s, -errno, "starting a worker");
		return NULL;
	}
	instance_give(i, s);
	*error = s->gate.listener_count ? 0 : gate_listen(&s->gate);
	if (*error)
		sandbox_failed(s, *error, "%s", s->gate.step);
	else
		*error = instance_start(i, g);
	if (!*error)
		return i;
	gate_close_handed_out(&s->gate);
	instance_free(i);
	return NULL;
}

int sandbox_start_worker(struct sandbox *s)
{
	int error;

	s->current = start_instance(s, s->generation, &error);
	return s->current ? 0 : error;
}

/* What of a generation is the fence's. */
static void set_traffic(struct sandbox *s, const struct generation *g)
{
	const struct fence_bounds bounds = sandbox_bounds(&g->settings->config.limits);
	uint16_t ports[POLICY_UDP_PORTS_MAX];
	size_t count = sandbox_udp_ports(&g->settings->policy, ports);
	int error = gate_set_traffic(&s->gate, ports, count, &bounds);

	if (error) /* the next look at the fence mends it or cuts the sandbox off */
		log_sandbox(LOG_LEVEL_WARN, s->name, "udp ports and bounds of its fence: %s",
		        strerror(-error));
}

void sandbox_settle_ports(struct sandbox *s)
{
	set_traffic(s, s->generation);
}

static void put_in_force(struct sandbox *s, struct generation *g)
{
	const struct policy *now = &g->settings->policy, *before = &s->generation->settings->policy;
	const struct outbox_policy change = {.name = policy_name(now),
	        .fingerprint = policy_fingerprint(now),
	        .old_name = policy_name(before),
	        .old_fingerprint = policy_fingerprint(before),
	        .generation = g->number,
	        .difference = g->difference};

	outbox_policy_change(s->supervisor, s, &change);
	generation_put(s->generation);
	s->generation = generation_get(g);
}

int sandbox_replace(struct sandbox *s, struct generation *g)
{
	int error;

	if (sandbox_is_changing(s))
		return sandbox_failed(s, -EBUSY, "another reload is under way");
	/* It may be closed because of its fence: then there is nothing that it could be served
	 * behind, and the reason stands. */
	error = s->state == SANDBOX_CLOSED ? sandbox_verify_now(s) : 0;
	if (error)
		return error;
	set_traffic(s, g);
	s->successor = start_instance(s, g, &error);
	if (s->successor)
		return 0;
	set_traffic(s, s->generation);
	return error;
}

void sandbox_keep_generation(struct sandbox *s, const char *how)
{
	char text[SANDBOX_FAILURE_MAX];

	s->successor = NULL;
	set_traffic(s, s->generation);
	snprintf(text, sizeof text, "its worker %s", how);
	s->owner->replaced(s->owner, s, text);
}

/* What a worker was told of the way out when it started, it cannot be told anew. */
static bool goes_another_way(const struct generation *before, const struct generation *now)
{
	return !settings_same_egress(before->settings, now->settings) ||
	       !memory_bundle_equal(before->trusted, now->trusted);
}

static const char egress_changed[] =
        "the configuration of the way out was changed, and what had begun under the earlier one "
        "is ended; ask again over a new connection";

/* One that has not been told of this generation yet, or of an earlier one only. A credential may
 * have another value or another source by now: the worker forgets what it has, and so does the
 * keeper, which learns of the sources before it is asked. */
static void retire(struct sandbox *s, struct instance *i)
{
	struct message_worker_retire m = {s->generation->number};
	size_t n = message_worker_retire_encode(buffer, sizeof buffer, MESSAGE_WORKER_RETIRE,
	        supervisor_next_id(s->supervisor), &m);
	int error;

	instance_enter(i, INSTANCE_RETIRED);
	i->reauthorizing = true;
	loop_timer_set(&i->timer, SANDBOX_REAUTHORIZE_MS);
	i->worker.stopping = true;
	if (goes_another_way(i->generation, s->generation))
		instance_close_egress(i, egress_changed);
	error = instance_change_credentials(i, s->generation);
	if (!error)
		error = role_send(&i->worker, buffer, n, &s->generation->settings->image_file, 1);
	if (error)
		role_kill(&i->worker, "it cannot be told to retire");
}

size_t sandbox_retired(const struct sandbox *s)
{
	const struct instance *i;
	size_t count = 0;

	DL_FOREACH(s->instances, i)
	count += i->state == INSTANCE_RETIRED;
	return count;
}

/* The oldest ones are first in the list. */
static void bound_retired(struct sandbox *s)
{
	size_t count = sandbox_retired(s);
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (count <= SANDBOX_RETIRED_MAX)
			return;
		if (i->state != INSTANCE_RETIRED)
			continue;
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "more than %d workers of earlier policies: the oldest one is ended",
		        SANDBOX_RETIRED_MAX);
		instance_enter(i, INSTANCE_ENDING);
		role_kill(&i->worker, "too many workers finish what they had");
		count--;
	}
}

static void retire_but(struct sandbox *s, const struct instance *now)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (i != now && i->state != INSTANCE_ENDING && i->worker_ready)
			retire(s, i);
		else if (i != now && i->state == INSTANCE_STARTING)
			role_kill(&i->worker, "another one serves already");
	}
	bound_retired(s);
}

void sandbox_retire_all(struct sandbox *s)
{
	s->current = NULL;
	retire_but(s, NULL);
}

void sandbox_promote_successor(struct sandbox *s)
{
	struct instance *now = s->successor;

	s->successor = NULL;
	put_in_force(s, now->generation);
	s->current = now;
	instance_serves(now);
	retire_but(s, now);
	s->promoted = true;
	sandbox_event(s, SANDBOX_TOOK_OVER);
	sandbox_reauthorized(s);
}

static bool is_revising(const struct sandbox *s)
{
	const struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (i->reauthorizing)
			return true;
	}
	return false;
}

bool sandbox_is_changing(const struct sandbox *s)
{
	return s->successor || s->promoted;
}

void sandbox_reauthorized(struct sandbox *s)
{
	if (!s->promoted || is_revising(s))
		return;
	s->promoted = false;
	s->owner->replaced(s->owner, s, NULL);
}
