/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attachments: the sandboxes that the daemon guards for others, by name, and the operations on
 * them. Operations on what waits for a person, on sessions and on signed bundles are in ask/asks.h,
 * session/session.h and bundles/bundles.h. The control server uses these four headers and nothing
 * else of the supervisor.
 *
 * Every operation answers exactly once through its attach_done: at once, from inside the call, if
 * nothing has to be waited for (usually errors of the request), otherwise later from the loop. What
 * the result points to is valid during the callback only. An operation cannot be canceled: a caller
 * that has gone ignores the answer. Pending operations are answered with ATTACH_CONFLICT when their
 * sandbox ends, and with ATTACH_BUSY when the daemon does.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_ATTACH_ATTACHMENTS_H
#define VETHGUARD_SRC_SUPERVISOR_ATTACH_ATTACHMENTS_H

#include <net/if.h>

#include "vethguard/fence/fence.h"
#include "vethguard/ipc/quotas.h"
#include "vethguard/ipc/team.h"
#include "vethguard/policy/limits.h"
#include "vethguard/policy/load.h"
#include "vethguard/wire/message.h"
#include "supervisor/os/listen_socket.h"
#include "supervisor/os/session_token.h"

/* At a time. The recorder has room for some more (2048 streams: one for the daemon itself, one for
 * each orphan), and the keeper (4096 workers) for two workers of each. */
#define ATTACHMENTS_MAX 2000 /* besides sessions, which take little while they are idle */
#define SESSIONS_MAX 6000
#define ATTACH_LABELS_MAX 32 /* of one sandbox */
/* Letters, digits, '.', '_', '-', '/', beginning with a letter or digit. */
#define ATTACH_LABEL_KEY_MAX 63
#define ATTACH_LABEL_VALUE_MAX 255           /* bytes of UTF-8 without control characters */
#define ATTACH_VARS_MAX POLICY_VARIABLES_MAX /* of one sandbox */
/* Letters, digits, '_', beginning with a letter. */
#define ATTACH_VAR_KEY_MAX POLICY_VARIABLE_NAME_MAX
#define ATTACH_VAR_VALUE_MAX POLICY_VARIABLE_VALUE_MAX
#define ATTACH_TTL_MAX_S 31622400u /* 366 days */
#define ATTACH_REASON_MAX 512      /* bytes: why a sandbox is paused */
#define ATTACH_ENGINE_MAX 31       /* "docker", "podman" */
#define ATTACH_CONTAINER_MAX 255   /* a container's id or name */

enum attach_kind {
	ATTACH_INTERFACE,
	ATTACH_NETNS,
	ATTACH_PID,
	ATTACH_LISTEN,
	ATTACH_SESSION, /* its connections come through the gateway */
	ATTACH_KIND_COUNT
};

struct attach_pair {
	const char *key, *value;
};
struct attach_pairs {
	size_t count;
	const struct attach_pair *items;
};

/* The container that a pid stands for, as the engine named it: only displayed. Empty: none. */
struct attach_container {
	char engine[ATTACH_ENGINE_MAX + 1];
	char id[ATTACH_CONTAINER_MAX + 1];
	char name[ATTACH_CONTAINER_MAX + 1];
};

enum attach_purpose {
	ATTACH_TO_GUARD, /* guard it now */
	/* Make the gate of a namespace, which refuses everything. No policy, labels, variables. */
	ATTACH_TO_PREPARE,
	ATTACH_TO_CLAIM /* guard a namespace that is prepared */
};

/* A request, borrowed for the call. attachments_attach() checks the limits and answers
 * ATTACH_INVALID. */
