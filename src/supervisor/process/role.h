/* SPDX-License-Identifier: Apache-2.0 */
/* role: the supervisor's side of one of the other programs: a process, a socket, and exactly one
 * report of its end. */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_ROLE_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_ROLE_H

#include <sys/types.h>

#include "vethguard/ipc/peer.h"
#include "supervisor/process/stderr_log.h"

#define ROLE_LABEL_MAX 128
#define ROLE_HOW_MAX 1024
/* Limit on messages from a worker, which has few reasons to send any; a flood would keep the
 * supervisor from all other work. ROLE_WORKER_BURST at once, then ROLE_WORKER_PER_S; beyond that
 * the worker is killed. Keeper and recorder speak for all sandboxes and have no such limit: they
 * get their turn like every peer (ipc/peer.h). */
#define ROLE_WORKER_BURST 256
#define ROLE_WORKER_PER_S 32
/* The same bound for a worker that serves exposed ports and asks for connections into its sandbox.
 */
#define ROLE_WORKER_VISITS_BURST 1024
#define ROLE_WORKER_VISITS_PER_S 256

/* Keeper and recorder are told of every sandbox when they are started again, which is more than
 * their queue holds: the supervisor waits this long for the role to read, then kills it. */
#define ROLE_ROOM_MS 5000
/* Limit on the sum of such waits; a part of the time between them is given back. Without it, a role
 * that reads a little now and then could keep the supervisor busy for ever. */
#define ROLE_ROOM_ALL_MS 20000
#define ROLE_ROOM_BACK 20 /* a twentieth */

struct role {
	struct ipc_peer peer;
	struct loop_io exit;
	struct stderr_log text;
	struct loop_timer patience; /* limit for a role that was asked to stop */
	char label[ROLE_LABEL_MAX]; /* "the worker of sandbox x" */
	pid_t pid;                  /* 0: not running */
	int pidfd;
	/* The one type of message with which it may send a descriptor; 0: none. */
	enum message_type with_descriptor;
	unsigned burst, per_s; /* message rate limit; burst 0: none */
	int64_t credit;        /* what it may still send, in 1/1000 message */
	int64_t credit_ms;     /* when credit was last computed */
	int room_ms;           /* limit of one wait for room in its queue; 0: no waiting */
	/* Limit of the sum of waits; what was left of it, and when. */
	int64_t room_all_ms, room_left_ms, room_at_ms;
	bool stopping; /* its end is expected */
	bool killed;   /* the supervisor killed it */
	/* Why it is killed, or the text of its FAILED message; escaped. */
	char last_words[ROLE_HOW_MAX];
	/* Returns 0, or -errno: the message breaks the protocol. Not called for FAILED and
	 * STOPPED. */
	int (*on_message)(struct role *role, struct ipc_message *message);
	/* May be NULL. It answered FAILED to the request id; last_words is its text. It may live
	 * on. */
	void (*on_failed)(struct role *role, uint64_t id);
	/* Called with its answer to DESCRIBE, only for the latest, describe_id. */
	void (*on_description)(struct role *role, struct slice text);
	uint64_t describe_id;
	unsigned descriptions; /* number of answers it still owes */
	/* Called once, from the loop, after the process has exited and was reaped. how: "died
	 * (signal 11)", "exited (status 3)". */
	void (*on_dead)(struct role *role, const char *how);
};

/* Starts program. The struct must be zeroed or ended. mounts: the mount namespace it starts in, or
 * -1: the caller's. Returns 0 or -errno. */
int role_start(struct loop *loop, struct role *role, const char *program, const char *label,
        int mounts, int (*on_message)(struct role *role, struct ipc_message *message),
        void (*on_dead)(struct role *role, const char *how));
static inline bool role_runs(const struct role *role)
{
	return role->pid > 0;
}
/* Like ipc_send(), but if room_ms is set, waits while the queue is full. */
int role_send(
        struct role *role, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* The same for a message that holds a secret: its bytes are wiped. */
int role_send_secret(
        struct role *role, uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* Asks how the role is confined. told is called with the answer, unless it is asked again
 * before. */
void role_ask(struct role *role, uint64_t id, void (*told)(struct role *role, struct slice text));
/* From now on role_send() waits for room in the queue: room_ms at most, and all_ms for all waits
 * together. */
void role_wait_for_room(struct role *role, int room_ms, int all_ms);
/* From now on the role may send one descriptor with each message of this type. */
void role_take_descriptors(struct role *role, enum message_type type);
/* Limits the role's messages from now on. */
void role_bound(struct role *role, unsigned burst, unsigned per_s);
/* expected: the role may end from now on without having been asked. Not expected: the role must not
 * end before role_stop() asks it to. */
void role_expect_end(struct role *role, bool expected);
/* Asks the role to finish; it is killed after patience_ms. on_dead follows in either case. */
void role_stop(struct role *role, uint64_t id, int64_t patience_ms);
/* Moves the text of the role's FAILED message to out. For on_failed(), after which the role lives
 * on. */
void role_take_last_words(struct role *role, char out[ROLE_HOW_MAX]);
/* Kills the role; on_dead follows. */
void role_kill(struct role *role, const char *why);
/* Ends a role that could not be told something (-errno of role_send()). If it was ending by itself,
 * on_dead is told of that end and not of this error. */
void role_give_up(struct role *role, int error, const char *why);
/* Kills and reaps it now; no callback follows. Allowed on a role that does not run. */
void role_fini(struct role *role);

#endif
