/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit: counts what passes against the limits of the policy and of the rule that decided
 * (policy/limits.h). Amounts in a period are in shared memory (ipc/counters.h), which outlives this
 * worker; what is open at a time is counted here, because it ends with this worker, and with what
 * other workers of the sandbox have open, if there are any (ipc/team.h). A limit whose memory is
 * missing lets nothing pass.
 */
#ifndef VETHGUARD_SRC_PROXY_LIMIT_LIMIT_H
#define VETHGUARD_SRC_PROXY_LIMIT_LIMIT_H

#include "vethguard/policy/limits.h"
#include "vethguard/proxy/proxy.h"

#define LIMIT_GAUGES_MAX (2 * POLICY_LIMITS_MAX)
#define LIMIT_HELD_MAX 4 /* streams and connections, of the policy and of a rule */
#define LIMIT_TEXT_MAX 512

/* The limit that something met. */
struct limit_hit {
	struct policy_limit limit;
	int64_t wait_ms; /* until it may pass; -1: it never will */
	bool away;       /* hosts share it, and their server cannot be asked */
};

struct limit {
	struct policy_limit spec;
	const struct counters *memory; /* NULL: none */
	uint32_t counter;
	uint32_t gauge;              /* of what is open at a time; LIMIT_GAUGES_MAX: none */
	const struct quotas *quotas; /* NULL: hosts do not share it, or there is no memory */
	uint32_t quota;
};

/* How much of one kind is open. It keeps its place while a policy names it or something is open. */
struct limit_gauge {
	uint8_t key[POLICY_LIMIT_KEY];
	uint64_t open;   /* in this worker */
	uint32_t shared; /* its gauge in the team's memory; TEAM_GAUGES: none */
	bool named;
};

struct limits {
	uint32_t count;      /* 0: the policy has no limits, and nothing of this costs anything */
	struct limit *items; /* owned; NULL if count is 0 */
	struct limit_gauge *gauges; /* owned; made for the first policy with limits */
	uint32_t policies;          /* how many policies this worker has had */
	uint64_t refused;           /* how often a limit was met */
	int64_t added_ms;           /* when limit_add() was called last: clock_boot_ms() */
	int64_t wait_again_ms;      /* no waiting for a lease before: clock_monotonic_ms() */
};

/* What one exchange or connection holds open. */
struct limit_held {
	uint16_t gauges[LIMIT_HELD_MAX];
	uint8_t count;
};

/* Reads the limits of the policy in force. Call it again when that has changed. Without memory
 * every limit counts as met. */
void limits_renew(struct proxy *proxy);
void limits_close(struct proxy *proxy);

/* Adds n to every counter of that kind, of the policy and of the rule. Returns false if one of them
 * has no room for it (n 0: no room at all), with *hit set and nothing added. hit may be NULL. */
bool limit_add(struct proxy *proxy, uint32_t rule, enum policy_limit_kind kind, uint64_t n,
        struct limit_hit *hit);
/* Adds n, which has passed already, to every counter of that kind, beyond its limit too. */
void limit_charge(struct proxy *proxy, uint32_t rule, enum policy_limit_kind kind, uint64_t n);
/* Adds as much of n as there is room for, at least 1. Returns how much; 0: *hit is set. */
uint64_t limit_add_some(struct proxy *proxy, uint32_t rule, enum policy_limit_kind kind, uint64_t n,
        struct limit_hit *hit);
/* Takes back what limit_add() has added at added_ms (limits.added_ms then) but did not pass after
 * all (counters_take_back()). */
void limit_take_back(struct proxy *proxy, uint32_t rule, enum policy_limit_kind kind,
        int64_t added_ms, uint64_t n);
/* Counts one more that is open. Returns false, with *hit set and nothing counted, if one too many
 * would be. */
bool limit_enter(struct proxy *proxy, uint32_t rule, enum policy_limit_kind kind,
        struct limit_held *held, struct limit_hit *hit);
/* Releases all that is held: it is not open any more. */
void limit_leave(struct proxy *proxy, struct limit_held *held);
/* The largest content that a request may have. *hit is set to its limit if there is one. */
uint64_t limit_body(const struct proxy *proxy, uint32_t rule, struct limit_hit *hit);
/* Counts a connection or flow that begins, and that it is open. What it moves is counted as it
 * passes. Returns false, with *hit set and nothing held, if a limit refuses it. hit may be NULL. */
bool limit_begin_relay(
        struct proxy *proxy, uint32_t rule, struct limit_held *held, struct limit_hit *hit);

/* Writes one sentence about the limit that was met: "the limit upload 10MB/1h of rule \"x\" is used
 * up for another 90 s". Returns out. */
const char *limit_text(
        const struct proxy *proxy, const struct limit_hit *hit, char out[LIMIT_TEXT_MAX]);
/* Seconds after which trying again makes sense, at least 1; 0: never. */
uint32_t limit_retry_s(const struct limit_hit *hit);

static inline bool limits_exist(const struct limits *limits)
{
	return limits->count > 0;
}

#endif
