/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upgrade: the program is replaced by another version of itself while connections live on. The
 * daemon that runs (the old one) starts the installed vethguardd (the new one), which makes roles
 * of its own, and hands it over a socket what cannot be had twice: the lock of the state directory,
 * the control socket, of each sandbox the socket of dropped packets and the memory of synthetic
 * names. Everything else the new one finds as a daemon that starts does: state files, pinned gates,
 * policies. Its workers listen in the same gates; as each one serves, the old one's worker retires.
 *
 * Whole or not at all: the last word (YOURS) is spoken when the new one serves every sandbox that
 * the old one served. Until then the old one can take everything back, and does so when the new one
 * dies, is late, or fails with one sandbox. From then on the old one only waits for its workers,
 * at most UPGRADE_DRAIN_MS, and ends.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_DAEMON_UPGRADE_H
#define VETHGUARD_SRC_SUPERVISOR_DAEMON_UPGRADE_H

#include "vethguard/ipc/peer.h"

#define UPGRADE_START_MS 60000   /* for the new one to start, and from one sandbox to the next */
#define UPGRADE_QUIET_MS 10000   /* for operations under way to be over */
#define UPGRADE_DRAIN_MS 3600000 /* for connections under way to be over; then they are cut */
#define UPGRADE_DRAINING_MAX 4   /* daemons that finish what they had, one behind the other */
#define UPGRADE_TEXT_MAX 1024

struct daemon;

/* What came of it: error NULL: pid is the daemon from now on. */
typedef void (*upgrade_done)(void *context, const char *error, pid_t pid);

/* Of the old one. */
struct upgrade {
	struct ipc_peer peer;
	struct loop_io exit;
	struct loop_timer patience;
	int pidfd;
	pid_t pid;       /* 0: none under way */
	bool said_hello; /* it waits for everything to be quiet */
	bool holding;    /* everything is held still */
	bool given;      /* the last word is spoken */
	int64_t quiet_until_ms;
	uint64_t set; /* of its recording files */
	upgrade_done done;
	void *context;
	char why[UPGRADE_TEXT_MAX];
};

/* done is called once, now or later, unless this process ends before. */
void upgrade_begin(struct daemon *d, upgrade_done done, void *context);
/* This process was told to stop. True: it has given everything up already and ends in its turn. */
bool upgrade_stop(struct daemon *d);
void upgrade_close(struct daemon *d);

/* Of the new one: takeover.c. */
struct takeover {
	bool active;  /* on: the old one has the last word still */
	bool begun;   /* HELLO was said */
	bool settled; /* DONE was said */
	bool open;    /* the old one lives */
	struct ipc_peer peer;
	uint64_t former; /* its set of recording files */
	uint64_t drains; /* how many daemons finish what they had, the old one included */
	int lock, listener;
	bool listener_ours;
	char service[256];
};

/* arg: "EPOCH.SET" of --take-over. Before anything else. */
void takeover_open(struct daemon *d, const char *arg);
/* Its roles serve: everything else comes from the old one. */
void takeover_begin(struct daemon *d);
/* The old one is to end as well. */
void takeover_stop(struct daemon *d);
void takeover_reopen(struct daemon *d);
void takeover_close(struct daemon *d);

#endif
