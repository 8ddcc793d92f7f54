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

/* State of the old daemon. */
struct upgrade {
	struct ipc_peer peer;
	struct loop_io exit;
	struct loop_timer patience;
	int pidfd;
	pid_t pid;       /* 0: no upgrade is in progress */
	bool said_hello; /* HELLO came; waiting for open operations to end */
	bool holding;    /* everything is held */
	bool given;      /* YOURS was sent */
	int64_t quiet_until_ms;
	uint64_t set; /* number of its recording set */
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

/* State of the new daemon: takeover.c. */
struct takeover {
	bool active;  /* taking over: the old one can still take back */
	bool begun;   /* HELLO was sent */
	bool settled; /* DONE was sent */
	bool open;    /* the old daemon lives */
	struct ipc_peer peer;
	uint64_t former; /* number of the old daemon's recording set */
	uint64_t drains; /* daemons that finish connections, including the old one */
	int lock, listener;
	bool listener_ours;
	char service[256];
};

/* arg: "EPOCH.SET" of --take-over. Call this before anything else. */
void takeover_open(struct daemon *d, const char *arg);
/* Call when the roles serve: everything else comes from the old daemon. */
void takeover_begin(struct daemon *d);
/* Tells the old daemon to end as well. */
void takeover_stop(struct daemon *d);
void takeover_reopen(struct daemon *d);
void takeover_close(struct daemon *d);

#endif
