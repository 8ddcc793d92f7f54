/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all sandboxes share: the registry, their ids, and the start and end of the roles that serve
 * all of them. A sandbox is found by its id only, never by anything that a sender could point with.
 * process/keeper.c handles the keeper's messages, events/recorder.c the recorder's.
 */
#include <errno.h>
#include <unistd.h>
#include <utlist.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/jail/spawn.h"
#include "supervisor/os/helper_child.h"
#include "supervisor/os/mlock.h"
#include "supervisor/events/head.h"
#include "supervisor/process/confinement.h"
#include "supervisor/sandbox/quotas.h"

/* Registry. */

uint64_t supervisor_next_id(struct supervisor *sv)
{
	return ++sv->last_id;
}

void supervisor_id_is_used(struct supervisor *sv, uint64_t id)
{
	if (id > sv->last_id)
		sv->last_id = id;
}

struct sandbox *supervisor_find(struct supervisor *sv, uint64_t id)
{
	struct sandbox *s;

	HASH_FIND(hh, sv->sandboxes, &id, sizeof(id), s);
	return s;
}

void supervisor_for_each(struct supervisor *sv,
        void (*what)(struct sandbox *s, const void *context), const void *context)
{
	struct sandbox *s, *next;

	HASH_ITER(hh, sv->sandboxes, s, next)
	what(s, context);
}

void supervisor_for_each_worker(struct supervisor *sv,
        void (*what)(struct instance *i, const void *context), const void *context)
{
	struct sandbox *s, *next;
	struct instance *i, *next_i;

	HASH_ITER(hh, sv->sandboxes, s, next)
	{
		DL_FOREACH_SAFE(s->instances, i, next_i)
		{
			if (role_runs(&i->worker) && i->worker_request != 0)
				what(i, context);
		}
	}
}

/* Start and end. */

static uint64_t random_below_half(void)
{
	uint32_t n;

	random_bytes(&n, sizeof(n));
	return n >> 1;
}

void supervisor_roles_ready(struct supervisor *sv)
{
	bool keeper_ready = sv->keeper_life.ready && (!sv->persistent || sv->ca_life.ready);

	if (sv->on_roles_ready && keeper_ready && sv->recorder_life.ready)
		sv->on_roles_ready(sv);
}

/* Opens the programs of the roles now, so that roles started later are of the same version. */
static int hold_programs(const struct supervisor *sv)
{
	/* The last ones exist only in the daemon. */
	const char *const names[] = {"vethguard-keeper", "vethguard-recorder", "vethguard-worker",
	        "vethguard-fetch", sv->persistent ? "vethguard-token" : NULL, "vethguard-gateway",
	        sv->persistent ? "vethguard-quota" : NULL, NULL};
	char why[512];

	for (const char *const *name = names; *name; name++) {
		if (!sv->persistent && strcmp(*name, "vethguard-token") == 0)
			continue; /* only the daemon has a configured CA */
		int rc = spawn_hold(*name);

		if (rc) {
			spawn_explain(*name, rc, geteuid(), why, sizeof(why));
			log_error("%s", why);
			return rc;
		}
	}
	if (sv->persistent)
		mlock_programs(names);
	return 0;
}

static void on_leases_idle(struct source_leases *book)
{
	struct supervisor *sv = container_of(book, struct supervisor, leases);

	sv->leases_over = true;
	supervisor_stop_when_alone(sv);
}

int supervisor_start(struct supervisor *sv, struct loop *loop, const char **step)
{
	sv->loop = loop;
	memory_trusted_init(&sv->trusted);
	sv->trusted.local = sv->persistent;
	sv->mounts = -1;
	sv->quota.bell = -1;
	sv->quota.on_start = quotas_tell_all;
	source_leases_init(&sv->leases, loop);
	sv->leases.trusted = &sv->trusted;
	sv->leases.on_idle = on_leases_idle;
	if (!sv->last_id) /* sandbox ids are in the audit log: no two runs share them */
		sv->last_id = (uint64_t)(clock_real_ms() / 1000) << 32 | random_below_half();
	*step = "the programs of its roles";
	int rc = hold_programs(sv);
	if (rc)
		return rc;
	*step = "looking after the gates";
	rc = gate_host_open(&sv->gates, loop);
	if (rc)
		return rc;
	if (sv->persistent) {
		gate_host_keep_home(sv->gates);
		rc = gate_host_listen_for_all(sv->gates);
	}
	if (rc)
		log_info("each gate is watched by sockets of its own: %s", strerror(-rc));
	if (sv->persistent)
		sv->mounts = spawn_unpinned_mounts();
	sv->leases.mounts = sv->mounts;
	if (sv->persistent && sv->mounts < 0)
		log_info("workers begin with all of the host's mounts, which takes longer: %s",
		        strerror(-sv->mounts));
	*step = "the recorder";
	rc = recorder_start(sv);
	if (!rc && sv->persistent)
		rc = keeper_health_start(sv);
	if (!rc && sv->persistent)
		rc = ca_open(sv);
	if (rc)
		return rc;
	*step = "the keeper";
	return keeper_start(sv);
}

void supervisor_finish(struct supervisor *sv, int status)
{
	if (status && !sv->status)
		sv->status = status;
	if (sv->finishing)
		return;
	sv->finishing = true;
	if (!sv->recorder_life
	                .log_given) { /* it waits for its first message and has nothing to flush */
		role_expect_end(&sv->recorder, true);
		role_kill(&sv->recorder, "there is nothing to record");
	}
	role_stop(&sv->recorder, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
	role_stop(&sv->keeper, supervisor_next_id(sv), SUPERVISOR_STOP_MS);
	gateway_stop(sv);
	quota_stop(sv);
	supervisor_stop_when_alone(sv);
}

/* Gives the leases of a run back before the program ends. A daemon leaves them to its
 * successor, which gives back what this one has noted. */
void supervisor_stop_when_alone(struct supervisor *sv)
{
	if (!sv->finishing || role_runs(&sv->keeper) || role_runs(&sv->recorder) ||
	        role_runs(&sv->gateway.role) || role_runs(&sv->quota.role))
		return;
	if (!sv->persistent && !source_leases_are_idle(&sv->leases) && !sv->leases_over)
		source_leases_hurry(&sv->leases);
	else
		loop_stop(sv->loop);
}

void supervisor_fini(struct supervisor *sv)
{
	struct sandbox *s, *next;

	HASH_ITER(hh, sv->sandboxes, s, next)
	sandbox_free(s);
	worker_pool_close(sv);
	gateway_close(sv);
	quota_close(sv);
	gate_host_close(sv->gates);
	loop_timer_close(&sv->keeper_life.timer);
	loop_timer_close(&sv->keeper_life.health.timer);
	ca_close(sv);
	loop_timer_close(&sv->recorder_life.timer);
	confinement_fini(sv);
	head_fini(sv);
	credential_fini(sv);
	role_fini(&sv->keeper);
	role_fini(&sv->recorder);
	recording_fini(sv);
	source_leases_fini(&sv->leases);
	memory_trusted_fini(&sv->trusted);
	helper_child_close_all(sv->loop);
	if (sv->mounts >= 0)
		close(sv->mounts);
}
