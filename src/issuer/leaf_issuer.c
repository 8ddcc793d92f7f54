/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: two tables from name to leaf, one for names that the policy mentions and one
 * for the others, each in order of last use and with the same bound. A flood of invented names
 * replaces leaves of the second table only, and a token bucket bounds the signatures that it costs.
 *
 * A leaf that is about to expire is made anew on request. The issuer holds the leaf returned last,
 * so that evicting it cannot free it under the caller. A name has one leaf per kind of key. The
 * ECDSA key is made with the issuer; the RSA key, which few sandboxes need, when a client first
 * needs it.
 */
#include "vethguard/issuer/leaf_issuer.h"

#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/table.h"

#define RENEW_BEFORE_S (24 * 3600)
#define HOST_MAX 253
#define KEY_MAX (2 + HOST_MAX)
#define MINUTE_MS 60000

struct leaf {
	UT_hash_handle hh;
	struct tls_identity *identity; /* one reference */
	size_t key_len;
	uint8_t key[]; /* the kind; then 0 and a host, or 4 or 6 and an address */
};

struct leaf_issuer {
	struct ca *issuer;
	struct ca_leaf_key *keys[TLS_KEY_KINDS]; /* NULL: not needed yet */
	struct leaf_issuer_limits limits;
	struct leaf *tables[2]; /* other names, mentioned names; least recently used first */
	struct hash_key hash_key;
	struct tls_identity *last; /* one reference */
	int64_t tokens;            /* in units of 1/MINUTE_MS leaf */
	int64_t filled_ms;
	bool filled;
};

struct leaf_issuer *leaf_issuer_new(struct ca *issuer, const struct leaf_issuer_limits *limits)
{
	struct leaf_issuer *leaf_issuer = calloc(1, sizeof(*leaf_issuer));

	if (leaf_issuer)
		leaf_issuer->keys[TLS_KEY_ECDSA] = ca_leaf_key_new(TLS_KEY_ECDSA);
	if (!leaf_issuer || !leaf_issuer->keys[TLS_KEY_ECDSA]) {
		free(leaf_issuer);
		ca_free(issuer);
		return NULL;
	}
	leaf_issuer->issuer = issuer;
	leaf_issuer->limits = *limits;
	leaf_issuer->hash_key = hash_random_key();
	return leaf_issuer;
}

static void leaf_free(struct leaf *leaf)
{
	tls_identity_release(leaf->identity);
	free(leaf);
}

static void drop(struct leaf **table, struct leaf *leaf)
{
	HASH_DELETE(hh, *table, leaf);
	leaf_free(leaf);
}

static void forget(struct leaf_issuer *leaf_issuer)
{
	for (size_t i = 0; i < 2; i++)
		while (leaf_issuer->tables[i])
			drop(&leaf_issuer->tables[i], leaf_issuer->tables[i]);
}

void leaf_issuer_replace(struct leaf_issuer *leaf_issuer, struct ca *issuer)
{
	forget(leaf_issuer);
	ca_free(leaf_issuer->issuer);
	leaf_issuer->issuer = issuer;
}

void leaf_issuer_free(struct leaf_issuer *leaf_issuer)
{
	if (!leaf_issuer)
		return;
	forget(leaf_issuer);
	tls_identity_release(leaf_issuer->last);
	for (size_t i = 0; i < TLS_KEY_KINDS; i++)
		ca_leaf_key_free(leaf_issuer->keys[i]);
	ca_free(leaf_issuer->issuer);
	free(leaf_issuer);
}

/* Takes one leaf from the bucket, which fills at blocked_per_minute up to one minute's worth. */
static bool bucket_take(struct leaf_issuer *leaf_issuer, int64_t now_ms)
{
	int64_t full = (int64_t)leaf_issuer->limits.blocked_per_minute * MINUTE_MS;
	int64_t passed_ms = leaf_issuer->filled ? now_ms - leaf_issuer->filled_ms : MINUTE_MS;

	if (passed_ms > MINUTE_MS)
		passed_ms = MINUTE_MS;
	if (passed_ms > 0) {
		leaf_issuer->tokens += passed_ms * leaf_issuer->limits.blocked_per_minute;
		if (leaf_issuer->tokens > full)
			leaf_issuer->tokens = full;
		leaf_issuer->filled_ms = now_ms;
		leaf_issuer->filled = true;
	}
	if (leaf_issuer->tokens < MINUTE_MS)
		return false;
	leaf_issuer->tokens -= MINUTE_MS;
	return true;
}

