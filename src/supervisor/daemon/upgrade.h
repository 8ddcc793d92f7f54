/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upgrade: replaces the program by another version while connections live on. The running daemon
 * (the old one) starts the installed vethguardd (the new one), which starts its own roles. Over a
 * socket the old one hands over what can exist only once: the lock of the state directory, the
 * control socket, and each sandbox's NFLOG socket. The new one finds everything else like any
 * starting daemon: state files, pinned gates, policies. Its workers listen in the same gates; as
 * each one serves, the old daemon's worker retires.
 *
 * All or nothing: the last message (YOURS) is sent when the new daemon serves every sandbox that
 * the old one served. Until then the old one can take everything back, and does so if the new one
 * dies, is late, or fails with one sandbox. After it the old one only waits for its workers, at
 * most UPGRADE_DRAIN_MS, and ends.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_UPGRADE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_UPGRADE_H

#include "vethguard/ipc/peer.h"

#define UPGRADE_START_MS 60000   /* for the new daemon to start, and between two sandboxes */
#define UPGRADE_QUIET_MS 10000   /* for open operations to end */
#define UPGRADE_DRAIN_MS 3600000 /* for open connections to end; then they are cut */
#define UPGRADE_DRAINING_MAX 4   /* daemons in a chain that still finish their connections */
#define UPGRADE_TEXT_MAX 1024

struct daemon;

/* The result. error NULL: pid is the daemon from now on. */
typedef void (*upgrade_done)(void *context, const char *error, pid_t pid);

enum upgrade_state {
	UPGRADE_NONE,
	UPGRADE_STARTING, /* the new daemon was started; HELLO has not come */
	UPGRADE_QUIETING, /* HELLO came; open operations come to their end, and connections that the
	                     gateway has accepted get to their workers */
	UPGRADE_HOLDING,  /* everything is held, and handed over */
	UPGRADE_GIVEN,    /* YOURS was sent; what is under way is finished */
	UPGRADE_STATE_COUNT
};

/* The old daemon's side: upgrade.c. */
struct upgrade {
	enum upgrade_state state;
	struct ipc_peer peer;
	struct loop_io exit;
	struct loop_timer patience;
	int pidfd;
	pid_t pid;              /* the new daemon; 0: it has ended, or there is none */
	int64_t quiet_until_ms; /* QUIETING */
	uint64_t set;           /* number of the new daemon's set of recording files */
	upgrade_done done;
	void *context;
	char why[UPGRADE_TEXT_MAX];
};

/* done is called once, now or later, unless this process ends before. */
void upgrade_begin(struct daemon *d, upgrade_done done, void *context);
/* Call when this process is told to stop. Returns true if it has given everything up already and
 * will end when its workers have. */
bool upgrade_stop(struct daemon *d);
void upgrade_close(struct daemon *d);

enum takeover_state {
	TAKEOVER_NONE,      /* this daemon replaces no other */
	TAKEOVER_STARTING,  /* keeper and recorder start */
	TAKEOVER_ASKED,     /* HELLO was sent */
	TAKEOVER_SERVING,   /* GIVE came; the sandboxes are taken over */
	TAKEOVER_SERVED,    /* DONE was sent; the old daemon decides */
	TAKEOVER_DRAINING,  /* YOURS came; the old daemon finishes its connections */
	TAKEOVER_COMPLETED, /* the old daemon has ended */
	TAKEOVER_STATE_COUNT
};

/* The new daemon's side: takeover.c. */
struct takeover {
	enum takeover_state state;
	struct ipc_peer peer;
	uint64_t former; /* number of the old daemon's recording set */
	uint64_t drains; /* daemons that finish connections, including the old one */
	int lock, listener;
	bool listener_ours;
	char service[256];
};

/* True while the old daemon can still take back. */
static inline bool takeover_is_active(const struct takeover *t)
{
	return t->state >= TAKEOVER_STARTING && t->state <= TAKEOVER_SERVED;
}

/* True while the old daemon lives and this one has a connection to it. */
static inline bool takeover_is_open(const struct takeover *t)
{
	return t->state >= TAKEOVER_ASKED && t->state <= TAKEOVER_DRAINING;
}

/* arg: "EPOCH.SET" of --take-over. Call this before anything else. */
void takeover_open(struct daemon *d, const char *arg);
/* Call when the roles serve: everything else comes from the old daemon. */
void takeover_begin(struct daemon *d);
/* Tells the old daemon to end as well. */
void takeover_stop(struct daemon *d);
void takeover_reopen(struct daemon *d);
void takeover_close(struct daemon *d);

#endif
