/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the form of the connection, not the request, tells that another proxy asks.
 * The exchange begins as any other. Where others dial, this one writes its answer. The event is
 * recorded before the answer leaves, as always. The answer is made in locked memory, and its copies
 * in shared buffers are wiped at once.
 */
#include "proxy/exchange/callback.h"

#include <errno.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/leaks/secrets.h"
#include "vethguard/base/utf8.h"
#include "vethguard/wire/json.h"

bool callback_is_asked(const struct exchange *ex)
{
	return message_form_is_asked(ex->client->form);
}

bool callback_tells_body(const struct exchange *ex)
{
	return message_form_tells_body(ex->client->form);
}

bool callback_holds_body(const struct exchange *ex)
{
	return callback_is_asked(ex) && callback_tells_body(ex) && ex->verdict.allowed &&
	       exchange_has_body(ex);
}

/* --- the verdict --- */

static bool has_cookies(const struct exchange *ex)
{
	const struct http_fields *fields = &ex->request.fields;

	for (size_t i = 0; i < fields->count; i++)
		if (http_names_alike(fields->items[i].name, SLICE("cookie")))
			return true;
	return false;
}

/* Returns why the credential cannot be sent in fields that another proxy adds, or NULL. */
static const char *objection_to_credential(const struct exchange *ex)
{
	const struct policy_decision *d = &ex->verdict.decision;
	struct policy_credential spec;

	if (d->credential == POLICY_NONE)
		return NULL;
	policy_credential(ex->proxy->config.policy, d->credential, &spec);
	if (d->seals || spec.source == POLICY_SOURCE_SEALED)
		return "its credential is sealed, and another proxy would see the login's answer";
	switch (spec.inject) {
	case POLICY_INJECT_BEARER:
	case POLICY_INJECT_BASIC:
	case POLICY_INJECT_HEADER:
	case POLICY_INJECT_FIELDS:
	case POLICY_INJECT_COOKIE:
		break;
	default:
		return "its credential is not sent in header fields of its own, and another proxy "
		       "can add nothing else";
	}
	if (spec.require && spec.inject != POLICY_INJECT_COOKIE && has_cookies(ex))
		return "its credential has to be alone, and another proxy cannot leave out the "
		       "sandbox's cookies";
	return NULL;
}

static bool counts_more(const struct exchange *ex, uint32_t rule)
{
	const struct policy *policy = ex->proxy->config.policy;
	struct policy_limit limit;
	uint32_t first, count;

	policy_limits_of(policy, rule, &first, &count);
	for (uint32_t i = first; i < first + count; i++) {
		policy_limit(policy, i, &limit);
		if (limit.kind == POLICY_LIMIT_REQUESTS)
			continue;
		if ((limit.kind != POLICY_LIMIT_UPLOAD && limit.kind != POLICY_LIMIT_BODY) ||
		        !callback_tells_body(ex))
			return true;
	}
	return false;
}

static const char *objection_to_limits(const struct exchange *ex)
{
	const uint32_t rule = ex->verdict.decision.rule;

	if (!counts_more(ex, POLICY_NONE) && (rule == POLICY_NONE || !counts_more(ex, rule)))
		return NULL;
	return callback_tells_body(ex)
	               ? "a limit counts answers, or what is under way at a time, of which the "
	                 "other proxy tells nothing"
	               : "a limit counts bodies, answers, or what is under way at a time, of which "
	                 "the other proxy tells nothing";
}

static const char *objection(const struct exchange *ex)
{
	const char *why;

	if (!callback_tells_body(ex) && ex->verdict.needs_body)
		return "a rule for it asks for the request's body, which the other proxy does not "
		       "send";
	if (!ex->verdict.allowed)
		return NULL;
	if (!callback_tells_body(ex) && secrets_are_refused(ex))
		return "bodies are searched for secrets (dlp), and the other proxy does not send "
		       "the request's body";
	if (ex->request.wants_websocket || ex->request.wants_upgrade)
		return "nothing that follows an upgrade would be seen";
	if (ex->verdict.decision.inquires)
		return "vethguard itself answers at that name, and only to the sandbox";
	if (ex->verdict.decision.lists_tools)
		return "tools have to be taken out of the answer, which the other proxy does not "
		       "send through vethguard";
	why = objection_to_credential(ex);
	return why ? why : objection_to_limits(ex);
}

