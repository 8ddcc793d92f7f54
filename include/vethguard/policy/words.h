/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words: what a rule of a compiled policy says, in words, for people and agents. The words name no credential, no
 * source of one, and no file of the policy.
 */
#ifndef VETHGUARD_POLICY_WORDS_H
#define VETHGUARD_POLICY_WORDS_H

#include "vethguard/policy/policy.h"

enum policy_rule_kind { POLICY_RULE_ALLOW, POLICY_RULE_ASK, POLICY_RULE_DENY };

/* Slices borrow the image. */
struct policy_rule_words {
	enum policy_rule_kind kind;
	struct slice name;
	struct slice to;         /* the destinations as written, without those of `except` */
	struct slice reason;     /* a deny rule's text, or empty */
	struct slice conditions; /* in words, or empty */
	struct slice upgrades;   /* policy_rule_upgrades() */
	bool any_method, any_path;
	bool credential;  /* vethguard attaches a credential */
	bool passthrough; /* TLS is not opened */
	uint32_t wait_s;  /* ASK: how long a request is held */
};

/* Describes the rule. Returns false if there is none with this index. */
bool policy_rule_words(const struct policy *policy, uint32_t rule, struct policy_rule_words *out);
/* Write the rule's next method or path pattern to out. *at begins with 0. Return false after the last one. */
bool policy_rule_method(const struct policy *policy, uint32_t rule, uint32_t *at, struct slice *out);
bool policy_rule_path(const struct policy *policy, uint32_t rule, uint32_t *at, struct slice *out);

#endif
