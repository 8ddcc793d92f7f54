/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: the life of one sandbox, from its policy to its summary; its workers are instances. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_SANDBOX_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_SANDBOX_H

#include "vethguard/base/table.h"
#include "supervisor/gate/gate.h"
#include "supervisor/sandbox/instance.h"
#include "supervisor/events/recording.h"

#define SANDBOX_FAILURE_MAX 2048
#define SANDBOX_REASON_MAX 512
#define SANDBOX_START_MS 10000  /* from the first message to the worker being ready */
#define SANDBOX_STOP_MS 2000    /* for the worker to finish what is under way */
#define SANDBOX_QUIESCE_MS 2000 /* for a worker to close everything when its sandbox is paused */
#define SANDBOX_SUM_MS 10000    /* for the recorder to drain the ring */
#define SANDBOX_SUM_PERSISTENT_MS                                       \
	5000 /* the same: what it has not drained then is kept in files \
	      */
#define SANDBOX_DEATHS_MAX \
	8 /* of the workers of one that lasts, within so long; the next is one too many */
#define SANDBOX_DEATHS_MS 60000
#define SANDBOX_BACKOFF_MS \
	20 /* the first restart comes at once, the next after so long, then twice as long */
#define SANDBOX_RETRY_MS 2000 /* where no worker can be started, it is tried again so often */
#define SANDBOX_REAUTHORIZE_MS                                                             \
	5000                  /* for a worker that retires to judge again what it has open \
	                       */
#define SANDBOX_RETIRED_MAX 4 /* further ones are ended before they have finished */

enum sandbox_state {
	SANDBOX_NEW,       /* its worker is being started; nothing is known of it yet */
	SANDBOX_VARIABLES, /* policy loaded; the owner was asked for the values of env: sources */
	SANDBOX_STARTING,  /* gate made, roles told; waiting for root certificate, recorder and
	                      worker */
	SANDBOX_SERVING,
	SANDBOX_RESTARTING, /* persistent: its worker died; another one is being started, or waited
	                     * for
	                     */
	SANDBOX_CLOSED,     /* persistent: nobody serves it until it is reloaded or ends */
	SANDBOX_HANDED_OFF, /* persistent: another daemon serves it; the workers finish what they
	                       have */
	SANDBOX_STOPPING,   /* waiting for the workers to be gone */
	SANDBOX_SUMMING,    /* waiting for the recorder to have written everything */
	SANDBOX_ENDED,      /* the owner frees it */
	SANDBOX_STATE_COUNT
};

enum sandbox_event {
	SANDBOX_START,        /* generation and paths are filled in */
	SANDBOX_ADOPT,        /* persistent: the same, and the gate is there and open already */
	SANDBOX_GIVEN,        /* variables are filled in */
	SANDBOX_PROGRESS,     /* something that a start waits for has come */
	SANDBOX_END,          /* asked to end */
	SANDBOX_FAIL,         /* failure is filled in */
	SANDBOX_WORKER_DIED,  /* persistent: the one that serves; failure is filled in */
	SANDBOX_WORKERS_GONE, /* all of them */
	SANDBOX_PAUSE,        /* persistent: paused and reason are filled in */
	SANDBOX_TOOK_OVER,    /* persistent: a worker under another generation serves */
	SANDBOX_HAND_OFF,     /* persistent: another daemon serves it from now on */
	SANDBOX_ROLL_BACK,    /* persistent: the other daemon is gone */
	SANDBOX_RECORDER_GONE,
	SANDBOX_SUMMED,
	SANDBOX_TIMEOUT,
	SANDBOX_EVENT_COUNT
};

struct sandbox;

/* Who asked for the sandbox. ended comes once, last, and frees it. */
struct sandbox_owner {
	void (*variables_needed)(struct sandbox_owner *owner, const struct message_names *names);
	void (*ready)(struct sandbox_owner *owner, struct sandbox *s);
	void (*failed)(struct sandbox_owner *owner, const char *text);
	void (*summary)(struct sandbox_owner *owner, const struct message_summary *summary);
	void (*ended)(struct sandbox_owner *owner, struct sandbox *s);
	/* Lasting ones only. Its state, its worker or its fence have changed in a way that people
	 * see. */
	void (*changed)(struct sandbox_owner *owner, struct sandbox *s);
	void (*stats)(
	        struct sandbox_owner *owner, uint64_t id, const struct message_worker_stats *stats);
	/* The answer to sandbox_replace: error NULL, or why the old generation stays. */
	void (*replaced)(struct sandbox_owner *owner, struct sandbox *s, const char *error);
	/* It was paused: every worker that had work to do is gone. Once for all calls of
	 * sandbox_pause since. */
	void (*quiesced)(struct sandbox_owner *owner, struct sandbox *s);
};

struct sandbox {
	struct supervisor *supervisor;
	struct sandbox_owner *owner;
	uint64_t id;
	enum sandbox_state state;
	bool persistent; /* outlives its workers, the keeper and the supervisor */
	UT_hash_handle hh;
	struct loop_timer timer;

	/* Filled in by the owner before SANDBOX_START. */
	char name[MESSAGE_NAME_MAX + 1];
	char audit_path[MESSAGE_PATH_MAX + 1];
	bool audit_own;                   /* the path is the configuration's, not the session's */
	const struct gate_divert *divert; /* borrowed until it is started; NULL: netns is linked */
	char pin[MESSAGE_PATH_MAX +
	         1]; /* file that keeps the gate; empty: only this process does */
	int netns;   /* of the sandbox; persistent: closed once it is linked */
	char directory[MESSAGE_PATH_MAX + 1]; /* where exec: programs start; empty: "/" */
	struct generation *generation;        /* owned: in force, or about to be */

