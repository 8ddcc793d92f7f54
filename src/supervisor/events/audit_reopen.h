/* SPDX-License-Identifier: Apache-2.0 */
/* audit_reopen: opens the audit log while the loop runs, in a child process, because its file
 * system may stop answering. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_REOPEN_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_AUDIT_REOPEN_H

#include "vethguard/loop/loop.h"
#include "supervisor/events/audit_file.h"

#define AUDIT_OPENING_MS 5000 /* then it is late */

/* Identifies a file. */
struct audit_identity {
	dev_t device;
	ino_t inode;
};

struct audit_opened {
	int error;       /* 0, or -errno as audit_file_open(); -ETIMEDOUT: it is late */
	int log, reader; /* if error is 0: owned by the callee */
	struct audit_identity identity;
};

struct audit_opening;

/* Opens the file at path, with the rights of opener, or the supervisor's own if that is NULL
 * (audit_file.h); both are copied. done is called once, from the loop, when the opening is no
 * longer in use. Returns 0 with *out, or -errno; -EAGAIN: earlier ones still hang. */
int audit_reopen_start(struct loop *loop, const char *path, const struct identity *opener,
        void (*done)(void *context, const struct audit_opened *opened), void *context,
        struct audit_opening **out);
/* Cancels it before it is done: done is not called. NULL is allowed. */
void audit_reopen_cancel(struct audit_opening *opening);
/* Returns 0 or -errno. */
int audit_identify(int fd, struct audit_identity *out);

#endif
