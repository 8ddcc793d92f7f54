/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of loop/ know of each other. */
#ifndef VETHGUARD_SRC_LOOP_PRIVATE_H
#define VETHGUARD_SRC_LOOP_PRIVATE_H

#include "vethguard/loop/loop.h"

struct event_base *loop_base(struct loop *loop);
/* memory.c: before any other call of libevent. */
void loop_memory_init(void);
size_t loop_cells_in_use(void); /* for tests: of libevent's small pieces */

/* alarm.c: all alarms of a loop. */
struct loop_alarms {
	struct loop_io io;   /* its descriptor; closed until the first alarm is opened */
	struct list members; /* in order of at_ms */
};
struct loop_alarms *loop_alarms_of(struct loop *loop);
void loop_alarms_close(struct loop_alarms *all);

#endif
