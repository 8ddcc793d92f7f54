/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: upstream connections by key (host, port, TLS, credential):
 * - idle HTTP/1 connections, of which the newest is used first;
 * - HTTP/2 connections that take further streams;
 * - connections that wait until the first dial for the key has told its protocol.
 *
 * An entry lives as long as any connection belongs to it, so that a connection that comes and goes
 * costs no allocation.
 */
#include <stdlib.h>

#include "vethguard/base/table.h"
#include "proxy/exchange/exchange.h"

struct pool_entry {
	struct list idle, shared, waiting;
	unsigned references;
	unsigned dialling;
	enum { PROTOCOL_UNKNOWN, PROTOCOL_HTTP1, PROTOCOL_HTTP2 } protocol; /* as told last */
	UT_hash_handle hh;
	struct upstream_key key;
};

void upstream_key_make(struct upstream_key *key, const struct destination *d, bool tls,
        enum upstream_how how, const struct policy_decision *decision, uint32_t turn,
        uint32_t serial)
{
	uint32_t credential = decision->credential;
	uint8_t tail[UPSTREAM_KEY_TAIL] = {(uint8_t)(d->port >> 8), (uint8_t)d->port,
	        (uint8_t)((unsigned)tls | (unsigned)how << 1 |
	                  (unsigned)decision->names_address << 3 |
	                  (unsigned)decision->names_exactly << 4),
	        (uint8_t)(credential >> 24), (uint8_t)(credential >> 16),
	        (uint8_t)(credential >> 8), (uint8_t)credential, (uint8_t)(turn >> 24),
	        (uint8_t)(turn >> 16), (uint8_t)(turn >> 8), (uint8_t)turn, (uint8_t)(serial >> 24),
	        (uint8_t)(serial >> 16), (uint8_t)(serial >> 8), (uint8_t)serial};
	size_t n = d->host_n;

	if (n) {
		memcpy(key->bytes, d->host, n);
	} else { /* no host name begins with NUL */
		key->bytes[0] = '\0';
		memcpy(key->bytes + 1, &d->address, sizeof(d->address));
		n = 1 + sizeof(d->address);
	}
	memcpy(key->bytes + n, tail, sizeof(tail));
	key->n = n + sizeof(tail);
}

struct pool_entry *pool_entry_get(struct proxy *proxy, const struct upstream_key *key)
{
	struct pool_entry *entry;

