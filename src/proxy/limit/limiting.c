/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a request of known length is counted whole before its first byte leaves, so
 * that it is refused as a whole. What it has not sent when it ends is taken back
 * (counters_take_back()). If the worker dies in between, all of it stays counted.
 */
#include "proxy/limit/limiting.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/limit/token_count.h"
#include "proxy/websocket/websocket_relay.h"
#include "vethguard/base/log.h"

static const char *const state_names[] = {
        [LIMITING_OFF] = "OFF",
        [LIMITING_ON] = "ON",
        [LIMITING_MET] = "MET",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == LIMITING_STATE_COUNT, "a name per state");

static void enter(struct exchange *ex, enum limiting_state state)
{
	struct limiting *l = &ex->limiting;

	log_debug("event %016" PRIx64 ": limits: %s -> %s", ex->id, state_names[l->state],
	        state_names[state]);
	l->state = state;
}

static uint32_t rule_of(const struct exchange *ex)
{
	return ex->verdict.decision.rule;
}

/* Bytes of the method, the target and the fields. */
static uint64_t head_bytes(const struct http_request *r)
{
	uint64_t n = r->method.n + r->path_n + (r->has_query ? r->query.n + 1 : 0);

	for (size_t i = 0; i < r->fields.count; i++)
		n += r->fields.items[i].name.n + r->fields.items[i].value.n + 4;
	return n;
}

/* True if the length of the content is known now. */
static bool know_body(const struct exchange *ex, uint64_t *n)
{
	const struct http_request *r = &ex->request;

	if (ex->holding)
		*n = holding_bytes(ex).n;
	else
		*n = r->body == HTTP_BODY_LENGTH ? r->content_length : 0;
	return ex->holding || r->body == HTTP_BODY_LENGTH || !exchange_has_body(ex);
}

static void keep_text(struct exchange *ex)
{
	char text[LIMIT_TEXT_MAX];

	free(ex->kept_detail);
	ex->kept_detail = strdup(limit_text(ex->proxy, &ex->limiting.hit, text));
}

static const char *text_of(const struct exchange *ex)
{
	return ex->kept_detail ? ex->kept_detail : "a limit of the policy was met";
}

/* 413 if the request alone exceeds the limit, so that waiting does not help (RFC 9110 section
 * 15.5.14); else 0: the status of the cause. */
static uint16_t status_of(const struct exchange *ex)
{
	return ex->limiting.hit.wait_ms < 0 ? 413 : 0;
}

static bool refuse(struct exchange *ex)
{
	keep_text(ex);
	exchange_refuse(ex, status_of(ex), EVENT_CAUSE_POLICY_LIMIT, text_of(ex));
	return false;
}

/* Counts the request, and the stream or connection that it holds open. */
static bool count(struct exchange *ex, uint64_t bytes)
{
	struct proxy *p = ex->proxy;
	struct limiting *l = &ex->limiting;
	uint32_t rule = rule_of(ex);
	bool upgrades = ex->request.wants_websocket || ex->request.upgrade.n;
	int64_t added_ms;

	if (!limit_enter(p, rule, POLICY_LIMIT_STREAMS, &l->held, &l->hit))
		return false;
	if (upgrades && !limit_enter(p, rule, POLICY_LIMIT_CONNECTIONS, &l->held, &l->hit))
		return false;
	if (policy_counts_tokens(p->config.policy, rule) &&
	        (!limit_add(p, rule, POLICY_LIMIT_TOKENS, 0, &l->hit) ||
	                !limit_add(p, rule, POLICY_LIMIT_COST, 0, &l->hit)))
		return false;
	if (!limit_add(p, rule, POLICY_LIMIT_DOWNLOAD, 0, &l->hit) ||
	        !limit_add(p, rule, POLICY_LIMIT_REQUESTS, 1, &l->hit))
		return false;
	added_ms = p->limits.added_ms;
	if (limit_add(p, rule, POLICY_LIMIT_UPLOAD, bytes, &l->hit))
		return true;
	limit_take_back(p, rule, POLICY_LIMIT_REQUESTS, added_ms, 1);
	return false;
}

bool limiting_begin(struct exchange *ex)
{
	struct limiting *l = &ex->limiting;
	const char *why;
	uint64_t body;

	if (!limits_exist(&ex->proxy->limits))
		return true;
	enter(ex, LIMITING_ON);
	l->counts_body = !know_body(ex, &body);
	l->most = limit_body(ex->proxy, rule_of(ex), &l->hit);
	if (body > l->most || !count(ex, head_bytes(&ex->request) + body))
		return refuse(ex);
	if (!token_count_begin(ex, &why)) {
		exchange_refuse(ex, 0, EVENT_CAUSE_UNREADABLE, why);
		return false;
	}
	l->reserved = body;
	l->reserved_ms = ex->proxy->limits.added_ms;
	return true;
}

void limiting_goes_on(struct exchange *ex, const struct policy *next)
{
	struct limiting *l = &ex->limiting;

	if (limiting_is_on(l) || policy_limit_count(next) == 0)
		return;
	enter(ex, LIMITING_ON);
	l->counts_body = true;
	l->most = UINT64_MAX;
}

static void on_task(struct loop_task *task)
{
	limiting_end(container_of(task, struct exchange, limiting.task));
}

static bool meet(struct exchange *ex)
{
	enter(ex, LIMITING_MET);
	ex->limiting.task.run = on_task;
	loop_task_queue(ex->proxy->config.loop, &ex->limiting.task);
	return false;
}

bool limiting_takes(struct exchange *ex, uint64_t n)
{
	struct limiting *l = &ex->limiting;

	if (limiting_is_met(l))
		return false;
	if (ex->state != EXCHANGE_UPGRADED && !l->counts_body)
		return true;
	if (ex->state != EXCHANGE_UPGRADED) {
		l->body += n;
		if (l->body > l->most) {
			limit_body(ex->proxy, rule_of(ex), &l->hit);
			return meet(ex);
		}
	}
	return limit_add(ex->proxy, rule_of(ex), POLICY_LIMIT_UPLOAD, n, &l->hit) || meet(ex);
}

bool limiting_gives(struct exchange *ex, uint64_t n)
{
	struct limiting *l = &ex->limiting;

	if (limiting_is_met(l))
		return false;
	return limit_add(ex->proxy, rule_of(ex), POLICY_LIMIT_DOWNLOAD, n, &l->hit) || meet(ex);
}

void limiting_end(struct exchange *ex)
{
	keep_text(ex);
	if (ex->state == EXCHANGE_UPGRADED && ex->relay) {
		websocket_end_limited(ex, text_of(ex));
	} else if (!responding_has_begun(&ex->responding)) {
		exchange_refuse(ex, status_of(ex), EVENT_CAUSE_POLICY_LIMIT, text_of(ex));
	} else {
		exchange_abort(ex, EVENT_CAUSE_POLICY_LIMIT, text_of(ex));
	}
}

void limiting_fini(struct exchange *ex)
{
	struct limiting *l = &ex->limiting;

	if (!limiting_is_on(l))
		return;
	loop_task_cancel(ex->proxy->config.loop, &l->task);
	token_count_fini(ex);
	limit_leave(ex->proxy, &l->held);
	if (l->reserved > ex->bytes_out)
		limit_take_back(ex->proxy, rule_of(ex), POLICY_LIMIT_UPLOAD, l->reserved_ms,
		        l->reserved - ex->bytes_out);
	enter(ex, LIMITING_OFF);
}
