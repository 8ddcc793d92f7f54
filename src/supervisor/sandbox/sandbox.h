/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: the life of one sandbox, from its policy to its summary. Its workers are instances.
 * "Persistent" sandboxes are the daemon's; they outlive their workers. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_SANDBOX_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_SANDBOX_H

#include "vethguard/base/table.h"
#include "supervisor/gate/gate.h"
#include "supervisor/sandbox/asleep.h"
#include "supervisor/sandbox/expose.h"
#include "supervisor/sandbox/instance.h"
#include "supervisor/sandbox/team.h"
#include "supervisor/os/listen_socket.h"
#include "supervisor/os/session_token.h"
#include "supervisor/process/gateway.h"
#include "supervisor/events/recording.h"

#define SANDBOX_FAILURE_MAX 2048
#define SANDBOX_REASON_MAX 512
#define SANDBOX_START_MS 10000 /* from the first message to the worker being ready */
#define SANDBOX_STOP_MS 2000   /* for the worker to finish what is open */
/* For a worker to close everything when its sandbox is paused. */
#define SANDBOX_QUIESCE_MS 2000
#define SANDBOX_SUM_MS 10000 /* for the recorder to drain the ring */
/* The same for a persistent sandbox: what is not drained by then is kept in files. */
#define SANDBOX_SUM_PERSISTENT_MS 5000
/* Persistent: this many worker deaths within SANDBOX_DEATHS_MS are survived; one more closes the
 * sandbox. */
#define SANDBOX_DEATHS_MAX 8
#define SANDBOX_DEATHS_MS 60000
/* The first restart comes at once, the next one after this delay, each further one after twice the
 * delay. */
#define SANDBOX_BACKOFF_MS 20
#define SANDBOX_RETRY_MS 2000 /* interval of attempts while no worker can be started */
/* For a retiring worker to reauthorize its open connections. */
#define SANDBOX_REAUTHORIZE_MS 5000
/* How many retired workers are kept: the oldest beyond this are ended before they have finished. A
 * sandbox with several workers keeps more (team_retired_max()). */
#define SANDBOX_RETIRED_MAX 4

enum sandbox_state {
	SANDBOX_NEW,       /* its worker is being started; no policy yet */
	SANDBOX_VARIABLES, /* policy loaded; waiting for the owner's values of env: sources */
	/* The gate is made and the roles are told; waiting for keeper, recorder and worker. */
	SANDBOX_STARTING,
	SANDBOX_SERVING,
	/* A session: no worker runs, and one is started for the first connection. */
	SANDBOX_ASLEEP,
	/* Persistent: the worker died; another one is starting or will be. */
	SANDBOX_RESTARTING,
	/* Persistent: no worker serves it until it is reloaded or ends. */
	SANDBOX_CLOSED,
	/* Persistent: another daemon serves it; the workers here finish their connections. */
	SANDBOX_HANDED_OFF,
	SANDBOX_STOPPING, /* waiting for the workers to exit */
	SANDBOX_SUMMING,  /* waiting for the recorder to have written everything */
	SANDBOX_ENDED,    /* the owner frees it */
	SANDBOX_STATE_COUNT
};

enum sandbox_event {
	SANDBOX_START,        /* generation and paths are filled in */
	SANDBOX_ADOPT,        /* persistent: the same, but the gate exists and is open */
	SANDBOX_CLAIM,        /* persistent: the same, but the gate is connected and asleep */
	SANDBOX_GIVEN,        /* variables are filled in */
	SANDBOX_PROGRESS,     /* something that a start waits for has happened */
	SANDBOX_END,          /* asked to end */
	SANDBOX_FAIL,         /* failure is filled in */
	SANDBOX_WORKER_DIED,  /* persistent: the serving one; failure is filled in */
	SANDBOX_WORKERS_GONE, /* all workers have exited */
	SANDBOX_PAUSE,        /* persistent: paused and reason are filled in */
	SANDBOX_WAKE,         /* ASLEEP: a worker is needed */
	SANDBOX_IDLE,         /* a session: its worker has had nothing open for long */
	SANDBOX_TOOK_OVER,    /* persistent: a worker under another generation serves */
	SANDBOX_HAND_OFF,     /* persistent: another daemon serves it from now on */
	SANDBOX_ROLL_BACK,    /* persistent: the other daemon is gone */
	SANDBOX_RECORDER_GONE,
	SANDBOX_SUMMED,
	SANDBOX_TIMEOUT,
	SANDBOX_EVENT_COUNT
};