	HASH_FIND(hh, proxy->pool, key->bytes, key->n, entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return NULL;
		list_init(&entry->idle);
		list_init(&entry->shared);
		list_init(&entry->waiting);
		entry->key = *key;
		HASH_ADD_KEYPTR(hh, proxy->pool, entry->key.bytes, entry->key.n, entry);
		if (!entry->hh.tbl) {
			free(entry);
			return NULL;
		}
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

/* --- idle and shared connections --- */

/* True if the upstream has sent nothing since the last response. Such bytes would be taken for the
 * response to the next request. The loop may not know of them: there is no event for bytes that
 * were already there when the last read of a response exactly filled the buffer. */
static bool is_quiet(struct upstream_conn *c)
{
	uint8_t stray[SOCKET_RECORD];
	enum socket_status status;
	size_t n;

	socket_ask_kernel(&c->socket);
	status = socket_read(&c->socket, stray, sizeof(stray), &n);
	if (n)
		secret_wipe(stray, n);
	return status == SOCKET_AGAIN;
}

/* The newest has warm caches, and its peer is least likely to have left. */
struct upstream_conn *pool_take(struct pool_entry *entry, int64_t idle_ms)
{
	while (!list_is_empty(&entry->idle)) {
		struct upstream_conn *c =
		        container_of(entry->idle.prev, struct upstream_conn, pooled);

		if (loop_now_ms(c->proxy->config.loop) - c->idle_since_ms >= idle_ms)
			return NULL;
		pool_remove(c);
		if (!c->socket.broken && is_quiet(c))
			return c;
		upstream_conn_close(c);
	}
	return NULL;
}

struct upstream_conn *pool_shared(struct pool_entry *entry)
{
	for (struct list *l = entry->shared.next; l != &entry->shared; l = l->next) {
		struct upstream_conn *c = container_of(l, struct upstream_conn, pooled);

		if (upstream_http2_has_room(c))
			return c;
	}
	return NULL;
}

/* Idle connections are in order of age in the list of all. */
void pool_mark_idle(struct upstream_conn *c)
{
	struct proxy *proxy = c->proxy;

	upstream_conn_enter(c, UPSTREAM_CONN_IDLE);
	c->idle_since_ms = loop_now_ms(proxy->config.loop);
	list_remove(&c->all);
	list_append(&proxy->upstreams, &c->all);
	proxy->idle_count++;
	while (proxy->idle_count > proxy->config.limits.upstream_idle && pool_evict(proxy))
		;
}

void pool_mark_busy(struct upstream_conn *c)
{
	if (c->state != UPSTREAM_CONN_IDLE)
		return;
	upstream_conn_enter(c, UPSTREAM_CONN_BUSY);
	c->proxy->idle_count--;
}

void pool_add_idle(struct upstream_conn *c)
{
	list_append(&c->entry->idle, &c->pooled);
	pool_mark_idle(c);
}

void pool_share(struct upstream_conn *c)
{
	list_append(&c->entry->shared, &c->pooled);
}

void pool_unshare(struct upstream_conn *c)
{
	list_remove(&c->pooled);
}

void pool_remove(struct upstream_conn *c)
{
	pool_mark_busy(c);
	list_remove(&c->pooled);
}

bool pool_evict(struct proxy *proxy)
{
	for (struct list *l = proxy->upstreams.next; l != &proxy->upstreams; l = l->next) {
		struct upstream_conn *c = container_of(l, struct upstream_conn, all);

		if (c->state == UPSTREAM_CONN_IDLE) {
			upstream_conn_close(c);
			return true;
		}
	}
	return false;
}

/* --- waiting for the protocol --- */

bool pool_should_wait(const struct pool_entry *entry)
{
	return entry->dialling && entry->protocol != PROTOCOL_HTTP1;
}

void pool_wait(struct upstream_conn *c)
{
	upstream_conn_enter(c, UPSTREAM_CONN_WAITING);
	list_append(&c->entry->waiting, &c->pooled);
}

void pool_dial_begun(struct pool_entry *entry)
{
	entry->dialling++;
}

/* Gives the waiting exchange a stream of the connection that was made for another. */
static void share_with(struct upstream_conn *waiting, struct upstream_conn *shared)
{
	struct exchange *ex = waiting->own.exchange;
	struct upstream_stream *u = upstream_http2_stream_open(shared, ex);

	if (!u) {
		upstream_conn_failed(waiting, EVENT_CAUSE_LIMIT, "no memory for a stream");
		return;
	}
	waiting->own.exchange = NULL;
	exchange_move_upstream(ex, u);
	upstream_conn_close(waiting);
	if (u->ready)
		exchange_upstream_ready(ex);
}

void pool_dial_ended(struct proxy *proxy, struct pool_entry *entry, struct upstream_conn *told)
{
	entry->references++; /* nothing that follows may free the entry */
	entry->dialling--;
	if (told)
		entry->protocol =
		        told->protocol == &upstream_conn_http2 ? PROTOCOL_HTTP2 : PROTOCOL_HTTP1;
	while (!list_is_empty(&entry->waiting) && !pool_should_wait(entry)) {
		struct upstream_conn *c =
		        container_of(entry->waiting.next, struct upstream_conn, pooled);
		struct upstream_conn *shared = pool_shared(entry);

		if (shared) {
			share_with(c, shared);
			continue;
		}
		list_remove(&c->pooled);
		if (prior_is_in_vain(c))
			prior_failed(c, false);
		else if (upstream_conn_dial(c) < 0)
			upstream_conn_failed(
			        c, EVENT_CAUSE_LIMIT, "too many upstream connections are open");
	}
	pool_entry_release(proxy, entry);
}
