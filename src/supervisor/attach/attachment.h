/* SPDX-License-Identifier: Apache-2.0 */
/* attachment: one sandbox of the daemon, and the registry of all; for the files that implement
 * attachments.h. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_ATTACHMENT_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_ATTACHMENT_H

#include <sys/stat.h>

#include "supervisor/bundles/bundles.h"
#include "supervisor/config/policy_watch.h"
#include "supervisor/daemon/state_file.h"
#include "supervisor/gate/unlink.h"
#include "supervisor/session/revocations.h"
#include "supervisor/supervisor.h"

#define ATTACH_FRESHNESS_MS 2000 /* for a worker to answer with its statistics */
#define ATTACH_RELOADS_MAX 8     /* at a time, in a reload of all */
#define ATTACH_PENDING_MAX 64    /* pending operations on one sandbox */
#define ATTACH_GATES 8           /* gates in store */
#define ATTACH_POOLED_WORKERS 4  /* workers in the pool */
#define RECOVERY_TURNS 8         /* sandboxes recovered or taken back at a time */
#define RECOVERY_TURNS_QUIET 4   /* of those, while no client waits */
#define RECOVERY_READINGS 4      /* policies read by children at a time after a restart */
#define ATTACH_READ_MS 5000      /* for the files of a policy that may not be local */
#define ATTACH_READ_TEXT_MAX 1024
#define ATTACH_UNCLAIMED "%s is prepared and has no policy: 'vethguard claim' gives it one"
#define ATTACH_RECOVERING "the daemon has just started and is taking its sandboxes over: try again"
#define ATTACH_GROUPS_RULE \
	"a caller may be in at most %d groups: run the command with fewer, by setpriv(1) --groups"

/* What a sandbox is attached by; no two have the same at a time. All bytes are compared, so
 * initialize it with zeros. */
struct attach_target {
	dev_t netns_device; /* of the namespace; 0: an interface, or not found */
	ino_t netns_inode;
	char interface[IFNAMSIZ]; /* of the host; empty: a namespace */
};

enum attach_operation {
	OPERATION_ATTACH,
	OPERATION_DETACH,
	OPERATION_RELOAD,
	OPERATION_PAUSE,
	OPERATION_STATS,
	OPERATION_CREDENTIAL
};

/* An operation that waits for its answer. */
struct attach_pending {
	struct attach_pending *prev, *next;
	struct attachment *attachment;
	enum attach_operation operation;
	uint64_t id; /* STATS, CREDENTIAL: id of the question */
	struct loop_timer patience;
	attach_done done;
	void *context;
};

/* The state of an attachment is its sandbox's state. The booleans below are not states: left, slow,
 * reading, gone and told are used by a daemon that takes over, and may be set in any state;
 * detaching and undone are the two steps of an end, and a timer, the process or a caller may ask
 * for the end in the middle of either; summed and shut say what the end is reported with. */
struct attachment {
	struct attachments *all;
	struct sandbox_owner owner;
	struct sandbox *sandbox;
	struct attach_record record;
	UT_hash_handle hh; /* by name, in the order of their creation */
	struct attach_pending *pending;
	struct loop_alarm expiry;
	int pidfd; /* of the process it was attached by; -1: none */
	struct loop_io process;
	/* Owned: of a reload in progress that names a policy, else NULL. */
	char *new_policy;
	struct credential_operation *operations; /* operations under way: attach/credentials.c */
	struct attach_later *later;              /* a reload that waits for its files; NULL: none */
	struct proposals *proposals;             /* owned: of the sandbox; NULL: none */
	struct attach_reading *reading;          /* recovery: its policy is being read */
	bool stale; /* its bundle has changed, and its policy has to be reloaded */
	bool slow;  /* recovery: a child has to read the policy */
	/* If there is no sandbox: its gate, which cannot be served. */
	struct gate gate;
	struct attach_target target; /* all zeros: unknown */
	UT_hash_handle at_target;
	bool detaching;                   /* for good: gate and state are removed */
	bool undone;                      /* they are removed */
	struct gate_unlinking *unlinking; /* the link is being deleted; NULL: it is not */
	bool summed;
	struct message_summary summary; /* if summed; without destinations */
	bool ready;                     /* in all->prepared: it can be claimed */
	struct attachment *prepared_prev, *prepared_next;
	bool gone; /* recovery: neither the link nor the process or namespace that it was attached
	              to exists */
	bool left; /* waits for its recovery turn (recover/recovery_queue.c) */
	/* In all->knocked: waits for its turn, and a client waits at its gate. */
	struct attachment *knock_prev, *knock_next;
	bool told; /* takeover: its result was reported */
	/* Nobody asked for the end, so an interface stays shut. */
	bool shut;
	/* There is no sandbox, and the only reason is that its policy could not be loaded when the
	 * daemon started: a reload tries again. */
	bool recoverable;
	uint32_t mended;               /* repaired rules of a gate that is not served */
	char trouble[STATE_ERROR_MAX]; /* why it cannot be served at all, or "" */
};

