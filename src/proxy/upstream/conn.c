/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to an upstream:
 *
 *   (WAITING) -> DIALING -> (TLS or PRIOR) -> BUSY <-> IDLE -> CLOSED
 *
 * ALPN decides which protocol it speaks from BUSY on.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/log.h"
#include "proxy/exchange/exchange.h"
#include "proxy/upstream/sign.h"
#include "proxy/dial/dial.h"

static void on_deferred_free(struct loop_task *task)
{
	struct upstream_conn *c = container_of(task, struct upstream_conn, deferred_free);

	list_remove(&c->all);
	proxy_maybe_idle(c->proxy);
	pool_entry_release(c->proxy, c->entry);
	http1_fini(&c->http1);
	upstream_sign_free(c->sign);
	tls_identity_release(c->identity);
	free(c);
}

static void dial_ended(struct upstream_conn *c, struct upstream_conn *told)
{
	c->settled = true;
	pool_dial_ended(c->proxy, c->entry, told);
}

static const char *const state_names[] = {
        [UPSTREAM_CONN_WAITING] = "WAITING",
        [UPSTREAM_CONN_DIALING] = "DIALING",
        [UPSTREAM_CONN_TLS] = "TLS",
        [UPSTREAM_CONN_PRIOR] = "PRIOR",
        [UPSTREAM_CONN_BUSY] = "BUSY",
        [UPSTREAM_CONN_IDLE] = "IDLE",
        [UPSTREAM_CONN_CLOSED] = "CLOSED",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == UPSTREAM_CONN_STATE_COUNT,
        "a name per state");

void upstream_conn_enter(struct upstream_conn *c, enum upstream_conn_state state)
{
	if (c->state != state)
		log_debug("upstream %s:%u: %s -> %s", c->destination.host, c->destination.port,
		        state_names[c->state], state_names[state]);
	c->state = state;
}

void upstream_conn_close(struct upstream_conn *c)
{
	bool undecided = (c->state == UPSTREAM_CONN_DIALING || c->state == UPSTREAM_CONN_TLS ||
	                         c->state == UPSTREAM_CONN_PRIOR) &&
	                 !c->settled;

	if (c->state == UPSTREAM_CONN_CLOSED)
		return;
	pool_remove(c);
	upstream_conn_enter(c, UPSTREAM_CONN_CLOSED);
	if (c->counted) /* connections that waited for this one may dial at once */
		c->proxy->upstream_count--;
	c->own.exchange = NULL;
	c->own.ready = false;
	if (c->protocol)
		c->protocol->close(c);
	dial_cancel(c->dial);
	c->dial = NULL;
	socket_close(&c->socket, c->cut);
	upstream_sign_cancel(c->sign);
	loop_deadline_clear(&c->own.deadline);
	loop_task_cancel(c->proxy->config.loop, &c->go_on);
	loop_task_queue(c->proxy->config.loop, &c->deferred_free);
	if (undecided)
		dial_ended(c, NULL);
}

void upstream_conn_wait(struct upstream_stream *u, int wait)
{
	loop_deadline_set(&u->conn->proxy->waits[wait], &u->deadline);
}

void upstream_conn_failed(struct upstream_conn *c, enum event_cause cause, const char *detail)
{
	struct exchange *ex = c->own.exchange;

	/* Take it out of the pool, so that it is neither waited for nor shared while exchanges are
	 * told. */
	pool_unshare(c);
	if (ex)
		exchange_upstream_failed(ex, cause, detail);
	upstream_conn_close(c);
}

const char *upstream_conn_end_text(
        const struct upstream_conn *c, enum socket_status status, const char *usual)
{
	const char *text = c->identity && status == SOCKET_ERROR && c->socket.tls
	                           ? tls_error_text(c->socket.tls)
	                           : "";

	return *text ? text : usual;
}

/* --- from a dial to a protocol --- */

void upstream_conn_told(struct upstream_conn *c)
{
	dial_ended(c, c);
}

static void established(struct upstream_conn *c)
{
	bool http2 = c->socket.tls ? slice_equals(tls_alpn(c->socket.tls), SLICE("h2"))
	                           : c->how == UPSTREAM_PRIOR;

	upstream_conn_enter(c, UPSTREAM_CONN_BUSY);
	c->protocol = http2 ? &upstream_conn_http2 : &upstream_conn_http1;
	c->protocol->begin(c);
	if (c->state != UPSTREAM_CONN_PRIOR)
		upstream_conn_told(c);
}

void upstream_conn_shake_hands(struct upstream_conn *c)
{
	switch (socket_handshake(&c->socket)) {
	case SOCKET_OK:
		established(c);
		break;
	case SOCKET_AGAIN:
		if (c->sign)
			upstream_sign_ask(c);
		break;
	case SOCKET_EOF:
		upstream_conn_failed(c, EVENT_CAUSE_UPSTREAM_TLS,
		        "the upstream closed the connection during the TLS handshake");
		break;
	case SOCKET_ERROR:
		upstream_conn_failed(c, EVENT_CAUSE_UPSTREAM_TLS, tls_error_text(c->socket.tls));
		break;
	}
}

static void on_drained(struct socket *socket)
{
	struct upstream_conn *c = container_of(socket, struct upstream_conn, socket);

	if (c->state == UPSTREAM_CONN_BUSY)
		c->protocol->on_drained(c);
}

