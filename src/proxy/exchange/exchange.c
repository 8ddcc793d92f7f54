/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its response. The exchange is independent of both sides' protocols: it talks to
 * the client through struct exchange_client and to the upstream through struct upstream_stream.
 *
 *   NEW -> (HOLDING) -> (ASKING) -> CREDENTIAL -> DIAL -> ACTIVE -> (UPGRADED) -> DONE
 *
 * A request whose verdict depends on its body is judged twice: by its head, and once the body is
 * held.
 *
 * From any state before a response it may also go to REFUSED, where it may wait
 * (deny/deny_throttle.c), and then to DONE. It ends only in exchange_finish(), which gives the
 * upstream back and tells the client.
 *
 * The event is recorded before the bytes that complete the response are given to the client's
 * connection, because these bytes may leave at any moment from then on. So every client that has a
 * complete response has left an event, even if the worker is killed at that moment.
 */
#include <inttypes.h>
#include <errno.h>
#include <stdlib.h>

#include "vethguard/base/log.h"
#include "proxy/deny/deny.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/callback.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/leaks/secrets.h"
#include "proxy/redact/inspect.h"
#include "proxy/rewrite/sealing.h"
#include "proxy/rewrite/tools.h"
#include "proxy/signing/signing.h"
#include "proxy/websocket/websocket_relay.h"
#include "vethguard/base/clock.h"

struct exchange *exchange_new(struct proxy *proxy, struct client *client,
        struct client_http2_stream *stream, const struct exchange_client *ops)
{
	struct exchange *ex = proxy->free_exchanges;

	if (ex) {
		proxy->free_exchanges = ex->next_free;
		proxy->free_exchange_count--;
	} else {
		ex = malloc(sizeof(*ex));
	}
	if (!ex)
		return NULL;
	memset(ex, 0, offsetof(struct exchange, request));
	ex->proxy = proxy;
	ex->client = client;
	ex->stream = stream;
	ex->ops = ops;
	/* Clear the previous request, whose bytes are gone: if the next head cannot be read, this
	 * struct stays as it is here. */
	memset(&ex->request, 0, offsetof(struct http_request, fields));
	ex->request.fields.count = 0;
	ex->verdict.decision.rule = ex->verdict.decision.credential = POLICY_NONE;
	ex->start_ms = clock_real_ms();
	ex->start_us = clock_monotonic_us();
	ex->id = proxy_event_id(proxy);
	buf_init(&ex->sending.kept, EXCHANGE_KEPT_MAX);
	buf_init(&ex->sending.kept_trailers, HTTP_HEAD_MAX);
	proxy->exchanges++;
	return ex;
}

static void exchange_free(struct exchange *ex)
{
	struct proxy *proxy = ex->proxy;

	credential_wait_cancel(&ex->waiting);
	loop_deadline_clear(&ex->whole);
	loop_deadline_clear(&ex->redacting.held);
	list_remove(&ex->throttled.turn);
	loop_task_cancel(proxy->config.loop, &ex->responding.task);
	limiting_fini(ex);
	asking_fini(ex);
	signing_free(ex);
	ranging_free(ex->ranging);
	sealing_free(ex);
	secrets_free(ex);
	tools_free(ex);
	holding_free(ex);
	free(ex->kept_detail);
	if (redacting_is_on(&ex->redacting))
		mask_stream_fini(&ex->redacting.mask);
	if (ex->credential)
		credential_value_release(ex->credential);
	loop_task_cancel(ex->proxy->config.loop, &ex->scanning.task);
	decompress_free(ex->scanning.decoder);
	inspection_free(ex->redacting.inspection);
	decompress_free(ex->redacting.decompress);
	free(ex->redacting.etag);
	websocket_relay_free(ex->relay);
	buf_fini(&ex->redacting.compressed);
	exchange_forget_body(ex);
	proxy->exchanges--;
	if (proxy->free_exchange_count < EXCHANGES_KEPT) {
		ex->next_free = proxy->free_exchanges;
		proxy->free_exchanges = ex;
		proxy->free_exchange_count++;
	} else {
		free(ex);
	}
}