struct sandbox;

/* The run or attachment that asked for the sandbox. ended is called once, as the last callback,
 * and frees the sandbox. */
struct sandbox_owner {
	void (*variables_needed)(struct sandbox_owner *owner, const struct message_names *names);
	void (*ready)(struct sandbox_owner *owner, struct sandbox *s);
	void (*failed)(struct sandbox_owner *owner, const char *text);
	void (*summary)(struct sandbox_owner *owner, const struct message_summary *summary);
	void (*ended)(struct sandbox_owner *owner, struct sandbox *s);
	/* Persistent only: the state, the worker or the fence has changed in a way that people
	 * see. */
	void (*changed)(struct sandbox_owner *owner, struct sandbox *s);
	/* Persistent only, may be NULL: called when the link to the gate is gone. Returns true if
	 * the owner ends the sandbox, which may be freed then; otherwise the sandbox stays cut off.
	 */
	bool (*link_gone)(struct sandbox_owner *owner);
	void (*stats)(
	        struct sandbox_owner *owner, uint64_t id, const struct message_worker_stats *stats);
	/* Called when a worker has done what instance_operate() asked for. */
	void (*operated)(struct sandbox_owner *owner, struct instance *i, uint64_t id,
	        const struct message_worker_credentials *m);
	/* Called with the keeper's answer to credential_ask() with this id; m NULL: the keeper is
	 * gone. */
	void (*credentials)(struct sandbox_owner *owner, uint64_t id,
	        const struct message_keeper_credentials *m);
	/* The result of sandbox_replace(): error is NULL, or why the old generation stays. */
	void (*replaced)(struct sandbox_owner *owner, struct sandbox *s, const char *error);
	/* The sandbox was paused and every worker that had work to do is gone. Called once for all
	 * calls of sandbox_pause() since the last time. */
	void (*quiesced)(struct sandbox_owner *owner, struct sandbox *s);
	/* The sandbox proposes a rule; instance_tell_proposed() tells what becomes of it. NULL:
	 * nobody takes proposals. */
	void (*proposed)(struct sandbox_owner *owner, struct instance *i, uint64_t id,
	        const struct message_worker_proposal *m);
	/* A request waits for a person now. May be NULL. */
	void (*asked)(struct sandbox_owner *owner, uint64_t id, const struct message_worker_ask *m);
	/* Tells a worker that starts about all proposals. May be NULL. */
	void (*tell_proposals)(struct sandbox_owner *owner, struct instance *i);
};

struct sandbox {
	struct supervisor *supervisor;
	struct sandbox_owner *owner;
	uint64_t id;
	enum sandbox_state state;
	bool persistent; /* outlives its workers, the keeper and the supervisor */
	UT_hash_handle hh;
	struct loop_timer timer;

	/* The owner fills in these fields before SANDBOX_START, SANDBOX_ADOPT or SANDBOX_CLAIM. */
	char name[MESSAGE_NAME_MAX + 1];
	char audit_path[MESSAGE_PATH_MAX + 1];
	bool audit_own; /* audit_path comes from the configuration, not from the run */
	/* Borrowed until SANDBOX_START is handled; NULL: netns is linked. */
	const struct gate_divert *divert;
	/* Borrowed for its life: its only way out; NULL: it has a link. */
	struct listen_socket *listen;
	/* Borrowed for the sandbox's life: the token that proves a connection to it; NULL: not a
	 * session. A session has neither link nor socket: the gateway passes connections to its
	 * worker. */
	const struct session_token *session;
	struct gateway_session gateway; /* process/gateway.h */
	struct sandbox_sleep sleep;     /* asleep.h; a session's */
	/* Path of the file that keeps the gate; empty: only this process keeps it. */
	char pin[MESSAGE_PATH_MAX + 1];
	char *labels; /* owned: "KEY=VALUE" lines; NULL: none */
	int netns;    /* of the sandbox; persistent: closed once it is linked */
	/* Guard and sandbox share this process's namespace (GATE_SHARED): port of the name service;
	 * 0: they do not. */
	uint16_t shared_dns_port;
	int shared_packets; /* its NFLOG socket, until the gate has it; -1: none */
	uint16_t shared_udp_ports[MESSAGE_SHARED_UDP_MAX]; /* ports of its fence for datagrams */
	size_t shared_udp_count;
	char directory[MESSAGE_PATH_MAX + 1]; /* where exec: programs start; empty: "/" */
	struct generation *generation;        /* owned: in force, or about to be */
	/* SANDBOX_ADOPT and SANDBOX_CLAIM only: the earlier state. gate: its shape and its open
	 * descriptors; root: fingerprint of the root that the sandbox knows (zeros: the oldest
	 * root). */
	struct gate gate;
	uint8_t seed[16];        /* seed of its placeholders */
	uint64_t dropped_before; /* see struct message_recorder_sandbox */
	bool root_known;
	uint8_t root[MESSAGE_FINGERPRINT_BYTES];
	bool paused; /* paused by its owner: everything is refused */
	char pause_reason[SANDBOX_REASON_MAX + 1];

