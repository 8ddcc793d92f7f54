/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending a request again. An upstream's connection may end just when a request goes out over it. A
 * request is sent again, at most EXCHANGE_RETRIES_MAX times, if it cannot take effect twice:
 *
 * - Any method, if it is known that no upstream processed the request: the upstream refused the
 *   stream, or named a lower one as its last (RFC 9113 sections 6.8 and 8.7), or the connection was
 *   lost before any byte of the request left.
 * - An idempotent method (RFC 9110 section 9.2.2), once, if a connection that had served other
 *   requests was lost before any byte of a response came. Only once, because the request itself may
 *   be what ends the connections.
 *
 * For this, a body of up to EXCHANGE_KEPT_MAX bytes is kept until the response begins, but only on
 * a connection that can fail in such a way. A body that was not kept from its first byte to its
 * last is not sent again.
 *
 * A request that may not be sent again should avoid connections that their server is about to
 * close. The first request of a client's connection never takes an idle HTTP/1 connection, because
 * a client does not expect a new connection to fail in that way. Later requests take one that was
 * used very recently.
 */
#include <inttypes.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/signing/signing.h"
#include "vethguard/base/log.h"

static const char *const state_names[] = {
        [SENDING_NOTHING] = "NOTHING",
        [SENDING_AGAIN] = "AGAIN",
        [SENDING_ONCE] = "ONCE",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == SENDING_STATE_COUNT, "a name per state");

void sending_enter(struct exchange *ex, enum sending_state state)
{
	struct sending *m = &ex->sending;

	if (m->state != state)
		log_debug("event %016" PRIx64 ": request: %s -> %s", ex->id, state_names[m->state],
		        state_names[state]);
	m->state = state;
}

bool exchange_has_body(const struct exchange *ex)
{
	const struct http_request *r = &ex->request;

	return r->body == HTTP_BODY_CHUNKED || (r->body == HTTP_BODY_LENGTH && r->content_length);
}

static bool is_idempotent(const struct exchange *ex)
{
	static const struct slice idempotent[] = {
	        {"GET", 3}, {"HEAD", 4}, {"OPTIONS", 7}, {"PUT", 3}, {"DELETE", 6}};

	for (size_t i = 0; i < sizeof(idempotent) / sizeof(*idempotent); i++)
		if (slice_equals(ex->request.method, idempotent[i]))
			return true;
	return false;
}

bool exchange_can_be_kept(const struct exchange *ex)
{
	const struct http_request *r = &ex->request;

	return !exchange_has_body(ex) || ex->holding ||
	       (r->body == HTTP_BODY_LENGTH && r->content_length <= EXCHANGE_KEPT_MAX);
}

/* True if the request could be sent again although an upstream may have processed it (RFC 9110
 * section 9.2.2). */
static bool is_repeatable(const struct exchange *ex)
{
	return is_idempotent(ex) && exchange_can_be_kept(ex);
}

int64_t exchange_idle_ms(const struct exchange *ex)
{
	if (is_repeatable(ex))
		return INT64_MAX;
	return ex->client->answered ? EXCHANGE_RISK_MS : 0;
}

/* --- keeping --- */

/* True if the connection could fail in a way that lets the request be sent again. */
static bool is_at_risk(const struct exchange *ex)
{
	const struct upstream_stream *u = ex->upstream;

	return !u->response_begun && ex->sending.state != SENDING_ONCE &&
	       ex->sending.retries < EXCHANGE_RETRIES_MAX &&
	       (u->reused || u->ops == &upstream_http2);
}

void exchange_forget_body(struct exchange *ex)
{
	ex->proxy->kept -= ex->sending.kept.len + ex->sending.kept_trailers.len;
	buf_fini(&ex->sending.kept);
	buf_fini(&ex->sending.kept_trailers);
}

static bool keep(struct exchange *ex, struct buf *kept, const void *p, size_t n)
{
	if (n > EXCHANGE_KEPT_ALL_MAX - ex->proxy->kept || buf_append(kept, p, n) < 0)
		return false;
	ex->proxy->kept += n;
	return true;
}

void exchange_keep_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	const struct http_request *r = &ex->request;

	/* The body is kept completely from its start, or not at all. */
	if (ex->sending.kept.len != ex->bytes_out || !is_at_risk(ex) ||
	        (r->body == HTTP_BODY_LENGTH && r->content_length > EXCHANGE_KEPT_MAX))
		return;
	if (!keep(ex, &ex->sending.kept, p, n))
		exchange_forget_body(ex);
}

void exchange_keep_trailers(struct exchange *ex, struct slice trailers)
{
	if (trailers.n &&
	        (!is_at_risk(ex) || !keep(ex, &ex->sending.kept_trailers, trailers.p, trailers.n)))
		sending_enter(ex, SENDING_ONCE);
}

/* --- again --- */

bool exchange_may_retry(const struct exchange *ex, enum event_cause cause)
{
	const struct upstream_stream *u = ex->upstream;

	if (cause != EVENT_CAUSE_UPSTREAM || responding_has_begun(&ex->responding) ||
	        ex->sending.state == SENDING_ONCE || u->response_begun ||
	        ex->sending.retries == EXCHANGE_RETRIES_MAX)
		return false;
	if (ex->signing && signing_has_body(ex)
	                ? !signing_can_repeat(ex)
	                : !ex->holding && ex->sending.kept.len != ex->bytes_out)
		return false;
	return u->untouched || (u->reused && !ex->sending.retries && is_idempotent(ex));
}

bool exchange_ends_with_head(const struct exchange *ex)
{
	return ex->request_done && !ex->sending.kept.len && !ex->sending.kept_trailers.len &&
	       !(ex->signing && signing_has_body(ex)) && !(ex->holding && holding_bytes(ex).n > 0);
}

/* The kept body is at most EXCHANGE_KEPT_MAX bytes, which a socket or a stream takes at once. */
void exchange_send_kept(struct exchange *ex)
{
	struct upstream_stream *u = ex->upstream;

	if (ex->holding) {
		holding_send(ex);
		return;
	}
	if (ex->signing && signing_has_body(ex)) {
		signing_pump(ex);
		return;
	}
	if (ex->sending.kept.len)
		u->ops->send_body(u, buf_bytes(&ex->sending.kept), ex->sending.kept.len);
	if (ex->request_done && !exchange_ends_with_head(ex))
		u->ops->send_end(u, buf_slice(&ex->sending.kept_trailers));
}
