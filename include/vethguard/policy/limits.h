/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits: how much may pass. A limit of the policy counts everything that passes, a limit of a rule what that rule has
 * decided. All functions here read an opened image; the counts themselves are in ipc/counters.h.
 */
#ifndef VETHGUARD_POLICY_LIMITS_H
#define VETHGUARD_POLICY_LIMITS_H

#include "vethguard/policy/policy.h"

#define POLICY_LIMITS_MAX 128                             /* of one policy, its rules included */
#define POLICY_LIMIT_AMOUNT_MAX ((UINT64_C(1) << 40) - 1) /* what a counter holds: 1 TiB less a byte */
#define POLICY_LIMIT_PERIOD_MAX_S (31 * 86400)            /* seconds */
#define POLICY_LIMIT_KEY 16                               /* bytes that name a counter */

enum policy_limit_kind {
	/* Amounts in a period. */
	POLICY_LIMIT_REQUESTS, /* requests, relayed connections and datagram flows */
	POLICY_LIMIT_UPLOAD,   /* bytes from the sandbox: heads and content of requests; all bytes of a relay */
	POLICY_LIMIT_DOWNLOAD, /* bytes to the sandbox: content of responses; all bytes of a relay */
	/* At a time. */
	POLICY_LIMIT_CONNECTIONS, /* relayed and upgraded connections, and datagram flows */
	POLICY_LIMIT_STREAMS,     /* requests under way */
	/* Of one request. */
	POLICY_LIMIT_BODY, /* bytes of its content */
	POLICY_LIMIT_KIND_COUNT
};

struct policy_limit {
	uint32_t rule; /* POLICY_NONE: of the whole policy */
	enum policy_limit_kind kind;
	uint64_t amount;
	uint32_t period_s;   /* 0: the kind has none */
	bool budget;         /* written under budget: */
	struct slice shared; /* key of the label whose sandboxes share the counter; empty: counted for one sandbox */
};

uint32_t policy_limit_count(const struct policy *policy);
void policy_limit(const struct policy *policy, uint32_t index, struct policy_limit *out);
/* The limits of a rule (POLICY_NONE: of the policy) are *count items from *first on. */
void policy_limits_of(const struct policy *policy, uint32_t rule, uint32_t *first, uint32_t *count);
/* True for a kind that is counted over a period. */
bool policy_limit_has_period(enum policy_limit_kind kind);
/* "requests", "upload", ... */
const char *policy_limit_kind_name(enum policy_limit_kind kind);
/* Writes "upload 10MB/1h" or "body 64KiB" to out. Returns out. */
#define POLICY_LIMIT_TEXT_MAX 64
const char *policy_limit_text(const struct policy_limit *limit, char out[POLICY_LIMIT_TEXT_MAX]);
/* Writes what names the limit's counter in the memory of counters: the same for the limit of that kind of the rule of
 * that name in every policy, whatever its amount and period. */
void policy_limit_key(const struct policy *policy, const struct policy_limit *limit, uint8_t out[POLICY_LIMIT_KEY]);

#endif