	struct instance *instances;      /* all that are not gone */
	struct instance *current;        /* serves, or is starting to; NULL: none */
	struct sandbox_team *team;       /* owned: starts further workers; NULL: not needed yet */
	struct team_question *questions; /* owned: figures that are being added up (team_stats.c) */
	struct instance *successor;      /* will take over from current with its own generation */
	int64_t deaths_ms[SANDBOX_DEATHS_MAX]; /* of the last deaths of workers */
	size_t death_count;
	bool claimed;          /* by SANDBOX_CLAIM, and no worker has served it yet */
	bool out_of_resources; /* no worker can be started, and the log says so */
	uint32_t restarts, mended;
	/* Memory of its synthetic names, handed from worker to worker; -1: none yet. Persistent: a
	 * file, open only while a worker is being told. */
	int names;
	/* Memory of what its limits have counted; -1: none yet, or persistent (a file). */
	int counters;
	/* Memory of what MCP servers said of their tools; -1: as for counters. */
	int tools;
	struct asks *
	        asks; /* owned: what a person has to approve, and has approved; NULL: nothing yet */
	struct recorded recorded; /* what the recorder knows of it, under id */
	struct exposed exposed;
	uint64_t summary_request;  /* 0: none is pending */
	UT_hash_handle at_summary; /* by summary_request */
	bool unsummed;             /* the recorder has not confirmed that all is in the log */
	char root_pem[MESSAGE_PEM_MAX + 1]; /* what it is to trust */
	bool ca_known;
	uint8_t ca[MESSAGE_FINGERPRINT_BYTES]; /* CA that signed its worker's intermediate */
	/* HANDED_OFF for good: the other daemon keeps serving it, and it ends here with its last
	 * worker. */
	bool is_given;
	bool promoted;  /* moved to another generation; owner->replaced was not called yet */
	bool quiescing; /* waiting for the workers from before the pause to exit */
	char failure[SANDBOX_FAILURE_MAX];
	enum gate_fault fault; /* the kind of failure, if it cannot be started */
	/* Borrowed: replaces failure with a longer text, during SANDBOX_FAIL only. */
	const char *refusal;
};

/* Makes a sandbox and enters it into the registry. Unless it is persistent, its first worker is
 * started at once. Returns NULL with errno on failure. */
struct sandbox *sandbox_new(
        struct supervisor *supervisor, struct sandbox_owner *owner, bool persistent);
/* Replaces the id by one that no other sandbox has. Returns 0, or -ENOMEM: then s can only be
 * freed. */
