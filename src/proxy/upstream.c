/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to an upstream, speaking HTTP/1.1:
 *
 *   DIALING -> (TLS) -> BUSY <-> IDLE -> CLOSED
 *
 * BUSY serves one exchange. Bytes that come while IDLE, or after a response's end, were never asked
 * for: the connection is closed, never used again. A closed one is freed at the end of the loop's
 * turn, so that a callback may close what it was called from.
 */
#include <errno.h>
#include <stdlib.h>

#include "proxy/private.h"

static void on_event(struct link *link);

static void on_bury(struct loop_task *task)
{
	struct upstream *u = container_of(task, struct upstream, bury);

	list_remove(&u->all);
	u->proxy->upstream_count--;
	proxy_maybe_idle(u->proxy);
	pool_entry_release(u->proxy, u->entry);
	http1_fini(&u->http1);
	free(u);
}

void upstream_close(struct upstream *u)
{
	if (u->state == UPSTREAM_CLOSED)
		return;
	if (u->state == UPSTREAM_IDLE)
		pool_remove_idle(u);
	u->state = UPSTREAM_CLOSED;
	u->exchange = NULL;
	dial_cancel(u->dial);
	u->dial = NULL;
	link_close(&u->link, false);
	loop_deadline_clear(&u->deadline);
	loop_task_cancel(u->proxy->config.loop, &u->go_on);
	loop_task_queue(u->proxy->config.loop, &u->bury);
}

static void wait_for(struct upstream *u, enum proxy_wait wait)
{
	loop_deadline_set(&u->proxy->waits[wait], &u->deadline);
}

/* The connection cannot serve its exchange. */
static void failed(struct upstream *u, enum event_cause cause, const char *detail)
{
	struct exchange *ex = u->exchange;

	if (ex)
		exchange_upstream_failed(ex, cause, detail);
	upstream_close(u);
}

static void ready(struct upstream *u)
{
	u->state = UPSTREAM_BUSY;
	wait_for(u, WAIT_RESPONSE);
	exchange_upstream_ready(u->exchange);
}

static void shake_hands(struct upstream *u)
{
	switch (link_handshake(&u->link)) {
	case LINK_OK:
		ready(u);
		break;
	case LINK_AGAIN:
		break;
	case LINK_EOF:
		failed(u, EVENT_CAUSE_UPSTREAM_TLS,
		        "the upstream closed the connection during the TLS handshake");
		break;
	case LINK_ERROR:
		failed(u, EVENT_CAUSE_UPSTREAM_TLS, tls_error_text(u->link.tls));
		break;
	}
}

static void on_drained(struct link *link)
{
	struct upstream *u = container_of(link, struct upstream, link);

	if (u->exchange && u->state == UPSTREAM_BUSY)
		exchange_upstream_drained(u->exchange);
}

static bool start_tls(struct upstream *u)
{
	static const char alpn[] = "\x08http/1.1";
	struct tls *tls = tls_connect_new(u->proxy->tls_client, destination_host(&u->destination),
	        &u->destination.address, SLICE(alpn), pool_entry_key(u->entry),
	        &u->proxy->links.tx);

	return tls && link_start_tls(&u->link, tls, SLICE("")) == 0;
}

static void on_dialled(void *context, const struct dial_result *result)
{
	struct upstream *u = context;

	u->dial = NULL;
	if (result->fd < 0) {
		failed(u, result->cause, result->detail);
		return;
	}
	u->address = result->address;
	if (link_open(&u->proxy->links, &u->link, result->fd, on_event, on_drained) < 0 ||
	        (u->tls && !start_tls(u))) {
		failed(u, EVENT_CAUSE_LIMIT, "no memory for a connection");
		return;
	}
	if (!u->tls) {
		ready(u);
		return;
	}
	u->state = UPSTREAM_TLS;
	shake_hands(u);
}

/* --- reading a response --- */

static void on_body(void *context, const uint8_t *p, size_t n)
{
	struct upstream *u = context;

	if (u->exchange)
		exchange_response_body(u->exchange, p, n);
}

