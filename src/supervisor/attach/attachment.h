/* SPDX-License-Identifier: Apache-2.0 */
/* attachment: one sandbox of the daemon's and the registry of all, as the files of attachments.h
 * see them. */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_ATTACHMENT_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_ATTACHMENT_H

#include <sys/stat.h>

#include "supervisor/gate/unlink.h"
#include "supervisor/config/policy_watch.h"
#include "supervisor/daemon/state_file.h"
#include "supervisor/supervisor.h"

#define ATTACH_FRESHNESS_MS 2000 /* for a worker to tell its figures */
#define ATTACH_RELOADS_MAX 8     /* at a time, of a reload of all */
#define ATTACH_PENDING_MAX 64    /* operations under way on one sandbox */
#define ATTACH_GATES 8           /* gates in store */
#define ATTACH_SPARES 4          /* workers in store */
#define RECOVERY_TURNS 8         /* sandboxes that are taken over, or back, at a time */
#define RECOVERY_TURNS_QUIET 4   /* of those, where nobody waits */
#define RECOVERY_READINGS 4      /* policies that children read at a time after a restart */
#define ATTACH_READ_MS 5000      /* for the files of a policy that may not be local */
#define ATTACH_READ_TEXT_MAX 1024
#define ATTACH_RECOVERING "the daemon is taking its sandboxes over: try again"
#define ATTACH_GROUPS_RULE \
	"who asks may be in %d groups at most: setpriv(1) --groups asks with fewer"

/* What a sandbox is attached by, which no two have at a time. All of its bytes are compared: made
 * of zeros. */
struct attach_target {
	dev_t netns_device; /* of the namespace; 0 where it is an interface, or was not found */
	ino_t netns_inode;
	char interface[IFNAMSIZ]; /* of the host; empty where it is a namespace */
};

enum attach_operation {
	OPERATION_ATTACH,
	OPERATION_DETACH,
	OPERATION_RELOAD,
	OPERATION_PAUSE,
	OPERATION_STATS
};

/* An operation that waits for its answer. */
struct attach_pending {
	struct attach_pending *prev, *next;
	struct attachment *attachment;
	enum attach_operation operation;
	uint64_t id; /* STATS: of the question */
	struct loop_timer patience;
	attach_done done;
	void *context;
};

struct attachment {
	struct attachments *all;
	struct sandbox_owner owner;
	struct sandbox *sandbox;
	struct attach_record record;
	UT_hash_handle hh; /* by name, in the order of their making */
	struct attach_pending *pending;
	struct loop_alarm expiry;
	int pidfd; /* of the process it was attached by, -1: none */
	struct loop_io process;
	char *new_policy;               /* owned: of a reload under way that names one, else NULL */
	struct attach_later *later;     /* a reload that waits for its files; NULL: none */
	struct attach_reading *reading; /* taking over: its policy is being read */
	bool slow;                      /* taking over: a child has to read it */
	struct gate gate;               /* where there is no sandbox: its gate cannot be served */
	struct attach_target target;    /* all zeros: not known */
	UT_hash_handle at_target;
	bool detaching;                   /* for good: gate and state go with it */
	bool undone;                      /* they are gone */
	struct gate_unlinking *unlinking; /* the link is being taken away; NULL: it is not */
	bool summed;
	struct message_summary summary; /* where summed; without destinations */
	bool left; /* its turn to be taken over, or back, is still to come (daemon/recovery_queue.c)
	            */
	struct attachment *knock_prev, *knock_next; /* left, and somebody waits there */
	bool found_mended;                          /* when it was taken over */
	bool told;                                  /* taking over: what became of it */
	bool shut;                     /* nobody asked for the end, so an interface stays shut */
	uint32_t mended;               /* rules of a gate that nobody serves, so far */
	char trouble[STATE_ERROR_MAX]; /* why it cannot be served at all, or "" */
};

/* One that was just taken over, or back. */
struct recovery_entry {
	struct attachment *attachment; /* NULL: none */
	int64_t since_ms;
};

/* What is done in turns with those that are left. */
struct recovery_queue {
	/* Its gate listens from now on, and attachment_knocked() follows when somebody comes; where
	 * it cannot, nobody waits there, and its turn tells why. NULL: none is to. */
	void (*listen)(struct attachment *a);
	void (*take)(struct attachment *a); /* its turn; may free it */
	void (*finish)(struct attachments *all);
};