static void on_event(struct socket *socket)
{
	struct upstream_conn *c = container_of(socket, struct upstream_conn, socket);

	if (c->state == UPSTREAM_CONN_TLS)
		upstream_conn_shake_hands(c);
	if (c->state == UPSTREAM_CONN_PRIOR)
		upstream_http2_on_greeting(c);
	if (c->state == UPSTREAM_CONN_BUSY || c->state == UPSTREAM_CONN_IDLE)
		c->protocol->on_event(c);
}

static void on_go_on(struct loop_task *task)
{
	struct upstream_conn *c = container_of(task, struct upstream_conn, go_on);

	if (c->state == UPSTREAM_CONN_BUSY || c->state == UPSTREAM_CONN_IDLE)
		c->protocol->go_on(c);
}

/* Returns NULL, or why there is no TLS. */
static const char *start_tls(struct upstream_conn *c)
{
	static const char any[] = "\x02h2\x08http/1.1", http1[] = "\x08http/1.1";
	struct tls_client *client = proxy_tls_client(c->proxy);
	struct tls *tls = !client ? NULL
	                          : tls_connect_new(client, destination_host(&c->destination),
	                                    &c->destination.address,
	                                    c->how == UPSTREAM_HTTP1 ? SLICE(http1) : SLICE(any),
	                                    pool_entry_key(c->entry), &c->proxy->sockets.tx);

	if (tls && c->identity && !tls_present(tls, c->identity)) {
		tls_free(tls);
		return "the key of the client's certificate is too weak";
	}
	return tls && socket_start_tls(&c->socket, tls, SLICE("")) == 0
	               ? NULL
	               : "no memory for a connection";
}

static void on_dialled(void *context, const struct dial_result *result)
{
	struct upstream_conn *c = context;
	const char *why = NULL;

	c->dial = NULL;
	if (result->fd < 0) {
		if (result->cause == EVENT_CAUSE_ADDRESS)
			c->address = result->address;
		upstream_conn_failed(c, result->cause, result->detail);
		return;
	}
	c->address = result->address;
	if (socket_open(&c->proxy->sockets, &c->socket, result->fd, result->io, on_event,
	            on_drained) < 0)
		why = "no memory for a connection";
	else if (c->tls)
		why = start_tls(c);
	if (why) {
		upstream_conn_failed(c, EVENT_CAUSE_LIMIT, why);
		return;
	}
	socket_read_on(&c->socket); /* to get a last response, an alert, or GOAWAY */
	if (!c->tls) {
		established(c);
		return;
	}
	upstream_conn_enter(c, UPSTREAM_CONN_TLS);
	upstream_conn_shake_hands(c);
}

int upstream_conn_dial(struct upstream_conn *c)
{
	struct proxy *proxy = c->proxy;
	struct exchange *ex = c->own.exchange;

	if (proxy->upstream_count >= proxy->config.limits.upstream_connections &&
	        !pool_evict(proxy))
		return -EMFILE;
	c->dial = dial_start(proxy, &c->destination, &ex->verdict.decision, on_dialled, c);
	if (!c->dial)
		return -ENOMEM;
	upstream_conn_enter(c, UPSTREAM_CONN_DIALING);
	c->counted = true;
	proxy->upstream_count++;
	pool_dial_begun(c->entry);
	upstream_conn_wait(&c->own, WAIT_CONNECT);
	return 0;
}

struct upstream_conn *upstream_conn_new(struct exchange *ex, struct pool_entry *entry)
{
	struct proxy *proxy = ex->proxy;
	struct upstream_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->proxy = proxy;
	c->entry = entry;
	c->destination = ex->destination;
	c->tls = ex->client->tls;
	c->identity = ex->credential ? ex->credential->identity : NULL;
	if (c->identity)
		tls_identity_retain(c->identity);
	if (c->identity && tls_identity_is_elsewhere(c->identity) && !upstream_sign_new(c, ex)) {
		tls_identity_release(c->identity);
		free(c);
		return NULL;
	}
	c->how = ex->sending.how;
	socket_init(&c->socket);
	c->deferred_free.run = on_deferred_free;
	c->go_on.run = on_go_on;
	c->own.ops = &upstream_http1;
	c->own.conn = c;
	c->own.exchange = ex;
	http1_init(&c->http1, true, HTTP_HEAD_MAX);
	list_append(&proxy->upstreams, &c->all);
	return c;
}

void upstream_conn_on_deadline(struct upstream_conn *c, int wait)
{
	if (c->state == UPSTREAM_CONN_IDLE || !c->own.exchange) {
		upstream_conn_close(c);
		return;
	}
	if (c->state == UPSTREAM_CONN_PRIOR) {
		prior_failed(c, false);
		return;
	}
	/* The upstream still takes the request, however slowly. */
	if (c->state == UPSTREAM_CONN_BUSY && socket_unsent(&c->socket) &&
	        c->socket.sent != c->own.sent_seen) {
		c->own.sent_seen = c->socket.sent;
		upstream_conn_wait(&c->own, wait);
		return;
	}
	upstream_conn_failed(c, EVENT_CAUSE_TIMEOUT,
	        wait == WAIT_CONNECT ? "connecting to the upstream took too long"
	                             : "the upstream was silent for too long");
}

void upstream_conns_cut_orphaned(struct proxy *proxy)
{
	for (struct list *l = proxy->upstreams.next; l != &proxy->upstreams; l = l->next) {
		struct upstream_conn *c = container_of(l, struct upstream_conn, all);

		if (c->state != UPSTREAM_CONN_BUSY || !upstream_http2_is_orphaned(c))
			continue;
		c->cut = true;
		upstream_conn_close(c);
	}
}