struct attach_request {
	const char *name; /* NULL or empty: generated ("att-1f2e3d4c") */
	enum attach_purpose purpose;
	enum attach_kind kind; /* to prepare and to claim: ATTACH_NETNS */
	const char *interface; /* ATTACH_INTERFACE: in the host's namespace */
	/* ATTACH_NETNS: absolute path of an nsfs file; opened with the caller's rights. To claim,
	 * it may be NULL: the one that has been prepared for longest. */
	const char *netns;
	/* ATTACH_PID: in the daemon's pid namespace. ATTACH_NETNS: the sandbox ends when this
	 * process ends; 0: when it is detached. */
	pid_t pid;
	uint64_t pid_start_time;      /* of pid: field 22 of /proc/PID/stat; 0: not compared */
	struct listen_socket listen;  /* ATTACH_LISTEN: what is to be made */
	struct session_token session; /* ATTACH_SESSION */
	struct ip address4, address6; /* of the sandbox; family 0: chosen */
	/* ATTACH_INTERFACE: of the sandbox's networks, whose first address is the gate's where the
	 * interface has none; 0: not given. */
	uint8_t bits4, bits6;
	const char *policy; /* absolute path; opened with the caller's rights */
	bool observe;
	struct attach_pairs labels, vars;
	uint32_t ttl_s; /* 0: until detached */
	struct attach_container container;
	bool same_addresses; /* to prepare: the link's MACs are those of all that are made so */
	bool wait;           /* to claim: answer when it is served */
	/* To claim: the sandbox whose synthetic names and placeholders it keeps, because what runs
	 * in it is a clone of what ran there; NULL: none. */
	const char *like;
	/* From the peer's credentials; its rights open files and run exec: sources. */
	struct identity caller;
	pid_t caller_pid; /* for the log */
};

enum attach_state {
	ATTACH_PREPARED, /* its gate refuses everything; nobody has claimed it */
	ATTACH_STARTING,
	ATTACH_SERVING,
	ATTACH_AWAY, /* its interface is absent; it is served when that comes back */
	ATTACH_PAUSED,
	ATTACH_RESTARTING,
	ATTACH_FAILED_CLOSED,
	ATTACH_DETACHING,
	ATTACH_STATE_COUNT
};
/* "starting", "serving", ..., "failed", "detaching". */
const char *attach_state_name(enum attach_state state);
const char *attach_kind_name(
        enum attach_kind kind); /* "interface", "netns", "pid", "listen", "session" */

/* The visible state of an attachment. Filled in by attachment_view(); borrowed until the loop's
 * next turn. */
struct attachment_view {
	const char *name;
	uint64_t id; /* as in the audit log */
	enum attach_state state;
	bool paused;        /* also if it has failed: it will be paused when it is served again */
	const char *reason; /* of AWAY, PAUSED and FAILED: one sentence; else empty */
	enum attach_kind kind;
	/* As requested; empty if the kind has none. */
	const char *interface, *netns, *listen;
	const struct session_token *session; /* NULL: not a session */
	pid_t pid;                           /* 0: none */
	uint64_t pid_start_time;             /* start time of that process */
	const struct attach_container *container;
	struct ip gate4, gate6, sandbox4, sandbox6; /* family 0: none */
	uint16_t proxy_port; /* of the explicit proxy on the gate's addresses; 0: a Unix socket */
	const char *policy_path;
	struct slice policy_name, policy_fingerprint;
	const struct policy *policy; /* in force, for its credentials; NULL: none */
	uint64_t generation;         /* from 1; one more with each policy that came into force */
	bool observe;
	struct attach_pairs labels, vars;
	uid_t uid; /* who attached it */
	gid_t gid;
	int64_t created_ms, expires_ms;  /* Unix time; expires 0: never */
	bool claimed;                    /* it was prepared */
	bool same_addresses;             /* see struct attach_request */
	pid_t worker_pid;                /* 0: no worker runs */
	pid_t further[TEAM_WORKERS_MAX]; /* workers that serve beside it */
	size_t further_count;
	unsigned retired;  /* workers of earlier generations that finish their connections */
	uint32_t restarts; /* workers that died and were replaced */
	uint32_t mended;   /* times the fence was found changed and was repaired */
	bool has_resolver; /* see struct gate */
	const char *notes; /* on the policy and its variables, a line each (struct settings) */
	/* Fingerprint of the CA that signed its worker's intermediate (MESSAGE_FINGERPRINT_BYTES);
	 * NULL: none yet. */
	const uint8_t *ca;
	bool brief; /* for displaying: labels, vars and paths are left out */
};

struct message_worker_stats;
struct attachment;
struct attachments; /* the registry of a daemon */

enum attach_status {
	ATTACH_OK,
	ATTACH_INVALID,   /* the request, or what it names: 422 */
	ATTACH_NOT_FOUND, /* no sandbox of that name: 404 */
	ATTACH_CONFLICT,  /* its target is in use, expired or gone: 409 */
	/* Another operation on it is in progress, or a limit is reached: 503, try again. */
	ATTACH_BUSY,
	ATTACH_FAILED, /* the daemon's own fault: 500 */
	ATTACH_SOURCE, /* a credential's source gives no value: 502 */
};

