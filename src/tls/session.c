/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a hash table from key to slot, in order of last use; beyond its bound the
 * least recently used slot is evicted. A connection holds its slot, so that a late ticket still
 * finds its place. A slot that was evicted meanwhile lives until its last connection ends, and its
 * sessions are freed with it.
 */
#include "tls/session.h"

#include <stdlib.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/table.h"

struct session_slot {
	UT_hash_handle hh;
	unsigned references; /* the table's, and one per connection */
	unsigned count;
	SSL_SESSION *sessions[SESSIONS_PER_KEY]; /* oldest first */
	size_t key_len;
	uint8_t key[];
};

struct session_cache {
	struct session_slot *slots; /* least recently used first */
	struct hash_key hash_key;
	unsigned max;
};

struct session_cache *session_cache_new(unsigned keys)
{
	struct session_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->hash_key = hash_random_key();
	cache->max = keys;
	return cache;
}

void session_slot_release(struct session_slot *slot)
{
	if (!slot || --slot->references > 0)
		return;
	for (unsigned i = 0; i < slot->count; i++)
		SSL_SESSION_free(slot->sessions[i]);
	free(slot);
}

static void evict(struct session_cache *cache, struct session_slot *slot)
{
	HASH_DELETE(hh, cache->slots, slot);
	session_slot_release(slot);
}

void session_cache_free(struct session_cache *cache)
{
	if (!cache)
		return;
	while (cache->slots)
		evict(cache, cache->slots);
	free(cache);
}

static struct session_slot *slot_new(struct slice key)
{
	struct session_slot *slot = calloc(1, sizeof(*slot) + key.n);

	if (!slot)
		return NULL;
	slot->key_len = key.n;
	if (key.n > 0)
		memcpy(slot->key, key.p, key.n);
	return slot;
}

static void slot_add(struct session_cache *cache, struct session_slot *slot, unsigned hash)
{
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, cache->slots, slot->key, slot->key_len, hash, slot);
}

/* Moves a slot to the end of the order of use. The table is never empty in between, so that nothing
 * is allocated. */
static void slot_touch(struct session_cache *cache, struct session_slot *slot, unsigned hash)
{
	if (!slot->hh.next)
		return;
	HASH_DELETE(hh, cache->slots, slot);
	slot_add(cache, slot, hash);
	if (!slot->hh.tbl)
		session_slot_release(slot);
}

struct session_slot *session_slot_get(struct session_cache *cache, struct slice key)
{
	unsigned hash = (unsigned)hash_bytes(&cache->hash_key, key.p, key.n);
	struct session_slot *slot;

	HASH_FIND_BYHASHVALUE(hh, cache->slots, key.p, key.n, hash, slot);
	if (slot) {
		slot->references++;
		slot_touch(cache, slot, hash);
		return slot;
	}
	slot = slot_new(key);
	if (!slot)
		return NULL;
	slot->references = 1;
	if (HASH_COUNT(cache->slots) >= cache->max && cache->slots)
		evict(cache, cache->slots);
	slot_add(cache, slot, hash);
	if (slot->hh.tbl)
		slot->references++;
	return slot;
}

void session_slot_put(struct session_slot *slot, SSL_SESSION *session)
{
	if (!SSL_SESSION_up_ref(session))
		return;
	if (slot->count == SESSIONS_PER_KEY) {
		SSL_SESSION_free(slot->sessions[0]);
		slot->count--;
		memmove(slot->sessions, slot->sessions + 1, slot->count * sizeof(*slot->sessions));
	}
	slot->sessions[slot->count++] = session;
}

/* In seconds since the epoch. */
static int64_t session_made_s(const SSL_SESSION *session)
{
#if OPENSSL_VERSION_NUMBER >= 0x30300000L
	return SSL_SESSION_get_time_ex(session);
#else
	return SSL_SESSION_get_time(session);
#endif
}

static bool session_is_fresh(const SSL_SESSION *session, int64_t now_s)
{
	int64_t made = session_made_s(session);
	int64_t lasts = SSL_SESSION_get_timeout(session);
	int64_t hint = (int64_t)SSL_SESSION_get_ticket_lifetime_hint(session);

	if (hint > 0 && hint < lasts)
		lasts = hint;
	return SSL_SESSION_is_resumable(session) && made <= now_s && now_s - made < lasts;
}

SSL_SESSION *session_slot_take(struct session_slot *slot, int64_t now_s)
{
	while (slot->count > 0) {
		SSL_SESSION *session = slot->sessions[slot->count - 1];
		if (!session_is_fresh(session, now_s)) {
			slot->count--;
			SSL_SESSION_free(session);
			continue;
		}
		if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) {
			slot->count--;
			return session;
		}
		return SSL_SESSION_up_ref(session) ? session : NULL;
	}
	return NULL;
}
