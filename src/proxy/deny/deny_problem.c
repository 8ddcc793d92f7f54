/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a refusal: RFC 9457 problem details, with the fields that the SDKs of APIs read. */
#include <stdio.h>

#include "proxy/deny/deny.h"
#include "vethguard/wire/json.h"

/* The limit in figures. */
static void put_limit(struct json *j, const struct exchange *ex)
{
	const struct limit_hit *hit = &ex->limiting.hit;
	uint32_t retry_s = limit_retry_s(hit);

	if (retry_s)
		json_uint(j, "retry_after_s", retry_s);
	json_object(j, "limit");
	json_literal(j, "kind", policy_limit_kind_name(hit->limit.kind));
	json_uint(j, "amount", hit->limit.amount);
	if (hit->limit.period_s)
		json_uint(j, "period_s", hit->limit.period_s);
	if (hit->limit.rule != POLICY_NONE)
		json_string(
		        j, "rule", policy_rule_name(ex->proxy->config.policy, hit->limit.rule), 0);
	if (hit->limit.floor)
		json_literal(j, "layer", policy_layer_name(POLICY_LAYER_FLOOR));
	json_end_object(j);
}

static void put_advice(struct json *j, const struct exchange *ex)
{
	json_literal(j, "advice", deny_advice(ex));
	if (ex->cause == EVENT_CAUSE_POLICY_LIMIT)
		put_limit(j, ex);
}

/* Names the place where the sandbox can ask about this refusal later (inquiry.h). A sandbox behind
 * another proxy cannot reach it. */
static void put_help(struct json *j, const struct exchange *ex)
{
	char url[sizeof(INQUIRY_BASE "/denials/") + 16];

	if (ex->verdict.decision.inquires || message_form_is_asked(ex->client->form) ||
	        !policy_answers(ex->proxy->config.policy))
		return;
	snprintf(url, sizeof(url), INQUIRY_BASE "/denials/%016llx", (unsigned long long)ex->id);
	json_literal(j, "help", url);
}

/* Fields that the SDKs of APIs read: "message" (GitHub) and "error" (OpenAI, Anthropic, Google). */
static void put_for_sdks(struct json *j, const struct exchange *ex)
{
	struct slice code = event_reason_code(ex->cause, (uint8_t)ex->verdict.decision.reason);
	char type[32];
	struct buf text;

	snprintf(type, sizeof(type), "vethguard_%s", deny_kind(ex->cause));
	buf_init(&text, DENY_TEXT_ROOM);
	deny_put_message(ex, &text);
	json_string(j, "message", buf_slice(&text), DENY_SHOWN_MAX);
	json_object(j, "error");
	json_string(j, "message", buf_slice(&text), DENY_SHOWN_MAX);
	json_literal(j, "type", type);
	json_string(j, "code", code, 0);
	json_end_object(j);
	buf_fini(&text);
}

static void put_rule(struct json *j, const struct exchange *ex)
{
	uint32_t rule = ex->verdict.decision.rule;
	struct slice reason = deny_reason(ex);

	if (rule != POLICY_NONE)
		json_string(j, "rule", policy_rule_name(ex->proxy->config.policy, rule), 0);
	else
		json_literal(j, "rule", "default");
	if (reason.n)
		json_string(j, "reason", reason, 0);
}

void deny_put_problem(const struct exchange *ex, struct buf *out)
{
	char id[17], instance[64], type[64];
	struct buf text;
	struct json j;

	snprintf(type, sizeof(type), "urn:vethguard:problem:%s", deny_kind(ex->cause));
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)ex->id);
	snprintf(instance, sizeof(instance), "urn:vethguard:event:%s", id);
	buf_init(&text, DENY_TEXT_ROOM);
	json_begin(&j, out);
	json_object(&j, NULL);
	json_literal(&j, "type", type);
	json_literal(&j, "title", deny_title(ex->cause));
	json_uint(&j, "status", ex->status);
	deny_put_detail(ex, &text);
	json_string(&j, "detail", buf_slice(&text), DENY_SHOWN_MAX);
	json_literal(&j, "instance", instance);
	json_literal(&j, "event", id);
	json_string(&j, "policy", policy_name(ex->proxy->config.policy), 0);
	put_rule(&j, ex);
	put_advice(&j, ex);
	put_help(&j, ex);
	put_for_sdks(&j, ex);
	json_end_object(&j);
	buf_append_slice(out, SLICE("\n"));
	buf_fini(&text);
}
