/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: a client's TLS sessions, kept per key, with an LRU bound on keys. A TLS 1.3 ticket is
 * handed out once (RFC 8446 appendix C.4), newest first; a TLS 1.2 session as long as it is valid.
 */
#ifndef VETHGUARD_SRC_TLS_SESSION_H
#define VETHGUARD_SRC_TLS_SESSION_H

#include <openssl/ssl.h>

#include "vethguard/base/slice.h"

#define SESSIONS_PER_KEY 8
#define SESSION_KEYS 512

struct session_cache;
struct session_slot; /* the sessions of one key; reference-counted, outlives its eviction */

struct session_cache *session_cache_new(unsigned keys);
void session_cache_free(struct session_cache *cache);
/* Returns one reference to the key's slot, which is made if there is none. NULL: no memory. */
struct session_slot *session_slot_get(struct session_cache *cache, struct slice key);
void session_slot_release(struct session_slot *slot);
/* Keeps its own reference to session, and drops the oldest one if the slot is full. */
void session_slot_put(struct session_slot *slot, SSL_SESSION *session);
/* Returns one reference to the newest session that has not expired, or NULL. now_s: since the
 * epoch. */
SSL_SESSION *session_slot_take(struct session_slot *slot, int64_t now_s);

#endif
