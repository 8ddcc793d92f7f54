/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response, from the upstream's head to the client's last byte: interim responses, the head and
 * its framing, upgrades, the body, trailers, the end. Masking and decompressing on the way is
 * redact.c's.
 */
#include <inttypes.h>

#include "proxy/exchange/authorize.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/inject/registry.h"
#include "proxy/limit/token_count.h"
#include "proxy/rewrite/sealing.h"
#include "proxy/rewrite/tools.h"
#include "proxy/signing/signing.h"
#include "proxy/websocket/websocket_relay.h"
#include "vethguard/base/log.h"

static const char relayed_unread[] = "upgraded to another protocol, and relayed unread";

static const char *const state_names[] = {
        [RESPONDING_NONE] = "NONE",
        [RESPONDING_WAITS] = "WAITS",
        [RESPONDING_BEGUN] = "BEGUN",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == RESPONDING_STATE_COUNT, "a name per state");

void responding_enter(struct exchange *ex, enum responding_state state)
{
	struct responding *m = &ex->responding;

	if (m->state != state)
		log_debug("event %016" PRIx64 ": response: %s -> %s", ex->id, state_names[m->state],
		        state_names[state]);
	m->state = state;
}

/* --- the head --- */

bool exchange_has_no_content(const struct exchange *ex, const struct http_response *r)
{
	return ex->head_request || r->status == 304 || r->body == HTTP_BODY_NONE ||
	       (r->body == HTTP_BODY_LENGTH && r->content_length == 0);
}

static void on_head_task(struct loop_task *task)
{
	exchange_release_head(container_of(task, struct exchange, responding.task));
}

/* Delays the head of a response to a request with a credential until content comes, at most for
 * this turn of the loop: if the content cannot be passed on, a refusal can then say why. */
static void keep_head(struct exchange *ex)
{
	responding_enter(ex, RESPONDING_WAITS);
	ex->responding.task.run = on_head_task;
	loop_task_queue(ex->proxy->config.loop, &ex->responding.task);
}

void exchange_release_head(struct exchange *ex)
{
	if (ex->responding.state != RESPONDING_WAITS || !ex->upstream)
		return;
	responding_enter(ex, RESPONDING_BEGUN);
	loop_task_cancel(ex->proxy->config.loop, &ex->responding.task);
	ex->ops->response_head(ex, &ex->upstream->response, SLICE(""));
}

/* Chooses the framing towards the client. */
static void frame_response(struct exchange *ex, struct http_response *r)
{
	bool bodyless = ex->head_request || r->status == 204 || r->status == 304;

	if (bodyless) {
		if (r->body != HTTP_BODY_LENGTH)
			r->body = HTTP_BODY_NONE;
	} else if (r->body == HTTP_BODY_CHUNKED || r->body == HTTP_BODY_UNTIL_CLOSE) {
		r->body = ex->client_version >= 11 ? HTTP_BODY_CHUNKED : HTTP_BODY_UNTIL_CLOSE;
	}
	ex->responding.framing = bodyless ? HTTP_BODY_NONE : r->body;
}

static void pass_interim(struct exchange *ex, struct http_response *r)
{
	http_drop_hop_by_hop(&r->fields);
	r->body = HTTP_BODY_NONE;
	if (ex->credential) { /* drop all of the upstream's own words */
		for (size_t i = 0; i < r->fields.count; i++)
			r->fields.items[i].dropped = true;
		r->reason = http_reason(r->status);
	}
	ex->ops->response_head(ex, r, SLICE(""));
}

void exchange_continue(struct exchange *ex)
{
	struct http_response r;

	if (ex->client_version < 11 || ex->continued)
		return;
	ex->continued = true;
	memset(&r, 0, offsetof(struct http_response, fields));
	r.status = 100;
	r.reason = http_reason(100);
	r.fields.count = 0;
	pass_interim(ex, &r);
}

/* NULL, or why this 101 is not the one that was asked for. */
static const char *check_switch(
        struct exchange *ex, const struct http_response *r, struct websocket_deflate *deflate)
{
	if (ex->verdict.decision.seals)
		return "the upstream switched protocols where its response was to be sealed";
	if (ex->request.wants_websocket)
		return websocket_check_answer(&ex->request.fields, &r->fields, deflate);
	if (!ex->request.upgrade.n)
		return "the upstream switched protocols without being asked";
	if (!ex->request_done)
		return "the upstream switched protocols before the request was whole";
	return upgrade_check_answer(ex->request.upgrade, &r->fields);
}

/* Takes a 101 and turns the exchange into a pipe. False: the upgrade failed, and the exchange may
 * be gone. */
