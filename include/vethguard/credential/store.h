/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: a worker's credentials: fetched from the keeper when first needed, kept for their ttl, rendered and compiled
 * for masking once per value, wiped when they go.
 */
#ifndef VETHGUARD_CREDENTIAL_STORE_H
#define VETHGUARD_CREDENTIAL_STORE_H

#include "vethguard/credential/inject.h"
#include "vethguard/credential/mask.h"
#include "vethguard/loop/loop.h"

struct credential_store;

/* One value in use. Reference-counted: a response that is still streaming keeps the mask of the value it was asked
 * with, whatever the store holds by then. */
struct credential_value {
	uint32_t credential;      /* index in the policy */
	struct secret rendered;   /* what inject_render made */
	struct mask *mask;
	unsigned references;
};
/* One reference more; one less, and wiped and freed with the last. */
void credential_value_retain(struct credential_value *v);
void credential_value_release(struct credential_value *v);

/* Asks the keeper for the credential; the answer comes through credential_store_answer(). 0 or -errno. */
typedef int (*credential_ask)(void *context, uint32_t credential);

/* policy is borrowed; context goes to ask. NULL: no memory. */
struct credential_store *credential_store_new(struct loop *loop, const struct policy *policy, credential_ask ask,
	void *context);
/* Callers still waiting are let go without a callback. Not from within a callback of the store. */
void credential_store_free(struct credential_store *store);

/* A caller that waits. on_value: v (borrowed, retain to keep) or NULL with a sentence why not. Never called from within
 * credential_store_get(). */
struct credential_wait {
	struct list place;
	void (*on_value)(struct credential_wait *wait, struct credential_value *v, const char *error);
};
/* The value at once (borrowed) where it is held and fresh; else NULL, and on_value follows. Callers share one question
 * to the keeper; a credential that was not available is asked for again after a second at the earliest, until then
 * callers are told the same sentence. */
struct credential_value *credential_store_get(struct credential_store *store, uint32_t credential,
	struct credential_wait *wait);
/* The value that is held now (borrowed, retain to keep), or NULL; nobody is asked. */
struct credential_value *credential_store_held(const struct credential_store *store, uint32_t credential);
/* Somebody who can have an upstream send his guesses back, and stop there, sees from what is kept back for good that he
 * guessed a beginning of the value rightly. times: of struct mask_stream's `waited`. After the first nobody gets the
 * credential any more. True: it has just come to that. */
bool credential_store_waited(struct credential_store *store, uint32_t credential, int times);
bool credential_store_is_guessed(const struct credential_store *store, uint32_t credential);
void credential_wait_cancel(struct credential_wait *wait); /* harmless when not waiting (zeroed) */
/* The keeper's answer; value is copied (the caller wipes its own). error NULL: value is good. An answer that nobody
 * asked for is ignored. Waiting callers hear of it at the end of the loop's turn. */
void credential_store_answer(struct credential_store *store, uint32_t credential, struct slice value, uint32_t ttl_s,
	const char *error);
/* The keeper is gone: everybody who waits is told error (copied). Values that are held stay good for their ttl. */
void credential_store_fail_all(struct credential_store *store, const char *error);

/* Another keeper has taken over: it is asked what is still open, and what could not be had may be asked for again at
 * once. */
void credential_store_ask_again(struct credential_store *store);
/* The policy that the store borrows is about to become one with count credentials, of which i is what map[i] was
 * (POLICY_NONE: a new one). Questions and placeholders move; who waits for a credential that is gone is let go without a
 * callback. Values may be others by now: whoever asks from here on waits for another answer than those who wait already.
 * 0 or -ENOMEM: nothing has changed. */
int credential_store_renumber(struct credential_store *store, const uint32_t *map, uint32_t count);

/* Placeholders: which credential a text mentions. Scans p for any placeholder of this sandbox (prefix "vethguard-" or
 * the SDK forms); returns the credential's index and where it stands, or POLICY_NONE. Set once at start: 0, -EINVAL (no
 * such credential, or a text that is no placeholder), -ENOSPC, -ENOMEM. A text without one costs one memmem(). */
int credential_store_set_placeholder(struct credential_store *store, uint32_t credential, struct slice placeholder);
uint32_t credential_store_find_placeholder(const struct credential_store *store, struct slice p, size_t *at, size_t *n);
/* The same inside of base64 (a user and a password, a token in a cookie). */
uint32_t credential_store_find_encoded_placeholder(const struct credential_store *store, struct slice p);
/* Does p mention a placeholder in any way, plain, in base64, with any of its bytes escaped, other than those of the
 * credentials in except (bit i: credential i)? */
bool credential_store_mentions_placeholder(const struct credential_store *store, struct slice p, uint64_t except);
/* Where the end of p starts that may be the beginning of such a mention; p.n: it is none. At most
 * MASK_BEGINNING_MAX(PLACEHOLDER_MAX) bytes. */
size_t credential_store_placeholder_begins(const struct credential_store *store, struct slice p);

#endif
