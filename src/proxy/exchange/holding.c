/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: bytes are gathered up to a bound that depends on why they are held, and
 * all bodies of a worker together up to another. A body that declares a larger length is refused
 * before it comes, and before the client is told to send it (Expect: 100-continue). Then the whole
 * body is read, and the request is judged again (exchange_decide()); or its hash is made
 * (exchange_begin()). The body goes upstream with a Content-Length, whatever its framing was, and
 * without trailers, which a recipient may always leave out (RFC 9110 section 6.5.1).
 *
 * The body is kept until the exchange ends, so that the request can be sent again, and judged
 * by another policy. Faults are told in a task, because the client's side is in the middle of the
 * body when they are found.
 */
#include "proxy/exchange/holding.h"

#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "proxy/inject/filling.h"
#include "proxy/signing/signing.h"
#include "vethguard/git/body.h"

static const char too_large_to_sign[] =
        "the request's body has more than 16 MiB, and has to be whole before it can be signed";
static const char too_large_to_read[] =
        "the request's body is larger than the policy's bound for bodies that rules read (inspect)";

static const char too_large_to_answer[] =
        "the request's body has more than 4096 bytes, which no proposal may have";

const char holding_too_large_to_fill[] =
        "the request's body has more than 1 MiB, and has to be whole before a placeholder can be "
        "replaced in it";

static size_t limit(const struct holding *h)
{
	switch (h->why) {
	case HOLDING_TO_SIGN:
		return HOLDING_MAX;
	case HOLDING_TO_FILL:
		return FILL_BODY_MAX;
	case HOLDING_TO_ANSWER:
		return INQUIRY_BODY_MAX;
	default:
		return policy_inspect(h->exchange->proxy->config.policy);
	}
}

static const char *too_large(const struct holding *h)
{
	switch (h->why) {
	case HOLDING_TO_SIGN:
		return too_large_to_sign;
	case HOLDING_TO_FILL:
		return holding_too_large_to_fill;
	case HOLDING_TO_ANSWER:
		return too_large_to_answer;
	default:
		return too_large_to_read;
	}
}

/* A rule refuses what it cannot read. */
static enum event_cause cause_of(const struct holding *h, uint16_t status)
{
	if (status == 503)
		return EVENT_CAUSE_LIMIT;
	return h->why == HOLDING_TO_DECIDE ? EVENT_CAUSE_POLICY : EVENT_CAUSE_CLIENT;
}

static void fault(struct holding *h, uint16_t status, const char *why)
{
	h->fault = why;
	h->status = status;
	loop_task_queue(h->exchange->proxy->config.loop, &h->task);
}

/* The body is whole: it is sent with its length. */
static void go_on(struct holding *h)
{
	struct exchange *ex = h->exchange;

	ex->request.body = HTTP_BODY_LENGTH;
	ex->request.content_length = h->bytes.len;
	if (h->why == HOLDING_TO_SIGN)
		signing_go_on(ex);
	else if (h->why == HOLDING_TO_FILL)
		filling_go_on(ex);
	else
		exchange_decide(ex);
}

static void on_task(struct loop_task *task)
{
	struct holding *h = container_of(task, struct holding, task);

	/* The policy may be another one than at the beginning. */
	if (!h->fault && h->bytes.len > limit(h)) {
		h->fault = too_large(h);
		h->status = 413;
	}
	if (h->fault)
		exchange_refuse(h->exchange, h->status, cause_of(h, h->status), h->fault);
	else
		go_on(h);
}

void holding_begin(struct exchange *ex, enum holding_why why)
{
	struct http_request *r = &ex->request;
	struct holding *h = calloc(1, sizeof(*h));

	if (!h) {
		exchange_refuse(ex, 0, EVENT_CAUSE_LIMIT, "no memory to hold the request's body");
		return;
	}
	h->exchange = ex;
	h->why = why;
	h->task.run = on_task;
	buf_init(&h->bytes, HOLDING_MAX);
	ex->holding = h;
	if (r->body == HTTP_BODY_LENGTH && r->content_length > limit(h)) {
		exchange_refuse(ex, 413, cause_of(h, 413), too_large(h));
		return;
	}
	exchange_enter(ex, EXCHANGE_HOLDING);
	if (r->expects_continue)
		exchange_continue(ex);
	r->expects_continue = false;
	ex->ops->request_resume(ex);
}