struct attachments {
	struct supervisor *supervisor;
	struct attachment *by_name, *by_target;
	int state;                              /* directory of state files */
	char pins[MESSAGE_PATH_MAX + 1];        /* directory of the gates' namespaces */
	char config_path[MESSAGE_PATH_MAX + 1]; /* empty: none */
	char audit_path[MESSAGE_PATH_MAX + 1];
	int64_t started_ms;
	uint64_t generation; /* of the configuration */
	bool stopping;
	bool held;    /* an upgrade is under way: nothing changes of its own accord */
	bool damaged; /* a state file could not be read */
	struct policy_watch *policy_watch;  /* owned; NULL: policies are not watched */
	struct reload_all *reload_all;      /* under way, or NULL */
	struct attach_deferred *deferred;   /* list of those that wait for their policy's files */
	size_t readings;                    /* taking over: policies that are being read */
	char root_pem[MESSAGE_PEM_MAX + 1]; /* as last published */
	int ca;
	bool recovering; /* recovery_queue_run() is under way */
	struct loop_timer recovery;
	struct recovery_queue turns;
	struct attachment *to_listen; /* the next one whose gate is to listen; NULL: all do */
	struct attachment *knocked;   /* list of those that are left where somebody waits */
	struct recovery_entry turn[RECOVERY_TURNS];
	void (*on_recovered)(struct attachments *all);
	void (*on_empty)(struct attachments *all); /* stopping, and the last one is gone */
	/* Or NULL: some sandbox's state has changed. */
	void (*on_changed)(struct attachments *all);
	/* Taking over from a daemon that lives: what it has of the sandbox, before that is adopted;
	 * -1 each where there is nothing. NULL: there is no such daemon. */
	void (*take)(struct attachments *all, uint64_t id, int *packets);
};

struct attachment *attachment_new(struct attachments *all);
/* Gives its sandbox up as well. Whoever waits is answered. */
void attachment_free(struct attachment *a);
/* Into the registry, under its record's name. 0 or -ENOMEM: then it can only be freed. */
int attachment_enter(struct attachment *a);
/* attach/target.c. */
struct attach_target attach_target_of_netns(const struct stat *st);
struct attach_target attach_target_of_interface(const char *interface);
/* Who is there, or NULL. */
struct attachment *attachments_at(
        const struct attachments *all, const struct attach_target *target);
/* From now on it is there. Harmless where it is known to be somewhere. 0 or -ENOMEM. */
int attachment_settle_at(struct attachment *a, const struct attach_target *target);
/* Of one that was found again: what it is attached by, so that nobody else attaches it. */
void attachment_find_target(struct attachment *a);
void attachment_leave_target(struct attachment *a);
/* 0 or -errno. */
int attachment_save(struct attachment *a);
void attachment_pin(const struct attachments *all, uint64_t id, char out[MESSAGE_PATH_MAX + 1]);
/* Watches expiry and process. 0 or -errno; -ESRCH the process is gone. */
int attachment_watch(struct attachment *a);
/* load.c: loads policy and configuration with the rights of identity; files of the policy
 * that may not be local come from files (settings.h). NULL with *status, ATTACH_INVALID: the
 * policy, or what it names, is wrong; ATTACH_FAILED: the daemon's own configuration is, or there is
 * no memory; and *text (malloc'd): all that is wrong, or NULL; ATTACH_BUSY: a child has to read the
 * policy first (attachments_read), or where one has, once more. */
struct generation *attachment_load(const struct attachment *a, const char *policy,
        const struct identity *identity, const struct settings_files *files,
        enum attach_status *status, char **text);
/* What such a load goes by; room holds the variables. */
struct policy_load_options attach_load_options(bool observe, const struct attach_pairs *vars,
        struct policy_variable room[ATTACH_VARS_MAX]);
/* read.c: the files of a policy, read by a child, ATTACH_READ_MS at most. done comes once,
 * from the loop: files, the callee's to free; or NULL with a status and what is wrong. NULL: it
 * cannot be started, with the same. */
struct attach_reading;
struct attach_reading *attachments_read(struct attachments *all, const char *policy,
        const struct identity *identity, const struct policy_load_options *options,
        void (*done)(void *context, struct settings_files *files, enum attach_status status,
                const char *text),
        void *context, enum attach_status *status, char text[ATTACH_READ_TEXT_MAX]);
/* done does not come. NULL is harmless. */
void attach_reading_cancel(struct attach_reading *reading);
/* attach.c: attachments_attach(), with the files that a child has read. */
void attachments_attach_with(struct attachments *all, const struct attach_request *request,
        const struct settings_files *files, attach_done done, void *context);
