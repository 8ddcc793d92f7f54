/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: idle upstream connections by key (host, port, TLS, credential), the newest used first.
 * An entry lives as long as any connection, idle or busy, belongs to it, so that a connection that
 * goes to and fro costs no allocation.
 */
#include <stdlib.h>
#include <uthash.h>

#include "proxy/private.h"

struct pool_entry {
	struct list idle;
	unsigned references;
	UT_hash_handle hh;
	struct upstream_key key;
};

void upstream_key_make(
        struct upstream_key *key, const struct destination *d, bool tls, uint32_t credential)
{
	uint8_t tail[7] = {(uint8_t)(d->port >> 8), (uint8_t)d->port, tls,
	        (uint8_t)(credential >> 24), (uint8_t)(credential >> 16),
	        (uint8_t)(credential >> 8), (uint8_t)credential};
	size_t n = d->host_n;

	if (n) {
		memcpy(key->bytes, d->host, n);
	} else { /* no host name begins with NUL */
		key->bytes[0] = '\0';
		memcpy(key->bytes + 1, &d->address, sizeof d->address);
		n = 1 + sizeof d->address;
	}
	memcpy(key->bytes + n, tail, sizeof tail);
	key->n = n + sizeof tail;
}

struct pool_entry *pool_entry_get(struct proxy *proxy, const struct upstream_key *key)
{
	struct pool_entry *entry;

	HASH_FIND(hh, proxy->pool, key->bytes, key->n, entry);
	if (!entry) {
		entry = calloc(1, sizeof *entry);
		if (!entry)
			return NULL;
		list_init(&entry->idle);
		entry->key = *key;
		HASH_ADD_KEYPTR(hh, proxy->pool, entry->key.bytes, entry->key.n, entry);
	}
	entry->references++;
	return entry;
}

void pool_entry_release(struct proxy *proxy, struct pool_entry *entry)
{
	if (--entry->references)
		return;
	HASH_DEL(proxy->pool, entry);
	free(entry);
}

struct slice pool_entry_key(const struct pool_entry *entry)
{
	return slice_of(entry->key.bytes, entry->key.n);
}

/* The newest idle connection of an entry: the one whose caches are warm and whose peer is least
 * likely to have left. */
struct upstream *pool_take(struct proxy *proxy, struct pool_entry *entry)
{
	struct upstream *u;

	(void)proxy;
	if (list_is_empty(&entry->idle))
		return NULL;
	u = container_of(entry->idle.prev, struct upstream, idle);
	pool_remove_idle(u);
	return u;
}

void pool_add_idle(struct upstream *u)
{
	struct proxy *proxy = u->proxy;

	u->state = UPSTREAM_IDLE;
	list_append(&u->entry->idle, &u->idle);
	list_remove(&u->all);
	list_append(&proxy->upstreams, &u->all); /* idle ones come in order of age */
	proxy->idle_count++;
	while (proxy->idle_count > proxy->config.limits.upstream_idle && pool_evict(proxy))
		;
}

void pool_remove_idle(struct upstream *u)
{
	list_remove(&u->idle);
	u->proxy->idle_count--;
}

bool pool_evict(struct proxy *proxy)
{
	for (struct list *l = proxy->upstreams.next; l != &proxy->upstreams; l = l->next) {
		struct upstream *u = container_of(l, struct upstream, all);

		if (u->state == UPSTREAM_IDLE) {
			upstream_close(u);
			return true;
		}
	}
	return false;
}
