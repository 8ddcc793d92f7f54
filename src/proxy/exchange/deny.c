/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to refused clients: RFC 9457 problem details that say what was refused, why, and what to
 * ask for. A gRPC client gets a status and a message, in fields only. */
#include <stdio.h>

#include "proxy/exchange/exchange.h"
#include "vethguard/wire/json.h"

#define TARGET_SHOWN_MAX 512
#define DETAIL_SHOWN_MAX 2048
#define MESSAGE_SHOWN_MAX 2048
#define MESSAGE_ROOM 8192
#define BODY_MAX 65536 /* enough for each of its texts with all bytes escaped */
#define REASON_MAX 128
#define RETRY_MAX 24
#define PROBLEM_JSON "application/problem+json"

/* The last word of the problem's type and of error.type. */
static const char *kind_of(enum event_cause cause)
{
	if (cause == EVENT_CAUSE_POLICY_LIMIT)
		return "limited";
	return cause == EVENT_CAUSE_POLICY || cause == EVENT_CAUSE_ASK ? "denied" : "failed";
}

static const char *title_of(enum event_cause cause)
{
	switch (cause) {
	case EVENT_CAUSE_POLICY:
	case EVENT_CAUSE_POLICY_CHANGED:
		return "Not allowed by the sandbox's network policy";
	case EVENT_CAUSE_BINDING:
		return "The request names more than one destination";
	case EVENT_CAUSE_CLIENT:
		return "Malformed request";
	case EVENT_CAUSE_CREDENTIAL:
		return "The credential for this destination is not available";
	case EVENT_CAUSE_ADDRESS:
		return "The destination's address is not allowed";
	case EVENT_CAUSE_RESOLVE:
		return "The destination's name could not be resolved";
	case EVENT_CAUSE_UPSTREAM_TLS:
		return "The destination could not be verified";
	case EVENT_CAUSE_PAUSED:
		return "The sandbox is paused";
	case EVENT_CAUSE_ASK:
		return "A person has to approve this request, and has not";
	case EVENT_CAUSE_POLICY_LIMIT:
		return "A limit of the sandbox's network policy is reached";
	default:
		return "The request could not be carried out";
	}
}

/* The reason phrase for HTTP/1 (RFC 9112 section 4): the standard phrase, then the body's title. It
 * may be written in text. For a refused CONNECT many clients show nothing else. */
static struct slice reason_of(const struct exchange *ex, char text[REASON_MAX])
{
	const char *title = title_of(ex->cause);
	struct slice standard = http_reason(ex->status);
	int n;

	if (ex->cause == EVENT_CAUSE_CLIENT ||
	        !standard.n) /* the status says more than the title */
		return standard;
	n = snprintf(text, REASON_MAX, "%.*s: %s", (int)standard.n, standard.p, title);
	return n > 0 && n < REASON_MAX ? slice_of(text, (size_t)n) : standard;
}

/* What an agent may do about a limit, in words and in figures. */
static void put_limit_advice(struct json *j, const struct exchange *ex)
{
	const struct limit_hit *hit = &ex->limiting.hit;
	uint32_t retry_s = limit_retry_s(hit);

	json_literal(j, "advice",
	        retry_s ? "Do not retry before the time that Retry-After tells; until then every "
	                  "request that counts against this limit is refused. If the task needs "
	                  "more, ask the operator to raise the limit, quoting rule and event."
	                : "Do not retry: the request alone is larger than the limit. Send less, or "
	                  "ask the operator to raise the limit, quoting rule and event.");
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
	json_end_object(j);
}

