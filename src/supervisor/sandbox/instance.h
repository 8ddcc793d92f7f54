/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance: one worker process of a sandbox, and what was made for it alone: its pair to the
 * keeper, the programs that its credentials come from. A sandbox that lasts has one instance after
 * the other; the new one serves before the old one is told to retire.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_INSTANCE_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_INSTANCE_H

#include "vethguard/base/table.h"
#include "vethguard/policy/placeholder.h"
#include "supervisor/os/memfd.h"
#include "supervisor/process/role.h"
#include "supervisor/config/settings.h"
#include "supervisor/config/sources.h"

struct sandbox;
struct supervisor;
struct recorded_ring;

/* A policy in force, with the configuration it was loaded beside. Workers of one sandbox come and
 * go under it; retired ones hold on to theirs. */
struct generation {
	unsigned refs;
	uint64_t number;           /* from 1 in each sandbox */
	struct settings *settings; /* a reference */
	struct identity identity;  /* whose rights open what the policy names: of who named it */
	struct memory_bundle *trusted; /* a reference: the CAs; NULL: not made yet */
	char *difference;              /* owned: from the generation before, or NULL */
	char placeholders[POLICY_CREDENTIALS_MAX][PLACEHOLDER_MAX + 1];
};

struct generation *generation_new(uint64_t number); /* one reference; NULL: no memory */
struct generation *generation_get(struct generation *generation);
void generation_put(struct generation *generation); /* NULL is harmless */

enum instance_state {
	INSTANCE_POOLED,   /* runs, and was told nothing */
	INSTANCE_STARTING, /* told; keeper and worker have not both answered */
	INSTANCE_SERVING,
	INSTANCE_RETIRED, /* another one has taken over; it finishes what it has */
	INSTANCE_ENDING,  /* asked to stop, or killed */
	INSTANCE_STATE_COUNT
};

struct instance {
	struct supervisor *supervisor;
	struct sandbox *sandbox; /* NULL: a spare one */
	struct instance *prev, *next;
	UT_hash_handle by_id, by_request; /* of the supervisor's registries */
	enum instance_state state;
	uint64_t id; /* the keeper knows it by this */
	struct role worker;
	struct loop_timer timer;        /* how long it may take to be ready, or to revise */
	struct generation *generation;  /* NULL until it is started */
	struct generation *credentials; /* whose credentials it may ask the keeper for */
	struct recorded_ring *ring;     /* of its events; the recorder's once it is gone */
	struct sources sources;         /* identity and directory are the owner's to fill in */
	uint64_t keeper_request;        /* told under this id; 0: not yet */
	uint64_t worker_request;        /* the same */
	bool keeper_ready, worker_ready;
	bool reauthorizing; /* RETIRED: told of a policy, and has not said yet that it holds to it
	                     */
	bool quiesced;      /* ENDING: a pause asked it to */
	int64_t serving_since_ms;
};

/* The one place where an instance changes its state. */
void instance_enter(struct instance *i, enum instance_state state);
/* A process that waits for its first message, and has met the keeper. NULL with errno. */
struct instance *instance_new(struct supervisor *sv);
/* Gives keeper and worker a pair, where a keeper runs; the keeper makes its CA. 0 or -errno. */
int instance_meet_keeper(struct instance *i);
/* From now on it is that sandbox's. */
void instance_give(struct instance *i, struct sandbox *s);
/* Tells the keeper which sandbox it was given to, and of the generation it will start with (a
 * reference is taken). 0, or -errno with the sandbox's failure filled in. */
int instance_tell_keeper(struct instance *i, struct generation *generation);
/* Tells the keeper which credentials the worker asks for from now on, after it has started: it is
 * to retire under that generation. 0 or -errno. */
int instance_change_credentials(struct instance *i, struct generation *generation);
/* Tells the keeper, where that was not done before, recorder and worker, under the same generation,
 * with the listeners that the gate holds. 0, or -errno with the sandbox's failure filled in. */
int instance_start(struct instance *i, struct generation *generation);
/* The keeper is asked under this id from now on. 0 or -ENOMEM. */
int instance_asks_keeper(struct instance *i, uint64_t request);
/* Another keeper has taken over: both meet, and it is told what the one before was. 0 or -errno. */
int instance_new_keeper(struct instance *i);
/* Everything is refused, live connections are closed; reason NULL: that is over. */
void instance_pause(struct instance *i, const char *reason);
/* Live connections are closed, and whatever still comes is refused, with a sentence for who asks:
 * it is told to retire next. */
void instance_close_egress(struct instance *i, const char *why);
/* Nobody records just now: nothing new is begun until the recorder is ready. */
void instance_hold(struct instance *i);
/* owner->stats answers with this id. 0 or -errno. */
int instance_ask_stats(struct instance *i, uint64_t id);
bool instance_is_ready(const struct instance *i);
/* What it started for is there. */
void instance_serves(struct instance *i);
/* Its end was noticed or caused: kills what runs, closes and frees. No callback follows. */
void instance_free(struct instance *i);

#endif
