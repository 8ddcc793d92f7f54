/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the workers of a persistent sandbox replace each other. A reload, a crash and an upgrade use
 * one mechanism: a new worker is started with its own listeners in the same gate, and only when it
 * is ready, the previous worker is told to retire. Until then, or if the new worker fails, nothing
 * changes. The owner is told when the previous worker has reauthorized its open connections; a
 * worker that does not confirm this in time is killed.
 */
#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "vethguard/base/log.h"
#include "supervisor/sandbox/limits.h"
#include "supervisor/supervisor.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

/* Starts a worker with its own listeners: the gate's unassigned ones, at which clients may wait
 * already, if there are any. Returns NULL with s->failure and *error on failure. */
static struct instance *start_instance(
        struct sandbox *s, struct generation *g, bool further, int *error)
{
	struct instance *i = worker_pool_take(s->supervisor, sandbox_root(s));

	if (!i) {
		*error = sandbox_failed(s, -errno, "starting a worker");
		return NULL;
	}
	instance_give(i, s);
	i->further = further;
	*error = further                  ? gate_listen_further(&s->gate)
	         : s->gate.listener_count ? 0
	                                  : gate_listen(&s->gate);
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
	int rc;

	sandbox_expose_again(s);
	s->current = start_instance(s, s->generation, false, &rc);
	return s->current ? 0 : rc;
}

int sandbox_start_further(struct sandbox *s)
{
	int rc;

	return start_instance(s, s->generation, true, &rc) ? 0 : rc;
}

/* Sets the part of a generation that the fence enforces. */
static void set_traffic(struct sandbox *s, const struct generation *g)
{
	const struct fence_bounds bounds = sandbox_bounds(&g->settings->config.limits);
	uint16_t ports[POLICY_UDP_PORTS_MAX];
	size_t count = sandbox_udp_ports(&g->settings->policy, ports);
	int rc = gate_set_traffic(&s->gate, ports, count, &bounds);

	if (rc) /* the next verification repairs the fence or cuts the sandbox off */
		log_sandbox(LOG_LEVEL_WARN, s->name, "udp ports and bounds of its fence: %s",
		        strerror(-rc));
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
	memset(&s->sleep.past, 0, sizeof(s->sleep.past));
	generation_put(s->generation);
	s->generation = generation_get(g);
}

/* Puts g in force without a worker: the next one begins with it. */
static int replace_asleep(struct sandbox *s, struct generation *g)
{
	int rc = sandbox_expose(s, g);

	if (!rc)
		rc = generation_make_files(s, g);
	if (rc)
		return rc;
	generation_make_placeholders(g, s->seed);
	put_in_force(s, g);
	s->promoted = true;
	sandbox_reauthorized(s);
	return 0;
}

int sandbox_replace(struct sandbox *s, struct generation *g)
{
	int rc;

	s->fault = GATE_FAULT_OWN;
	if (sandbox_is_changing(s))
		return sandbox_failed(s, -EBUSY, "another reload is under way");
	if (s->state == SANDBOX_ASLEEP)
		return replace_asleep(s, g);
	/* The sandbox may be closed because of its fence: then no worker can serve behind it, and
	 * that reason stands. */
	rc = s->state == SANDBOX_CLOSED ? sandbox_verify_now(s) : 0;
	if (!rc)
		rc = sandbox_expose(s, g);
	if (rc) {
		sandbox_expose_trim(s);
		return rc;
	}
	set_traffic(s, g);
	s->successor = start_instance(s, g, false, &rc);
	if (s->successor)
		return 0;
	set_traffic(s, s->generation);
	sandbox_expose_trim(s);
	return rc;
}

void sandbox_keep_generation(struct sandbox *s, const char *how)
{
	char text[SANDBOX_FAILURE_MAX];

	s->successor = NULL;
	set_traffic(s, s->generation);
	sandbox_expose_trim(s);
	snprintf(text, sizeof(text), "its worker %s", how);
	s->owner->replaced(s->owner, s, text);
}

/* A worker cannot be told a new egress configuration or CAs after its start. */
static bool goes_another_way(const struct generation *before, const struct generation *now)
{
	return !settings_same_egress(before->settings, now->settings) ||
	       !memory_bundle_equal(before->trusted, now->trusted);
}

static const char egress_changed[] = "the egress configuration was changed, so what began under "
                                     "the earlier one is ended; try again over a new connection";

/* Retires a worker that was told of an earlier generation, or none. A credential may have another
 * value or source now: the worker forgets its values, and so does the keeper, which is told of the
 * sources before the worker asks. */
static void retire(struct sandbox *s, struct instance *i)
{
	struct message_worker_retire m = {s->generation->number};
	size_t n = message_worker_retire_encode(buffer, sizeof(buffer), MESSAGE_WORKER_RETIRE,
	        supervisor_next_id(s->supervisor), &m);
	int rc;

	instance_enter(i, INSTANCE_RETIRED);
	i->reauthorizing = true;
	loop_timer_set(&i->timer, SANDBOX_REAUTHORIZE_MS);
	role_expect_end(&i->worker, true);
	if (goes_another_way(i->generation, s->generation))
		instance_close_egress(i, egress_changed);
	rc = instance_change_credentials(i, s->generation);
	if (!rc)
		rc = limits_tell(i, s->generation);
	if (!rc)
		rc = role_send(&i->worker, buffer, n, &s->generation->settings->image_file, 1);
	if (rc)
		role_give_up(&i->worker, rc, "it cannot be told to retire");
}

size_t sandbox_retired(const struct sandbox *s)
{
	const struct instance *i;
	size_t count = 0;

	DL_FOREACH(s->instances, i)
	count += i->state == INSTANCE_RETIRED;
	return count;
}

/* The list is ordered by age, oldest first. */
static void bound_retired(struct sandbox *s)
{
	const size_t most = team_retired_max(s);
	size_t count = sandbox_retired(s);
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (count <= most)
			return;
		if (i->state != INSTANCE_RETIRED)
			continue;
		log_sandbox(LOG_LEVEL_WARN, s->name,
		        "more than %zu workers of earlier policies: the oldest one is ended", most);
		instance_enter(i, INSTANCE_ENDING);
		role_kill(&i->worker, "too many earlier workers are still finishing");
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
		else if (i != now && i->state == INSTANCE_STARTING) {
			instance_enter(i, INSTANCE_ENDING);
			role_kill(&i->worker, "another one serves already");
		}
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
	sandbox_expose_trim(s);
	s->current = now;
	instance_serves(now);
	retire_but(s, now);
	s->promoted = true;
	sandbox_event(s, SANDBOX_TOOK_OVER);
	sandbox_reauthorized(s);
}

static bool is_reauthorizing(const struct sandbox *s)
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
	if (!s->promoted || is_reauthorizing(s))
		return;
	s->promoted = false;
	s->owner->replaced(s->owner, s, NULL);
}
