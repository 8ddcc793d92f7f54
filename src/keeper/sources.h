/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources: where credential values come from. The keeper opens nothing itself: it asks the
 * supervisor for a descriptor and reads the value from it to its end.
 */
#ifndef VETHGUARD_SRC_KEEPER_SOURCES_H
#define VETHGUARD_SRC_KEEPER_SOURCES_H

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
	struct source *asked; /* sources that wait for a descriptor */
};

enum source_state {
	SOURCE_EMPTY,   /* no value; error and retry_ms are of the last failure */
	SOURCE_ASKED,   /* waiting for the supervisor's descriptor */
	SOURCE_READING, /* the descriptor is being read */
	SOURCE_HELD,    /* value is valid until expires_ms */
	SOURCE_STATE_COUNT
};

/* One credential of one sandbox. */
struct source {
	struct sources *sources;
	enum source_state state;
	uint64_t sandbox_id, generation;
	const char *sandbox; /* its name, for the log */
	uint32_t credential;
	void *context; /* for on_answer */
	char name[MESSAGE_NAME_MAX + 1];
	uint32_t ttl_s;
	uint32_t told_s; /* of the value that is read: its lifetime as its service tells; 0: ttl_s
	                    counts */
	uint32_t timeout_ms;
	/* Called once per question, possibly from within source_get(). value.n 0: error says why,
	 * in one sentence. */
	void (*on_answer)(struct source *source, uint64_t question, struct slice value,
	        uint32_t ttl_s, const char *error);

	struct source *prev, *next; /* in sources->asked */
	uint64_t question;          /* id of the question to the supervisor */
	struct loop_io io;
	struct loop_timer timer; /* ASKED, READING: limit of both; HELD: the value's end */
	int fd;
	struct secret value;
	int64_t expires_ms; /* clock_boot_ms(); 0: never */
	bool forgotten; /* ASKED, READING: the value is for those who wait, and is not held then */
	int64_t retry_ms;
	char error[SOURCE_ERROR_MAX];
	uint64_t waiting[SOURCE_WAITING_MAX];
	size_t waiting_count;
};

/* The caller sets the descriptive fields (sources to on_answer); the rest is zero. */
void source_init(struct source *source);
/* Wipes the value; pending questions are not answered. */
void source_fini(struct source *source);
/* Asks for the value under the worker's question id. Returns 0, or -EBADMSG: more questions than an
 * intact worker has. */
int source_get(struct source *source, uint64_t question);
/* Wipes the held value; it is asked for again on demand. A value that is being read is given to the
 * pending questions and not held. */
void source_forget(struct source *source);
/* Handles the supervisor's answer. Takes the descriptor if it is needed. Returns 0 or -EBADMSG. */
int sources_on_message(struct sources *sources, struct ipc_message *message);

#endif