void exchange_drop(struct exchange *ex)
{
	exchange_free(ex);
}

static const char *const state_names[] = {
        [EXCHANGE_NEW] = "NEW",
        [EXCHANGE_HOLDING] = "HOLDING",
        [EXCHANGE_ASKING] = "ASKING",
        [EXCHANGE_CREDENTIAL] = "CREDENTIAL",
        [EXCHANGE_DIAL] = "DIAL",
        [EXCHANGE_ACTIVE] = "ACTIVE",
        [EXCHANGE_UPGRADED] = "UPGRADED",
        [EXCHANGE_REFUSED] = "REFUSED",
        [EXCHANGE_DONE] = "DONE",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == EXCHANGE_STATE_COUNT, "a name per state");

void exchange_enter(struct exchange *ex, enum exchange_state state)
{
	if (ex->state != state)
		log_debug("event %016" PRIx64 ": exchange: %s -> %s", ex->id,
		        state_names[ex->state], state_names[state]);
	ex->state = state;
}

void exchange_finish(struct exchange *ex, bool complete, bool reusable)
{
	struct upstream_stream *u = ex->upstream;

	exchange_enter(ex, EXCHANGE_DONE);
	audit_exchange(ex);
	if (u) {
		ex->upstream_address = u->conn->address;
		ex->upstream = NULL;
		u->ops->put(u, reusable);
	}
	ex->ops->done(ex, complete);
	exchange_free(ex);
}

/* True if the client is told, in HTTP/2's own way, that no upstream processed its request. The
 * client may then repeat any request by itself (RFC 9113 section 8.7). */
static bool gives_back(const struct exchange *ex)
{
	return ex->sending.unprocessed && !responding_has_begun(&ex->responding) &&
	       ex->client_version == 20;
}

void exchange_fail(struct exchange *ex, enum event_cause cause, const char *detail)
{
	if (gives_back(ex)) {
		ex->outcome = EVENT_DENIED;
	} else if (!responding_has_begun(&ex->responding)) {
		exchange_refuse(ex, 0, cause, detail);
		return;
	}
	ex->cause = cause;
	ex->detail = detail;
	exchange_finish(ex, false, false);
}

void exchange_abort(struct exchange *ex, enum event_cause cause, const char *detail)
{
	ex->cause = cause;
	ex->detail = detail;
	exchange_finish(ex, false, false);
}

void exchange_on_deadline(struct exchange *ex)
{
	exchange_fail(ex, EVENT_CAUSE_TIMEOUT, "the exchange as a whole took too long");
}

/* --- towards the upstream --- */

static void send_request(struct exchange *ex)
{
	int rc = ex->credential ? exchange_send_with_credential(ex) : exchange_send_plain(ex);

	if (rc < 0 && exchange_ends_leak(ex))
		return;
	if (rc < 0) {
		exchange_fail(ex,
		        rc == -EBADMSG || rc == -ENOKEY ? EVENT_CAUSE_CREDENTIAL
		        : rc == -EIO                    ? EVENT_CAUSE_UPSTREAM
		                                        : EVENT_CAUSE_LIMIT,
		        rc == -EIO      ? "the upstream ended the connection before this request"
		        : rc == -ENOKEY ? "the keys that the request was signed with are no longer "
		                          "held: log in again"
		        : rc == -EBADMSG
		                ? "the credential cannot be put into this request"
		                : "the request became too large with the credential in it");
		return;
	}
	if (ex->sending.state == SENDING_NOTHING)
		sending_enter(ex, SENDING_AGAIN);
	exchange_enter(ex, EXCHANGE_ACTIVE);
	ex->upstream_address = ex->upstream->conn->address;
	exchange_send_kept(ex);
	if (!ex->request_done)
		ex->ops->request_resume(ex);
}

void exchange_upstream_ready(struct exchange *ex)
{
	send_request(ex);
}

