/* SPDX-License-Identifier: Apache-2.0 */
/* gate_watch: the state of one watched gate, for watch.c, watch_all.c and watch_host.c. */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_WATCH_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_WATCH_H

#include "vethguard/base/table.h"
#include "supervisor/gate/private.h"

struct gate_watch {
	struct gate *gate;
	int nsid; /* of its namespace, if the shared sockets cover it; else -1 */
	UT_hash_handle hh;
	struct gate_notifications notifications; /* its own */
	struct loop_timer timer;
	bool calm;            /* examined just now; the next look waits for the timer */
	bool dirty;           /* something has changed since */
	bool gone;            /* the link was found gone once */
	bool away;            /* the interface is absent, and that was reported */
	unsigned short_looks; /* consecutive looks that failed for lack of resources */
	void (*on_change)(struct gate *gate, int result);
};

/* watch.c */
/* Something changed: the gate is examined soon. */
void gate_watch_changed(struct gate_watch *w);
/* A notification about a link in the gate. Carrier and statistics are ignored: the sandbox may
 * change them at will. context is the gate_watch. */
void gate_watch_take_link(void *context, const struct netlink_link *link, bool removed);

/* notifications.c: hears of changes by both sockets from now on, and owns them. An -errno in the
 * place of a descriptor is returned, after the other one was closed. */
int gate_notifications_open(struct gate_notifications *notifications, struct loop *loop, int rules,
        int links, void (*on_rules)(struct loop_io *io, unsigned events),
        void (*on_links)(struct loop_io *io, unsigned events));
void gate_notifications_close(
        struct gate_notifications *notifications); /* does nothing if closed */

/* watch_all.c: subscribes the gate to the shared sockets. Returns false if it needs its own. */
bool gate_watch_by_number(struct gate_watch *w, struct gate_host *host);
void gate_watch_forget_number(struct gate_watch *w, struct gate_host *host);

#endif