static bool upgrade(struct exchange *ex, struct http_response *r)
{
	bool websocket = ex->request.wants_websocket;
	struct websocket_deflate deflate;
	enum event_cause cause = EVENT_CAUSE_UPSTREAM;
	const char *why = check_switch(ex, r, &deflate);

	if (!why && ex->credential && exchange_is_guessed(ex)) {
		cause = EVENT_CAUSE_LIMIT;
		why = exchange_guessed_text;
	}
	if (why) {
		exchange_fail(ex, cause, why);
		return false;
	}
	if (ex->credential) {
		http_drop(&r->fields, SLICE("content-encoding"));
		if (exchange_begin_masking(ex, r, &cause, &why) < 0) {
			exchange_fail(ex, cause, why);
			return false;
		}
	}
	if (websocket)
		ex->relay = websocket_relay_new(ex, &deflate);
	else
		ex->detail = relayed_unread;
	if (websocket && !ex->relay) {
		exchange_fail(ex, EVENT_CAUSE_LIMIT, "no memory for a WebSocket");
		return false;
	}
	http_drop_hop_by_hop(&r->fields);
	r->body = HTTP_BODY_NONE;
	ex->responding.framing = HTTP_BODY_UNTIL_CLOSE;
	ex->status = 101;
	responding_enter(ex, RESPONDING_BEGUN);
	exchange_enter(ex, EXCHANGE_UPGRADED);
	ex->request_done = false;
	upstream_stream_upgrade(ex->upstream);
	ex->ops->response_head(ex, r, websocket ? SLICE("websocket") : ex->request.upgrade);
	ex->ops->request_resume(ex);
	return true;
}

/* Takes the final head of a response that is sealed. True: it goes on like any other. */
static bool begin_sealing(struct exchange *ex, struct http_response *r, const char **why)
{
	if (!exchange_has_no_content(ex, r)) {
		*why = sealing_begin(ex, r);
		return false;
	}
	*why = sealing_check_empty(r);
	if (!*why && ex->credential->mask)
		exchange_mask_fields(ex, r);
	return !*why;
}

bool exchange_response_head(struct exchange *ex, struct http_response *r)
{
	const char *why = NULL;
	enum event_cause cause = EVENT_CAUSE_UPSTREAM;

	log_debug("event %016" PRIx64 ": response %u", ex->id, r->status);
	exchange_forget_body(ex);
	if (r->status == 101)
		return upgrade(ex, r);
	if (r->status / 100 == 1) {
		if (++ex->responding.interims > EXCHANGE_INTERIMS_MAX) {
			exchange_fail(ex, EVENT_CAUSE_UPSTREAM,
			        "the upstream sent too many interim responses");
			return false;
		}
		if (ex->client_version >= 11)
			pass_interim(ex, r);
		return true;
	}
	if (r->status == 401 && registry_is_on(ex)) {
		why = registry_check_challenge(ex, r);
		if (why) {
			exchange_fail(ex, EVENT_CAUSE_UPSTREAM, why);
			return false;
		}
	}
	if (tools_are_wanted(ex) && !sealing_is_wanted(ex)) {
		why = tools_begin(ex, r);
		if (why) {
			exchange_fail(ex, EVENT_CAUSE_UNREADABLE, why);
			return false;
		}
	}
	if (sealing_is_wanted(ex)) {
		if (!begin_sealing(ex, r, &why)) {
			if (why)
				exchange_fail(ex, EVENT_CAUSE_UNREADABLE, why);
			return !why;
		}
	} else if (ex->credential && exchange_begin_masking(ex, r, &cause, &why) < 0) {
		exchange_fail(ex, cause, why);
		return false;
	}
	if (ex->tokens)
		token_count_head(ex, r);
	http_drop_hop_by_hop(&r->fields);
	frame_response(ex, r);
	ex->status = r->status;
	ex->responding.counted = r->body == HTTP_BODY_LENGTH;
	ex->responding.length = r->content_length;
	if (exchange_has_no_content(ex, r)) {
		ex->responding.counted = true;
		audit_exchange(ex);
	} else if (ex->tools && tools_hold_head(ex)) {
		return tools_keep_head(ex, r);
	} else if (redacting_is_on(&ex->redacting)) {
		keep_head(ex);
		return true;
	}
	responding_enter(ex, RESPONDING_BEGUN);
	ex->ops->response_head(ex, r, SLICE(""));
	return true;
}

/* --- the body --- */

void exchange_send_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (ex->ranging)
		n = ranging_cut(ex->ranging, &p, n);
	if (n == 0 || (limiting_is_on(&ex->limiting) && !limiting_gives(ex, n)))
		return;
	exchange_release_head(ex);
	if (ex->tokens)
		token_count_take(ex, p, n);
	ex->bytes_in += n;
	if (ex->responding.counted && ex->bytes_in >= ex->responding.length)
		audit_exchange(ex);
	ex->ops->response_body(ex, p, n);
}

