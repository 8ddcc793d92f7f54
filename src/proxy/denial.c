/* SPDX-License-Identifier: Apache-2.0 */
/* What a refused client is told: RFC 9457 problem details that say what was refused, why, and what
 * to ask for. A gRPC client is told in its own way: a status and a message, in fields only. */
#include <stdio.h>

#include "proxy/private.h"
#include "vethguard/wire/json.h"

#define TARGET_SHOWN_MAX 512
#define DETAIL_SHOWN_MAX 2048

static const char *title_of(enum event_cause cause)
{
	switch (cause) {
	case EVENT_CAUSE_POLICY:
	case EVENT_CAUSE_POLICY_CHANGED:
		return "Not allowed by the sandbox's network policy";
	case EVENT_CAUSE_BINDING:
		return "The request does not agree with itself about its destination";
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
	default:
		return "The request could not be carried out";
	}
}

struct slice denial_reason(const struct exchange *ex, uint16_t status, char text[DENIAL_REASON_MAX])
{
	const char *title = title_of(ex->cause);
	struct slice standard = http_reason(status);
	int n;

	if (ex->cause == EVENT_CAUSE_CLIENT ||
	        !standard.n) /* the status has more to say than the title */
		return standard;
	n = snprintf(text, DENIAL_REASON_MAX, "%.*s: %s", (int)standard.n, standard.p, title);
	return n > 0 && n < DENIAL_REASON_MAX ? slice_of(text, (size_t)n) : standard;
}

static void put_advice(struct json *j, const struct exchange *ex)
{
	switch (ex->cause) {
	case EVENT_CAUSE_POLICY:
		if (ex->judgement.decision.rule != POLICY_NONE)
			json_literal(j, "advice",
			        "An operator's rule refuses this on purpose. Do not retry; choose "
			        "another way.");
		else
			json_literal(j, "advice",
			        "Do not retry. If the task needs this, ask the operator to allow "
			        "it in the policy, quoting method, URL and event.");
		break;
	case EVENT_CAUSE_RESOLVE:
	case EVENT_CAUSE_CONNECT:
	case EVENT_CAUSE_UPSTREAM:
	case EVENT_CAUSE_TIMEOUT:
		json_literal(j, "advice",
		        "The policy allows this request; the destination failed. Retrying may "
		        "help.");
		break;
	default:
		json_literal(
		        j, "advice", "If this is unexpected, ask the operator, quoting the event.");
		break;
	}
}

/* One sentence: what was asked, and why not. */
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
	buf_consume(text, text->len);
	if (r->version)
		buf_printf(text, "%s %s%s%s: ", slice_escape(r->method, method, sizeof method),
		        connect           ? ""
		        : ex->client->tls ? "https://"
		                          : "http://",
		        destination,
		        connect ? ""
		                : slice_escape(
		                          slice_of(r->path, r->path_n), target, sizeof target));
	else
		buf_printf(text, "connection to %s: ", destination);
	if (ex->cause == EVENT_CAUSE_CREDENTIAL) /* its source is the operator's business */
		buf_printf(text, "the credential cannot be had; the audit log says why");
	else
		buf_printf(text, "%s",
		        ex->detail ? ex->detail
		                   : policy_reason_text(ex->judgement.decision.reason));
}

void denial_body(const struct exchange *ex, uint16_t status, struct buf *out)
{
	const struct policy *policy = ex->proxy->config.policy;
	const struct policy_decision *d = &ex->judgement.decision;
	char id[17], instance[64];
	struct buf text;
	struct json j;

	snprintf(id, sizeof id, "%016llx", (unsigned long long)ex->id);
	snprintf(instance, sizeof instance, "urn:vethguard:event:%s", id);
	buf_init(&text, 8192);
	json_begin(&j, out);
	json_object(&j, NULL);
	json_literal(&j, "type",
	        ex->cause == EVENT_CAUSE_POLICY ? "urn:vethguard:problem:denied"
	                                        : "urn:vethguard:problem:failed");
	json_literal(&j, "title", title_of(ex->cause));
	json_uint(&j, "status", status);
	put_detail(ex, &text);
	json_string(&j, "detail", buf_slice(&text), DETAIL_SHOWN_MAX);
	json_literal(&j, "instance", instance);
	json_literal(&j, "event", id);
	json_string(&j, "policy", policy_name(policy), 0);
	if (d->rule != POLICY_NONE) {
		struct slice reason = policy_rule_text(policy, d->rule);

		json_string(&j, "rule", policy_rule_name(policy, d->rule), 0);
		if (reason.n)
			json_string(&j, "reason", reason, 0);
	} else {
		json_literal(&j, "rule", "default");
	}
	put_advice(&j, ex);
	json_end_object(&j);
	buf_append_slice(out, SLICE("\n"));
	buf_fini(&text);
}

/* --- gRPC over HTTP/2 --- */

bool denial_is_grpc(const struct exchange *ex)
{
	const struct http_field *type = http_find(&ex->request.fields, HTTP_CONTENT_TYPE);

	return ex->client_version == 20 && type &&
	       slice_starts_with(type->value, SLICE("application/grpc"));
}

/* https://grpc.io/docs/guides/status-codes/; PERMISSION_DENIED is not retried by anybody. */
static const char *grpc_status(enum event_cause cause)
{
	switch (cause) {
	case EVENT_CAUSE_POLICY:
	case EVENT_CAUSE_POLICY_CHANGED:
	case EVENT_CAUSE_BINDING:
	case EVENT_CAUSE_ADDRESS:
		return "7";
	case EVENT_CAUSE_CLIENT:
	case EVENT_CAUSE_UNREADABLE:
		return "13"; /* INTERNAL */
	default:
		return "14"; /* UNAVAILABLE */
	}
}

/* Percent-encoding as gRPC's protocol over HTTP/2 wants it for a message. */
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

void denial_grpc(const struct exchange *ex, struct http_response *r, struct buf *text)
{
	struct buf plain;

	buf_init(&plain, 8192);
	put_detail(ex, &plain);
	buf_append_slice(text, SLICE("vethguard: ")); /* no other field shows who says so */
	buf_printf(&plain, " (event %016llx)", (unsigned long long)ex->id);
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
