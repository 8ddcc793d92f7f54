/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: a worker's credentials: fetched from the keeper when first needed, kept for their ttl, rendered and compiled
 * for masking once per value, and wiped when dropped.
 */
#ifndef VETHGUARD_CREDENTIAL_STORE_H
#define VETHGUARD_CREDENTIAL_STORE_H

#include "vethguard/credential/inject.h"
#include "vethguard/credential/mask.h"
#include "vethguard/credential/aws_keys.h"
#include "vethguard/credential/jar.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/placeholder.h"
#include "vethguard/tls/tls.h"

struct credential_store;

/* One value in use. Reference-counted: a response that still streams keeps the mask of the value with which it was
 * requested, whatever the store holds by then. */
struct credential_value {
	uint32_t credential;    /* index in the policy */
	struct secret rendered; /* what inject_render made; hmac: the key; postgres: the password; sigv4: empty */
	struct mask *mask;      /* NULL for sigv4, hmac, client-certificate and postgres: a key that signs or proves is
	                           never sent, so no response holds it; and for an empty jar */
	struct tls_identity *identity; /* client-certificate; else NULL */
	uint32_t serial;               /* client-certificate: no other value has it; connections are shared under it */
	struct aws_keys *aws;          /* sigv4: the keys */
	struct secret jar; /* what logins, or a registry's token service, gave (credential/jar.h); else empty */
	uint32_t epoch;    /* how often the credential had been rotated or revoked when this value was asked for */
	unsigned references;
};
/* Adds a reference; drops one, and wipes and frees the value with the last. */
void credential_value_retain(struct credential_value *v);
void credential_value_release(struct credential_value *v);

/* Asks the keeper for the credential; credential_store_answer() takes the answer. renew: the store holds a valid value
 * and wants the next one. Returns 0 or -errno. */
typedef int (*credential_ask)(void *context, uint32_t credential, bool renew);

/* policy is borrowed; context is passed to ask. Returns NULL if there is no memory. */
struct credential_store *credential_store_new(
        struct loop *loop, const struct policy *policy, credential_ask ask, void *context);
/* Tells the keeper what a login has given for the credential. Returns 0 or -errno. */
typedef int (*credential_seal)(void *context, struct slice name, const struct jar_token *token);
void credential_store_on_seal(struct credential_store *store, credential_seal seal);

/* Asks the keeper for a signature by the credential's key, which is in a token; credential_store_signed() takes the
 * answer under this id. Returns 0 or -errno; -EAGAIN: there is no keeper now, and the store asks again when there is.
 */
typedef int (*credential_sign)(void *context, uint64_t id, uint32_t credential, uint16_t scheme, struct slice digest);
void credential_store_on_sign(struct credential_store *store, credential_sign sign);
/* A caller that waits for a signature. on_signed gets the signature (r and s, or RSA's; borrowed), or a sentence that
 * says why there is none. The store never calls it from within credential_store_sign(). The store owns all other
 * fields. */
struct credential_signature {
	struct list place;
	void (*on_signed)(struct credential_signature *s, struct slice signature, const char *error);
	uint64_t id;
	uint16_t scheme;
	size_t digest_n;
	uint8_t digest[64];
	char name[65];
};
/* Asks for a signature of the digest by this scheme (struct tls_to_sign) with the key of the credential that has this
 * name. Returns 0, or -EINVAL: the name or the digest is too long. */
int credential_store_sign(struct credential_store *store, struct slice name, uint16_t scheme, struct slice digest,
        struct credential_signature *s);
void credential_signature_cancel(struct credential_signature *s); /* allowed when not waiting (zeroed) */
/* Takes the keeper's answer: a signature (error is NULL), or why there is none. */
void credential_store_signed(struct credential_store *store, uint64_t id, struct slice signature, const char *error);
/* Callers that still wait are dropped without a callback. Do not call this from within a callback of the store. */
void credential_store_free(struct credential_store *store);

/* A caller that waits. on_value gets v (borrowed; retain it to keep it), or NULL and a sentence that says why. It is
 * never called from within credential_store_get(). */
struct credential_wait {
	struct list place;
	void (*on_value)(struct credential_wait *wait, struct credential_value *v, const char *error);
};
/* Returns the value at once (borrowed) if it is held and fresh; otherwise NULL, and on_value follows. Callers share
 * one question to the keeper. A credential that was not available is asked for again after a second at the earliest;
 * until then callers get the same sentence. */
struct credential_value *credential_store_get(
        struct credential_store *store, uint32_t credential, struct credential_wait *wait);
/* Returns the value that is held now (borrowed; retain it to keep it) or NULL, without asking the keeper. */
struct credential_value *credential_store_held(const struct credential_store *store, uint32_t credential);
/* Notes that responses stopped inside a credential's value. An attacker who can make an upstream echo guesses, and
 * stop there, could see from what stays kept back that a guess is a right beginning of the value. times: increase of
 * struct mask_stream's `waited`. From the first time on nobody gets the credential any more. Returns true the first
 * time. */
