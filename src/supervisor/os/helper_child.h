/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper child: work that may hang for good, done by a child of this very program, so that the loop
 * never waits for it: touching files of a file system that may not answer. What the child tells, it
 * writes to a file in memory, and what counts is whether it ended in time. One that is late is
 * killed and, since even that may take for ever, left behind: it keeps nothing open that is ours,
 * and is reaped whenever it ends. How many there are at a time is bounded, for one user and for
 * all.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_OS_HELPER_CHILD_H
#define VETHGUARD_SRC_SUPERVISOR_OS_HELPER_CHILD_H

#include "vethguard/loop/loop.h"

#include <sys/types.h>

#define HELPER_CHILDREN_MAX 64       /* at a time, those that cannot be killed included */
#define HELPER_CHILDREN_OF_ONE_MAX 8 /* of these, on behalf of one user */
#define HELPER_CHILDREN_FULL                                                                     \
	"too many files that were asked for lie on file systems that do not answer: mend those " \
	"mounts, then try again"

struct helper_child;

struct helper_child_plan {
	/* The child's work: what it returns, 0 to 127, is its exit status. report: a memory file
	 * for what it has to tell; output: see below. */
	int (*run)(void *context, int report, int output);
	void *context; /* for run, in the child: a copy of what it is at the start */
	int output;    /* a further descriptor that the child has; stays the caller's; -1: none */
	uid_t uid;     /* who wants it done: only for the bound */
	int64_t ms;    /* then it is late */
};

struct helper_child_result {
	bool late;
	int status; /* exit status; -1: it died, or is late */
	int report; /* the memory file, borrowed, at its start */
};

/* done comes once, from the loop, when the helper child is over already; it may free what it likes.
 * 0 with *out; -EAGAIN: too many are under way; -errno. */
int helper_child_start(struct loop *loop, const struct helper_child_plan *plan,
        void (*done)(void *context, const struct helper_child_result *result), void *context,
        struct helper_child **out);
/* Before it is done: it is killed, and done does not come. NULL is harmless. */
void helper_child_cancel(struct helper_child *helper);
/* Whether one more may be started for uid. */
bool helper_child_has_room(uid_t uid);
/* A child started elsewhere that was killed and may be long in dying: it is reaped when it is dead.
 * Takes the pidfd. It counts as a helper child of uid; of HELPER_CHILD_NOBODY: it does not. */
#define HELPER_CHILD_NOBODY ((uid_t)-1)
void helper_child_leave(struct loop *loop, pid_t pid, int pidfd, uid_t uid);
/* No longer waits for those that were left behind. */
void helper_child_close_all(struct loop *loop);

#endif