/* attach/deferred.c: the request once more, when a child has read its policy. */
void attachments_attach_later(struct attachments *all, const struct attach_request *request,
        attach_done done, void *context);
/* Those that still wait are answered with ATTACH_BUSY; or (at the very end) not at all. */
void attachments_refuse_deferred(struct attachments *all, bool answered);
/* reload.c: a reload that waits for its files is over, and answered. */
void attachment_refuse_later(struct attachment *a);
/* The sentence that goes with such a status. */
const char *attach_load_failure(enum attach_status status);
/* What is wrong with the configuration just now (malloc'd), or NULL. */
char *attachments_config_objection(const struct attachments *all);
/* watch.c: from now on, policies that change on disk are reloaded. 0 or -errno. */
int attachments_watch_policies(struct attachments *all);
/* Its generation's files, in place of those before. */
void attachment_watch_policy(struct attachment *a);
void attachment_forget_policy(struct attachment *a);
/* Of an interface: its time is over. */
bool attachment_is_over(const struct attachment *a);
/* Not taken over, or back, yet: nothing can be done with it now. */
bool attachment_is_left(const struct attachment *a);
/* The status that its trouble is answered with: one whose time is over is what it was asked to be;
 * any other is ours. */
enum attach_status attachment_trouble(const struct attachment *a);
/* pending.c: calls done when there is an answer. False: too much is under way, and done was called.
 */
bool attachment_wait(struct attachment *a, enum attach_operation operation, uint64_t id,
        attach_done done, void *context);
/* Answers all that wait for this. */
void attachment_answer(struct attachment *a, enum attach_operation operation, uint64_t id,
        const struct attach_result *result);
/* Who detaches a sandbox, or stops the daemon, ends what others wait for: all that still wait are
 * told so. */
void attachment_answer_all(struct attachment *a);
/* Answers with one sentence. */
void attach_refuse(attach_done done, void *context, enum attach_status status, const char *format,
        ...) __attribute__((format(printf, 4, 5)));

/* end.c: ends it for good, which may free it; shut: an interface stays shut. */
void attachment_detach(struct attachment *a, bool shut);
/* A detach that waits for the kernel is over when it is. Nothing happens where none does. Frees a.
 */
void attachment_detach_now(struct attachment *a);
/* Its sandbox has ended, or it has none: what is left to do. May free it, at once or later. */
void attachment_end(struct attachment *a);
/* Removes gate, pin and state. Once. Whoever has others to serve ends it by attachment_detach(),
 * which does not wait for the kernel. */
void attachment_undo(struct attachment *a);
/* What is left of one whose time is over: no sandbox, its interface is shut, it waits to be
 * detached. */
void attachment_settle_shut(struct attachment *a);

/* hold.c: nobody serves it. Where it is an interface of the host, its rules are put in order
 * and watched all the same, until its gate is closed. */
void attachment_hold(struct attachment *a);
/* Answers who waits for figures. worker may be NULL. */
void attachment_tell_stats(
        struct attachment *a, uint64_t id, const struct message_worker_stats *worker);

/* recover.c: finds everything that a daemon before this one has left, and takes it over, a few at a
 * time in the loop. on_recovered follows, unless all are stopped before. 0 or -errno. */
int attachments_recover(struct attachments *all);

/* daemon/recovery_queue.c: all that are left have their turn, from the loop; finish comes last,
 * unless all are stopped before. 0 or -errno. */
int recovery_queue_run(struct attachments *all, const struct recovery_queue *turns);
/* Somebody waits at its gate. Once. */
void attachment_knocked(struct attachment *a);
void attachment_forget_knock(struct attachment *a);
/* Some sandbox's state has changed: another one may have its turn. */
void recovery_queue_end(struct attachments *all);
/* It goes. */
void recovery_queue_forget(struct attachment *a);

/* hold.c, for upgrades. */
/* Nobody waits for anything and nothing is half done. */
bool attachments_are_quiet(const struct attachments *all);
/* Holds everything still: no expiry, no end of a process, no look at a fence counts. */
void attachments_hold(struct attachments *all);
/* Ends that; what was given away is taken back, in turns. */
void attachments_release(struct attachments *all);
/* Another daemon has them all. on_empty follows when the workers have finished what they had. */
void attachments_give_up(struct attachments *all);
/* Now, with the patience that a stop has. */
void attachments_end_given(struct attachments *all);

/* Ends workers and gives sandboxes up, which stay closed; on_empty follows, at once or later. */
void attachments_stop(struct attachments *all);
void attachments_close(struct attachments *all);

#endif
