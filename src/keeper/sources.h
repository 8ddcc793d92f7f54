/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources: where credential values come from. The keeper opens nothing itself: it asks the
 * supervisor for a descriptor and reads the value from it to its end.
 */
#ifndef VETHGUARD_SRC_KEEPER_SOURCES_H
#define VETHGUARD_SRC_KEEPER_SOURCES_H

#include "keeper/jars.h"
#include "keeper/key_tokens.h"
#include "vethguard/base/secret.h"
#include "vethguard/ipc/peer.h"

/* Pending questions of one worker about one credential; an intact worker has one. */
#define SOURCE_WAITING_MAX 16
#define SOURCE_ERROR_MAX 512

/* What all sources of this keeper share. */
struct sources {
	struct loop *loop;
	struct ipc_peer *supervisor;
	uint64_t last_question;
	struct source *asked;  /* sources that wait for a descriptor */
	struct marker *marker; /* keeper/marker.h; NULL: values get no mark */
	struct key_tokens *key_tokens;
	/* Called when an operator's CHECK or ROTATE is done. error: one sentence, or NULL; without
	 * an error, mark (MESSAGE_CREDENTIAL_MARK_BYTES, or empty) and ttl_s are those of the
	 * fetched value. */
	void (*on_operated)(struct source *source, uint64_t id, const char *error,
	        struct slice mark, uint32_t ttl_s);
};

enum source_state {
	SOURCE_EMPTY,   /* no value; error and retry_ms are of the last failure */
	SOURCE_ASKED,   /* waiting for the supervisor's descriptor */
	SOURCE_READING, /* the descriptor is being read */
	SOURCE_HELD,    /* value is valid until expires_ms */
	SOURCE_STATE_COUNT
};

/* An operator's request. It waits for a fetch that is under way, and then gets a fetch of its own.
 */
struct source_operation {
	enum message_credential_what what; /* LOOK: no operation */
	uint64_t id;
	bool begun;
};

/* One credential of one sandbox. While the next value is ASKED for or READ, the one before may
 * still be held and is given out. */
struct source {
	struct sources *sources;
	enum source_state state;
	uint64_t sandbox_id, generation;
	const char *sandbox; /* its name, for the log */
	uint32_t credential;
	void *context; /* for on_answer */
	char name[MESSAGE_NAME_MAX + 1];
	char *key; /* pkcs11: URI of the key in a token that signs for it; owned; NULL: none */
	struct source_trial *trial; /* a signature by that key, which an operator waits for */
	struct keeper_jar *jar; /* a reference: the source is what logins inside gave; else NULL */
	uint32_t ttl_s;
	uint32_t told_s; /* of the value that is read: its lifetime as its service tells; 0: ttl_s
	                    counts */
	uint32_t timeout_ms;
	/* Called once per question, possibly from within source_get(). value.n 0: error says why,
	 * in one sentence. ttl_ms, renew_ms: as struct message_credential has them. */
	void (*on_answer)(struct source *source, uint64_t question, struct slice value,
	        uint32_t ttl_ms, uint32_t renew_ms, const char *error);

	struct source *prev, *next; /* in sources->asked */
	uint64_t question;          /* id of the question to the supervisor */
	struct loop_io io;
	struct loop_timer limit; /* ASKED, READING: limits both together */
	struct loop_timer end;   /* end of the held value */
	int fd;
	struct secret value;    /* the held value; empty: none */
	struct secret incoming; /* READING: the bytes so far */
	int64_t expires_ms;     /* end of the held value, clock_boot_ms(); 0: never */
	int64_t renew_ms; /* clock_boot_ms(): from then on the next value is fetched as soon as a
	                     worker wants it; 0: never */
	bool forgotten;   /* ASKED, READING: the value is for waiting requests only, and not held */
	bool revoked;     /* an operator has revoked it: no value is given out */
	bool emptied;  /* an operator has emptied the jar, and the worker, which may not know yet,
	                  has not asked since: tokens that it seals are of an earlier login, and are
	                  dropped */
	bool discard;  /* ASKED, READING: the value will be dropped: an operator checks the source
	                  while another value is held */
	bool renewing; /* ASKED: extending the held value's life would do */
	int64_t alone_ms; /* loop_now_ms(): the service wants no request before then */
	struct source_operation operation;
	int64_t retry_ms;
	char error[SOURCE_ERROR_MAX];
	uint64_t waiting[SOURCE_WAITING_MAX];
	size_t waiting_count;

	/* Shown to operators. */
	uint32_t fetches, failures, failures_in_row;
	int64_t fetched_ms, failed_ms;               /* Unix time; 0: never */
	uint8_t mark[MESSAGE_CREDENTIAL_MARK_BYTES]; /* of the held value */
};

/* The caller sets the descriptive fields (sources to on_answer); the rest is zero. */
void source_init(struct source *source);
/* Wipes the value; pending questions are not answered, nor is an operation. */
void source_fini(struct source *source);
/* Takes a token that a login has given. */
void source_seal(struct source *source, const struct jar_token *token);
/* Asks for the value under the worker's question id. renew: the worker has a value and wants the
 * next one. Returns 0, or -EBADMSG if there are more questions than an intact worker asks. */
int source_get(struct source *source, uint64_t question, bool renew);
/* Wipes the held value; it is asked for again on demand. A value that is being read is given to the
 * pending questions and not held. */
void source_forget(struct source *source);
/* source_fetch.c: handles the supervisor's answer. Takes the descriptor if it is needed. Returns 0
 * or -EBADMSG. */
int sources_on_message(struct sources *sources, struct ipc_message *message);

/* Does what an operator asks for. After CHECK and ROTATE, on_operated is called, perhaps from
 * within. Returns NULL, or why it cannot be done now. */
const char *source_operate(struct source *source, enum message_credential_what what, uint64_t id);
/* Answers the waiting operator, if there is one. */
void source_end_operation(struct source *source, const char *why);

/* source_value.c: state and held value, for the other two. Sets the state; nothing else does. */
void source_enter(struct source *source, enum source_state state);
/* Prepares the source to hold a value. Returns 0 or -ENOMEM. */
int source_value_open(struct source *source);
/* Replaces the held value with value, which was checked. lives_ms: its lifetime, 0 for ever; told:
 * its service told the lifetime. Returns 0, or -errno with the previous value still held. */
int source_value_hold(struct source *source, struct slice value, bool told, int64_t lives_ms);
/* Sets the lifetime of the held value from now on, as its service told. */
void source_value_extend(struct source *source, int64_t lives_ms);
/* Wipes the held value. */
void source_value_drop(struct source *source);
/* True if a value is held and has not ended. */
bool source_value_is_valid(const struct source *source);
/* Return ttl_ms and renew_ms as struct message_credential has them. */
uint32_t source_value_ttl_ms(const struct source *source);
uint32_t source_value_renew_ms(const struct source *source);

#endif
