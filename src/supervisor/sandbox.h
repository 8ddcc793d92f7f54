/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox: the life of one sandbox, from its policy to its summary. */
#ifndef SUPERVISOR_SANDBOX_H
#define SUPERVISOR_SANDBOX_H

#include <uthash.h>

#include "vethguard/policy/placeholder.h"
#include "supervisor/gate.h"
#include "supervisor/role.h"
#include "supervisor/settings.h"
#include "supervisor/sources.h"

#define SANDBOX_FAILURE_MAX 2048
#define SANDBOX_START_MS 10000 /* from the first message to the worker being ready */
#define SANDBOX_STOP_MS 2000   /* for the worker to finish what is under way */
#define SANDBOX_FENCE_MS 10000 /* between two looks at the fence; one takes half a millisecond */
#define SANDBOX_SUM_MS 10000   /* for the recorder to drain the ring */

enum sandbox_state {
	SANDBOX_NEW,       /* its worker is being started; nothing is known of it yet */
	SANDBOX_VARIABLES, /* policy loaded; the owner was asked for the values of env: sources */
	SANDBOX_STARTING,  /* gate made, roles told; waiting for root certificate, recorder and
	                      worker */
	SANDBOX_SERVING,
	SANDBOX_STOPPING, /* waiting for the worker to be gone */
	SANDBOX_SUMMING,  /* waiting for the recorder to have written everything */
	SANDBOX_ENDED,    /* the owner frees it */
	SANDBOX_STATE_COUNT
};

enum sandbox_event {
	SANDBOX_START,    /* settings and paths are filled in */
	SANDBOX_GIVEN,    /* variables are filled in */
	SANDBOX_PROGRESS, /* something that a start waits for has come */
	SANDBOX_END,      /* asked to end */
	SANDBOX_FAIL,     /* failure is filled in */
	SANDBOX_WORKER_GONE,
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
};

struct sandbox {
	struct supervisor *supervisor;
	struct sandbox_owner *owner;
	uint64_t id;
	enum sandbox_state state;
	UT_hash_handle hh;
	struct loop_timer timer;
	struct loop_timer fence; /* while it serves */

	/* Filled in by the owner before SANDBOX_START. */
	char name[MESSAGE_NAME_MAX + 1];
	char audit_path[MESSAGE_PATH_MAX + 1];
	bool audit_own; /* the path is the configuration's, not the session's */
	int netns;      /* of the sandbox; closed once it is linked */
	struct settings settings;
	struct sources sources;

	struct role worker;
	int names;   /* memory of its synthetic names, handed from worker to worker; -1: none yet */
	int ring[3]; /* of its worker's events: kept for a second recorder; -1: none yet */
	struct told *told; /* own events that the recorder has not said to be in the log */
	struct gate gate;
	uint64_t keeper_request, worker_request, summary_request; /* 0: none under way */
	bool keeper_ready, worker_ready, recording;
	char root_pem[MESSAGE_PEM_MAX + 1];
	char placeholders[POLICY_CREDENTIALS_MAX][PLACEHOLDER_MAX + 1];
	char failure[SANDBOX_FAILURE_MAX];
	const char *
	        refusal; /* a longer text in place of failure, during SANDBOX_FAIL only; borrowed */
};

/* A new sandbox in the registry with its worker being started. NULL with errno. */
struct sandbox *sandbox_new(struct supervisor *supervisor, struct sandbox_owner *owner);
void sandbox_free(struct sandbox *s);
void sandbox_event(struct sandbox *s, enum sandbox_event event);
/* SANDBOX_FAIL with a text. */
void sandbox_fail(struct sandbox *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* SANDBOX_FAIL with a text of the caller's, of any length (all diagnostics of a policy). */
void sandbox_refuse(struct sandbox *s, const char *text);

/* sandbox_start.c: gate and messages to all roles. 0, or -errno with s->failure. */
int sandbox_set_up(struct sandbox *s);

#endif
