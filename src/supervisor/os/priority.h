/* SPDX-License-Identifier: Apache-2.0 */
/* priority: the daemon's place among all that wants a CPU (sched(7)). It has little to do, and
 * whoever attaches, pauses or detaches a sandbox waits for it, on a machine whose sandboxes may
 * keep every CPU busy. So it runs before all that is ordinary, for as long as it has little to do.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_PRIORITY_H
#define VETHGUARD_SRC_SUPERVISOR_OS_PRIORITY_H

#include <sys/types.h>

#include "vethguard/loop/loop.h"

#define PRIORITY_TURN_MS 200  /* that it may compute without once waiting */
#define PRIORITY_REST_MS 1000 /* where that took longer: so long is it as all others */

struct priority {
	struct loop_signal overrun;
	struct loop_timer rest;
};

/* This thread at real-time priority, the lowest there is (CAP_SYS_NICE); processes and threads that
 * it starts are ordinary. 0 or -errno, and nothing has changed. */
int priority_open(struct priority *p, struct loop *loop);
/* As all others again. Harmless on one that is zeroed, or could not be opened. */
void priority_close(struct priority *p);

/* pid is about to work for whoever waits for this thread: at its priority, and beside it, where
 * there is another CPU, until it is taken back. What has to do with a sandbox's traffic never has
 * it. A thread that is as all others lends nothing. Whoever takes too long is killed by others: a
 * worker that does not become ready, a keeper that does not answer. pid 0: nothing happens. */
void priority_lend(pid_t pid);
void priority_take_back(pid_t pid);

#endif
