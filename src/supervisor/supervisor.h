/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what all sandboxes share: event loop, keeper, recorder, registry. "Persistent" means:
 * in the daemon only, not for `vethguard run`. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H
#define VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H

#include "supervisor/os/memfd.h"
#include "supervisor/sandbox/sandbox.h"

#define SUPERVISOR_STOP_MS 2000
/* Persistent: restarts of the keeper within KEEPER_RESTARTS_MS; further ones wait. */
#define KEEPER_RESTARTS_MAX 4
#define KEEPER_RESTARTS_MS 60000
/* Persistent: interval of the keeper's health check. */
#define KEEPER_HEALTH_MS 3000
/* Unanswered checks in a row after which the keeper is killed. */
#define KEEPER_HEALTH_MISSED_MAX 3
/* Persistent: pause before a role that dies too often is started again. */
#define ROLE_PAUSE_MS 5000
/* Interval at which the log repeats that the recorder cannot write. */
#define RECORDER_STALL_SHOWN_MS 10000

struct supervisor {
	struct loop *loop;
	struct role keeper, recorder;
	struct recording recording;
	bool log_given, recorder_ready, finishing;
	bool stall_shown; /* the log says that the audit log cannot be written */
	/* Why the audit log cannot be written, or "". New workers then refuse everything too. */
	char stalled[512];
	int64_t stall_next_ms;     /* earliest time of the next log line about it */
	struct sandbox *sandboxes; /* registry, by id */
	struct sandbox *summing;   /* sandboxes whose summary was requested, by request id */
	struct settings *settings; /* the shared ones (settings.h) */
	struct instance *instances, *requests; /* by id; by the id of the request to the keeper */
	uint64_t last_id;                      /* last id given to a sandbox or request */
	int status;                            /* exit status */
	struct instance *pool;                 /* workers without a sandbox */
	size_t pool_count, pool_goal;
	struct loop_timer pool_timer;
	bool pool_due;                 /* pool_timer is set */
	bool pool_waits;               /* until the sandbox that took the last worker is served */
	bool persistent;               /* this is the daemon: roles that die are replaced */
	struct memory_trusted trusted; /* CAs that upstreams are verified with */
	/* Persistent: mount namespace of new workers (spawn_unpinned_mounts()); negative: the
	 * supervisor's own. */
	int mounts;
	struct gate_host *gates;
	/* Directory of the root CA's file; -1: the keeper makes a root CA of its own. */
	int ca;
	int names; /* persistent: directory of the sandboxes' synthetic names */
	/* The keeper was ready once: the root CA's file is valid. */
	bool keeper_ready;
	int64_t keeper_deaths_ms[KEEPER_RESTARTS_MAX];
	size_t keeper_death_count;
	struct loop_timer keeper_timer, recorder_timer, keeper_health_timer;
	pid_t keeper_health_pid;       /* keeper that was asked last; 0: none */
	uint64_t keeper_health_id;     /* id of the question that is not answered yet; or 0 */
	unsigned keeper_health_missed; /* unanswered checks in a row */
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
/* Returns a worker process that has no sandbox yet: one from the pool, otherwise a new one. The
 * caller gives it a sandbox. Returns NULL with errno on failure. */
struct instance *worker_pool_take(struct supervisor *sv);
/* Call when a worker from the pool has begun to serve: the pool is refilled. */
void worker_pool_refill(struct supervisor *sv);
void worker_pool_dead(struct supervisor *sv, struct instance *i, const char *how);
/* Keeps count spare workers from now on. Call once. Returns 0 or -errno. */
int worker_pool_open(struct supervisor *sv, size_t count);
void worker_pool_close(struct supervisor *sv);
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

/* process/keeper.c. Returns 0 or -errno. */
int keeper_start(struct supervisor *sv);
/* Answers the keeper's request id with the descriptor or error of its source (sources.h). */
void supervisor_on_source(struct sources *sources, uint64_t id, int fd, const char *error);
/* process/keeper_health.c: starts the health check; persistent only. Returns 0 or -errno. */
int keeper_health_start(struct supervisor *sv);
/* Handles the keeper's answer. Returns 0 or -EBADMSG. */
int keeper_health_answered(struct supervisor *sv, struct ipc_message *message);
/* events/recorder.c. Returns 0 or -errno. */
int recorder_start(struct supervisor *sv);
/* Tells a new worker that the audit log cannot be written, if that is so. */
void recorder_stalls(struct instance *i);

#endif
