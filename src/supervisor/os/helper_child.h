/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_child: a child of this program for work that may hang for ever (touching files of a file
 * system that may stop answering), so that the loop never waits for it. The child writes its report
 * to a memory file; its result counts only if it ended in time. A late child is killed and left
 * behind, since even its death may take for ever: it holds nothing of the supervisor open, and is
 * reaped when it ends. The number of children is limited, per user and in total.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_HELPER_CHILD_H
#define VETHGUARD_SRC_SUPERVISOR_OS_HELPER_CHILD_H

#include "vethguard/loop/loop.h"

#include <sys/types.h>

#define HELPER_CHILDREN_MAX 64       /* at a time, including those that cannot be killed */
#define HELPER_CHILDREN_OF_ONE_MAX 8 /* of these, on behalf of one user */
#define HELPER_CHILDREN_FULL                                                                       \
	"too many files that were asked for lie on file systems that do not answer: repair those " \
	"mounts, then try again"

struct helper_child;

struct helper_child_plan {
	/* The child's work. Its return value, 0 to 127, is the exit status. report: a memory file
	 * for its report; output: see below. */
	int (*run)(void *context, int report, int output);
	void *context; /* for run, in the child: a copy of its state at the start */
	int output;    /* another descriptor for the child; stays the caller's; -1: none */
	uid_t uid;     /* the user it is done for: only for the limit */
	int64_t ms;    /* then it is late */
};

struct helper_child_result {
	bool late;
	int status; /* exit status; -1: it died, or is late */
	int report; /* the memory file, borrowed, positioned at its start */
};

/* Starts a child. done is called once, from the loop, when the helper child is no longer in use; it
 * may free anything. Returns 0 with *out; -EAGAIN: too many children; -errno. */
int helper_child_start(struct loop *loop, const struct helper_child_plan *plan,
        void (*done)(void *context, const struct helper_child_result *result), void *context,
        struct helper_child **out);
/* Cancels it before it is done: it is killed, and done is not called. NULL is allowed. */
void helper_child_cancel(struct helper_child *helper);
/* Returns true if another child may be started for uid. */
bool helper_child_has_room(uid_t uid);
/* Reaps, when it is dead, a child started elsewhere that was killed and may take long to die. Takes
 * ownership of the pidfd. It counts as a helper child of uid; with HELPER_CHILD_NOBODY it does not
 * count. */
#define HELPER_CHILD_NOBODY ((uid_t)-1)
void helper_child_leave(struct loop *loop, pid_t pid, int pidfd, uid_t uid);
/* Stops waiting for children that were left behind. */
void helper_child_close_all(struct loop *loop);

#endif