/* A request that waits for a person, or what one has granted for a while. */
struct attach_ask {
	uint64_t id;
	const char *sandbox;
	bool granted, whole;
	const char *by;
	int64_t since_ms; /* the epoch */
	bool ends;        /* in left_s seconds */
	uint64_t left_s;
	const struct message_worker_ask *ask; /* NULL: a proposal */
	const struct policy_proposal *proposal;
};

/* A person's decision about it. */
struct attach_decision {
	uint64_t id;
	bool approved;
	bool lasts; /* for for_s seconds (0: without end), for what is like it, or (whole) for the
	               rule */
	bool whole;
	bool requests_only; /* proposals are not for whoever decides */
	uint32_t for_s;
	const char *reason, *by;
};
#define ATTACH_GRANT_MAX_S (31 * 86400)

/* A limit over a period, of the policy in force, and what counts against it now. */
struct attach_limit {
	struct policy_limit limit;
	struct slice rule; /* its name; empty: of the whole policy */
	uint64_t used;
	bool quota_known; /* hosts share it, and the next two are known */
	uint64_t used_by_hosts;
	enum quota_state quota;
};

struct attach_stats {
	size_t policy_limit_count;
	const struct attach_limit *policy_limits;
	struct fence_counters dropped; /* by the fence, since it was set */
	struct config_limits limits;   /* in force */
	int64_t serving_ms;            /* since the present worker took over; 0: none serves */
	uint32_t restarts, mended;
	unsigned retired;
	const struct message_worker_stats *worker; /* NULL if none answered */
};

/* What is known about a sandbox's credentials. */
struct attach_credentials {
	const struct policy *policy;
	const struct message_keeper_credentials *keeper;
	const struct message_worker_credentials
	        *worker;     /* answer of the present worker; NULL: no worker answered */
	uint32_t credential; /* the credential that was asked about; POLICY_NONE: all */
	uint64_t ended;      /* requests that a revocation has ended */
};

/* What to set inside the sandbox. */
struct attach_env {
	size_t count;
	struct {
		struct slice name, value; /* a credential's variable and its placeholder */
	} items[MESSAGE_ENV_MAX];
	const char *root_pem;   /* the CA that the sandbox is to trust */
	struct ip gate4, gate6; /* name server and explicit proxy */
	uint16_t proxy_port;
	const struct config_gateway *gateway; /* for a session: its gateway; otherwise NULL */
};

/* What is left of a sandbox that has ended: all false. */
struct attach_traces {
	bool gate;    /* the file that keeps its gate, and with it rules and link */
	bool names;   /* its synthetic names */
	bool state;   /* its state file: seed of the placeholders, labels, variables */
	bool workers; /* a process of it, and with that its connections and intermediate CA */
};

struct attach_result {
	enum attach_status status;
	const char *text; /* one sentence if status is not ATTACH_OK, else empty */
	/* NULL, or lines "file:line:column: error: ..." of a policy or configuration. */
	const char *diagnostics;
	/* attach, reload, pause, resume, env, stats; NULL if there is none. */
	struct attachment *attachment;
	/* detach: what was recorded; NULL if the recorder did not tell. */
	const struct message_summary *summary;
	const struct attach_traces *traces; /* detach */
	/* reload, a proposal: what changes for the policy's users, several lines; NULL: nothing to
	 * compare. */
	const char *diff;
	size_t reloaded, failed; /* reload all: how many */
	/* reload all, ATTACH_OK: "NAME: what is probably not meant", a line each; else NULL. */
	const char *warnings;
	const struct attach_env *env;
	const struct attach_stats *stats;
	const struct attach_credentials *credentials;
};

typedef void (*attach_done)(void *context, const struct attach_result *result);

/* Answers when the sandbox is served; its fence is set before that. A request to prepare: when the
 * gate is made. A request to claim: when clients wait at the gate, or (request->wait) are served;
 * ATTACH_BUSY: none is prepared. A claim that is refused leaves the prepared one as it is. */
void attachments_attach(struct attachments *all, const struct attach_request *request,
        attach_done done, void *context);
/* Workers finish within SANDBOX_STOP_MS, then link, fence and state are removed. */
void attachments_detach(struct attachments *all, const char *name, attach_done done, void *context);
/* The same for a sandbox that was claimed; others: ATTACH_CONFLICT. Its namespace has no link
 * afterwards and can be prepared again. */
