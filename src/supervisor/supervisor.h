/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what all sandboxes share: event loop, keeper, recorder, registry. "Persistent" means:
 * in the daemon only, not for `vethguard run`. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H
#define VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H

#include "supervisor/events/recorder.h"
#include "supervisor/os/memfd.h"
#include "supervisor/process/ca.h"
#include "supervisor/process/gateway.h"
#include "supervisor/process/keeper.h"
#include "supervisor/sandbox/sandbox.h"
#include "supervisor/sandbox/worker_pool.h"

#define SUPERVISOR_STOP_MS 2000
/* Persistent: restarts of the keeper within KEEPER_RESTARTS_MS; further ones wait. */
#define KEEPER_RESTARTS_MAX 4
#define KEEPER_RESTARTS_MS 60000
/* Persistent: pause before a role that dies too often is started again. */
#define ROLE_PAUSE_MS 5000

struct supervisor {
	struct loop *loop;
	struct role keeper, recorder;
	struct recording recording;
	bool log_given, recorder_ready, finishing;
	struct recorder_stall stall;
	struct sandbox *sandboxes; /* registry, by id */
	struct sandbox *summing;   /* sandboxes whose summary was requested, by request id */
	struct settings *settings; /* the shared ones (settings.h) */
	struct instance *instances, *requests; /* by id; by the id of the request to the keeper */
	uint64_t last_id;                      /* last id given to a sandbox or request */
	int status;                            /* exit status */
	struct worker_pool pool;
	bool persistent;               /* this is the daemon: roles that die are replaced */
	struct memory_trusted trusted; /* CAs that upstreams are verified with */
	/* Persistent: mount namespace of new workers (spawn_unpinned_mounts()); negative: the
	 * supervisor's own. */
	int mounts;
	struct gate_host *gates;
	/* Directory of the root CA's file; -1: the keeper makes a root CA of its own. */
	int ca;
	struct ca_life ca_life; /* persistent (process/ca.h) */
	int names;              /* persistent: directory of the sandboxes' synthetic names */
	/* The keeper was ready once: the root CA's file is valid. */
	bool keeper_ready;
	int64_t keeper_deaths_ms[KEEPER_RESTARTS_MAX];
	size_t keeper_death_count;
	struct loop_timer keeper_timer, recorder_timer;
	struct keeper_health health;
	struct gateway_life gateway; /* persistent (process/gateway.h) */
	/* Persistent: called when keeper and recorder both serve; NULL: not called. */
	void (*on_roles_ready)(struct supervisor *sv);
	/* The keeper died before it was ever ready. */
	void (*on_keeper_lost)(struct supervisor *sv, const char *how);
	struct confinement *confinement; /* process/confinement.h; NULL: no query is open */
	struct head_question *head;      /* events/head.h; NULL: no query is open */
};

/* Starts recorder and keeper. Returns 0, or -errno with the step that failed in *step. */
int supervisor_start(struct supervisor *sv, struct loop *loop, const char **step);
/* Stops keeper and recorder; the loop ends when both have exited. */
void supervisor_finish(struct supervisor *sv, int status);
void supervisor_fini(struct supervisor *sv);
/* The keeper or the recorder calls this when it has become ready. */
void supervisor_roles_ready(struct supervisor *sv);
uint64_t supervisor_next_id(struct supervisor *sv);
/* Marks an id that an earlier supervisor gave out as used. */
void supervisor_id_is_used(struct supervisor *sv, uint64_t id);

struct sandbox *supervisor_find(struct supervisor *sv, uint64_t id);
void supervisor_for_each(struct supervisor *sv,
        void (*what)(struct sandbox *s, const void *context), const void *context);
/* Calls what for each running worker that was sent its START message. */
void supervisor_for_each_worker(struct supervisor *sv,
        void (*what)(struct instance *i, const void *context), const void *context);
void supervisor_stop_when_alone(struct supervisor *sv);

#endif
