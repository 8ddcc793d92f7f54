/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a body is signed depends on the sandbox's own request (signature.h):
 *
 *   x-amz-content-sha256 has a hash, UNSIGNED-PAYLOAD or STREAMING-UNSIGNED-PAYLOAD-TRAILER:
 *       that word is signed, and the body passes. A service compares a hash with the body itself.
 *   ... STREAMING-AWS4-HMAC-SHA256-PAYLOAD, also with -TRAILER: chunk by chunk (aws_chunked.h).
 *   nothing, to S3: UNSIGNED-PAYLOAD, which S3 permits over TLS.
 *   nothing, to another service: the body is held (state HOLDING) and hashed.
 *
 * A body in which placeholders are replaced is held as well. It is sent over HTTP/1, whose
 * connections keep what they send in locked memory.
 *
 * A fault in a body is reported in a task of its own, because it is found while the client's side
 * is handing over the body.
 */
#include "proxy/exchange/signing.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "proxy/exchange/signature.h"

static void count(struct signing *s, size_t bytes)
{
	struct proxy *proxy = s->exchange->proxy;

	proxy->signing_held += bytes;
	proxy->signing_held -= s->counted;
	s->counted = bytes;
}

static void fault(struct signing *s, uint16_t status, const char *why)
{
	s->fault = why;
	s->status = status;
	loop_task_queue(s->exchange->proxy->config.loop, &s->task);
}

/* The body is whole: the request is sent with its hash and length. */
static void go_on(struct signing *s)
{
	struct exchange *ex = s->exchange;

	ex->request.body = HTTP_BODY_LENGTH;
	ex->request.content_length = s->held.len;
	if (!s->fills && sigv4_payload_hex(&ex->proxy->hmac, buf_slice(&s->held), s->hash) < 0)
		exchange_fail(ex, EVENT_CAUSE_LIMIT, "the request's body could not be hashed");
	else
		exchange_begin(ex);
}

static void on_task(struct loop_task *task)
{
	struct signing *s = container_of(task, struct signing, task);
	struct exchange *ex = s->exchange;
	enum event_cause cause = s->status == 503 ? EVENT_CAUSE_LIMIT : EVENT_CAUSE_CLIENT;

	if (!s->fault)
		go_on(s);
	else if (ex->head_sent)
		exchange_abort(ex, cause, s->fault);
	else
		exchange_refuse(ex, s->status, cause, s->fault);
}

/* --- begin and end --- */

static const char too_large[] =
        "the request's body has more than 16 MiB, and has to be whole before it can be signed";

static const char too_large_to_fill[] =
        "the request's body has more than 1 MiB, and has to be whole before a placeholder can be "
        "replaced in it";

static const char no_last_chunk[] = "the request's body ends before its last chunk";

static size_t held_max(const struct signing *s)
{
	return s->fills ? FILL_BODY_MAX : SIGNING_HELD_MAX;
}

static const char *too_large_for(const struct signing *s)
{
	return s->fills ? too_large_to_fill : too_large;
}

static bool hold(struct exchange *ex)
{
	struct http_request *r = &ex->request;

	if (r->body == HTTP_BODY_LENGTH && r->content_length > held_max(ex->signing)) {
		exchange_refuse(ex, 413, EVENT_CAUSE_CLIENT, too_large_for(ex->signing));
		return true;
	}
	exchange_enter(ex, EXCHANGE_HOLDING);
	if (r->expects_continue)
		exchange_continue(ex);
	r->expects_continue = false;
	ex->ops->request_resume(ex);
	return true;
}

/* True if the hmac signature covers the body. */
static bool signs_body(const struct policy_credential *spec)
{
	struct policy_hmac hmac;
	struct slice literal, name;

	policy_hmac(spec, &hmac);
	while (policy_template_next(&hmac.sign, &literal, &name))
		if (slice_equals(name, SLICE("body")) || slice_equals(name, SLICE("body-sha256")))
			return true;
	return false;
}

bool signing_is_wanted(const struct exchange *ex)
{
	return ex->verdict.is_signed || (ex->verdict.fills && exchange_has_body(ex));
}

static bool begin_filling(struct exchange *ex)
{
	ex->signing->fills = true;
	ex->signing->body = SIGNING_HOLDS;
	ex->http1_required = true;
	if (!fill_is_coded(&ex->request.fields))
		return hold(ex);
	exchange_refuse(ex, 415, EVENT_CAUSE_CLIENT,
	        "the request's body is compressed, so no placeholder can be replaced in it");
	return true;
}

