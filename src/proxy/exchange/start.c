/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an exchange begins: its request is judged by its head, and, if the verdict depends on the
 * body, once more when the body is held. Then it goes on or is refused.
 */
#include <inttypes.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "proxy/deny/deny.h"
#include "proxy/deny/refused.h"
#include "proxy/exchange/authorize.h"
#include "proxy/exchange/callback.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/facts.h"
#include "proxy/exchange/holding.h"
#include "proxy/inject/filling.h"
#include "proxy/leaks/secrets.h"
#include "proxy/signing/signing.h"

static void note_findings(struct exchange *ex)
{
	if (ex->verdict.finding)
		audit_finding(ex->proxy, ex->client, ex->verdict.finding, ex->id, SLICE(""),
		        ex->verdict.detail);
	exchange_check_placeholders(ex);
}

/* Notes what the event says about an upgrade, naming the protocol. */
static void note_upgrade(struct exchange *ex)
{
	const struct verdict *j = &ex->verdict;
	char shown[2 * POLICY_UPGRADE_MAX];

	if (!ex->request.wants_upgrade)
		return;
	if (j->allowed && j->upgrade.n)
		ex->request.upgrade = j->upgrade;
	if (j->allowed)
		ex->detail = j->detail;
	if (j->allowed || j->detail || j->decision.reason != POLICY_REASON_UPGRADE)
		return;
	slice_escape(j->upgrade, shown, sizeof(shown));
	if (asprintf(&ex->kept_detail,
	            "the policy allows this request, but not its upgrade to \"%s\", which would be "
	            "relayed unread",
	            shown) < 0)
		ex->kept_detail = NULL;
}

/* Logs the verdict at level debug. The log omits the path, which only the audit log has: a query
 * may hold anything. */
static void trace_verdict(const struct exchange *ex)
{
	char method[64];

	if (log_level() < LOG_LEVEL_DEBUG)
		return;
	slice_escape(ex->request.method, method, sizeof(method));
	log_debug("event %016" PRIx64 ": client :%u: %s %.*s://%s:%u: %s", ex->id,
	        ex->client->src_port, method, SLICE_ARG(ex->scheme), ex->destination.host,
	        ex->destination.port, ex->verdict.allowed ? "allowed" : "denied");
}

const struct policy_body *exchange_body(struct exchange *ex, const struct policy *policy)
{
	static const struct policy_body unread = {.state = POLICY_BODY_UNREAD};

	if (!callback_tells_body(ex))
		return &unread;
	if (!exchange_has_body(ex))
		return NULL;
	return ex->holding ? holding_body(ex, policy) : &unread;
}

void exchange_follow_verdict(struct exchange *ex)
{
	if (!ex->verdict.allowed) {
		enum event_cause cause = ex->verdict.cause;

		exchange_refuse(
		        ex, 0, cause, ex->kept_detail ? ex->kept_detail : ex->verdict.detail);
	} else if (slice_equals_ignoring_case(ex->request.method, SLICE("TRACE"))) {
		/* Some servers treat "trace" as TRACE. The answer would be the request as the
		 * upstream saw it, including the credential. */
		exchange_refuse(ex, 405, EVENT_CAUSE_CLIENT, "TRACE is never forwarded");
	} else if (ex->verdict.decision.inquires) {
		inquiry_answer(ex);
	} else if ((ex->verdict.decision.asks && !asking_passes(ex)) || !limiting_begin(ex)) {
		return;
	} else if (filling_is_wanted(ex)) {
		if (!filling_begin(ex))
			exchange_begin(ex);
	} else if (!ex->verdict.is_signed || !signing_begin(ex)) {
		exchange_begin(ex);
	}
}

void exchange_decide(struct exchange *ex)
{
	const struct policy *policy = ex->proxy->config.policy;
	struct http_request *r = &ex->request;

	authorize_request(
	        policy, ex->client, r, exchange_body(ex, policy), &ex->destination, &ex->verdict);
	r->scheme = ex->client->tls ? POLICY_HTTPS : POLICY_HTTP; /* it was compared */
	/* The upstream is sent the destination that was authorized, not the one the client
	 * wrote. */
	r->authority.port = ex->destination.port;
	r->authority.address = ex->destination.address;
	r->authority.host_n = ex->destination.host_n;
	memcpy(r->authority.host, ex->destination.host, ex->destination.host_n + 1);
	secrets_begin(ex);
	callback_decide(ex);
	if ((ex->verdict.needs_body || secrets_hold_body(ex) || callback_holds_body(ex) ||
	            facts_hold_body(ex)) &&
	        !ex->holding) {
		holding_begin(ex, HOLDING_TO_DECIDE);
		return;
	}
	trace_verdict(ex);
	note_findings(ex);
	if (ex->holding &&
	        !filling_is_wanted(ex)) /* otherwise the rest is searched once the body is filled */
		exchange_scan_request(
		        ex, (const uint8_t *)holding_bytes(ex).p, holding_bytes(ex).n);
	note_upgrade(ex);
	refused_explain(ex, policy, exchange_body(ex, policy));
	(void)exchange_refuses_leak(ex);
	exchange_follow_verdict(ex);
}

void exchange_start(struct exchange *ex)
{
	struct proxy *proxy = ex->proxy;
	struct http_request *r = &ex->request;
	const struct http_field *te;

	ex->client_version = r->version;
	ex->head_request = slice_equals(r->method, SLICE("HEAD"));
	ex->request_done = !exchange_has_body(ex);
	te = http_find(&r->fields, HTTP_TE);
	r->te_trailers = te && http_list_has(te->value, SLICE("trailers"));
	ex->scheme = ex->client->tls ? SLICE("https") : SLICE("http");
	if (proxy->config.timeouts.request_ms)
		loop_deadline_set(&proxy->waits[WAIT_REQUEST], &ex->whole);
	exchange_decide(ex);
}
