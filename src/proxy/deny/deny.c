/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to refused clients: RFC 9457 problem details that say what was refused, why, and what to
 * ask for (deny_problem.c, deny_text.c). A gRPC client gets a status and a message, in fields only
 * (deny_grpc.c); git gets an answer of its own protocol (deny_git.c). */
#include <stdio.h>

#include "proxy/deny/deny.h"

/* Enough for each of the texts with all bytes escaped, and for a report to git about 1024 refs. */
#define BODY_MAX (2u << 20)
#define REASON_MAX 128
#define RETRY_MAX 24
#define PROBLEM_JSON "application/problem+json"

/* The reason phrase for HTTP/1 (RFC 9112 section 4): the standard phrase, then the body's title. It
 * may be written in text. For a refused CONNECT many clients show nothing else. */
static struct slice reason_of(const struct exchange *ex, char text[REASON_MAX])
{
	const char *title = deny_title(ex->cause);
	struct slice standard = http_reason(ex->status);
	int n;

	if (ex->cause == EVENT_CAUSE_CLIENT ||
	        !standard.n) /* the status says more than the title */
		return standard;
	n = snprintf(text, REASON_MAX, "%.*s: %s", (int)standard.n, standard.p, title);
	return n > 0 && n < REASON_MAX ? slice_of(text, (size_t)n) : standard;
}

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
	if (deny_grpc_reads(ex) || deny_git_reads(ex))
		ex->status = 200; /* the refusal is in its trailers, or in git's own lines */
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
	deny_put_problem(ex, body);
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
	bool grpc = deny_grpc_reads(ex);
	char reason[REASON_MAX], retry[RETRY_MAX];
	struct buf body;

	buf_init(&body, BODY_MAX);
	if (grpc)
		deny_put_grpc(ex, &response, &body);
	else if (!deny_put_git(ex, &response, &body))
		put_problem(ex, &response, reason, &body);
	put_retry(ex, &response, grpc, retry);
	responding_enter(ex, RESPONDING_BEGUN);
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
	if (ex->responding.state == RESPONDING_WAITS) /* drop the upstream's head */
		responding_enter(ex, RESPONDING_NONE);
	exchange_will_refuse(ex, status);
	exchange_enter(ex, EXCHANGE_REFUSED);
	audit_exchange(ex);
	inquiry_note_denial(ex);
	if (!deny_throttle_waits(ex))
		exchange_answer_refusal(ex);
}