void attachments_give_back(
        struct attachments *all, const char *name, attach_done done, void *context);
/* Loads policy with the caller's rights, or if it is NULL the current file with the rights of the
 * user who named it, and puts it in force. One at a time for each sandbox, else ATTACH_BUSY. A file
 * with a fault changes nothing. */
void attachments_reload(struct attachments *all, const char *name, const char *policy,
        const struct identity *caller, attach_done done, void *context);
/* Reloads the configuration and every sandbox's policy, each with the rights of the user who
 * attached it. ATTACH_OK if all went well; otherwise text names the first that did not, and
 * diagnostics has all. A configuration with a fault changes nothing. */
void attachments_reload_all(struct attachments *all, attach_done done, void *context);
/* Refuses everything at once and closes live connections. Answers when every worker that had work
 * to do is gone, after SANDBOX_QUIESCE_MS at most, and a new one tells clients why. Pausing a
 * paused sandbox replaces the reason (NULL: a default one). A failed sandbox is paused when it is
 * served again. */
void attachments_pause(struct attachments *all, const char *name, const char *reason,
        attach_done done, void *context);
/* Ends the pause. ATTACH_CONFLICT: it has failed, so nothing would serve it; nothing changes. */
void attachments_resume(struct attachments *all, const char *name, attach_done done, void *context);
/* A sandbox of kind ATTACH_NETNS ends from now on when this process ends, and no longer when an
 * earlier one does. start_time: as in struct attach_request. If it fails, nothing changes. */
void attachments_follow(struct attachments *all, const char *name, pid_t pid, uint64_t start_time,
        attach_done done, void *context);
void attachments_env(struct attachments *all, const char *name, attach_done done, void *context);
void attachments_stats(struct attachments *all, const char *name, attach_done done, void *context);

/* Looks at a sandbox's credentials, or checks, rotates or revokes the one with this name. LOOK:
 * name is NULL. ROTATE is answered when every worker uses the new value or will ask for it; REVOKE
 * when no worker uses the value and every request with it has ended. A revocation outlives workers
 * and the daemon; ROTATE and a reload of this sandbox end it. ATTACH_SOURCE: text says why the
 * source gave no value. */
void attachments_credentials(struct attachments *all, const char *name,
        enum message_credential_what what, const char *credential, attach_done done, void *context);

/* Returns NULL if there is no such sandbox. Borrowed until the loop's next turn. */
struct attachment *attachments_find(const struct attachments *all, const char *name);
size_t attachments_count(const struct attachments *all);
/* Calls what in the order of their creation, until it returns false. what may not change the
 * registry. */
void attachments_for_each(
        struct attachments *all, bool (*what)(void *context, struct attachment *a), void *context);
void attachment_view(struct attachment *a, struct attachment_view *out);
/* sources_examine() for a sandbox that is served. */
void attachment_verify(
        const struct attachment *a, void (*tell)(void *context, const char *fault), void *context);

/* One of the signed bundles of the configuration. All texts are borrowed until the loop's next
 * turn. */
struct signed_bundle;
struct attach_bundle {
	const char *name, *source;
	const struct signed_bundle *active; /* in force; NULL: none */
	uint64_t highest;                   /* serial that was ever taken; 0: none */
	int64_t taken_ms, looked_ms;        /* Unix times; 0: not yet */
	const char *fault;                  /* kind of the fault that was found last; NULL: none */
	const char *why;                    /* a sentence, if there is a fault */
};

/* The state of the daemon itself, for /v1/status. */
struct attachments_status {
	pid_t pid, keeper_pid, recorder_pid; /* 0: does not run at the moment */
	int64_t started_ms;                  /* Unix time */
	const char *audit_path, *config_path;
	bool recording; /* the log can be written */
	bool ready;     /* all sandboxes of an earlier daemon are recovered */
	size_t count, serving, restarting, failed; /* without prepared ones */
	size_t prepared;
	size_t spare_workers;
	uint64_t generation;      /* of the configuration, from 1 */
	const char *quota_server; /* of budgets that hosts share; NULL: none is configured */
	bool quota_answers;
	const char *quota_problem; /* why it does not answer, or empty */
};
void attachments_status(struct attachments *all, struct attachments_status *out);

#endif