bool signing_begin(struct exchange *ex)
{
	struct policy_credential spec;
	struct signature claim;
	struct signing *s = calloc(1, sizeof(*s));

	if (!s) {
		exchange_refuse(ex, 0, EVENT_CAUSE_LIMIT, "no memory to sign the request");
		return true;
	}
	s->exchange = ex;
	s->task.run = on_task;
	buf_init(&s->held, SIGNING_HELD_MAX);
	ex->signing = s;
	if (!ex->verdict.is_signed)
		return begin_filling(ex);
	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	if (spec.inject == POLICY_INJECT_HMAC) {
		if (signs_body(&spec) && exchange_has_body(ex))
			s->body = SIGNING_HOLDS;
		return s->body == SIGNING_HOLDS && hold(ex);
	}
	signature_read(&ex->request, &claim);
	if (signature_check(&claim, &spec)) /* the verdict has reported that already */
		return false;
	s->with_trailer = claim.body == SIGNATURE_BODY_CHUNKS_AND_TRAILER;
	if (s->with_trailer || claim.body == SIGNATURE_BODY_CHUNKS)
		s->body = SIGNING_CHUNKS;
	else if (claim.body == SIGNATURE_BODY_OPEN && exchange_has_body(ex) &&
	         !sigv4_is_s3(claim.service))
		s->body = SIGNING_HOLDS;
	if (s->body == SIGNING_CHUNKS && !exchange_has_body(ex)) {
		exchange_refuse(ex, 400, EVENT_CAUSE_CLIENT, no_last_chunk);
		return true;
	}
	return s->body == SIGNING_HOLDS && hold(ex);
}

static void free_chunks(struct signing *s)
{
	if (!s->chunks)
		return;
	aws_chunked_fini(s->chunks);
	free(s->chunks);
	s->chunks = NULL;
}

void signing_free(struct exchange *ex)
{
	struct signing *s = ex->signing;

	if (!s)
		return;
	count(s, 0);
	loop_task_cancel(ex->proxy->config.loop, &s->task);
	free_chunks(s);
	buf_fini(&s->held);
	if (s->fill)
		fill_fini(s->fill);
	free(s->fill);
	free(s);
	ex->signing = NULL;
}

int signing_begin_body(struct exchange *ex, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, const char signature[SIGV4_HEX + 1])
{
	struct signing *s = ex->signing;

	if (s->body == SIGNING_HOLDS)
		ex->bytes_out = 0;
	s->sent = 0;
	s->end_sent = false;
	if (s->body != SIGNING_CHUNKS)
		return 0;
	free_chunks(s);
	s->chunks = malloc(sizeof(*s->chunks));
	if (!s->chunks)
		return -ENOMEM;
	return aws_chunked_init(
	        s->chunks, &ex->proxy->hmac, key, scope, signature, s->with_trailer);
}

/* --- placeholders in the body --- */

static struct fill_kind kind_of(const struct exchange *ex)
{
	struct policy_credential spec;

	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	return fill_kind_of(&ex->request.fields, &spec, ex->verdict.decision.seals);
}

static const char *check_filling(const struct exchange *ex)
{
	struct fill_kind kind = kind_of(ex);

	return fill_check(&kind, buf_slice(&ex->signing->held));
}

/* What was not replaced does not belong there. */
static void scan_filled(struct exchange *ex)
{
	const struct signing *s = ex->signing;
	struct slice body = buf_slice(&s->held);
	size_t at = 0;

	for (size_t i = 0; i < s->fill->count; i++) {
		const struct fill_gap *gap = &s->fill->gaps[i];

		exchange_scan_request(ex, (const uint8_t *)body.p + at, gap->at - at);
		at = gap->at + gap->n;
	}
	exchange_scan_request(ex, (const uint8_t *)body.p + at, body.n - at);
}

int signing_fill(struct exchange *ex, const struct substitute *substitute)
{
	struct signing *s = ex->signing;
	struct fill_kind kind;
	int rc;

	if (!s->fill)
		s->fill = calloc(1, sizeof(*s->fill));
	if (!s->fill)
		return -ENOMEM;
	kind = kind_of(ex);
	rc = fill_make(s->fill, &kind, substitute, buf_slice(&s->held));
	if (rc < 0)
		return rc;
	scan_filled(ex);
	ex->request.content_length = s->fill->length;
	return signing_begin_body(ex, NULL, NULL, NULL);
}