int sandbox_set_id(struct sandbox *s, uint64_t id);
void sandbox_free(struct sandbox *s);
void sandbox_event(struct sandbox *s, enum sandbox_event event);
/* SANDBOX_FAIL with the formatted text as failure. */
void sandbox_fail(struct sandbox *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Call this before SANDBOX_FAIL if the failure is the caller's fault, who asked for something
 * impossible. */
void sandbox_blame_asker(struct sandbox *s);
/* Gives the sandbox away for good (HANDED_OFF): the other daemon keeps it. A sandbox that was not
 * handed off ends. */
void sandbox_give_away(struct sandbox *s);
/* SANDBOX_FAIL with the caller's text, of any length (all diagnostics of a policy). */
void sandbox_refuse(struct sandbox *s, const char *text);

/* Sets the certificate that the sandbox is to trust: MESSAGE_PEM_MAX bytes at most. */
static inline void sandbox_trust(struct sandbox *s, struct slice pem)
{
	memcpy(s->root_pem, pem.p, pem.n);
	s->root_pem[pem.n] = 0;
}
/* Takes the keeper's answer with the root that the sandbox is to trust. */
void sandbox_take_root(struct sandbox *s, const struct message_keeper_root *m);
/* The fingerprint of the root that it knows, or empty. */
static inline struct slice sandbox_root(const struct sandbox *s)
{
	return slice_of(s->root, s->root_known ? sizeof(s->root) : 0);
}

/* workers.c: a worker has become ready or made progress; took too long; has exited (how completes
 * "the worker %s"). sandbox_instance_dead() frees i. */
void sandbox_instance_progress(struct sandbox *s, struct instance *i);
void sandbox_instance_late(struct sandbox *s, struct instance *i);
void sandbox_instance_dead(struct sandbox *s, struct instance *i, const char *how);

/* deaths.c: remembers that a worker died. Returns the delay before the next start, or -1 if there
 * were too many deaths. */
int64_t sandbox_delay_after_death(struct sandbox *s);

/* shared.c: whether a guard that shares the sandbox's namespace cannot serve under these settings;
 * writes the reason. */
bool sandbox_cannot_share(
        const struct sandbox *s, const struct settings *settings, char why[GATE_WHY_MAX]);

/* replace.c, persistent or shared only. */
/* Starts a worker under s->generation and makes it current. Returns 0, or -errno with
 * s->failure. */
int sandbox_start_worker(struct sandbox *s);
/* Starts a further worker under s->generation (team.h). Returns 0, or -errno with s->failure. */
int sandbox_start_further(struct sandbox *s);
/* Sets the UDP ports of the generation's policy in the gate. */
void sandbox_settle_ports(struct sandbox *s);
/* Puts another generation (takes a reference) into force. owner->replaced is called later, never
 * from within this call. Returns 0, or -errno with s->failure; -EBUSY: another one is in
 * progress. */
int sandbox_replace(struct sandbox *s, struct generation *generation);
/* Returns true while a replacement is in progress: until every worker of an earlier generation has
 * reauthorized under the new one, or is dead. When owner->replaced is called, nothing passes under
 * the old generation any more. */
bool sandbox_is_changing(const struct sandbox *s);
/* A retired worker has reauthorized, or is gone. */
void sandbox_reauthorized(struct sandbox *s);
/* pause.c: refuses everything and closes what is open; owner->quiesced is called later, never from
 * within this call. reason NULL: ends the pause, without a callback. */
void sandbox_pause(struct sandbox *s, const char *reason);
/* Call when a worker is gone or another one serves: calls owner->quiesced once all are gone. */
void sandbox_check_quiesced(struct sandbox *s);
/* Returns how many retired workers still finish their connections. */
size_t sandbox_retired(const struct sandbox *s);
/* Retires the workers that are ready and ends the others. */
void sandbox_retire_all(struct sandbox *s);
/* Call when s->successor is ready. */
void sandbox_promote_successor(struct sandbox *s);
/* Call when s->successor is gone: the old generation stays. */
void sandbox_keep_generation(struct sandbox *s, const char *how);

/* fence.c. Takes over a gate that is watched, and watches it. */
void sandbox_take_gate(struct sandbox *s, struct gate *gate);
/* Verifies the fence and sets it again if it was changed. Returns 0, or -errno with the
 * reason in s->failure if it cannot. */
int sandbox_verify_now(struct sandbox *s);
/* Stops watching the fence: another daemon is about to, or the sandbox ends. */
void sandbox_stop_verifying(struct sandbox *s);
/* Watches the fence again. Returns 0, or -errno with s->failure. */
int sandbox_resume_verifying(struct sandbox *s);

/* start.c: sets up log, gate and the first worker. Returns 0, or -errno with s->failure. */
int sandbox_set_up(struct sandbox *s);
/* Announces the sandbox to the recorder. Returns 0, or -errno with s->failure. */
int sandbox_record(struct sandbox *s);
/* Opens s->names for a worker that is to be told; the second function closes it again if it is a
 * file. Returns 0, or -errno with s->failure. */
int sandbox_open_names(struct sandbox *s);
void sandbox_close_names(struct sandbox *s);
/* Writes the policy's UDP ports that get listeners to out. Returns their count. */
size_t sandbox_udp_ports(const struct policy *policy, uint16_t out[POLICY_UDP_PORTS_MAX]);
/* Converts the configuration's limits to bounds for the fence. */
struct fence_bounds sandbox_bounds(const struct config_limits *limits);
/* Fills in s->failure with the text and the error. Returns error. */
int sandbox_failed(struct sandbox *s, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