static void get_upstream(struct exchange *ex)
{
	if (callback_is_asked(ex)) {
		callback_allow(ex);
		return;
	}
	client_let_out(ex->client);
	exchange_enter(ex, EXCHANGE_DIAL);
	ex->sending.how =
	        ex->request.wants_websocket || ex->request.upgrade.n || ex->sending.http1_required
	                ? UPSTREAM_HTTP1
	                : UPSTREAM_ANY;
	if (prior_is_wanted(ex))
		ex->sending.how = UPSTREAM_PRIOR;
	ex->upstream = upstream_stream_get(ex, ex->sending.retries > 0);
	if (!ex->upstream)
		exchange_fail(ex, EVENT_CAUSE_LIMIT, "too many upstream connections are open");
	else if (ex->upstream->ready)
		send_request(ex);
}

static void on_credential(
        struct credential_wait *wait, struct credential_value *v, const char *error)
{
	struct exchange *ex = container_of(wait, struct exchange, waiting);

	if (!v) {
		exchange_fail(ex, EVENT_CAUSE_CREDENTIAL, error);
		return;
	}
	credential_value_retain(v);
	ex->credential = v;
	get_upstream(ex);
}

static void get_credential(struct exchange *ex)
{
	struct credential_value *v;

	exchange_enter(ex, EXCHANGE_CREDENTIAL);
	ex->waiting.on_value = on_credential;
	exchange_share_guess(ex);
	v = credential_store_get(
	        ex->proxy->config.credentials, ex->verdict.decision.credential, &ex->waiting);
	if (!v)
		return;
	credential_value_retain(v);
	ex->credential = v;
	get_upstream(ex);
}

/* The verdict allows the request. */
void exchange_begin(struct exchange *ex)
{
	if (ex->proxy->paused)
		exchange_refuse(ex, 503, ex->proxy->pause_cause, ex->proxy->pause_text);
	else if (ex->verdict.decision.credential != POLICY_NONE)
		get_credential(ex);
	else
		get_upstream(ex);
}

void exchange_begin_again(struct exchange *ex)
{
	struct upstream_stream *u = ex->upstream;

	marking_enter(ex, MARKING_NONE);
	ex->upstream = NULL;
	if (u)
		u->ops->put(u, false);
	credential_wait_cancel(&ex->waiting);
	if (ex->credential)
		credential_value_release(ex->credential);
	ex->credential = NULL;
	exchange_begin(ex);
}

void exchange_upstream_failed(struct exchange *ex, enum event_cause cause, const char *detail)
{
	bool again = exchange_may_retry(ex, cause);

	ex->sending.unprocessed = ex->upstream->untouched;
	ex->upstream_address = ex->upstream->conn->address;
	upstream_stream_let_go(ex->upstream); /* the upstream stream closes itself */
	ex->upstream = NULL;
	if (!again) {
		exchange_fail(ex, cause, detail);
		return;
	}
	ex->sending.retries++;
	ex->sending.unprocessed = false;
	exchange_begin_again(ex);
}

/* --- the beginning --- */

void exchange_introduce(struct exchange *ex, uint8_t client_version)
{
	ex->client_version = client_version;
	ex->destination = ex->client->destination;
	ex->scheme = ex->client->tls ? SLICE("https") : SLICE("http");
}

void exchange_introduce_connect(struct exchange *ex, const struct destination *destination)
{
	exchange_introduce(ex, ex->request.version);
	exchange_request_is_whole(ex);
	ex->destination = *destination;
	ex->scheme = SLICE("https");
}

void exchange_abort_malformed(struct exchange *ex, const char *detail)
{
	if (ex->state == EXCHANGE_NEW)
		ex->outcome = EVENT_DENIED;
	exchange_abort(ex, EVENT_CAUSE_CLIENT, detail);
}

void exchange_note_reset(struct exchange *ex, bool http1_required, bool processed)
{
	ex->sending.http1_required = http1_required;
	if (processed)
		sending_enter(ex, SENDING_ONCE);
}

void exchange_request_is_whole(struct exchange *ex)
{
	ex->request_done = true;
}

void exchange_move_upstream(struct exchange *ex, struct upstream_stream *upstream)
{
	ex->upstream = upstream;
}

void exchange_prior_in_vain(struct exchange *ex)
{
	ex->sending.prior_in_vain = true;
}
