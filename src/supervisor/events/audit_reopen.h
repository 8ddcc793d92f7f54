/* SPDX-License-Identifier: Apache-2.0 */
/* audit_opening: the log opened while the loop runs, by a child: its file system may not answer. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_REOPEN_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_REOPEN_H

#include "vethguard/loop/loop.h"
#include "supervisor/events/audit_file.h"

#define AUDIT_OPENING_MS 5000 /* then it is late */

/* Which file it is. */
struct audit_identity {
	dev_t device;
	ino_t inode;
};

struct audit_opened {
	int error;       /* 0, or -errno as of audit_file_open(); -ETIMEDOUT: it is late */
	int log, reader; /* where error is 0: the callee's */
	struct audit_identity identity;
};

struct audit_opening;

/* The file at path, with the rights of opener, or the supervisor's own where that is NULL
 * (audit_file.h); both are copied. done comes once, from the loop, when the opening is over
 * already. 0 with *out, or -errno: -EAGAIN: earlier ones still hang. */
int audit_reopen_start(struct loop *loop, const char *path, const struct identity *opener,
        void (*done)(void *context, const struct audit_opened *opened), void *context,
        struct audit_opening **out);
/* Before it is done: done does not come. NULL is harmless. */
void audit_reopen_cancel(struct audit_opening *opening);
/* 0 or -errno. */
int audit_identify(int fd, struct audit_identity *out);

#endif
