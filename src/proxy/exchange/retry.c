/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending a request again. An upstream's connection may end just when a request goes out over it. A
 * request goes out again, EXCHANGE_RETRIES_MAX times at most, where that cannot do anything twice:
 *
 * - No upstream has done anything with it, and we know that: the upstream refused the stream or
 *   named a lower one as its last (RFC 9113 sections 6.8 and 8.7), or the connection was lost
 *   before any byte of the request left. Whatever the method is.
 * - A connection that had served others was lost before any byte of a response came, and the method
 *   is idempotent (RFC 9110 section 9.2.2). Once: it may be the request that ends the connections.
 *
 * For that, a body of up to EXCHANGE_KEPT_MAX bytes is kept until the response begins: only on a
 * connection that can fail in such a way. What has not been kept from its first byte to its last is
 * not sent again.
 *
 * A request that may not be sent again had better not meet a connection that its server is about to
 * close. The first one of a client's connection never takes an idle HTTP/1 connection: a client
 * does not expect a new connection to fail in that way. Later ones take one that has just been
 * used.
 */

#include "proxy/exchange/exchange.h"

bool exchange_has_body(const struct exchange *ex)
{
	const struct http_request *r = &ex->request;

	return r->body == HTTP_BODY_CHUNKED || (r->body == HTTP_BODY_LENGTH && r->content_length);
}

static bool is_idempotent(const struct exchange *ex)
{
	static const struct slice idempotent[] = {
	        {"GET", 3}, {"HEAD", 4}, {"OPTIONS", 7}, {"PUT", 3}, {"DELETE", 6}};

	for (size_t i = 0; i < sizeof idempotent / sizeof *idempotent; i++)
		if (slice_equals(ex->request.method, idempotent[i]))
			return true;
	return false;
}

bool exchange_can_be_kept(const struct exchange *ex)
{
	const struct http_request *r = &ex->request;

	return !exchange_has_body(ex) ||
	       (r->body == HTTP_BODY_LENGTH && r->content_length <= EXCHANGE_KEPT_MAX);
}

bool exchange_is_repeatable(const struct exchange *ex)
{
	return is_idempotent(ex) && exchange_can_be_kept(ex);
}

int64_t exchange_idle_ms(const struct exchange *ex)
{
	if (exchange_is_repeatable(ex))
		return INT64_MAX;
	return ex->client->answered ? EXCHANGE_RISK_MS : 0;
}

/* --- keeping --- */

/* The connection could fail in a way that lets the request go out again. */
static bool is_at_risk(const struct exchange *ex)
{
	const struct upstream_stream *u = ex->upstream;

	return !u->response_begun && !ex->no_retry && ex->retries < EXCHANGE_RETRIES_MAX &&
	       (u->reused || u->ops == &upstream_http2);
}

void exchange_forget_body(struct exchange *ex)
{
	ex->proxy->kept -= ex->kept.len + ex->kept_trailers.len;
	buf_fini(&ex->kept);
	buf_fini(&ex->kept_trailers);
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

	/* All that came before is kept, or nothing. */
	if (ex->kept.len != ex->bytes_out || !is_at_risk(ex) ||
	        (r->body == HTTP_BODY_LENGTH && r->content_length > EXCHANGE_KEPT_MAX))
		return;
	if (!keep(ex, &ex->kept, p, n))
		exchange_forget_body(ex);
}

void exchange_keep_trailers(struct exchange *ex, struct slice trailers)
{
	if (trailers.n &&
	        (!is_at_risk(ex) || !keep(ex, &ex->kept_trailers, trailers.p, trailers.n)))
		ex->no_retry = true;
}

/* --- again --- */

bool exchange_may_retry(const struct exchange *ex, enum event_cause cause)
{
	const struct upstream_stream *u = ex->upstream;

	if (cause != EVENT_CAUSE_UPSTREAM || ex->head_sent || ex->no_retry || u->response_begun ||
	        ex->retries == EXCHANGE_RETRIES_MAX || ex->kept.len != ex->bytes_out)
		return false;
	return u->untouched || (u->reused && !ex->retries && is_idempotent(ex));
}

bool exchange_ends_with_head(const struct exchange *ex)
{
	return ex->request_done && !ex->kept.len && !ex->kept_trailers.len;
}

/* It is EXCHANGE_KEPT_MAX bytes at most, which a socket or a stream takes at once. */
void exchange_send_kept(struct exchange *ex)
{
	struct upstream_stream *u = ex->upstream;

	if (ex->kept.len)
		u->ops->send_body(u, buf_bytes(&ex->kept), ex->kept.len);
	if (ex->request_done && !exchange_ends_with_head(ex))
		u->ops->send_end(u, buf_slice(&ex->kept_trailers));
}
