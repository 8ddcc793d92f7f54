/* SPDX-License-Identifier: Apache-2.0 */
/* git: what the body of a request of git's smart protocol asks for, as conditions of rules see it. The module git fills
 * it in (git/body.h). */
#ifndef VETHGUARD_POLICY_GIT_H
#define VETHGUARD_POLICY_GIT_H

#include "vethguard/base/slice.h"

#define POLICY_GIT_ID_MAX 32 /* bytes of an object's id: SHA-256 */

enum policy_git_change {
	POLICY_GIT_CREATES,
	POLICY_GIT_KEEPS,    /* the ref stays what it is */
	POLICY_GIT_FORWARDS, /* the new commit descends from the old one: the body proves it */
	POLICY_GIT_UPDATES,  /* anything else: the old commits may be lost */
	POLICY_GIT_DELETES
};

/* One change of a ref that a push asks for. */
struct policy_git_command {
	struct slice ref; /* borrowed from the body; valid by git-check-ref-format(1), begins with "refs/" */
	uint8_t from[POLICY_GIT_ID_MAX], to[POLICY_GIT_ID_MAX]; /* old and new id; zeros: none */
	enum policy_git_change change;
};

/* What a push asks for. For a fetch all fields are 0. */
struct policy_git {
	struct policy_git_command *commands; /* owned */
	size_t command_count;
	struct slice *options; /* push options; the array is owned, the texts are borrowed from the body */
	size_t option_count;
	bool reports; /* the client reads a report about each ref */
	bool bands;   /* ... and messages beside the report (side-band-64k) */
};

#endif