/* A recovery turn in use. */
struct recovery_entry {
	struct attachment *attachment; /* NULL: none */
	int64_t since_ms;
};

/* What is done in turns with sandboxes that have left set. */
struct recovery_queue {
	/* Makes its gate listen; attachment_knocked() follows when a client comes. A failure only
	 * means that no client waits there; the turn reports why. NULL: no gate is to listen. */
	void (*listen)(struct attachment *a);
	void (*take)(struct attachment *a); /* its turn; may free it */
	void (*finish)(struct attachments *all);
};

struct attachments {
	struct supervisor *supervisor;
	struct attachment *by_name, *by_target;
	size_t session_count;        /* sessions among those by name */
	struct attachment *prepared; /* list of those that can be claimed, the oldest first */
	size_t prepared_count;
	int state;                              /* directory of state files */
	char pins[MESSAGE_PATH_MAX + 1];        /* directory of the gates' namespaces */
	char config_path[MESSAGE_PATH_MAX + 1]; /* empty: none */
	char audit_path[MESSAGE_PATH_MAX + 1];
	int64_t started_ms;
	uint64_t generation; /* of the configuration */
	bool stopping;
	bool held;             /* an upgrade is in progress: nothing changes by itself */
	bool damaged;          /* a state file could not be read */
	struct config_ask ask; /* the endpoints that hooks.c tells */
	struct hooks *hooks;   /* owned; NULL: nothing was told yet */
	struct revocations revocations;
	bool revocations_damaged;
	struct bundles bundles;
	struct policy_watch *policy_watch; /* owned; NULL: policies are not watched */
	struct reload_all *reload_all;     /* in progress, or NULL */
	struct attach_deferred *deferred;  /* list of requests waiting for their policy's files */
	size_t readings;                   /* recovery: policies that are being read */
	bool recovering;                   /* recovery_queue_run() is in progress */
	struct loop_timer recovery;
	struct recovery_queue turns;
	struct attachment *to_listen; /* the next whose gate is to listen; NULL: all do */
	struct attachment *knocked;   /* those that wait for their turn and have a waiting client */
	struct recovery_entry turn[RECOVERY_TURNS];
	void (*on_recovered)(struct attachments *all);
	void (*on_empty)(struct attachments *all); /* stopping, and the last one is gone */
	/* A sandbox's state has changed. May be NULL. */
	void (*on_changed)(struct attachments *all);
	/* Takeover from a live daemon: gets what that daemon has of the sandbox, before it is
	 * adopted; *packets is -1 if there is nothing. NULL: there is no such daemon. */
	void (*take)(struct attachments *all, uint64_t id, int *packets);
};

struct attachment *attachment_new(struct attachments *all);
/* Frees it and its sandbox. Pending operations are answered. */
void attachment_free(struct attachment *a);
/* Records the policy, identity and generation under which its sandbox is served from now on. */
void attachment_take_over(struct attachment *a);
/* Enters a into the registry, under its record's name. Returns 0, or -ENOMEM: then it can only be
 * freed. */
int attachment_enter(struct attachment *a);
/* target.c. */
struct attach_target attach_target_of_netns(const struct stat *st);
struct attach_target attach_target_of_interface(const char *interface);
/* Returns the attachment with this target, or NULL. */
struct attachment *attachments_at(
        const struct attachments *all, const struct attach_target *target);
