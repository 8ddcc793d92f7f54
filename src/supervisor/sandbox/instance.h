/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance: one worker process of a sandbox and what belongs to it alone: its socket pair to the
 * keeper, the programs of its credential sources. A persistent sandbox has one instance after the
 * other; a new one serves before the old one is told to retire.
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

/* A loaded policy with the configuration it was loaded with. Workers of one sandbox come and go
 * under it; retired workers keep a reference to theirs. */
struct generation {
	unsigned refs;
	uint64_t number;           /* from 1 in each sandbox */
	struct settings *settings; /* a reference */
	/* User who named the policy; its files are opened with these rights. */
	struct identity identity;
	struct memory_bundle *trusted; /* a reference: the CAs; NULL: not made yet */
	bool has_team; /* team is a descriptor of the memory that its workers share (team.h) */
	int team;
	char *difference; /* owned: difference from the previous generation, or NULL */
	uint64_t revoked; /* bit i: an operator has revoked credential i */
	char placeholders[POLICY_CREDENTIALS_MAX][PLACEHOLDER_MAX + 1];
};

struct generation *generation_new(uint64_t number); /* one reference; NULL: no memory */
struct generation *generation_get(struct generation *generation);
void generation_put(struct generation *generation); /* NULL is allowed */
/* difference.c: sets the difference from the generation before, once. No memory: none is set. */
void generation_compare(struct generation *generation, const struct generation *before);
/* Makes the placeholders of credentials that show one in a variable inside the sandbox. They are
 * the same in every generation of a sandbox, whose seed this is. */
void generation_make_placeholders(struct generation *generation, const uint8_t seed[16]);
/* Makes the files that all workers of a generation read, unless they are made already. Returns 0,
 * or -errno with the sandbox's failure filled in. */
int generation_make_files(struct sandbox *s, struct generation *generation);

/* UDP sockets that a worker may hold for clients of the gateway (SOCKS5 UDP ASSOCIATE). */
#define INSTANCE_UDP_SOCKETS_MAX 32

enum instance_state {
	INSTANCE_POOLED,   /* runs without a sandbox */
	INSTANCE_STARTING, /* told its sandbox; keeper or worker has not answered yet */
	INSTANCE_SERVING,
	INSTANCE_RETIRED, /* another one has taken over; it finishes its connections */
	INSTANCE_ENDING,  /* asked to stop, or killed */
	INSTANCE_STATE_COUNT
};

struct instance {
	struct supervisor *supervisor;
	struct sandbox *sandbox; /* NULL: a spare one */
	struct instance *prev, *next;
	UT_hash_handle by_id, by_request; /* in the supervisor's registries */
	enum instance_state state;
	uint64_t id; /* the keeper knows it by this id */
	struct role worker;
	struct loop_timer timer;        /* limit for becoming ready, and for reauthorizing */
	struct generation *generation;  /* NULL until it is started */
	struct generation *credentials; /* whose credentials it may ask the keeper for */
	struct recorded_ring *ring;     /* for its events; the recorder's once the worker is gone */
	struct sources sources;         /* the owner fills in identity and directory */
	uint64_t keeper_request;        /* id of the message that told the keeper; 0: not told */
	uint64_t worker_request;        /* the same for the worker */
	bool keeper_ready, worker_ready; /* STARTING: either may come first */
	/* Told of the new policy, not yet confirmed. No state: it outlives RETIRED, because a
	 * reload is answered only once the worker has confirmed or is gone. */
	bool reauthorizing;
	uint32_t exposed;   /* bit I: it has the listener of port I of its policy */
	size_t udp_sockets; /* that it holds for clients of the gateway */
	bool further;       /* serves beside the first worker (team.h) */
	bool seated;        /* it has a seat in the memory of its generation: seat */
	uint32_t seat;
	bool quiesced; /* ENDING because of a pause; only the report of its end differs */
	int64_t serving_since_ms;
};

/* Sets the state; nothing else does. */
void instance_enter(struct instance *i, enum instance_state state);
/* Returns a worker process that waits for its first message and is connected to the keeper, or NULL
 * with errno. root: fingerprint of the root that its sandbox knows; empty: the current one. */
struct instance *instance_new(struct supervisor *sv, struct slice root);
/* Gives keeper and worker a socket pair, if a keeper runs; the keeper makes the worker's CA.
 * Returns 0 or -errno. */
int instance_meet_keeper(struct instance *i, struct slice root);
/* Assigns the worker to s. */
void instance_give(struct instance *i, struct sandbox *s);
/* Tells the keeper the worker's sandbox and the generation it will start with (takes a reference).
 * Returns 0, or -errno with the sandbox's failure filled in. */
int instance_tell_keeper(struct instance *i, struct generation *generation);
/* Tells the keeper which credentials a worker that is to retire under that generation asks for from
 * now on. Returns 0 or -errno. */
int instance_change_credentials(struct instance *i, struct generation *generation);
/* Tells keeper (unless told before), recorder and worker, under the same generation, with the
 * listeners that the gate holds. Returns 0, or -errno with the sandbox's failure filled in. */
int instance_start(struct instance *i, struct generation *generation);
/* Sets the id of the current request to the keeper. Returns 0 or -ENOMEM. */
int instance_asks_keeper(struct instance *i, uint64_t request);
/* workers.c: the keeper has answered that request, so the keeper does not hold up the worker's
 * start any more.
 */
void instance_keeper_answered(struct instance *i);
/* Connects the worker to a new keeper, which is told what the previous one was told. Returns 0 or
 * -errno. */
int instance_new_keeper(struct instance *i);
/* The worker refuses everything and closes live connections; reason NULL: it serves again. */
void instance_pause(struct instance *i, const char *reason);
/* The worker closes live connections and refuses new ones with the sentence in why. It is told to
 * retire next. */
void instance_close_egress(struct instance *i, const char *why);
/* Nothing records at the moment: the worker begins nothing new until the recorder is ready. */
void instance_hold(struct instance *i);
/* owner->stats is called with this id. Returns 0 or -errno. */
int instance_ask_stats(struct instance *i, uint64_t id);
/* Makes the worker do what the operator wants. Then owner->operated is called with this id. Returns
 * 0 or -errno. */
int instance_operate(struct instance *i, uint64_t id, const struct message_credential_ask *ask);
bool instance_is_ready(const struct instance *i);
/* Call when the worker has become ready: it is SERVING. */
void instance_serves(struct instance *i);
/* associate.c: messages of the worker about UDP sockets. Return 0 or -EBADMSG. */
int instance_on_associate(struct instance *i, struct ipc_message *message);
int instance_on_associate_end(struct instance *i, struct ipc_message *message);
/* Call at its end: its sockets count no longer. */
void instance_forget_associations(struct instance *i);
/* Call when its end was noticed or caused: kills the process if it runs, closes and frees. No
 * callback follows. */
void instance_free(struct instance *i);

#endif
