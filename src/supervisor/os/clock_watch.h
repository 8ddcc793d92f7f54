/* SPDX-License-Identifier: Apache-2.0 */
/* clock_watch: tells regularly, and at once when the clock was set or the machine has slept. */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_CLOCK_WATCH_H
#define VETHGUARD_SRC_SUPERVISOR_OS_CLOCK_WATCH_H

#include "vethguard/loop/loop.h"

struct clock_watch {
	struct loop_io io;
	int every_s;
	/* jumped: the clock was set, which also happens when the machine wakes. */
	void (*on_time)(struct clock_watch *watch, bool jumped);
};

/* Returns 0 or -errno. */
int clock_watch_open(struct loop *loop, struct clock_watch *watch, int every_s,
        void (*on_time)(struct clock_watch *watch, bool jumped));
void clock_watch_close(struct clock_watch *watch); /* does nothing on a zeroed struct */

#endif
