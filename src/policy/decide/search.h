/* SPDX-License-Identifier: Apache-2.0 */
/* search: looks for the deny and the best allow of a request or a connection, for decide.c. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_SEARCH_H
#define VETHGUARD_SRC_POLICY_DECIDE_SEARCH_H

#include "policy/decide/lookup.h"

struct search {
	const struct policy *policy;
	const struct question *question;
	const struct found *found;
	uint32_t deny;  /* rule, or POLICY_NONE */
	uint32_t allow; /* rule of the best allow so far, or POLICY_NONE */
	uint32_t allow_rank;
	uint32_t allow_target;
	/* The best allow whose conditions depend on a body that was not read yet. */
	uint32_t open, open_rank, open_target;
	bool deny_open;  /* a deny depends on such a body */
	uint32_t asked;  /* an ask rule whose shadow matches the request, or POLICY_NONE */
	bool misread;    /* an allow did not match because of another reading of the path */
	bool unmet;      /* an allow did not match because of its conditions */
	bool any_method; /* judge as if every allow named the method */
	uint32_t speaks; /* RULE_MCP, RULE_GRAPHQL: a rule with such a condition matches the
	                    path, whatever its methods */
};

#define SEARCH_START(policy_, question_, found_)                                        \
	{                                                                               \
		.policy = (policy_), .question = (question_), .found = (found_),        \
		.deny = POLICY_NONE, .allow = POLICY_NONE, .allow_target = POLICY_NONE, \
		.open = POLICY_NONE, .open_target = POLICY_NONE, .asked = POLICY_NONE   \
	}

/* True if the entry's scheme and port agree with the request, and no exception of its rule holds.
 */
bool search_entry_agrees(
        const struct search *s, const struct image_entry *e, const struct image_rule *r);
/* True if the allow `rule` comes before `best` (POLICY_NONE: there is none yet). Of two with the
 * same rank on one target, one with conditions wins, then one with a credential, then the one
 * written first. */
bool search_beats(const struct search *s, uint32_t target, uint32_t rank, uint32_t rule,
        uint32_t best_target, uint32_t best_rank, uint32_t best);
/* The first agreeing entry among count refs of a profile from first on, or POLICY_NONE. */
uint32_t search_first_agreeing(const struct search *s, uint32_t first, uint32_t count);
/* Tries every literal start of the path at whose depth the profile has a node. */
void search_path(struct search *s, uint32_t target, bool deny, struct path_view *view);
/* Search all targets for a request, or for a connection. */
void search_request(struct search *s, const struct found *found);
void search_connection(struct search *s, const struct found *found);

#endif
