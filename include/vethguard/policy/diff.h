/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff: what a sandbox may do under one policy and may not under another one, in words of an operator. Compared is
 * what policy_decide() would say, not how it is written: names, order, groups, and rules that a deny rule covers make
 * no difference.
 *
 * Where two sets of path patterns cannot be told to be equal, they are reported as different, and where an access
 * cannot be told to have been there before, it is reported as new: a policy whose diff does not widen allows nothing
 * new.
 */
#ifndef VETHGUARD_POLICY_DIFF_H
#define VETHGUARD_POLICY_DIFF_H

#include "vethguard/policy/policy.h"

#define POLICY_DIFF_LINES_MAX 256 /* kept; later ones are only counted */
#define POLICY_DIFF_LINE_MAX 600  /* bytes with the NUL; longer ones end in "..." */

struct policy_diff_line {
	bool widens, narrows; /* neither: a change of another kind, such as where a credential comes from */
	/* Escaped: "+ may: GET https://api.github.com/user with credential github", "- may no longer: ...", "~ ...". */
	char text[POLICY_DIFF_LINE_MAX];
};

struct policy_diff {
	struct policy_diff_line *lines; /* owned; those that widen first */
	size_t count;
	size_t dropped;  /* lines beyond POLICY_DIFF_LINES_MAX */
	bool differs;    /* count > 0 */
	bool widens;     /* something is possible under `to` that was not under `from`, or may be */
	bool narrows;
	bool incomplete; /* the policies were too large to compare in every part: widens and narrows are set */
};

/* 0 or -ENOMEM. policy_diff_fini() after success. */
int policy_diff(const struct policy *from, const struct policy *to, struct policy_diff *out);
void policy_diff_fini(struct policy_diff *diff);

#endif
