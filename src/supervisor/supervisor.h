/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: what all sandboxes share: event loop, keeper, recorder, registry. "Persistent" means:
 * in the daemon only, not for `vethguard run`. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H
#define VETHGUARD_SRC_SUPERVISOR_SUPERVISOR_H

#include "supervisor/config/source_lease.h"
#include "supervisor/events/recorder.h"
#include "supervisor/os/memfd.h"
#include "supervisor/process/ca.h"
#include "supervisor/process/credentials.h"
#include "supervisor/process/gateway.h"
#include "supervisor/process/keeper.h"
#include "supervisor/process/key_tokens.h"
#include "supervisor/process/quota.h"
#include "supervisor/sandbox/sandbox.h"
#include "supervisor/sandbox/worker_pool.h"

#define SUPERVISOR_STOP_MS 2000
/* Persistent: pause before a role that dies too often is started again. */
#define ROLE_PAUSE_MS 5000

/* Each room keeps its data in a struct of its own. All rooms may read the other fields;
 * supervisor.c changes them, or main.c and daemon/ set them before the start. */
struct supervisor {
	struct loop *loop;
	struct role keeper, recorder;
	struct keeper_life keeper_life;     /* process/keeper.h */
	struct ca_life ca_life;             /* process/ca.h; persistent */
	struct recorder_life recorder_life; /* events/recorder.h */
	struct recording recording;         /* events/recording.h */
	struct confinement *confinement;    /* process/confinement.h; NULL: no query is open */
	struct credential_question *credential_questions; /* process/credentials.h */
	struct source_leases leases;                      /* config/source_lease.h */
	bool leases_over;        /* the program ends without waiting for them */
	struct worker_pool pool; /* sandbox/worker_pool.h */
	bool finishing;
	struct sandbox *sandboxes; /* registry, by id */
	struct sandbox *summing;   /* sandboxes whose summary was requested, by request id */
	struct settings *settings; /* the shared ones (settings.h) */
	struct instance *instances, *requests; /* by id; by the id of the request to the keeper */
	uint64_t last_id;                      /* last id given to a sandbox or request */
	int status;                            /* exit status */
	bool persistent;               /* this is the daemon, which replaces roles that die */
	struct memory_trusted trusted; /* CAs with which upstreams are verified */
	/* Persistent: mount namespace of new workers (spawn_unpinned_mounts()); negative: the
	 * supervisor's own. */
	int mounts;
	struct gate_host *gates;
	/* Directory of the root CA's file; -1: the keeper makes a root CA of its own. */
	int ca;
	struct token_process token;                         /* persistent only */
	struct token_process key_tokens[CONFIG_TOKENS_MAX]; /* persistent only */
	struct gateway_life gateway;                        /* process/gateway.h; persistent */
	struct quota_life quota;                            /* process/quota.h; persistent */
	int names;           /* persistent: directory of the sandboxes' synthetic names */
	const char *bundles; /* persistent: where bundles are kept (config/bundle_store.h) */
	int limits;          /* persistent: directory of what their limits have counted */
	/* Persistent: called when keeper and recorder both serve; NULL: not called. */
	void (*on_roles_ready)(struct supervisor *sv);
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
