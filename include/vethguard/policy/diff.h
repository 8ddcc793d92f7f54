/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff: what a sandbox may do under one policy and may not do under another, in the operator's words. The answers of
 * policy_decide() are compared, not the text: names, order, groups, and rules that a deny rule covers make no
 * difference.
 *
 * If two sets of path patterns cannot be proved equal, they are reported as different; if an access cannot be proved
 * to have been allowed before, it is reported as new. So a policy whose diff does not widen allows nothing new.
 */
#ifndef VETHGUARD_POLICY_DIFF_H
#define VETHGUARD_POLICY_DIFF_H

#include "vethguard/policy/policy.h"

#define POLICY_DIFF_LINES_MAX 256 /* lines kept; more are only counted */
#define POLICY_DIFF_LINE_MAX 600  /* bytes with the NUL; longer lines end in "..." */

struct policy_diff_line {
	bool widens, narrows; /* neither: a change of another kind, for example where a credential comes from */
	/* Escaped: "+ may: GET https://api.github.com/user with credential github", "- may no longer: ...", "~ ...". */
	char text[POLICY_DIFF_LINE_MAX];
};

struct policy_diff {
	struct policy_diff_line *lines; /* owned; the lines that widen come first */
	size_t count;
	size_t dropped; /* lines beyond POLICY_DIFF_LINES_MAX */
	bool differs;   /* count > 0 */
	bool widens;    /* something is possible under `to` that was not possible under `from`, or that may be so */
	bool narrows;
	bool incomplete; /* the policies were too large to compare completely: widens and narrows are set */
};

/* Compares two policies. Returns 0 or -ENOMEM. Call policy_diff_fini() after success. */
int policy_diff(const struct policy *from, const struct policy *to, struct policy_diff *out);
void policy_diff_fini(struct policy_diff *diff);

#endif