/* Sets its target. No effect if it has one. Returns 0 or -ENOMEM. */
int attachment_settle_at(struct attachment *a, const struct attach_target *target);
/* For a recovered attachment: finds and sets its target, so that nobody else attaches it. */
void attachment_find_target(struct attachment *a);
void attachment_leave_target(struct attachment *a);
/* True if it was attached by the path of a namespace, and the path leads to no namespace any more,
 * or to another one than when the target was found. Processes may still be inside the old one, so
 * use this only if the link is gone too. */
bool attachment_netns_is_gone(const struct attachment *a);
/* Returns 0 or -errno. */
int attachment_save(struct attachment *a);
void attachment_pin(const struct attachments *all, uint64_t id, char out[MESSAGE_PATH_MAX + 1]);
/* Watches expiry and process. Returns 0 or -errno; -ESRCH: the process is gone. */
int attachment_watch(struct attachment *a);
/* True if it was attached by a process and that process has ended. */
bool attachment_process_is_gone(const struct attachment *a);
/* Watches another process in io, beside the one so far. Returns 0 or -errno. No callback comes
 * before attachment_follow_watch() or loop_io_close(), if that is in the same turn of the loop. */
int attachment_watch_beside(const struct attachment *a, struct loop_io *io, int pidfd);
/* What io watches takes the place of the process so far; its descriptor is a's from now on. */
void attachment_follow_watch(struct attachment *a, struct loop_io *io);
/* load.c: loads policy and configuration with the rights of identity; files of the policy that may
 * not be local come from files (settings.h). Returns NULL with *status. ATTACH_INVALID: the policy,
 * or what it names, is wrong; ATTACH_FAILED: the daemon's own configuration is wrong, or there is
 * no memory; *text (malloc'd) is then all that is wrong, or NULL. ATTACH_BUSY: a child has to read
 * the policy first (attachments_read()); if one has, then again. */
struct generation *attachment_load(const struct attachment *a, const char *policy,
        const struct identity *identity, const struct settings_files *files,
        enum attach_status *status, char **text);
/* Returns the options of such a load; room holds the variables. */
struct policy_load_options attach_load_options(bool observe, const struct attach_pairs *vars,
        struct policy_variable room[ATTACH_VARS_MAX]);
/* read.c: a child reads the files of a policy, in ATTACH_READ_MS at most. done is called once, from
 * the loop: with files, which the callee frees; or with NULL, a status and what is wrong. Returns
 * NULL with the same if it cannot be started. */
struct attach_reading;
struct attach_reading *attachments_read(struct attachments *all, const char *policy,
        const struct identity *identity, const struct policy_load_options *options,
        void (*done)(void *context, struct settings_files *files, enum attach_status status,
                const char *text),
        void *context, enum attach_status *status, char text[ATTACH_READ_TEXT_MAX]);
/* done is not called. NULL is allowed. */
void attach_reading_cancel(struct attach_reading *reading);
/* attach.c: attachments_attach() with files that a child has read. */
void attachments_attach_with(struct attachments *all, const struct attach_request *request,
        const struct settings_files *files, attach_done done, void *context);
/* deferred.c: repeats the request when a child has read its policy. */
void attachments_attach_later(struct attachments *all, const struct attach_request *request,
        attach_done done, void *context);
/* Drops all of these; answers them with ATTACH_BUSY, or (at the very end) not at all. */
void attachments_refuse_deferred(struct attachments *all, bool answered);
/* reload.c: ends a reload that waits for its files, and answers it. */
void attachment_refuse_later(struct attachment *a);
/* Returns the sentence for such a status. */
const char *attach_load_failure(enum attach_status status);
/* Loads the configuration. Returns what is wrong with it (malloc'd), or NULL. out: NULL, or filled
 * in if nothing is wrong; the caller ends it. NULL means a reload: the CA that the configuration
 * names is looked at, which no single sandbox is reason for. */
char *attachments_config_objection(struct attachments *all, struct config *out);
/* prepared.c: watches the gate of a prepared attachment. Returns 0 or -errno. */
int attachment_watch_prepared(struct attachment *a);
/* Its turn after a restart: adopts its gate, and it can be claimed; or removes and frees it. */
void attachment_recover_prepared(struct attachment *a);
/* After a restart: removes those of the prepared that a claim has taken, where the daemon died
 * between the claim's two files. */
