/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits: how much may pass. A limit of the policy counts everything that passes, except by rules of the
 * infrastructure. A limit of the floor counts everything that passes. A limit of a rule counts what that rule has
 * decided. All functions here read an opened image; ipc/counters.h has the counts themselves.
 */
#ifndef VETHGUARD_POLICY_LIMITS_H
#define VETHGUARD_POLICY_LIMITS_H

#include "vethguard/policy/policy.h"
#include "vethguard/wire/token_meter.h"

#define POLICY_LIMITS_MAX 128                             /* limits of one policy and its rules together */
#define POLICY_LIMIT_AMOUNT_MAX ((UINT64_C(1) << 40) - 1) /* most that a counter holds: 1 TiB less a byte */
#define POLICY_LIMIT_PERIOD_MAX_S (31 * 86400)            /* seconds */
#define POLICY_LIMIT_KEY 16                               /* bytes that name a counter */

#define POLICY_HOSTS_PERIOD_MIN_S 60 /* of a budget that several hosts share */

/* Whether several hosts share a budget, and what holds while their server cannot be asked. */
enum policy_hosts {
	POLICY_HOSTS_NONE = 0,   /* each host counts for itself */
	POLICY_HOSTS_CLOSED = 1, /* nothing passes */
	POLICY_HOSTS_LOCAL = 2,  /* each host has its share of the amount */
	POLICY_HOSTS_COUNT
};

enum policy_limit_kind {
	/* Amounts in a period. */
	POLICY_LIMIT_REQUESTS, /* requests, relayed connections and datagram flows */
	POLICY_LIMIT_UPLOAD,   /* bytes from the sandbox: heads and content of requests; all bytes of a relay */
	POLICY_LIMIT_DOWNLOAD, /* bytes to the sandbox: content of responses; all bytes of a relay */
	POLICY_LIMIT_TOKENS,   /* tokens of language models, by the rule's weights */
	POLICY_LIMIT_COST,     /* millionths of a unit of money, by the rule's prices */
	/* Amounts at a time. */
	POLICY_LIMIT_CONNECTIONS, /* relayed and upgraded connections, and datagram flows */
	POLICY_LIMIT_STREAMS,     /* requests under way */
	/* Amount of one request. */
	POLICY_LIMIT_BODY, /* bytes of its content */
	POLICY_LIMIT_KIND_COUNT
};

struct policy_limit {
	uint32_t rule; /* POLICY_NONE: the limit is the policy's */
	enum policy_limit_kind kind;
	uint64_t amount;
	uint32_t period_s;   /* 0: the kind has none */
	bool budget;         /* the policy file has it under budget: */
	bool floor;          /* the limit is the floor's; rule is POLICY_NONE then */
	struct slice shared; /* label key: sandboxes with the same value share the counter; empty: each has its own */
	enum policy_hosts hosts; /* with shared only */
};

uint32_t policy_limit_count(const struct policy *policy);
void policy_limit(const struct policy *policy, uint32_t index, struct policy_limit *out);
/* True if the tokens of answers to the rule's requests are counted: the rule has llm, weights, prices, or a limit of
 * tokens or cost, and the rule or the policy has such a limit. */
bool policy_counts_tokens(const struct policy *policy, uint32_t rule);
/* Returns how much these tokens count for a limit of the kind POLICY_LIMIT_TOKENS or POLICY_LIMIT_COST, by the rule's
 * weights or prices: rounded up, at most POLICY_LIMIT_AMOUNT_MAX. */
uint64_t policy_tokens_amount(
        const struct policy *policy, uint32_t rule, enum policy_limit_kind kind, const uint64_t tokens[TOKEN_KINDS]);
/* Writes the rule's weights (POLICY_LIMIT_TOKENS), in millionths of a token, or its prices (POLICY_LIMIT_COST), in
 * millionths of a unit of money for a million tokens. */
void policy_rule_tokens(
        const struct policy *policy, uint32_t rule, enum policy_limit_kind kind, uint32_t out[TOKEN_KINDS]);
/* The words for kinds of tokens in a policy file: "input", "cached", "output". */
extern const char *const policy_token_names[TOKEN_KINDS];
/* Writes millionths as a decimal number: "0.25". Returns out. */
#define POLICY_MILLIONTHS 1000000u
#define POLICY_DECIMAL_MAX 32
const char *policy_decimal(uint64_t millionths, char out[POLICY_DECIMAL_MAX]);
/* Finds the limits of a rule (POLICY_NONE: of the policy): *count limits, the first of which has the index *first. */
void policy_limits_of(const struct policy *policy, uint32_t rule, uint32_t *first, uint32_t *count);
/* True for a kind that is counted over a period. */
bool policy_limit_has_period(enum policy_limit_kind kind);
/* Returns the word of the policy file, "closed" or "local", or NULL for POLICY_HOSTS_NONE. */
const char *policy_hosts_word(enum policy_hosts hosts);
/* Returns the kind as the policy file names it: "requests", "upload", ... */
const char *policy_limit_kind_name(enum policy_limit_kind kind);
/* Writes "upload 10MB/1h" or "body 64KiB" to out. Returns out. */
#define POLICY_LIMIT_TEXT_MAX 64
const char *policy_limit_text(const struct policy_limit *limit, char out[POLICY_LIMIT_TEXT_MAX]);
/* Writes who shares the limit: "", ", shared by label team" or ", shared by label team over hosts (closed without
 * their server)". Returns out. */
#define POLICY_LIMIT_SHARED_MAX (2 * POLICY_NAME_MAX + 80)
const char *policy_limit_shared_text(const struct policy_limit *limit, char out[POLICY_LIMIT_SHARED_MAX]);
/* Writes the key of the limit's counter in the memory of counters. Two limits have the same key if they are of rules
 * of the same name (or both of a policy, or both of a floor), of the same kind, and both or neither are budgets.
 * Policy, amount and period do not count. */
void policy_limit_key(const struct policy *policy, const struct policy_limit *limit, uint8_t out[POLICY_LIMIT_KEY]);

#endif