/* What is left after a response must be nothing. */
static bool end_response(struct upstream *u, size_t left)
{
	struct exchange *ex = u->exchange;

	if (left)
		u->response.keep_alive = false;
	link_settle(&u->link);
	exchange_response_end(ex, http1_trailers(&u->http1));
	return false;
}

/* Uses up p. False: nothing more is to be read now (the exchange is over, or the connection is). */
static bool take(struct upstream *u, const uint8_t *p, size_t n)
{
	enum http1_status status;
	size_t used;

	u->response_begun = true;
	while (u->state == UPSTREAM_BUSY && u->exchange) {
		if (u->raw) {
			if (n)
				exchange_response_body(u->exchange, p, n);
			return true;
		}
		if (!u->http1.head_done) {
			bool head = u->exchange->head_request;

			status = http1_response_head(&u->http1, p, n, &used, head, &u->response);
			if (status == HTTP1_DONE &&
			        !exchange_response_head(u->exchange, &u->response))
				return false;
			if (status == HTTP1_DONE && u->response.status / 100 == 1 &&
			        u->response.status != 101) {
				http1_reset(&u->http1);
				status = HTTP1_MORE;
			}
		} else {
			status = http1_body(&u->http1, p, n, &used, on_body, u);
		}
		if (u->state != UPSTREAM_BUSY || !u->exchange)
			return false;
		if (u->exchange->damaged) {
			failed(u, EVENT_CAUSE_UNREADABLE,
			        "the upstream's response cannot be searched for the credential");
			return false;
		}
		if (status == HTTP1_BAD || status == HTTP1_TOO_LARGE) {
			failed(u, EVENT_CAUSE_UPSTREAM, http1_error(&u->http1));
			return false;
		}
		p += used;
		n -= used;
		if (!u->raw && u->http1.message_done && u->http1.head_done)
			return end_response(u, n);
		if (n == 0)
			return true;
	}
	return false;
}

static void ended(struct upstream *u, enum link_status status)
{
	struct exchange *ex = u->exchange;

	if (u->raw && status == LINK_EOF) {
		exchange_response_end(ex, SLICE(""));
		return;
	}
	if (!u->raw && status == LINK_EOF && u->http1.head_done && !u->link.truncated &&
	        http1_end(&u->http1) == HTTP1_DONE) {
		u->response.keep_alive = false;
		exchange_response_end(ex, SLICE(""));
		return;
	}
	failed(u, EVENT_CAUSE_UPSTREAM,
	        u->response_begun ? "the upstream ended the connection inside a response"
	                          : "the upstream closed the connection without a response");
}

static void read_response(struct upstream *u)
{
	struct proxy *proxy = u->proxy;
	size_t moved = 0;

	while (u->state == UPSTREAM_BUSY && u->exchange && !u->exchange->ending &&
	        !u->exchange->ops->congested(u->exchange)) {
		size_t n;
		enum link_status status = link_read(&u->link, proxy->plain, LINK_CHUNK, &n);

		if (status == LINK_AGAIN)
			return;
		if (status != LINK_OK) {
			ended(u, status);
			return;
		}
		wait_for(u, u->raw ? WAIT_POOLED : WAIT_RESPONSE);
		bool may_hold_secret = u->exchange->credential != NULL;
		bool more = take(u, proxy->plain, n);

		if (may_hold_secret) /* before it was covered, the credential may have stood here */
			secret_wipe(proxy->plain, n);
		if (!more)
			break;
		moved += n;
		if (moved >= LINK_TURN_BYTES) {
			loop_task_queue(proxy->config.loop, &u->go_on);
			return;
		}
	}
	/* All of the response is here, or there is no room for more: the client's turn, its
	 * deadline counts now. */
	if (u->state == UPSTREAM_BUSY && u->exchange)
		loop_deadline_clear(&u->deadline);
}

