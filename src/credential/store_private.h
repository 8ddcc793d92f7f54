/* SPDX-License-Identifier: Apache-2.0 */
/* store_private: what the files of the store share. */
#ifndef VETHGUARD_SRC_CREDENTIAL_STORE_PRIVATE_H
#define VETHGUARD_SRC_CREDENTIAL_STORE_PRIVATE_H

#include "credential/store_placeholders.h"
#include "vethguard/credential/store.h"

#define STORE_RETRY_MS 1000
#define STORE_ERROR_MAX 256
#define SIGN_OPEN_MAX 16 /* the keeper allows a worker no more */

struct slot {
	struct credential_value *value; /* the store's own reference, or NULL */
	int64_t expires_ms;             /* clock_boot_ms(); 0: never */
	int64_t renew_ms;               /* from then on the next value is asked for; 0: never */
	uint64_t uses;                  /* how often a caller got a value */
	int64_t last_used_ms;           /* loop_now_ms() */
	bool asked;                     /* the keeper owes an answer */
	bool renewing;        /* the answer owed is the next value; this one is used meanwhile */
	int64_t answer_by_ms; /* the answer is due by this time */
	uint32_t epoch;       /* how often the credential was rotated or revoked */
	uint32_t asked_epoch; /* epoch when the keeper was asked for the answer it owes */
	bool passing;   /* the answer owed is only for the callers that wait now, and is not kept */
	unsigned stale; /* further answers that the keeper owes, to questions from before a
	                   revocation */
	bool due;       /* waiting callers are told at the end of this turn */
	int64_t retry_ms; /* unavailable until then; error says why */
	bool guessed;     /* see credential_store_waited(); stays set */
	char error[STORE_ERROR_MAX];
	struct list waiting; /* struct credential_wait */
	/* docker-registry: the tokens that the token service gave. They stay while values come and
	 * go. A client whose token is no longer here asks for another one. */
	struct secret jar;
};

struct credential_store {
	struct loop *loop;
	const struct policy *policy;
	credential_ask ask;
	credential_seal seal;
	credential_sign sign;
	void *context;
	struct loop_task tell;
	struct loop_timer expiry;
	struct loop_timer patience;
	struct placeholders placeholders;
	uint32_t count;
	struct slot *slots;
	/* struct credential_signature: questions that wait here, and questions that were sent. */
	struct list to_sign, signing;
	struct loop_task send_signatures;
	unsigned signing_open; /* answers that the keeper owes */
	uint64_t last_signature;
	uint64_t signed_anew; /* answers up to this id are to questions that were asked again */
};

/* store.c */
struct slot *store_slots_new(uint32_t count);
/* Drops the value and all waiting callers, without calling them back. */
void store_drop_slot(struct slot *slot);
/* Tells error to all waiting callers. A value that is being renewed stays. */
void store_refuse(struct credential_store *store, struct slot *slot, const char *error);
/* Asks the keeper unless an answer is pending. */
void store_ask(struct credential_store *store, uint32_t credential, bool renew);
/* Makes the next caller fetch a new value. The present value, or one on its way, is only for
 * callers that already wait for it. */
void store_forget(struct slot *slot);
/* store_sign.c */
void store_sign_init(struct credential_store *store);
void store_on_send_signatures(struct loop_task *task);
/* Another keeper is there, or another policy in force: asks for all missing signatures anew. */
void store_sign_again(struct credential_store *store);
void store_sign_fail(struct credential_store *store, const char *error);
/* Drops the callers that wait, without calling them back. */
void store_sign_fini(struct credential_store *store);
/* Sets the timer to the time at which the first value expires, or stops it. */
void store_plan_expiry(struct credential_store *store);

#endif