void holding_free(struct exchange *ex)
{
	struct holding *h = ex->holding;

	if (!h)
		return;
	ex->proxy->body_held -= h->bytes.len;
	loop_task_cancel(ex->proxy->config.loop, &h->task);
	policy_body_fini(&h->body);
	if (h->fill)
		fill_fini(h->fill);
	free(h->fill);
	buf_fini(&h->bytes);
	free(h);
	ex->holding = NULL;
}

struct slice holding_bytes(const struct exchange *ex)
{
	return buf_slice(&ex->holding->bytes);
}

bool holding_is_whole(const struct exchange *ex)
{
	return ex->holding->ended;
}

const struct policy_body *holding_body(struct exchange *ex, const struct policy *policy)
{
	static const struct policy_body larger = {
	        .state = POLICY_BODY_READ, .fault = too_large_to_read};
	struct holding *h = ex->holding;
	const struct policy_fields fields = authorize_fields(&ex->request.fields);

	if (!h->ended)
		return &h->body;
	if (h->bytes.len > policy_inspect(policy))
		return &larger;
	if (h->body.state == POLICY_BODY_UNREAD)
		git_body_read(&h->body, &fields, buf_slice(&h->bytes));
	return &h->body;
}

bool holding_takes_body(const struct exchange *ex)
{
	return ex->state == EXCHANGE_HOLDING && !ex->holding->fault && !ex->holding->ended;
}

/* exchange_decide() searches a judged body for placeholders, since it knows the credential; a
 * body that is filled is searched once it was filled. */
void holding_request_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct holding *h = ex->holding;

	if (h->fault)
		return;
	if (h->why == HOLDING_TO_SIGN)
		exchange_scan_request(ex, p, n);
	if (exchange_ends_leak(ex))
		return;
	if (n > limit(h) || h->bytes.len > limit(h) - n)
		fault(h, 413, too_large(h));
	else if (n > HOLDING_ALL_MAX - ex->proxy->body_held)
		fault(h, 503, "too many bodies are being held");
	else if (buf_append(&h->bytes, p, n) < 0)
		fault(h, 503, "no memory for the request's body");
	else
		ex->proxy->body_held += n;
}

void holding_request_end(struct exchange *ex)
{
	struct holding *h = ex->holding;

	ex->request_done = true;
	if (h->fault)
		return;
	h->ended = true;
	loop_task_queue(ex->proxy->config.loop, &h->task);
}

void holding_send(struct exchange *ex)
{
	struct holding *h = ex->holding;

	h->sent = 0;
	h->end_sent = false;
	ex->bytes_out = 0;
	holding_pump(ex);
}

/* The next bytes, as far as they lie in one piece. */
static struct slice rest(const struct holding *h)
{
	if (h->fill)
		return fill_from(h->fill, buf_slice(&h->bytes), h->sent);
	return slice_of(buf_bytes(&h->bytes) + h->sent, h->bytes.len - h->sent);
}

void holding_pump(struct exchange *ex)
{
	struct holding *h = ex->holding;
	struct upstream_stream *u = ex->upstream;
	struct slice next;

	if (ex->state != EXCHANGE_ACTIVE || !u)
		return;
	while ((next = rest(h)).n && !u->ops->congested(u)) {
		size_t n = next.n < HOLDING_PIECE ? next.n : HOLDING_PIECE;

		ex->bytes_out += n;
		h->sent += n;
		u->ops->send_body(u, (const uint8_t *)next.p, n);
	}
	if (h->end_sent || rest(h).n)
		return;
	h->end_sent = true;
	if (!exchange_ends_with_head(ex))
		u->ops->send_end(u, SLICE(""));
}

bool holding_is_sending(const struct exchange *ex)
{
	return !ex->holding->end_sent;
}
