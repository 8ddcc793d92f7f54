/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to an upstream:
 *
 *   (WAITING) -> DIALING -> (TLS or PRIOR) -> BUSY <-> IDLE -> CLOSED
 *
 * ALPN decides which protocol it speaks from BUSY on. A closed one is freed at the end of the
 * loop's turn, so that a callback may close what it was called from.
 */
#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"

static void on_bury(struct loop_task *task)
{
	struct carrier *c = container_of(task, struct carrier, bury);

	list_remove(&c->all);
	proxy_maybe_idle(c->proxy);
	pool_entry_release(c->proxy, c->entry);
	http1_fini(&c->http1);
	free(c);
}

static void dial_ended(struct carrier *c, struct carrier *told)
{
	c->settled = true;
	pool_dial_ended(c->proxy, c->entry, told);
}

void carrier_close(struct carrier *c)
{
	bool undecided = (c->state == CARRIER_DIALING || c->state == CARRIER_TLS ||
	                         c->state == CARRIER_PRIOR) &&
	                 !c->settled;

	if (c->state == CARRIER_CLOSED)
		return;
	pool_remove(c);
	c->state = CARRIER_CLOSED;
	if (c->counted) /* whoever waited for it may dial at once */
		c->proxy->upstream_count--;
	c->own.exchange = NULL;
	c->own.ready = false;
	if (c->protocol)
		c->protocol->close(c);
	dial_cancel(c->dial);
	c->dial = NULL;
	link_close(&c->link, c->cut);
	loop_deadline_clear(&c->own.deadline);
	loop_task_cancel(c->proxy->config.loop, &c->go_on);
	loop_task_queue(c->proxy->config.loop, &c->bury);
	if (undecided)
		dial_ended(c, NULL);
}

void carrier_wait(struct upstream *u, int wait)
{
	loop_deadline_set(&u->carrier->proxy->waits[wait], &u->deadline);
}

void carrier_failed(struct carrier *c, enum event_cause cause, const char *detail)
{
	struct exchange *ex = c->own.exchange;

	/* It is never taken for one that others may wait for, nor shared, while they are told. */
	pool_unshare(c);
	if (ex)
		exchange_upstream_failed(ex, cause, detail);
	carrier_close(c);
}

/* --- from a dial to a protocol --- */

void carrier_told(struct carrier *c)
{
	dial_ended(c, c);
}

static void established(struct carrier *c)
{
	bool http2 = c->link.tls ? slice_equals(tls_alpn(c->link.tls), SLICE("h2")) : c->prior;

	c->state = CARRIER_BUSY;
	c->protocol = http2 ? &carrier_http2 : &carrier_http1;
	c->protocol->begin(c);
	if (c->state != CARRIER_PRIOR)
		carrier_told(c);
}

static void shake_hands(struct carrier *c)
{
	switch (link_handshake(&c->link)) {
	case LINK_OK:
		established(c);
		break;
	case LINK_AGAIN:
		break;
	case LINK_EOF:
		carrier_failed(c, EVENT_CAUSE_UPSTREAM_TLS,
		        "the upstream closed the connection during the TLS handshake");
		break;
	case LINK_ERROR:
		carrier_failed(c, EVENT_CAUSE_UPSTREAM_TLS, tls_error_text(c->link.tls));
		break;
	}
}

static void on_drained(struct link *link)
{
	struct carrier *c = container_of(link, struct carrier, link);

	if (c->state == CARRIER_BUSY)
		c->protocol->on_drained(c);
}

static void on_event(struct link *link)
{
	struct carrier *c = container_of(link, struct carrier, link);

	if (c->state == CARRIER_TLS)
		shake_hands(c);
	if (c->state == CARRIER_PRIOR)
		upstream_http2_on_greeting(c);
	if (c->state == CARRIER_BUSY || c->state == CARRIER_IDLE)
		c->protocol->on_event(c);
}

static void on_go_on(struct loop_task *task)
{
	struct carrier *c = container_of(task, struct carrier, go_on);

	if (c->state == CARRIER_BUSY || c->state == CARRIER_IDLE)
		c->protocol->go_on(c);
}

static bool start_tls(struct carrier *c)
{
	static const char any[] = "\x02h2\x08http/1.1", http1[] = "\x08http/1.1";
	struct tls_client *client = proxy_tls_client(c->proxy);
	struct tls *tls = !client ? NULL
	                          : tls_connect_new(client, destination_host(&c->destination),
	                                    &c->destination.address,
	                                    c->http1_only ? SLICE(http1) : SLICE(any),
	                                    pool_entry_key(c->entry), &c->proxy->links.tx);

	return tls && link_start_tls(&c->link, tls, SLICE("")) == 0;
}

static void on_dialled(void *context, const struct dial_result *result)
{
	struct carrier *c = context;

	c->dial = NULL;
	if (result->fd < 0) {
		if (result->cause == EVENT_CAUSE_ADDRESS)
			c->address = result->address;
		carrier_failed(c, result->cause, result->detail);
		return;
	}
	c->address = result->address;
	if (link_open(&c->proxy->links, &c->link, result->fd, result->io, on_event, on_drained) <
	                0 ||
	        (c->tls && !start_tls(c))) {
		carrier_failed(c, EVENT_CAUSE_LIMIT, "no memory for a connection");
		return;
	}
	c->link.reads_on = true; /* a last answer, an alert, GOAWAY */
	if (!c->tls) {
		established(c);
		return;
	}
	c->state = CARRIER_TLS;
	shake_hands(c);
}

int carrier_dial(struct carrier *c)
{
	struct proxy *proxy = c->proxy;
	struct exchange *ex = c->own.exchange;

	if (proxy->upstream_count >= proxy->config.limits.upstream_connections &&
	        !pool_evict(proxy))
		return -EMFILE;
	c->dial = dial_start(proxy, &c->destination, &ex->judgement.decision, on_dialled, c);
	if (!c->dial)
		return -ENOMEM;
	c->state = CARRIER_DIALING;
	c->counted = true;
	proxy->upstream_count++;
	pool_dial_begun(c->entry);
	carrier_wait(&c->own, WAIT_CONNECT);
	return 0;
}

struct carrier *carrier_new(struct exchange *ex, struct pool_entry *entry)
{
	struct proxy *proxy = ex->proxy;
	struct carrier *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->proxy = proxy;
	c->entry = entry;
	c->destination = ex->destination;
	c->tls = ex->client->tls;
	c->http1_only = ex->http1_only;
	c->prior = ex->prior;
	c->link.fd = -1;
	c->bury.run = on_bury;
	c->go_on.run = on_go_on;
	c->own.ops = &upstream_http1;
	c->own.carrier = c;
	c->own.exchange = ex;
	http1_init(&c->http1, true, HTTP_HEAD_MAX);
	list_append(&proxy->upstreams, &c->all);
	return c;
}

void carrier_on_deadline(struct carrier *c, int wait)
{
	if (c->state == CARRIER_IDLE || !c->own.exchange) {
		carrier_close(c);
		return;
	}
	if (c->state == CARRIER_PRIOR) {
		prior_failed(c, false);
		return;
	}
	/* It still takes the request, however slowly. */
	if (c->state == CARRIER_BUSY && link_unsent(&c->link) && c->link.sent != c->own.sent_seen) {
		c->own.sent_seen = c->link.sent;
		carrier_wait(&c->own, wait);
		return;
	}
	carrier_failed(c, EVENT_CAUSE_TIMEOUT,
	        wait == WAIT_CONNECT ? "connecting to the upstream took too long"
	                             : "the upstream was silent for too long");
}