static void on_event(struct link *link)
{
	struct upstream *u = container_of(link, struct upstream, link);
	size_t n;

	switch (u->state) {
	case UPSTREAM_TLS:
		shake_hands(u);
		if (u->state == UPSTREAM_BUSY)
			read_response(u);
		break;
	case UPSTREAM_BUSY:
		read_response(u);
		break;
	case UPSTREAM_IDLE:
		/* Session tickets come here too: they are no bytes to us. */
		if (link_read(link, u->proxy->plain, LINK_CHUNK, &n) != LINK_AGAIN)
			upstream_close(u);
		break;
	case UPSTREAM_DIALING:
	case UPSTREAM_CLOSED:
		break;
	}
}

static void on_go_on(struct loop_task *task)
{
	read_response(container_of(task, struct upstream, go_on));
}

void upstream_touch(struct upstream *u)
{
	if (u->state != UPSTREAM_BUSY)
		return;
	u->sent_seen = u->link.sent;
	wait_for(u, u->raw ? WAIT_POOLED : WAIT_RESPONSE);
}

void upstream_resume(struct upstream *u)
{
	if (u->state != UPSTREAM_BUSY)
		return;
	upstream_touch(u);
	loop_task_queue(u->proxy->config.loop, &u->go_on);
}

/* --- life --- */

static struct upstream *upstream_new(struct exchange *ex, struct pool_entry *entry)
{
	struct proxy *proxy = ex->proxy;
	struct upstream *u = calloc(1, sizeof *u);

	if (!u)
		return NULL;
	u->proxy = proxy;
	u->entry = entry;
	u->exchange = ex;
	u->destination = ex->destination;
	u->tls = ex->client->tls;
	u->link.fd = -1;
	u->bury.run = on_bury;
	u->go_on.run = on_go_on;
	list_init(&u->idle);
	http1_init(&u->http1, true, HTTP_HEAD_MAX);
	u->dial = dial_start(proxy, &u->destination, &ex->judgement.decision, on_dialled, u);
	if (!u->dial) {
		http1_fini(&u->http1);
		free(u);
		return NULL;
	}
	list_append(&proxy->upstreams, &u->all);
	proxy->upstream_count++;
	wait_for(u, WAIT_CONNECT);
	return u;
}

struct upstream *upstream_get(struct exchange *ex, bool fresh)
{
	struct proxy *proxy = ex->proxy;
	struct upstream_key key;
	struct pool_entry *entry;
	struct upstream *u = NULL;

	upstream_key_make(
	        &key, &ex->destination, ex->client->tls, ex->judgement.decision.credential);
	entry = pool_entry_get(proxy, &key);
	if (!entry)
		return NULL;
	if (!fresh)
		u = pool_take(proxy, entry);
	if (u) {
		pool_entry_release(proxy, entry);
		u->state = UPSTREAM_BUSY;
		u->exchange = ex;
		u->reused = true;
		u->response_begun = false;
		wait_for(u, WAIT_RESPONSE);
		return u;
	}
	if (proxy->upstream_count < proxy->config.limits.upstream_connections || pool_evict(proxy))
		u = upstream_new(ex, entry);
	if (!u)
		pool_entry_release(proxy, entry);
	return u;
}

void upstream_put(struct upstream *u, bool reusable)
{
	u->exchange = NULL;
	if (!reusable || u->state != UPSTREAM_BUSY || u->raw || u->link.broken || u->link.hung_up ||
	        u->proxy->draining || u->link.out.len) {
		upstream_close(u);
		return;
	}
	http1_reset(&u->http1);
	wait_for(u, WAIT_POOLED);
	pool_add_idle(u);
}

void upstream_on_deadline(struct upstream *u, enum proxy_wait wait)
{
	if (u->state == UPSTREAM_IDLE || !u->exchange) {
		upstream_close(u);
		return;
	}
	/* It still takes the request, however slowly. */
	if (u->state == UPSTREAM_BUSY && link_unsent(&u->link) && u->link.sent != u->sent_seen) {
		u->sent_seen = u->link.sent;
		wait_for(u, wait);
		return;
	}
	failed(u, EVENT_CAUSE_TIMEOUT,
	        wait == WAIT_CONNECT ? "connecting to the upstream took too long"
	                             : "the upstream was silent for too long");
}