/* What the agent should do next, or ask the operator for, after a refusal by the policy. */
static const char *advice_for_denied(const struct policy_decision *d)
{
	switch (d->reason) {
	case POLICY_REASON_UPGRADE:
		return "Do not retry. If the task needs this, ask the operator to name the "
		       "protocol under \"upgrade\" of the rule, quoting rule and event; or use a "
		       "WebSocket, where the service offers one.";
	case POLICY_REASON_FOREIGN:
		return "The right credential is attached outside of the sandbox. Send the request "
		       "again without a key or token of your own.";
	case POLICY_REASON_LEAK:
		return "Do not retry as it is. Leave the value of the key's variable out of what "
		       "is sent; the key itself is attached outside of the sandbox where it "
		       "belongs.";
	case POLICY_REASON_SIGNATURE:
		return "The right signature is made outside of the sandbox, for the regions and "
		       "services that the operator has named. Sign with any key for one of these.";
	case POLICY_REASON_CONDITION:
		return "The policy allows this place only with certain query parameters, header "
		       "fields or bodies. If the task needs this request as it is, ask the "
		       "operator, quoting method, URL and event.";
	default:
		return d->rule != POLICY_NONE
		               ? "An operator's rule refuses this on purpose. Do not retry; choose "
		                 "another way."
		               : "Do not retry. If the task needs this, ask the operator to allow "
		                 "it in the policy, quoting method, URL and event; 'vethguard "
		                 "audit suggest' shows the operator the rule.";
	}
}

#define ADVICE_RETRY "The policy allows this request; the destination failed. Retrying may help."

/* The same after any other refusal. */
static const char *advice_for_failed(enum event_cause cause)
{
	static const char *const texts[EVENT_CAUSE_COUNT] = {
	        [EVENT_CAUSE_BINDING] =
	                "Name the same host in the URL, in Host and in the TLS handshake. If the "
	                "client does so already, ask the operator, quoting the event.",
	        [EVENT_CAUSE_CREDENTIAL] = "Retrying helps only after the operator has repaired "
	                                   "the credential. Ask for that, quoting rule and event.",
	        [EVENT_CAUSE_RESOLVE] = ADVICE_RETRY,
	        [EVENT_CAUSE_ADDRESS] = "Do not retry. If the task needs this host, ask the "
	                                "operator to allow its address, quoting host and event.",
	        [EVENT_CAUSE_CONNECT] = ADVICE_RETRY,
	        [EVENT_CAUSE_UPSTREAM_TLS] =
	                "The policy allows this request, but the destination's TLS or certificate "
	                "was refused. If that lasts, ask the operator, quoting host and event.",
	        [EVENT_CAUSE_UPSTREAM] = ADVICE_RETRY,
	        [EVENT_CAUSE_CLIENT] =
	                "Correct what \"detail\" says about the request, and send it again.",
	        [EVENT_CAUSE_TIMEOUT] = ADVICE_RETRY,
	        [EVENT_CAUSE_LIMIT] = "Retry later, with fewer or smaller requests at a time. If "
	                              "that does not help, ask the operator, quoting the event.",
	        [EVENT_CAUSE_UNREADABLE] = "Ask the destination for a response in UTF-8 without "
	                                   "compression (Accept-Encoding: identity).",
	        [EVENT_CAUSE_CLOSING] = "Retry later, over a new connection. If that does not "
	                                "help, ask the operator, quoting the event.",
	        [EVENT_CAUSE_POLICY_CHANGED] =
	                "Do not retry. If the task needs this, ask the operator to allow it in the "
	                "policy, quoting method, URL and event.",
	        [EVENT_CAUSE_ASK] = "Do not retry unless you know that somebody approves now. Tell "
	                            "the operator what this request is for, quoting rule and "
	                            "event; 'vethguard ask' shows it while it waits.",
	        [EVENT_CAUSE_PAUSED] = "The operator has stopped all traffic of this sandbox. Do "
	                               "not retry until it is resumed.",
	};

	return texts[cause] ? texts[cause]
	                    : "If this is unexpected, ask the operator, quoting the event.";
}

static void put_advice(struct json *j, const struct exchange *ex)
{
	if (ex->cause == EVENT_CAUSE_POLICY_LIMIT)
		put_limit_advice(j, ex);
	else
		json_literal(j, "advice",
		        ex->cause == EVENT_CAUSE_POLICY ? advice_for_denied(&ex->verdict.decision)
		                                        : advice_for_failed(ex->cause));
}

