/* SPDX-License-Identifier: Apache-2.0 */
/* gate_watch: one gate that is watched, as watch.c, watch_all.c and watch_host.c see it. */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_WATCH_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_WATCH_H

#include "vethguard/base/table.h"
#include "supervisor/gate/private.h"

struct gate_watch {
	struct gate *gate;
	int nsid; /* of its namespace, where the host's sockets hear for it; else -1 */
	UT_hash_handle hh;
	int rules, links; /* its own; -1: none */
	struct loop_io rules_io, links_io;
	struct loop_timer timer;
	bool calm;            /* a look was taken just now; the next waits for the timer */
	bool dirty;           /* something changed meanwhile */
	bool gone;            /* the link was found gone once */
	bool away;            /* so is the interface, and that was told */
	unsigned short_looks; /* that failed one after the other */
	void (*on_change)(struct gate *gate, int result);
};

/* watch.c */
/* Something has changed, whatever it was: the gate is looked at soon. */
void gate_watch_changed(struct gate_watch *w);
/* Of a link in the gate: whether there is carrier, and statistics, are the sandbox's affair.
 * context is the gate_watch. */
void gate_watch_take_link(void *context, const struct netlink_link *link, bool removed);

/* watch_all.c: from now on the sockets for all hear of this gate, too. False: it needs its own. */
bool gate_watch_by_number(struct gate_watch *w, struct gate_host *host);
void gate_watch_forget_number(struct gate_watch *w, struct gate_host *host);

#endif