void callback_decide(struct exchange *ex)
{
	const char *why = callback_is_asked(ex) ? objection(ex) : NULL;

	if (!why)
		return;
	/* The placeholder of the credential that the request would have got is no leak. */
	if (ex->verdict.allowed && ex->verdict.decision.credential < POLICY_CREDENTIALS_MAX)
		ex->verdict.own |= UINT64_C(1) << ex->verdict.decision.credential;
	ex->verdict.needs_body = false;
	ex->verdict.decision.inquires = false;
	ex->verdict.decision.reason = POLICY_REASON_CALLBACK;
	verdict_refuse(&ex->verdict, EVENT_CAUSE_POLICY, EVENT_FINDING_NONE, why);
}

/* --- the answer --- */

#define NAME_MAX_BYTES 255 /* of a field's name */

static bool is_utf8(struct slice s)
{
	struct utf8 state = {0};

	return utf8_feed(&state, (const uint8_t *)s.p, s.n) && utf8_is_whole(&state);
}

static int put_json(const struct outgoing *head, struct buf *out)
{
	char name[NAME_MAX_BYTES + 1];
	struct json j;

	json_begin(&j, out);
	json_object(&j, NULL);
	json_object(&j, "headers");
	for (size_t i = 0; i < head->field_count; i++) {
		const struct outgoing_field *f = &head->fields[i];

		if (f->name.n >= sizeof(name) || !is_utf8(f->value))
			return -EBADMSG;
		memcpy(name, f->name.p, f->name.n);
		name[f->name.n] = '\0';
		json_string(&j, name, f->value, 0);
	}
	json_end_object(&j);
	json_end_object(&j);
	return j.failed ? -ENOBUFS : 0;
}

/* Puts the fields that the other proxy has to add into head. text: locked memory for their values.
 * Returns 0 or -errno. */
static int find_fields(struct exchange *ex, struct outgoing *head, struct buf *text)
{
	struct policy_credential spec;

	if (!ex->credential)
		return 0;
	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	return exchange_inject(
	        head, &ex->request, &spec, secret_slice(&ex->credential->rendered), text);
}

/* Writes the answer, and wipes it from the shared buffers. */
static void answer(struct exchange *ex, struct http_response *r, struct slice body)
{
	struct buf *scratch = &ex->proxy->text;

	responding_enter(ex, RESPONDING_BEGUN);
	ex->ops->response_head(ex, r, SLICE(""));
	if (!ex->head_request && body.n)
		ex->ops->response_body(ex, (const uint8_t *)body.p, body.n);
	ex->ops->response_end(ex, SLICE(""));
	if (scratch->len)
		secret_wipe(buf_bytes(scratch), scratch->len);
	socket_flush_secret(&ex->client->socket);
}

/* Records the event and answers. Returns 0, or -errno with nothing sent. */
static int respond(struct exchange *ex, const struct outgoing *head, bool json, struct buf *body)
{
	struct http_response r = {
	        .status = 200, .reason = http_reason(200), .version = 11, .body = HTTP_BODY_LENGTH};
	int rc = json ? put_json(head, body) : 0;

	http_add(&r.fields, SLICE("X-Vethguard"), SLICE("allowed"));
	http_add(&r.fields, SLICE("Cache-Control"), SLICE("no-store"));
	if (json)
		http_add(&r.fields, SLICE("Content-Type"), SLICE("application/json"));
	for (size_t i = 0; i < head->field_count && !json; i++)
		http_add(&r.fields, head->fields[i].name, head->fields[i].value);
	if (rc)
		return rc;
	r.content_length = body->len;
	ex->bytes_out = ex->holding ? holding_bytes(ex).n : 0; /* counted, as if it was sent */
	audit_exchange(ex);
	answer(ex, &r, buf_slice(body));
	return 0;
}

void callback_allow(struct exchange *ex)
{
	const bool json = ex->client->form == MESSAGE_FORM_CALLBACK ||
	                  ex->client->form == MESSAGE_FORM_CALLBACK_HEAD;
	struct buf text = proxy_secret_text(ex->proxy, SECRET_TEXT);
	struct buf body = proxy_secret_text(ex->proxy, SECRET_HEAD);
	struct outgoing head = {.request = &ex->request};
	int rc = find_fields(ex, &head, &text);

	client_let_out(ex->client);
	if (!rc)
		rc = respond(ex, &head, json, &body);
	secret_wipe(text.mem, text.len);
	secret_wipe(body.mem, body.len);
	if (rc == -EBADMSG)
		exchange_fail(ex, EVENT_CAUSE_CREDENTIAL,
		        "the credential's value has bytes that JSON cannot carry");
	else if (rc)
		exchange_fail(
		        ex, EVENT_CAUSE_LIMIT, "the answer is too large with the credential in it");
	else
		exchange_finish(ex, true, false);
}