/* Appends one sentence: what was asked, and why it is refused. */
static void put_detail(const struct exchange *ex, struct buf *text)
{
	char destination[POLICY_HOST_MAX + 16];
	char target[TARGET_SHOWN_MAX], method[64];
	const struct http_request *r = &ex->request;
	bool connect = r->version && slice_equals(r->method, SLICE("CONNECT"));

	struct destination d = ex->destination;

	if (!connect &&
	        d.port == policy_scheme_default_port(ex->client->tls ? POLICY_HTTPS : POLICY_HTTP))
		d.port = 0;
	destination_text(&d, destination);
	if (r->version)
		buf_printf(text, "%s %s%s%s: ", slice_escape(r->method, method, sizeof(method)),
		        connect           ? ""
		        : ex->client->tls ? "https://"
		                          : "http://",
		        destination,
		        connect ? ""
		                : slice_escape(
		                          slice_of(r->path, r->path_n), target, sizeof(target)));
	else
		buf_printf(text, "connection to %s: ", destination);
	if (ex->cause == EVENT_CAUSE_CREDENTIAL) /* the source is the operator's business */
		buf_printf(text, "the credential is not available; the audit log says why");
	else
		buf_printf(text, "%s",
		        ex->detail ? ex->detail : policy_reason_text(ex->verdict.decision.reason));
}

/* The operator's own words: from the deny rule, or from the pause. */
static struct slice reason_text(const struct exchange *ex)
{
	uint32_t rule = ex->verdict.decision.rule;

	if (ex->cause == EVENT_CAUSE_PAUSED)
		return slice_from_string(ex->detail);
	return rule == POLICY_NONE ? SLICE("") : policy_rule_text(ex->proxy->config.policy, rule);
}

/* The detail, its author and the event id for the operator. A client shows this text if it takes
 * the answer for one of the API. */
static void put_message(const struct exchange *ex, struct buf *text)
{
	struct slice reason = reason_text(ex);

	buf_append_slice(text, SLICE("vethguard: "));
	put_detail(ex, text);
	if (ex->cause == EVENT_CAUSE_POLICY && reason.n) {
		buf_append_slice(text, SLICE(": "));
		buf_append_slice(text, reason);
	}
	buf_printf(text, " (event %016llx)", (unsigned long long)ex->id);
}

/* Fields that the SDKs of APIs read: "message" (GitHub) and "error" (OpenAI, Anthropic, Google). */
static void put_for_sdks(struct json *j, const struct exchange *ex)
{
	struct slice code = event_reason_code(ex->cause, (uint8_t)ex->verdict.decision.reason);
	char type[32];
	struct buf text;

	snprintf(type, sizeof(type), "vethguard_%s", kind_of(ex->cause));
	buf_init(&text, MESSAGE_ROOM);
	put_message(ex, &text);
	json_string(j, "message", buf_slice(&text), MESSAGE_SHOWN_MAX);
	json_object(j, "error");
	json_string(j, "message", buf_slice(&text), MESSAGE_SHOWN_MAX);
	json_literal(j, "type", type);
	json_string(j, "code", code, 0);
	json_end_object(j);
	buf_fini(&text);
}

static void put_rule(struct json *j, const struct exchange *ex)
{
	uint32_t rule = ex->verdict.decision.rule;
	struct slice reason = reason_text(ex);

	if (rule != POLICY_NONE)
		json_string(j, "rule", policy_rule_name(ex->proxy->config.policy, rule), 0);
	else
		json_literal(j, "rule", "default");
	if (reason.n)
		json_string(j, "reason", reason, 0);
}

/* The RFC 9457 body. */
static void put_body(const struct exchange *ex, struct buf *out)
{
	char id[17], instance[64], type[64];
	struct buf text;
	struct json j;

	snprintf(type, sizeof(type), "urn:vethguard:problem:%s", kind_of(ex->cause));
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)ex->id);
	snprintf(instance, sizeof(instance), "urn:vethguard:event:%s", id);
	buf_init(&text, MESSAGE_ROOM);
	json_begin(&j, out);
	json_object(&j, NULL);
	json_literal(&j, "type", type);
	json_literal(&j, "title", title_of(ex->cause));
	json_uint(&j, "status", ex->status);
	put_detail(ex, &text);
	json_string(&j, "detail", buf_slice(&text), DETAIL_SHOWN_MAX);
	json_literal(&j, "instance", instance);
	json_literal(&j, "event", id);
	json_string(&j, "policy", policy_name(ex->proxy->config.policy), 0);
	put_rule(&j, ex);
	put_advice(&j, ex);
	put_for_sdks(&j, ex);
	json_end_object(&j);
	buf_append_slice(out, SLICE("\n"));
	buf_fini(&text);
}

