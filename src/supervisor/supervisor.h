/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what all sandboxes share: the loop, keeper and recorder, the registry. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H
#define VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H

#include "supervisor/os/memfd.h"
#include "supervisor/sandbox/sandbox.h"

#define SUPERVISOR_STOP_MS 2000
#define KEEPER_RESTARTS_MAX 4 /* persistent: within so long; further ones wait */
#define KEEPER_RESTARTS_MS 60000
#define KEEPER_HEALTH_MS 3000 /* persistent: how often it is looked whether the keeper answers */
#define KEEPER_HEALTH_MISSED_MAX \
	3                  /* looks that find the same keeper without its answer: it is killed */
#define ROLE_PAUSE_MS 5000 /* persistent: how long one that dies too often is not started again */
#define RECORDER_STALL_SHOWN_MS \
	10000 /* a recorder may say it endlessly; people are told so often */

struct supervisor {
	struct loop *loop;
	struct role keeper, recorder;
	struct recording recording;
	bool log_given, recorder_ready, finishing;
	bool stall_shown;          /* people were told that the log cannot be written */
	char stalled[512];         /* why it cannot: workers to come refuse everything too; or "" */
	int64_t stall_next_ms;     /* before that they are not told again */
	struct sandbox *sandboxes; /* registry, by id */
	struct sandbox *summing;   /* those whose summary was asked for, by its request */
	struct settings *settings; /* of those that are shared (settings.h) */
	struct instance *instances, *requests; /* by id, and by what the keeper was asked under */
	uint64_t last_id;                      /* of sandboxes and of requests */
	int status;                            /* exit status */
	struct instance *pool;                 /* workers that wait for a sandbox */
	size_t pool_count, pool_goal;
	struct loop_timer pool_timer;
	bool pool_due;                 /* it is set */
	bool pool_waits;               /* for whoever took one to be served */
	bool persistent;               /* the daemon's: roles that die are replaced */
	struct memory_trusted trusted; /* CAs that upstreams are verified with */
	int mounts; /* persistent: the namespace workers begin in (spawn_unpinned_mounts); negative:
	             * ours
	             */
	struct gate_host *gates;
	int ca;            /* directory of the root CA's file; -1: the keeper has one of its own */
	int names;         /* persistent: directory of the sandboxes' synthetic names */
	bool keeper_ready; /* it has said so once: the file is in order */
	int64_t keeper_deaths_ms[KEEPER_RESTARTS_MAX];
	size_t keeper_death_count;
	struct loop_timer keeper_timer, recorder_timer, keeper_health_timer;
	pid_t keeper_health_pid;       /* 0: none ran */
	uint64_t keeper_health_id;     /* asked under this id and not answered yet; or 0 */
	unsigned keeper_health_missed; /* so many looks in a row */
	/* persistent: keeper and recorder have begun to serve; NULL: nobody asks */
	void (*on_roles_ready)(struct supervisor *sv);
	void (*on_keeper_lost)(struct supervisor *sv, const char *how); /* before it was ready */
	struct confinement *confinement; /* process/confinement.h; NULL: nobody asks */
	struct head_question *head;      /* events/head.h; the same */
};

/* Starts keeper and recorder. 0 or -errno with what failed in *step. */
int supervisor_start(struct supervisor *sv, struct loop *loop, const char **step);
/* Stops keeper and recorder; the loop ends when both are gone. */
void supervisor_finish(struct supervisor *sv, int status);
void supervisor_fini(struct supervisor *sv);
/* From recorder and keeper: one of them has become ready. */
void supervisor_roles_ready(struct supervisor *sv);
/* A worker process that was told nothing, a spare one where there is one. The caller gives it a
 * sandbox. NULL with errno. */
struct instance *worker_pool_take(struct supervisor *sv);
/* Somebody is served. */
void worker_pool_refill(struct supervisor *sv);
void worker_pool_dead(struct supervisor *sv, struct instance *i, const char *how);
/* Keeps so many spare workers from now on. Once. 0 or -errno. */
int worker_pool_open(struct supervisor *sv, size_t count);
void worker_pool_close(struct supervisor *sv);
uint64_t supervisor_next_id(struct supervisor *sv);
/* An id that was given out by a supervisor before this one. */
void supervisor_id_is_used(struct supervisor *sv, uint64_t id);

struct sandbox *supervisor_find(struct supervisor *sv, uint64_t id);
void supervisor_for_each(struct supervisor *sv,
        void (*what)(struct sandbox *s, const void *context), const void *context);
/* Every worker that has had its first message. */
void supervisor_for_each_worker(struct supervisor *sv,
        void (*what)(struct instance *i, const void *context), const void *context);
void supervisor_stop_when_alone(struct supervisor *sv);

/* process/keeper.c: 0 or -errno. */
int keeper_start(struct supervisor *sv);
/* Answers the keeper's request id with what its source gave (sources.h). */
void supervisor_on_source(struct sources *sources, uint64_t id, int fd, const char *error);
/* process/keeper_health.c, for those that last. 0 or -errno. */
int keeper_health_start(struct supervisor *sv);
/* The answer. 0 or -EBADMSG. */
int keeper_health_answered(struct supervisor *sv, struct ipc_message *message);
/* events/recorder.c: 0 or -errno. */
int recorder_start(struct supervisor *sv);
/* A worker that begins while the log cannot be written. */
void recorder_stalls(struct instance *i);

#endif
