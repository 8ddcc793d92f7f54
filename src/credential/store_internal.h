/* SPDX-License-Identifier: Apache-2.0 */
/* store_internal: what the files of the store share. */
#ifndef VETHGUARD_SRC_CREDENTIAL_STORE_INTERNAL_H
#define VETHGUARD_SRC_CREDENTIAL_STORE_INTERNAL_H

#include "credential/store_placeholders.h"
#include "vethguard/credential/store.h"

#define STORE_RETRY_MS 1000
#define STORE_ERROR_MAX 256

struct slot {
	struct credential_value *value; /* the store's own reference, or NULL */
	int64_t expires_ms;             /* clock_boot_ms(); 0: never */
	int64_t renew_ms;               /* the next one is asked for from then on; 0: never */
	uint64_t uses;                  /* how often a caller got a value */
	int64_t last_used_ms;           /* loop_now_ms() */
	bool asked;                     /* the keeper owes an answer */
	bool renewing;                  /* ... with the next value; this one is used meanwhile */
	int64_t answer_by_ms;           /* ... by this time */
	bool passing;                   /* ... which is only for those who wait, and not kept */
	unsigned stale;                 /* answers that it owes besides, from before a revocation */
	bool due;                       /* waiting callers are told at the end of this turn */
	int64_t retry_ms;               /* unavailable until then; error says why */
	bool guessed;                   /* credential_store_waited(): final */
	char error[STORE_ERROR_MAX];
	struct list waiting; /* struct credential_wait */
};

struct credential_store {
	struct loop *loop;
	const struct policy *policy;
	credential_ask ask;
	credential_seal seal;
	void *context;
	struct loop_task tell;
	struct loop_timer expiry;
	struct loop_timer patience;
	struct placeholders placeholders;
	uint32_t count;
	struct slot *slots;
};

/* store.c */
struct slot *store_slots_new(uint32_t count);
/* Drops its value, and everybody who waits, without a callback. */
void store_drop_slot(struct slot *slot);
/* Tells error to everybody who waits; a value that is being renewed stays. */
void store_refuse(struct credential_store *store, struct slot *slot, const char *error);
/* Asks the keeper, if it is not asked already. */
void store_ask(struct credential_store *store, uint32_t credential, bool renew);
/* The value will be fetched anew: the present one, or one on its way, is only for callers that
 * waited for it. */
void store_forget(struct slot *slot);
/* Sets the timer to the first value that expires, or stops it. */
void store_plan_expiry(struct credential_store *store);

#endif
