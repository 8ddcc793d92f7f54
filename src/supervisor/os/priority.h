/* SPDX-License-Identifier: Apache-2.0 */
/* priority: the daemon's scheduling priority (sched(7)). The daemon has little to do, and clients
 * that attach, pause or detach a sandbox wait for it on a machine whose sandboxes may keep every
 * CPU busy. So it runs before all ordinary processes, as long as it has little to do. */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_PRIORITY_H
#define VETHGUARD_SRC_SUPERVISOR_OS_PRIORITY_H

#include <sys/types.h>

#include "vethguard/loop/loop.h"

#define PRIORITY_TURN_MS 200  /* longest computation without waiting */
#define PRIORITY_REST_MS 1000 /* after a longer one, time at ordinary priority */

struct priority {
	struct loop_signal overrun;
	struct loop_timer rest;
};

/* Gives this thread the lowest real-time priority (CAP_SYS_NICE); processes and threads that it
 * starts are ordinary. Returns 0, or -errno and nothing has changed. */
int priority_open(struct priority *p, struct loop *loop);
/* Returns this thread to ordinary priority. Allowed on a zeroed struct, or after a failed open. */
void priority_close(struct priority *p);

/* Gives pid, which is about to work for a client that waits for this thread, the same priority, so
 * that it runs at the same time on another CPU if there is one, until priority_take_back(). Never
 * used for handling a sandbox's traffic. A thread at ordinary priority lends nothing. A process
 * that takes too long is killed elsewhere: a worker that does not become ready, a keeper that does
 * not answer. pid 0: no effect. */
void priority_lend(pid_t pid);
void priority_take_back(pid_t pid);

#endif
