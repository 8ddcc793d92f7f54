/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources: where credential values come from. The keeper opens nothing itself: it asks the
 * supervisor for a descriptor and reads the value from it until its end.
 */
#ifndef VETHGUARD_SRC_KEEPER_SOURCES_H
#define VETHGUARD_SRC_KEEPER_SOURCES_H

#include "vethguard/base/secret.h"
#include "vethguard/ipc/peer.h"

#define SOURCE_WAITING_MAX \
	16 /* questions of one worker about one credential at a time; ours asks one */
#define SOURCE_ERROR_MAX 512

/* What all sources of this keeper share. */
struct sources {
	struct loop *loop;
	struct ipc_peer *supervisor;
	uint64_t last_question;
	struct source *asked; /* those that wait for a descriptor */
};

enum source_state {
	SOURCE_EMPTY,   /* nothing held; error and retry_ms tell of the last failure */
	SOURCE_ASKED,   /* the supervisor owes a descriptor */
	SOURCE_READING, /* the descriptor is being read */
	SOURCE_HELD,    /* value is good until expires_ms */
	SOURCE_STATE_COUNT
};

/* One credential of one sandbox. */
struct source {
	struct sources *sources;
	enum source_state state;
	uint64_t sandbox_id, generation;
	const char *sandbox; /* its name, for the log */
	uint32_t credential;
	void *context; /* on_answer's */
	char name[MESSAGE_NAME_MAX + 1];
	uint32_t ttl_s;
	uint32_t timeout_ms;
	/* Called once per question, also from within source_get(). value.n 0: error says why, in
	 * one sentence. */
	void (*on_answer)(struct source *source, uint64_t question, struct slice value,
	        uint32_t ttl_s, const char *error);

	struct source *prev, *next; /* in sources->asked */
	uint64_t question;          /* id under which the supervisor was asked */
	struct loop_io io;
	struct loop_timer timer; /* ASKED, READING: the whole must be over; HELD: the value's end */
	int fd;
	struct secret value;
	int64_t expires_ms; /* clock_boot_ms(); 0: never */
	bool forgotten;     /* ASKED, READING: what comes is not held */
	int64_t retry_ms;
	char error[SOURCE_ERROR_MAX];
	uint64_t waiting[SOURCE_WAITING_MAX];
	size_t waiting_count;
};

/* The descriptive fields (sources to on_answer) are set by the caller, the rest is zero. */
void source_init(struct source *source);
/* Wipes the value; nobody who waits is answered. */
void source_fini(struct source *source);
/* Asks for the value under the worker's question id. 0; -EBADMSG: more questions than a worker has.
 */
int source_get(struct source *source, uint64_t question);
/* What is held is wiped, and asked for again when it is wanted. What is under way goes to those who
 * wait, and is not held. */
void source_forget(struct source *source);
/* The supervisor's answer. Takes the descriptor where it is wanted. 0 or -EBADMSG. */
int sources_on_message(struct sources *sources, struct ipc_message *message);

#endif
