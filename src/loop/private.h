/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of loop/. */
#ifndef VETHGUARD_SRC_LOOP_PRIVATE_H
#define VETHGUARD_SRC_LOOP_PRIVATE_H

#include "vethguard/loop/loop.h"

struct event_base *loop_base(struct loop *loop);
/* memory.c: call this before any other function of libevent. */
void loop_memory_init(void);
size_t loop_cells_in_use(void); /* for tests: small pieces of libevent in use */

/* alarm.c: all alarms of a loop. */
struct loop_alarms {
	struct loop_io io;   /* its timerfd; closed until the first alarm is opened */
	struct list members; /* in order of at_ms */
};
struct loop_alarms *loop_alarms_of(struct loop *loop);
void loop_alarms_close(struct loop_alarms *all);

#endif