/* --- gRPC over HTTP/2 --- */

/* A gRPC client reads no body of a refusal, only a status in fields. */
bool exchange_is_grpc(const struct exchange *ex)
{
	const struct http_field *type = http_find(&ex->request.fields, HTTP_CONTENT_TYPE);

	return ex->client_version == 20 && type &&
	       slice_starts_with(type->value, SLICE("application/grpc"));
}

/* https://grpc.io/docs/guides/status-codes/; no client retries PERMISSION_DENIED. */
static const char *grpc_status(enum event_cause cause)
{
	switch (cause) {
	case EVENT_CAUSE_POLICY:
	case EVENT_CAUSE_POLICY_CHANGED:
	case EVENT_CAUSE_BINDING:
	case EVENT_CAUSE_ADDRESS:
	case EVENT_CAUSE_ASK:
		return "7";
	case EVENT_CAUSE_POLICY_LIMIT:
		return "8"; /* RESOURCE_EXHAUSTED */
	case EVENT_CAUSE_CLIENT:
	case EVENT_CAUSE_UNREADABLE:
		return "13"; /* INTERNAL */
	default:
		return "14"; /* UNAVAILABLE */
	}
}

/* Percent-encodes a message as gRPC's protocol over HTTP/2 requires. */
static void put_encoded(struct buf *out, struct slice text)
{
	size_t n = text.n < DETAIL_SHOWN_MAX ? text.n : DETAIL_SHOWN_MAX;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)text.p[i];

		if (c >= 0x20 && c <= 0x7e && c != '%')
			buf_append(out, &c, 1);
		else
			buf_printf(out, "%%%02X", c);
	}
}

/* Makes r a response that has only fields, with that status and the explanation. r points into
 * text. */
static void put_grpc(const struct exchange *ex, struct http_response *r, struct buf *text)
{
	struct buf plain;

	buf_init(&plain, MESSAGE_ROOM);
	put_message(ex, &plain);
	put_encoded(text, buf_slice(&plain));
	buf_fini(&plain);
	r->status = 200;
	r->body = HTTP_BODY_NONE;
	r->fields.count = 0;
	http_add(&r->fields, SLICE("content-type"), SLICE("application/grpc"));
	http_add(&r->fields, SLICE("x-vethguard"), SLICE("denied"));
	http_add(&r->fields, SLICE("grpc-status"), slice_from_string(grpc_status(ex->cause)));
	http_add(&r->fields, SLICE("grpc-message"), buf_slice(text));
}

/* --- sending it --- */

static const struct {
	enum event_cause cause;
	uint16_t status;
} cause_status[] = {
        {EVENT_CAUSE_POLICY, 403}, {EVENT_CAUSE_BINDING, 403}, {EVENT_CAUSE_CLIENT, 400},
        {EVENT_CAUSE_CREDENTIAL, 502}, {EVENT_CAUSE_RESOLVE, 502}, {EVENT_CAUSE_ADDRESS, 403},
        {EVENT_CAUSE_CONNECT, 502}, {EVENT_CAUSE_UPSTREAM_TLS, 502}, {EVENT_CAUSE_UPSTREAM, 502},
        {EVENT_CAUSE_UNREADABLE, 502}, {EVENT_CAUSE_TIMEOUT, 504}, {EVENT_CAUSE_LIMIT, 503},
        {EVENT_CAUSE_CLOSING, 503}, {EVENT_CAUSE_POLICY_CHANGED, 403}, {EVENT_CAUSE_PAUSED, 503},
        {EVENT_CAUSE_ASK, 403}, {EVENT_CAUSE_POLICY_LIMIT, 429}, /* RFC 6585 section 4 */
};

