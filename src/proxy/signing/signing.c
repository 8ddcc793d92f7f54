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
 * A fault in a body is reported in a task of its own, because it is found while the client's side
 * is handing over the body.
 */
#include "proxy/signing/signing.h"

#include <errno.h>
#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/signing/signature.h"

static void count(struct signing *s, size_t bytes)
{
	struct proxy *proxy = s->exchange->proxy;

	proxy->body_held += bytes;
	proxy->body_held -= s->counted;
	s->counted = bytes;
}

static void fault(struct signing *s, uint16_t status, const char *why)
{
	s->fault = why;
	s->status = status;
	loop_task_queue(s->exchange->proxy->config.loop, &s->task);
}

static bool hash_held(struct exchange *ex)
{
	if (sigv4_payload_hex(&ex->proxy->hmac, holding_bytes(ex), ex->signing->hash) == 0)
		return true;
	exchange_fail(ex, EVENT_CAUSE_LIMIT, "the request's body could not be hashed");
	return false;
}

void signing_go_on(struct exchange *ex)
{
	if (hash_held(ex))
		exchange_begin(ex);
}

static void on_task(struct loop_task *task)
{
	struct signing *s = container_of(task, struct signing, task);
	struct exchange *ex = s->exchange;
	enum event_cause cause = s->status == 503 ? EVENT_CAUSE_LIMIT : EVENT_CAUSE_CLIENT;

	if (responding_has_begun(&ex->responding))
		exchange_abort(ex, cause, s->fault);
	else
		exchange_refuse(ex, s->status, cause, s->fault);
}

/* --- begin and end --- */

static const char no_last_chunk[] = "the request's body ends before its last chunk";

/* A body that a rule has asked for is there already. True: the exchange goes on later, or was
 * refused. */
static bool hold(struct exchange *ex)
{
	ex->signing->body = SIGNING_HOLDS;
	if (ex->holding)
		return !hash_held(ex);
	holding_begin(ex, HOLDING_TO_SIGN);
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
	ex->signing = s;
	policy_credential(ex->proxy->config.policy, ex->verdict.decision.credential, &spec);
	if (spec.inject == POLICY_INJECT_HMAC)
		return signs_body(&spec) && exchange_has_body(ex) && hold(ex);
	signature_read(&ex->request, &claim);
	if (signature_check(&claim, &spec)) /* the verdict has reported that already */
		return false;
	s->with_trailer = claim.body == SIGNATURE_BODY_CHUNKS_AND_TRAILER;
	if (s->with_trailer || claim.body == SIGNATURE_BODY_CHUNKS)
		s->body = SIGNING_CHUNKS;
	if (s->body == SIGNING_CHUNKS && (ex->holding || !exchange_has_body(ex))) {
		exchange_refuse(ex, 400, EVENT_CAUSE_CLIENT,
		        ex->holding ? "a body that rules read cannot be signed in chunks"
		                    : no_last_chunk);
		return true;
	}
	return s->body == SIGNING_PASSES && claim.body == SIGNATURE_BODY_OPEN &&
	       exchange_has_body(ex) && !sigv4_is_s3(claim.service) && hold(ex);
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
	aws_keys_free(s->keys);
	free(s);
	ex->signing = NULL;
}

int signing_begin_body(struct exchange *ex, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, const char signature[SIGV4_HEX + 1])
{
	struct signing *s = ex->signing;

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

/* --- the body --- */

bool signing_takes_body(const struct exchange *ex)
{
	const struct signing *s = ex->signing;

	if (s->fault || s->ended)
		return false;
	return s->body != SIGNING_CHUNKS || !s->chunks || !s->chunks->ready;
}

static void take_chunks(struct signing *s, const uint8_t *p, size_t n)
{
	struct exchange *ex = s->exchange;
	int rc;

	s->chunks_taken = true;
	if (n > HOLDING_ALL_MAX - ex->proxy->body_held) {
		fault(s, 503, "too many bodies are being held");
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

	if (s->body != SIGNING_CHUNKS)
		return false;
	if (s->fault)
		return true;
	exchange_scan_request(ex, p, n);
	if (exchange_ends_leak(ex))
		return true;
	ex->upstream->ops->touch(ex->upstream);
	take_chunks(s, p, n);
	return true;
}

bool signing_request_end(struct exchange *ex)
{
	struct signing *s = ex->signing;

	if (s->body != SIGNING_CHUNKS)
		return false;
	exchange_request_is_whole(ex);
	if (s->fault)
		return true;
	s->ended = true;
	if (!aws_chunked_is_whole(s->chunks))
		fault(s, 400, no_last_chunk);
	else
		signing_pump(ex);
	return true;
}

static struct slice ready(const struct signing *s)
{
	return s->chunks ? slice_of(buf_bytes(&s->chunks->out), s->chunks->ready) : SLICE("");
}

void signing_pump(struct exchange *ex)
{
	struct signing *s = ex->signing;
	struct upstream_stream *u = ex->upstream;
	struct slice next;

	if (s->body != SIGNING_CHUNKS || s->fault || ex->state != EXCHANGE_ACTIVE || !u)
		return;
	while ((next = ready(s)).n && !u->ops->congested(u)) {
		size_t n = next.n < HOLDING_PIECE ? next.n : HOLDING_PIECE;

		ex->bytes_out += n;
		u->ops->send_body(u, (const uint8_t *)next.p, n);
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
	return ex->signing->body == SIGNING_CHUNKS;
}

bool signing_is_sending(const struct exchange *ex)
{
	return ex->signing->body == SIGNING_CHUNKS && !ex->signing->end_sent;
}

bool signing_can_repeat(const struct exchange *ex)
{
	return !ex->signing->chunks_taken;
}
