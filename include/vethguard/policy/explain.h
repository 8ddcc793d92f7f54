/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain: why a decision came out as it did, rule by rule, for `vethguard policy explain`. The verdict comes from
 * policy_decide(); this module only tells which part of each rule matches.
 */
#ifndef VETHGUARD_POLICY_EXPLAIN_H
#define VETHGUARD_POLICY_EXPLAIN_H

#include "vethguard/policy/policy.h"

enum policy_match {
	POLICY_MATCHES,
	POLICY_MISS_HOST,
	POLICY_MISS_PORT,
	POLICY_MISS_SCHEME,
	POLICY_MISS_METHOD,
	POLICY_MISS_PATH,
	POLICY_MISS_CONDITION, /* the query or a header field does not meet the rule's conditions */
	POLICY_MISS_EXCEPT     /* the deny rule has an exception for the destination */
};

struct policy_rule_report {
	uint32_t rule;
	bool deny;               /* true: a deny rule; false: an allow or ask rule */
	bool asks;               /* an ask rule */
	enum policy_match match; /* the first part that did not match */
	struct slice name;       /* rule name */
	struct slice reading;    /* the path's shortest reading if the result depends on how servers read the
	                            path; else empty */
	struct slice to;         /* destination as written */
	struct slice file;       /* file and line of the rule */
	unsigned line;
};

/* Calls each(context, report) for every rule in the order of the files. */
void policy_explain(const struct policy *policy, const struct policy_request *request,
        void (*each)(void *context, const struct policy_rule_report *report), void *context);

#endif
