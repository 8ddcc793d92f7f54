/* SPDX-License-Identifier: Apache-2.0 */
/* Finds an upstream for an exchange: a stream of a shared connection, an idle connection, or a new
 * one. */
#include <errno.h>
#include <sys/socket.h>

#include "proxy/exchange/exchange.h"

/* Takes an idle HTTP/1 connection for the exchange. */
static struct upstream_stream *take_idle(struct exchange *ex, struct pool_entry *entry)
{
	struct upstream_conn *c = pool_take(entry, exchange_idle_ms(ex));

	if (!c)
		return NULL;
	upstream_conn_enter(c, UPSTREAM_CONN_BUSY);
	c->own.exchange = ex;
	c->own.reused = true;
	c->own.ready = true;
	c->own.response_begun = c->own.untouched = false;
	c->own.sent_before = c->socket.sent;
	upstream_conn_wait(&c->own, WAIT_RESPONSE);
	return &c->own;
}

/* True for an HTTP/2 connection with nothing under way on which something has come: it may be about
 * to end, and a request that is not kept would be lost with it. */
static bool is_too_risky(const struct exchange *ex, const struct upstream_conn *c)
{
	char byte;

	if (c->state != UPSTREAM_CONN_IDLE || exchange_can_be_kept(ex))
		return false;
	return recv(c->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Makes a new connection, or queues for the one that is being made. */
static struct upstream_stream *make(struct exchange *ex, struct pool_entry *entry)
{
	struct upstream_conn *c = upstream_conn_new(ex, entry);

	if (!c) {
		pool_entry_release(ex->proxy, entry);
		return NULL;
	}
	if ((c->tls || c->how == UPSTREAM_PRIOR) && pool_should_wait(entry)) {
		pool_wait(c);
		upstream_conn_wait(&c->own, WAIT_CONNECT);
	} else if (upstream_conn_dial(c) < 0) {
		upstream_conn_close(c);
		return NULL;
	}
	return &c->own;
}

static uint32_t certificate_serial(const struct exchange *ex)
{
	return ex->credential ? ex->credential->serial : 0;
}

/* For a WebSocket: a stream of an existing connection, if the upstream supports it. Messages with a
 * credential go over HTTP/1, which keeps them in locked memory. */
static struct upstream_stream *take_websocket(struct exchange *ex)
{
	struct upstream_stream *u = NULL;
	struct upstream_key key;
	struct pool_entry *entry;
	struct upstream_conn *c;

	if (!ex->request.wants_websocket || ex->sending.http1_required ||
	        ex->verdict.fills_messages)
		return NULL;
	upstream_key_make(&key, &ex->destination, ex->client->tls, UPSTREAM_ANY,
	        &ex->verdict.decision, ex->proxy->policy_turn, certificate_serial(ex));
	entry = pool_entry_get(ex->proxy, &key);
	if (!entry)
		return NULL;
	c = pool_shared(entry);
	if (c && upstream_http2_connects(c))
		u = upstream_http2_stream_open(c, ex);
	pool_entry_release(ex->proxy, entry);
	return u;
}

struct upstream_stream *upstream_stream_get(struct exchange *ex, bool fresh)
{
	struct proxy *proxy = ex->proxy;
	struct upstream_stream *u = take_websocket(ex);
	struct upstream_key key;
	struct pool_entry *entry;
	struct upstream_conn *shared;

	if (u)
		return u;
	upstream_key_make(&key, &ex->destination, ex->client->tls, ex->sending.how,
	        &ex->verdict.decision, proxy->policy_turn, certificate_serial(ex));
	entry = pool_entry_get(proxy, &key);
	if (!entry)
		return NULL;
	shared = pool_shared(entry);
	if (shared && is_too_risky(ex, shared))
		shared = NULL;
	if (shared)
		u = upstream_http2_stream_open(shared, ex);
	else if (!fresh)
		u = take_idle(ex, entry);
	if (!u && !shared)
		return make(ex, entry);
	pool_entry_release(proxy, entry);
	return u;
}

void upstream_stream_on_deadline(struct upstream_stream *u, int wait)
{
	u->ops->on_deadline(u, wait);
}

void upstream_stream_upgrade(struct upstream_stream *u)
{
	u->upgraded = true;
}

void upstream_stream_let_go(struct upstream_stream *u)
{
	u->exchange = NULL;
}