bool credential_store_waited(struct credential_store *store, uint32_t credential, int times);
bool credential_store_is_guessed(const struct credential_store *store, uint32_t credential);
void credential_wait_cancel(struct credential_wait *wait); /* allowed when not waiting (zeroed) */
/* Takes the keeper's answer. value is copied; the caller wipes its own copy. error NULL: value is good. ttl_ms: how
 * long the value may be used; 0: for ever. renew_ms: if a caller uses the value after that time, the store asks for the
 * next one and gives out this one meanwhile; 0: never. The store ignores an answer that it did not ask for. It calls
 * back waiting callers at the end of the loop's turn. */
void credential_store_answer(struct credential_store *store, uint32_t credential, struct slice value, uint32_t ttl_ms,
        uint32_t renew_ms, const char *error);
/* Puts what a login has given into the credential's jar, here and at the keeper; for inject: docker-registry only here.
 * used: the value with which the login was requested. Returns 0; -ESTALE: the credential was rotated or revoked since
 * that value was asked for, and nothing is kept; or -errno. */
int credential_store_seal(struct credential_store *store, uint32_t credential, const struct credential_value *used,
        const struct jar_token *token);
/* The keeper is gone: tells error (copied) to all waiting callers. Values that are held stay valid for their ttl. */
void credential_store_fail_all(struct credential_store *store, const char *error);

/* Another keeper has taken over: asks it what is still open. Credentials that were not available may be asked for
 * again at once. */
void credential_store_ask_again(struct credential_store *store);
/* Prepares for a change of the borrowed policy to one with count credentials, in which credential i was map[i] before
 * (POLICY_NONE: new). Questions and placeholders move along. Callers that wait for a credential that is gone are
 * dropped without a callback. Values may have changed, so later callers wait for another answer than those who wait
 * already. Returns 0, or -ENOMEM with nothing changed. */
int credential_store_renumber(struct credential_store *store, const uint32_t *map, uint32_t count);

/* An operator has rotated the credential: later callers do not get the held value, and the store asks for the new one
 * at once. The keeper has rotated it before. */
void credential_store_rotate(struct credential_store *store, uint32_t credential);
/* An operator has revoked the credential: wipes the value, tells CREDENTIAL_REVOKED to all waiting callers, and ignores
 * the answers to earlier questions. The keeper gives out no value any more. */
#define CREDENTIAL_REVOKED "An operator has revoked this credential."
void credential_store_revoke(struct credential_store *store, uint32_t credential);
/* Fills in how often callers got the credential's value, and when last (Unix time; 0: never). */
void credential_store_usage(
        const struct credential_store *store, uint32_t credential, uint64_t *uses, uint64_t *last_used_ms);

/* Placeholders: which credential a text mentions. The first function adds one at start; it returns 0, -EINVAL (no
 * such credential, or a text that is no placeholder), -ENOSPC or -ENOMEM. The second one searches p for any
 * placeholder of this sandbox (prefix "vethguard-" or the SDK forms) and returns the credential's index with *at and
 * *n set, or POLICY_NONE. A text without a placeholder costs one memmem(). */
int credential_store_set_placeholder(struct credential_store *store, uint32_t credential, struct slice placeholder);
/* The credential's placeholder, or empty. */
struct slice credential_store_placeholder(const struct credential_store *store, uint32_t credential);
uint32_t credential_store_find_placeholder(const struct credential_store *store, struct slice p, size_t *at, size_t *n);
/* The same inside base64 (user and password, a token in a cookie). */
uint32_t credential_store_find_encoded_placeholder(const struct credential_store *store, struct slice p);
bool credential_store_has_placeholders(const struct credential_store *store);
/* True if the name of a host mentions a placeholder, plain or in hex digits, in any letter case; labels may divide
 * it. */
bool credential_store_name_mentions(const struct credential_store *store, struct slice name);
/* True if p mentions a placeholder in any way (plain, in base64, in hex digits, with any bytes escaped), except those
 * of the credentials in except (bit i: credential i). */
bool credential_store_mentions_placeholder(const struct credential_store *store, struct slice p, uint64_t except);
/* Where the end of p that may be the beginning of such a mention starts; p.n if there is none. That end has at most
 * MASK_BEGINNING_MAX(PLACEHOLDER_MAX) bytes. */
size_t credential_store_placeholder_begins(const struct credential_store *store, struct slice p);
/* State of credential_store_scan(), which does what credential_store_mentions_placeholder() does for a text that comes
 * in pieces. Zero it before the first piece. It keeps the end of a piece that may be the beginning of a mention, to
 * search it together with the next piece. */
struct credential_scan {
	size_t n;
	uint8_t end[MASK_BEGINNING_MAX(PLACEHOLDER_MAX)];
};
bool credential_store_scan(const struct credential_store *store, struct credential_scan *scan, const uint8_t *p,
        size_t n, uint64_t except);

#endif