void attachments_drop_claimed(struct attachments *all);
/* It cannot be claimed any more. Allowed on any attachment. */
void attachment_leave_prepared(struct attachment *a);
/* From now on it can be claimed; answers. */
void attachment_answer_prepared(struct attachment *a, attach_done done, void *context);
/* claim.c: answers a claim; done NULL: those that wait for it. */
void attachment_answer_claim(struct attachment *a, attach_done done, void *context);
/* watch.c: from now on reloads policies that change on disk. Returns 0 or -errno. */
int attachments_watch_policies(struct attachments *all);
/* Watches the files of its current generation instead of those before. */
void attachment_watch_policy(struct attachment *a);
void attachment_forget_policy(struct attachment *a);
/* Returns true for an interface that has expired. */
bool attachment_is_over(const struct attachment *a);
/* Returns true if it was not recovered or taken back yet: no operation is possible now. */
bool attachment_is_left(const struct attachment *a);
/* Returns the status of a failure, depending on its kind. */
enum attach_status attachment_fault_status(const struct sandbox *s);
/* Returns the status that goes with its trouble: a conflict if it has expired, as was requested;
 * otherwise a failure. */
enum attach_status attachment_trouble(const struct attachment *a);
/* pending.c: done is called when there is an answer. Returns false if too many operations are
 * pending, and done was called. */
bool attachment_wait(struct attachment *a, enum attach_operation operation, uint64_t id,
        attach_done done, void *context);
/* Answers all operations that wait for this. */
void attachment_answer(struct attachment *a, enum attach_operation operation, uint64_t id,
        const struct attach_result *result);
/* Answers all pending operations: the sandbox was detached or has ended, or the daemon stops. */
void attachment_answer_all(struct attachment *a);
/* Answers with one sentence. */
void attach_refuse(attach_done done, void *context, enum attach_status status, const char *format,
        ...) __attribute__((format(printf, 4, 5)));

/* end.c: ends it for good, which may free it; shut: an interface stays shut. */
void attachment_detach(struct attachment *a, bool shut);
/* Waits for a detach that waits for the kernel, and frees a. No effect if none does. */
void attachment_detach_now(struct attachment *a);
/* Does what is left when its sandbox has ended, or it has none. May free it, at once or later. */
void attachment_end(struct attachment *a);
/* Removes gate, pin and state, once. This waits for the kernel: while other sandboxes are served,
 * use attachment_detach(). */
void attachment_undo(struct attachment *a);
/* Turns it into an expired attachment: no sandbox; its interface is shut; it waits to be
 * detached. */
void attachment_settle_shut(struct attachment *a);

/* socket.c, ATTACH_LISTEN. Makes the socket anew, unless the daemon before has given it (in
 * shape->packets): then clients that hold its file go on. Returns 0, or -errno with shape->why. */
int attachment_adopt_socket(struct attachment *a, struct gate *shape);
/* Removes the socket's file. One that was never made is not its own: what lies at its path stays.
 * Without a sandbox, the state that an earlier daemon has left says that it may be. */
void attachment_remove_socket(const struct attachment *a);

/* Answers the pending statistics with this id. worker may be NULL. */
void attachment_tell_stats(
        struct attachment *a, uint64_t id, const struct message_worker_stats *worker);

/* credentials.c: handle that a worker has done what was asked, and the keeper's answer (m NULL: the
 * keeper is gone). */
void attachment_credentials_operated(struct attachment *a, const struct instance *i, uint64_t id,
        const struct message_worker_credentials *m);
void attachment_credentials_answered(
        struct attachment *a, uint64_t id, const struct message_keeper_credentials *m);
/* Call when the sandbox's state has changed: goes on with operations that wait for a worker. */
void attachment_credentials_changed(struct attachment *a);
/* Frees the operations under way; nobody waits for them any more. */
void attachment_credentials_end(struct attachment *a);

/* operations.c: returns the sandbox if it can be operated on; else answers why not, and returns
 * NULL. */
struct attachment *attachments_find_served(
        struct attachments *all, const char *name, attach_done done, void *context);

/* Ends workers and frees the sandboxes, which stay closed; on_empty follows, at once or later. */
void attachments_stop(struct attachments *all);
void attachments_close(struct attachments *all);

#endif