bool exchange_may_relay(struct exchange *ex)
{
	if (!ex->credential || !exchange_is_guessed(ex))
		return true;
	exchange_abort(ex, EVENT_CAUSE_LIMIT, exchange_guessed_text);
	return false;
}

static void from_upgraded(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (n && limiting_is_on(&ex->limiting) && !limiting_gives(ex, n))
		return;
	if (ex->relay) {
		websocket_from_upstream(ex, p, n);
	} else if (n && exchange_may_relay(ex)) {
		ex->bytes_in += n;
		ex->ops->response_body(ex, p, n);
	}
}

void exchange_response_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	if (ex->state == EXCHANGE_UPGRADED) {
		from_upgraded(ex, p, n);
		return;
	}
	redacting_begin(ex);
	if (ex->sealing)
		sealing_take(ex, p, n);
	else if (ex->tools)
		tools_take(ex, p, n);
	else
		exchange_redact_body(ex, p, n);
}

/* --- the end --- */

/* Returns the lines that may pass to the client, masked; overwrites trailers as well. */
static struct slice response_trailers(struct exchange *ex, struct slice trailers)
{
	if (ex->responding.framing != HTTP_BODY_CHUNKED && ex->client_version < 20)
		return SLICE("");
	if (redacting_is_on(&ex->redacting))
		ex->redacting.mask.found += mask_in_place(
		        ex->redacting.mask.mask, (uint8_t *)(uintptr_t)trailers.p, trailers.n);
	return exchange_filter_trailers(ex, trailers);
}

static bool request_is_sent(const struct exchange *ex)
{
	return ex->request_done && !(ex->signing && signing_is_sending(ex)) &&
	       !(ex->holding && holding_is_sending(ex));
}

/* The trailers of a response that is sealed are not passed on. */
static void end_sealed(struct exchange *ex)
{
	const char *why = sealing_end(ex);

	if (why) {
		exchange_fail(ex, EVENT_CAUSE_UNREADABLE, why);
		return;
	}
	if (ex->tokens)
		token_count_whole(ex);
	audit_exchange(ex);
	ex->ops->response_end(ex, SLICE(""));
	exchange_finish(ex, true, request_is_sent(ex));
}

static void end_response(struct exchange *ex, struct slice trailers)
{
	if (ex->sealing && !limiting_is_met(&ex->limiting)) {
		end_sealed(ex);
		return;
	}
	if (ex->tools && !limiting_is_met(&ex->limiting))
		tools_end(ex);
	if (!limiting_is_met(&ex->limiting) && exchange_flush_body(ex) < 0) {
		exchange_fail(ex, EVENT_CAUSE_UNREADABLE,
		        ex->redacting.undecodable
		                ? ex->redacting.undecodable
		                : "the upstream's compressed response is damaged");
		return;
	}
	if (limiting_is_met(&ex->limiting)) {
		limiting_end(ex);
		return;
	}
	exchange_release_head(ex);
	trailers = response_trailers(ex, trailers);
	if (ex->tokens)
		token_count_whole(ex);
	audit_exchange(ex);
	ex->ops->response_end(ex, trailers);
	exchange_finish(ex, true, request_is_sent(ex));
}

void exchange_end_upgraded(struct exchange *ex, enum event_cause cause, const char *detail)
{
	if (detail) {
		ex->cause = cause;
		ex->detail = detail;
		ex->upstream->ops->send_end(ex->upstream, SLICE(""));
	}
	audit_exchange(ex);
	ex->ops->response_end(ex, SLICE(""));
	exchange_finish(ex, true, false);
}

void exchange_response_end(struct exchange *ex, struct slice trailers)
{
	if (limiting_is_met(&ex->limiting)) {
		limiting_end(ex);
		return;
	}
	if (ex->state == EXCHANGE_UPGRADED) { /* the upstream has sent its last byte */
		if (ex->relay)
			websocket_upstream_ended(ex);
		exchange_end_upgraded(ex, 0, NULL);
		return;
	}
	redacting_end(ex);
	if (exchange_decompress_more(ex))
		end_response(ex, trailers);
}

void exchange_client_drained(struct exchange *ex)
{
	if (!ex->upstream || (ex->state != EXCHANGE_ACTIVE && ex->state != EXCHANGE_UPGRADED))
		return;
	if (!exchange_decompress_more(ex))
		return;
	if (redacting_has_ended(&ex->redacting))
		end_response(ex, ex->upstream->ops->trailers(ex->upstream));
	else
		ex->upstream->ops->resume(ex->upstream);
}