bool signing_is_secret(const struct exchange *ex)
{
	return ex->signing && ex->signing->fills;
}

/* --- the body --- */

bool signing_takes_body(const struct exchange *ex)
{
	const struct signing *s = ex->signing;

	if (s->fault || s->ended)
		return false;
	return s->body != SIGNING_CHUNKS || !s->chunks || !s->chunks->ready;
}

static void take_held(struct signing *s, const uint8_t *p, size_t n)
{
	struct proxy *proxy = s->exchange->proxy;

	if (n > held_max(s) - s->held.len)
		fault(s, 413, too_large_for(s));
	else if (n > SIGNING_HELD_ALL_MAX - proxy->signing_held)
		fault(s, 503, "too many bodies are being held to be signed");
	else if (buf_append(&s->held, p, n) < 0)
		fault(s, 503, "no memory for the request's body");
	else
		count(s, s->held.len);
}

static void take_chunks(struct signing *s, const uint8_t *p, size_t n)
{
	struct exchange *ex = s->exchange;
	int rc;

	s->chunks_taken = true;
	if (n > SIGNING_HELD_ALL_MAX - ex->proxy->signing_held) {
		fault(s, 503, "too many bodies are being held to be signed");
		return;
	}
	rc = aws_chunked_take(s->chunks, p, n);
	if (rc < 0)
		fault(s, rc == -EFBIG ? 413 : rc == -EBADMSG ? 400 : 503, s->chunks->why);
	else
		signing_pump(ex);
	count(s, s->chunks->out.len);
}

bool signing_request_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct signing *s = ex->signing;

	if (s->body == SIGNING_PASSES)
		return false;
	if (s->fault)
		return true;
	if (!s->fills) /* else what is left is looked at once it is filled */
		exchange_scan_request(ex, p, n);
	if (s->body == SIGNING_HOLDS) {
		take_held(s, p, n);
		return true;
	}
	ex->upstream->ops->touch(ex->upstream);
	take_chunks(s, p, n);
	return true;
}

bool signing_request_end(struct exchange *ex)
{
	struct signing *s = ex->signing;

	if (s->body == SIGNING_PASSES)
		return false;
	ex->request_done = true;
	if (s->fault)
		return true;
	s->ended = true;
	if (s->fills)
		s->fault = check_filling(ex);
	if (s->fault)
		fault(s, 400, s->fault);
	else if (s->body == SIGNING_HOLDS)
		loop_task_queue(ex->proxy->config.loop, &s->task);
	else if (!aws_chunked_is_whole(s->chunks))
		fault(s, 400, no_last_chunk);
	else
		signing_pump(ex);
	return true;
}

static struct slice ready(const struct signing *s)
{
	if (s->fill)
		return fill_from(s->fill, buf_slice(&s->held), s->sent);
	if (s->body == SIGNING_HOLDS)
		return slice_of(buf_bytes(&s->held) + s->sent, s->held.len - s->sent);
	return s->chunks ? slice_of(buf_bytes(&s->chunks->out), s->chunks->ready) : SLICE("");
}

void signing_pump(struct exchange *ex)
{
	struct signing *s = ex->signing;
	struct upstream_stream *u = ex->upstream;
	struct slice next;

	if (s->body == SIGNING_PASSES || s->fault || ex->state != EXCHANGE_ACTIVE || !u)
		return;
	while ((next = ready(s)).n && !u->ops->congested(u)) {
		size_t n = next.n < SIGNING_PIECE ? next.n : SIGNING_PIECE;

		ex->bytes_out += n;
		u->ops->send_body(u, (const uint8_t *)next.p, n);
		if (s->body == SIGNING_HOLDS)
			s->sent += n;
		else
			aws_chunked_sent(s->chunks, n);
	}
	if (!s->ended || s->end_sent || ready(s).n)
		return;
	s->end_sent = true;
	if (!exchange_ends_with_head(ex))
		u->ops->send_end(u, SLICE(""));
}

bool signing_has_body(const struct exchange *ex)
{
	const struct signing *s = ex->signing;

	return s->body == SIGNING_CHUNKS || (s->body == SIGNING_HOLDS && s->held.len);
}

bool signing_is_sending(const struct exchange *ex)
{
	const struct signing *s = ex->signing;

	return s->body != SIGNING_PASSES && !s->end_sent;
}

bool signing_can_repeat(const struct exchange *ex)
{
	return !ex->signing->chunks_taken;
}
