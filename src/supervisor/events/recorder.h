/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: the recorder as the supervisor sees it. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_RECORDER_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_RECORDER_H

#include "vethguard/loop/loop.h"

struct head_question;
struct instance;
struct supervisor;

/* Interval at which the log repeats that the recorder cannot write. */
#define RECORDER_STALL_SHOWN_MS 10000

/* An audit log that cannot be written. */
struct recorder_stall {
	bool shown;      /* the log says so */
	char why[512];   /* the reason, or "". New workers then refuse everything too */
	int64_t next_ms; /* earliest time of the next log line about it */
};

/* What the supervisor knows about its recorders, of which one runs at a time. */
struct recorder_life {
	bool log_given; /* recording_start() was called: there is a log */
	bool ready;     /* a recorder runs and has said that it is ready */
	struct recorder_stall stall;
	struct loop_timer timer;    /* until the next recorder is started */
	struct head_question *head; /* events/head.h; NULL: no query is open */
};

/* events/recorder.c. Returns 0 or -errno. */
int recorder_start(struct supervisor *sv);
/* Tells a new worker that the audit log cannot be written, if that is so. */
void recorder_stalls(struct instance *i);

#endif