	struct instance *instances; /* all that are not gone */
	struct instance *current;   /* serves, or is the one to serve; NULL: none */
	struct instance *successor; /* is to take over from it under a generation of its own */
	int64_t deaths_ms[SANDBOX_DEATHS_MAX]; /* of workers, the latest ones */
	size_t death_count;
	bool out_of_resources; /* no worker can be started just now, and that was said */
	uint32_t restarts, mended;
	uint8_t seed[16]; /* of its placeholders */
	int names; /* memory of its synthetic names, handed from worker to worker; -1: none yet.
	              persistent: a file, which is open only while a worker is told */
	struct recorded recorded; /* what the recorder knows of it, under id */
	struct gate gate;
	uint64_t dropped_before;   /* as struct message_recorder_sandbox has it */
	bool count_wanted;         /* recording_count_soon() */
	uint64_t dropped_at_end;   /* what the recorder was told with the end */
	uint64_t summary_request;  /* 0: none under way */
	UT_hash_handle at_summary; /* by that */
	bool unsummed;             /* the recorder has not said that all is in the log */
	char root_pem[MESSAGE_PEM_MAX + 1];
	bool is_given; /* AWAY for good: it ends here, not for the other daemon, with its workers */
	bool promoted; /* to another generation; owner->replaced has not been told yet */
	bool paused;   /* by who owns it: everything is refused */
	char pause_reason[SANDBOX_REASON_MAX + 1];
	bool quiescing; /* the workers from before the pause are waited for */
	char failure[SANDBOX_FAILURE_MAX];
	enum gate_fault fault; /* whose it is that it cannot be started */
	const char *
	        refusal; /* a longer text in place of failure, during SANDBOX_FAIL only; borrowed */
};

/* A new sandbox in the registry; one that does not last has its worker being started. NULL with
 * errno. */
struct sandbox *sandbox_new(
        struct supervisor *supervisor, struct sandbox_owner *owner, bool persistent);
/* Instead of the one it was given; nobody else has it. 0 or -ENOMEM: then it can only be freed. */
int sandbox_set_id(struct sandbox *s, uint64_t id);
void sandbox_free(struct sandbox *s);
void sandbox_event(struct sandbox *s, enum sandbox_event event);
/* SANDBOX_FAIL with a text. */
void sandbox_fail(struct sandbox *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* SANDBOX_FAIL with a text of the caller's, of any length (all diagnostics of a policy). */
void sandbox_refuse(struct sandbox *s, const char *text);

/* workers.c: one of its workers is ready or not yet, took too long, is gone (how: as in "the
 * worker %s"); i is freed by the last. */
void sandbox_instance_progress(struct sandbox *s, struct instance *i);
void sandbox_instance_late(struct sandbox *s, struct instance *i);
void sandbox_instance_dead(struct sandbox *s, struct instance *i, const char *how);

/* replace.c, for those that last. */
/* A worker under s->generation becomes current. 0, or -errno with s->failure. */
int sandbox_start_worker(struct sandbox *s);
/* Its gate has the UDP ports of its generation's policy. */
void sandbox_settle_ports(struct sandbox *s);
/* Another generation (a reference is taken) is to come into force, at once where nobody serves;
 * owner->replaced answers, not from within this call. 0, or -errno with s->failure: -EBUSY one is
 * under way. */
int sandbox_replace(struct sandbox *s, struct generation *generation);
/* True: one is under way. It is until every worker of an earlier generation holds to the new one,
 * or is dead: when owner->replaced is told, nothing passes under the old one any more. */
bool sandbox_is_changing(const struct sandbox *s);
/* A retired worker has said so, or is gone. */
void sandbox_reauthorized(struct sandbox *s);
/* pause.c: refuses everything and closes what is open; owner->stilled answers, not from
 * within this call; reason NULL: ends that, and nobody answers. */
void sandbox_pause(struct sandbox *s, const char *reason);
/* A worker is gone, or another one serves: tells the owner where that is all. */
void sandbox_check_quiesced(struct sandbox *s);
/* How many workers finish what they had. */
size_t sandbox_retired(const struct sandbox *s);
/* Workers that are ready retire, others are ended. */
void sandbox_retire_all(struct sandbox *s);
/* s->coming is ready. */
void sandbox_promote_successor(struct sandbox *s);
/* s->coming is gone. */
void sandbox_keep_generation(struct sandbox *s, const char *how);

/* fence.c. Looks whether its fence is in order and sets it again where it is not. 0, or -errno: it
 * cannot be, and s->failure says why. */
int sandbox_verify_now(struct sandbox *s);
/* Nobody looks whether its fence is in order: another daemon is about to, or it ends. */
void sandbox_stop_verifying(struct sandbox *s);
/* Ends that. 0, or -errno with s->failure. */
int sandbox_resume_verifying(struct sandbox *s);

/* start.c: log, gate and the first worker. 0, or -errno with s->failure. */
int sandbox_set_up(struct sandbox *s);
/* Word of it to the recorder. 0, or -errno with s->failure. */
int sandbox_record(struct sandbox *s);
/* For a worker: s->names is there, and closed again where it is a file. 0, or -errno with
 * s->failure. */
int sandbox_open_names(struct sandbox *s);
void sandbox_close_names(struct sandbox *s);
/* The policy's UDP ports that listeners are made for. Their count. */
size_t sandbox_udp_ports(const struct policy *policy, uint16_t out[POLICY_UDP_PORTS_MAX]);
/* What the configuration's limits are for its fence. */
struct fence_bounds sandbox_bounds(const struct config_limits *limits);
/* Fills in s->failure with the text and the error. Returns error. */
int sandbox_failed(struct sandbox *s, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
