/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes the request's content on: to holding.h or signing.h, which keep it until it may leave, to
 * the WebSocket relay after an upgrade, or to the upstream at once. Content for the upstream is
 * counted, kept for another try, and searched for placeholders and secrets.
 */
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/signing/signing.h"
#include "proxy/websocket/websocket_relay.h"

bool exchange_takes_body(const struct exchange *ex)
{
	if (ex->holding && ex->state != EXCHANGE_UPGRADED)
		return holding_takes_body(ex);
	if (ex->signing && !signing_takes_body(ex))
		return false;
	return (ex->state == EXCHANGE_ACTIVE || ex->state == EXCHANGE_UPGRADED) && ex->upstream &&
	       !ex->upstream->ops->congested(ex->upstream);
}

void exchange_request_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct upstream_stream *u = ex->upstream;

	if (n == 0 ||
	        scanning_ends(&ex->scanning)) /* a chunk of zero bytes would be the last chunk */
		return;
	if (limiting_is_on(&ex->limiting) && !limiting_takes(ex, n))
		return;
	if (ex->holding && ex->state != EXCHANGE_UPGRADED) {
		holding_request_body(ex, p, n);
		return;
	}
	if (ex->signing && ex->state != EXCHANGE_UPGRADED && signing_request_body(ex, p, n))
		return;
	u->ops->touch(u);
	if (ex->state == EXCHANGE_UPGRADED) {
		if (!ex->relay && !exchange_may_relay(ex))
			return;
		ex->bytes_out += n;
		if (ex->relay)
			websocket_from_sandbox(ex, p, n);
		else
			u->ops->send_body(u, p, n);
		return;
	}
	exchange_keep_body(ex, p, n);
	ex->bytes_out += n;
	exchange_scan_request(ex, p, n);
	if (exchange_ends_leak(ex))
		return;
	u->ops->send_body(u, p, n);
}

void exchange_request_end(struct exchange *ex, struct slice trailers)
{
	struct upstream_stream *u = ex->upstream;

	if (scanning_ends(&ex->scanning) ||
	        limiting_is_met(&ex->limiting)) { /* not all of the content was passed on */
		ex->request_done = true;
		return;
	}
	if (ex->holding && ex->state != EXCHANGE_UPGRADED) {
		holding_request_end(ex);
		return;
	}
	if (ex->signing && ex->state != EXCHANGE_UPGRADED && signing_request_end(ex))
		return;
	ex->request_done = true;
	trailers = exchange_request_trailers(ex, trailers);
	if (exchange_ends_leak(ex))
		return;
	exchange_keep_trailers(ex, trailers);
	u->ops->send_end(u, trailers);
}

void exchange_upstream_drained(struct exchange *ex)
{
	if (ex->holding)
		holding_pump(ex);
	else if (ex->signing)
		signing_pump(ex);
	if (!ex->request_done)
		ex->ops->request_resume(ex);
}
