/* SPDX-License-Identifier: Apache-2.0 */
/* role: one of the other programs as the supervisor sees it: a process, a socket, and exactly one
 * report of its end. */
#ifndef VETHGUARD_SRC_SUPERVISOR_PROCESS_ROLE_H
#define VETHGUARD_SRC_SUPERVISOR_PROCESS_ROLE_H

#include <sys/types.h>

#include "vethguard/ipc/peer.h"
#include "supervisor/process/stderr_log.h"

#define ROLE_LABEL_MAX 128
#define ROLE_HOW_MAX 1024
/* What a worker may say to the supervisor: it has few reasons to speak, and one that floods would
 * have the supervisor work for it and nobody else. So many at once, and so many a second from then
 * on; beyond, it is killed. Keeper and recorder speak for all sandboxes: they get their turn, as
 * everybody (ipc/peer.h), and no more. */
#define ROLE_WORKER_BURST 256
#define ROLE_WORKER_PER_S 32

/* Keeper and recorder are told of every sandbox when they are started again, more than their queue
 * holds: so long does the supervisor wait for one to read. One that does not is killed. */
#define ROLE_ROOM_MS 5000
/* All such waits together, of which a part of the time that passes is given back: one that reads a
 * little now and then would keep the supervisor from everybody else for ever. */
#define ROLE_ROOM_ALL_MS 20000
#define ROLE_ROOM_BACK 20 /* a twentieth */

struct role {
	struct ipc_peer peer;
	struct loop_io exit;
	struct stderr_log text;
	struct loop_timer patience; /* how long a stopped role may take */
	char label[ROLE_LABEL_MAX]; /* "the worker of sandbox x" */
	pid_t pid;                  /* 0: not running */
	int pidfd;
	unsigned burst, per_s; /* messages it may send; burst 0: any number */
	int64_t credit;        /* thousandths of a message that it may still send */
	int64_t credit_ms;     /* when that was counted */
	int room_ms;           /* how long role_send waits for room in its queue, or 0 */
	int64_t room_all_ms, room_left_ms,
	        room_at_ms;            /* all of its waits; what was left, and when */
	bool stopping;                 /* its end is expected */
	bool killed;                   /* we did it */
	char last_words[ROLE_HOW_MAX]; /* why it is being killed, or what it said of its failure;
	                                  escaped */
	/* 0, or -errno: the message breaks the protocol. FAILED and STOPPED never get here. */
	int (*on_message)(struct role *role, struct ipc_message *message);
	/* May be NULL. It said FAILED to the request id: last_words is what it said. It may live
	 * on. */
	void (*on_failed)(struct role *role, uint64_t id);
	/* What it answers to DESCRIBE, the latest under describe_id. */
	void (*on_description)(struct role *role, struct slice text);
	uint64_t describe_id;
	unsigned descriptions; /* that it still owes */
	/* Once, after the process is gone and reaped, from the loop. how: "died (signal 11)",
	 * "exited (status 3)". */
	void (*on_dead)(struct role *role, const char *how);
};

/* Starts program; the struct must be zeroed or ended. mounts: the mount namespace it begins in, or
 * -1: the caller's. 0 or -errno. */
int role_start(struct loop *loop, struct role *role, const char *program, const char *label,
        int mounts, int (*on_message)(struct role *role, struct ipc_message *message),
        void (*on_dead)(struct role *role, const char *how));
static inline bool role_runs(const struct role *role)
{
	return role->pid > 0;
}
/* As ipc_send; where room_ms is set, a full queue is waited for. */
int role_send(
        struct role *role, const uint8_t *message, size_t size, const int *fds, size_t fd_count);
/* Asks it how it is confined; told has its answer, unless it is asked again before. */
void role_ask(struct role *role, uint64_t id, void (*told)(struct role *role, struct slice text));
/* From now on role_send waits for room in its queue: so long, and all of its waits together. */
void role_wait_for_room(struct role *role, int room_ms, int all_ms);
/* Bounds what it may send from now on. */
void role_bound(struct role *role, unsigned burst, unsigned per_s);
/* Asks it to finish; after patience_ms it is killed. on_dead follows either way. */
void role_stop(struct role *role, uint64_t id, int64_t patience_ms);
/* on_dead follows. */
void role_kill(struct role *role, const char *why);
/* Kills and reaps now; no callback follows. Harmless on one that does not run. */
void role_fini(struct role *role);

#endif