static uint16_t status_for(enum event_cause cause)
{
	for (size_t i = 0; i < sizeof(cause_status) / sizeof(*cause_status); i++)
		if (cause_status[i].cause == cause)
			return cause_status[i].status;
	return 502;
}

void exchange_will_refuse(struct exchange *ex, uint16_t status)
{
	ex->outcome = EVENT_DENIED;
	ex->status = status ? status : status_for(ex->cause);
	if (ex->cause == EVENT_CAUSE_BINDING && ex->client_version == 20)
		ex->status = 421; /* concerns this stream only: RFC 9110 section 15.5.20 */
	if (exchange_is_grpc(ex))
		ex->status = 200; /* the refusal is in its trailers */
}

static bool has_text(struct slice value, struct slice text)
{
	return value.n >= text.n && memmem(value.p, value.n, text.p, text.n);
}

/* True if the client names JSON in Accept, but not problem+json: it gets the type it names (RFC
 * 9110 section 12.5.1), because some clients read nothing else. */
static bool takes_plain_json_only(const struct exchange *ex)
{
	bool json = false;

	for (size_t i = 0; i < ex->request.fields.count; i++) {
		const struct http_field *f = &ex->request.fields.items[i];

		if (!slice_equals_ignoring_case(f->name, SLICE("accept")))
			continue;
		if (has_text(f->value, SLICE(PROBLEM_JSON)))
			return false;
		json |= has_text(f->value, SLICE("json"));
	}
	return json;
}

static void put_problem(
        struct exchange *ex, struct http_response *r, char reason[REASON_MAX], struct buf *body)
{
	put_body(ex, body);
	r->status = ex->status;
	r->reason = reason_of(ex, reason);
	r->fields.count = 0;
	http_add(&r->fields, SLICE("Content-Type"),
	        takes_plain_json_only(ex) ? SLICE("application/json") : SLICE(PROBLEM_JSON));
	http_add(&r->fields, SLICE("Cache-Control"), SLICE("no-store"));
	http_add(&r->fields, SLICE("X-Vethguard"), SLICE("denied"));
	r->body = HTTP_BODY_LENGTH;
	r->content_length = body->len;
}

/* Says when trying again makes sense: Retry-After (RFC 9110 section 10.2.3), or what gRPC clients
 * read instead. */
static void put_retry(
        const struct exchange *ex, struct http_response *r, bool grpc, char text[RETRY_MAX])
{
	uint32_t s = ex->cause == EVENT_CAUSE_POLICY_LIMIT ? limit_retry_s(&ex->limiting.hit) : 0;

	if (s == 0)
		return;
	snprintf(text, RETRY_MAX, "%llu", grpc ? s * 1000ull : s);
	http_add(&r->fields, grpc ? SLICE("grpc-retry-pushback-ms") : SLICE("Retry-After"),
	        slice_from_string(text));
}

void exchange_answer_refusal(struct exchange *ex)
{
	struct http_response response = {.version = 11};
	bool grpc = exchange_is_grpc(ex);
	char reason[REASON_MAX], retry[RETRY_MAX];
	struct buf body;

	buf_init(&body, BODY_MAX);
	if (grpc)
		put_grpc(ex, &response, &body);
	else
		put_problem(ex, &response, reason, &body);
	put_retry(ex, &response, grpc, retry);
	ex->head_sent = true;
	ex->ops->response_head(ex, &response, SLICE(""));
	if (!grpc && !ex->head_request && body.len)
		ex->ops->response_body(ex, buf_bytes(&body), body.len);
	ex->ops->response_end(ex, SLICE(""));
	buf_fini(&body);
	exchange_finish(ex, true, false);
}

void exchange_refuse(
        struct exchange *ex, uint16_t status, enum event_cause cause, const char *detail)
{
	ex->cause = cause;
	ex->detail = detail;
	ex->head_waits = false; /* drop the upstream's head */
	exchange_will_refuse(ex, status);
	exchange_enter(ex, EXCHANGE_REFUSED);
	audit_exchange(ex);
	if (!deny_throttle_waits(ex))
		exchange_answer_refusal(ex);
}