static struct slice make_key(
        struct slice host, const struct ip *address, enum tls_key_kind kind, uint8_t out[KEY_MAX])
{
	if (host.n > HOST_MAX ||
	        (host.n == 0 && (!address || (address->family != 4 && address->family != 6))))
		return slice_of(NULL, 0);
	out[0] = (uint8_t)kind;
	if (host.n > 0) {
		out[1] = 0;
		memcpy(out + 2, host.p, host.n);
		return slice_of(out, 2 + host.n);
	}
	out[1] = address->family;
	memcpy(out + 2, address->bytes, sizeof(address->bytes));
	return slice_of(out, 2 + sizeof(address->bytes));
}

static void leaf_add(struct leaf **table, struct leaf *leaf, unsigned hash)
{
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, *table, leaf->key, leaf->key_len, hash, leaf);
	if (!leaf->hh.tbl)
		leaf_free(leaf);
}

/* Moves a leaf to the end of the order of use. */
static void leaf_touch(struct leaf **table, struct leaf *leaf, unsigned hash)
{
	if (!leaf->hh.next)
		return;
	HASH_DELETE(hh, *table, leaf);
	leaf_add(table, leaf, hash);
}

/* A leaf that ends with its issuer cannot be made anew with a later end. */
static bool is_fresh(const struct leaf_issuer *leaf_issuer, const struct leaf *leaf)
{
	int64_t ends_s = tls_identity_expires_s(leaf->identity);
	int64_t left_s = ends_s - clock_real_ms() / 1000;

	return left_s >= RENEW_BEFORE_S ||
	       (left_s > 0 && ends_s >= ca_expires_s(leaf_issuer->issuer));
}

static struct tls_identity *hold(struct leaf_issuer *leaf_issuer, struct tls_identity *identity)
{
	tls_identity_retain(identity);
	tls_identity_release(leaf_issuer->last);
	leaf_issuer->last = identity;
	return identity;
}

/* Makes room, then keeps identity under key. Without memory it is not kept. */
static void keep(struct leaf_issuer *leaf_issuer, struct leaf **table, struct slice key,
        unsigned hash, struct tls_identity *identity)
{
	struct leaf *leaf = calloc(1, sizeof(*leaf) + key.n);

	if (!leaf)
		return;
	while (*table && HASH_COUNT(*table) >= leaf_issuer->limits.leaves)
		drop(table, *table);
	tls_identity_retain(identity);
	leaf->identity = identity;
	leaf->key_len = key.n;
	memcpy(leaf->key, key.p, key.n);
	leaf_add(table, leaf, hash);
}

/* Makes a new leaf, with one reference for the caller. */
static struct tls_identity *make(struct leaf_issuer *leaf_issuer, struct slice host,
        const struct ip *address, enum tls_key_kind kind)
{
	if (!leaf_issuer->keys[kind])
		leaf_issuer->keys[kind] = ca_leaf_key_new(kind);
	return leaf_issuer->keys[kind]
	               ? ca_leaf_new(leaf_issuer->issuer, leaf_issuer->keys[kind], host, address)
	               : NULL;
}

struct tls_identity *leaf_issuer_get(struct leaf_issuer *leaf_issuer, struct slice host,
        const struct ip *address, enum tls_key_kind kind, bool mentioned, int64_t now_ms)
{
	uint8_t key_bytes[KEY_MAX];
	struct slice key = make_key(host, address, kind, key_bytes);
	struct leaf **table = &leaf_issuer->tables[mentioned];
	struct leaf *leaf;

	if (key.n == 0)
		return NULL;
	unsigned hash = (unsigned)hash_bytes(&leaf_issuer->hash_key, key.p, key.n);
	HASH_FIND_BYHASHVALUE(hh, *table, key.p, key.n, hash, leaf);
	if (leaf && is_fresh(leaf_issuer, leaf)) {
		struct tls_identity *identity = hold(leaf_issuer, leaf->identity);
		leaf_touch(table, leaf, hash);
		return identity;
	}
	if (leaf)
		drop(table, leaf);
	if (!mentioned && !bucket_take(leaf_issuer, now_ms))
		return NULL;
	struct tls_identity *identity = make(leaf_issuer, host, address, kind);
	if (!identity)
		return NULL;
	hold(leaf_issuer, identity);
	keep(leaf_issuer, table, key, hash, identity);
	tls_identity_release(identity);
	return identity;
}
