/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions of other proxies about requests (wire/callback.h), on listeners of their own. A
 * question proves its session with a token that opens nothing else, or with a client certificate.
 * So a sandbox that has the token of an ordinary session cannot ask for credentials.
 *
 * A question by path becomes the head of its request, and its body passes as it comes. LangSmith's
 * callback is read in three steps, each only after the one before has succeeded: the token, the
 * signature in its head, and its body, whose hash the signature names. A signature is good once
 * (replay.c).
 */
#include <errno.h>
#include <string.h>

#include "gateway/visitor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/wire/callback.h"

static const char second[] = "the token appears in a second place";

/* --- the proof --- */

enum found { FOUND, FOUND_NOTHING, FOUND_WRONG };

/* Finds the session by the question's token or, if there is none, by the client's certificate. */
static enum found find(const struct visitor *c, const struct callback *q, struct session **out)
{
	if (q->token.n && q->token.n <= PROXY_PROOF_MAX)
		*out = sessions_find_asking(c->gateway, q->token, &c->source);
	else
		*out = q->token.n ? NULL : visitor_certified(c);
	return *out ? FOUND : q->token.n ? FOUND_WRONG : FOUND_NOTHING;
}

/* Puts the body's hash into c->signed_hash and the expiry into c->signed_until_ms, as the claims
 * say. Returns NULL, or what is wrong. */
static const char *read_claims(struct visitor *c, const struct signed_claims *claims)
{
	const struct json_tree *tree = &claims->tree;
	struct slice subject, hash;

	if (!json_tree_string(tree, SLICE("sub"), &subject) ||
	        !slice_equals(subject, SLICE(CALLBACK_LANGSMITH_SUBJECT)))
		return "its claim sub is not \"" CALLBACK_LANGSMITH_SUBJECT "\"";
	if (!json_tree_string(tree, SLICE(CALLBACK_LANGSMITH_HASH), &hash) ||
	        hash.n != 2 * sizeof(c->signed_hash))
		return "it has no claim " CALLBACK_LANGSMITH_HASH " of 64 hex digits";
	for (size_t i = 0; i < sizeof(c->signed_hash); i++) {
		const int high = slice_hex_digit(hash.p[2 * i]);
		const int low = slice_hex_digit(hash.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return "its claim " CALLBACK_LANGSMITH_HASH " is not hexadecimal";
		c->signed_hash[i] = (uint8_t)(high << 4 | low);
	}
	c->signed_until_ms = claims->expires_s * 1000;
	return NULL;
}

/* Hashes what a verified JWT signs, without its signature: of ECDSA both s and -s are valid.
 * Returns 0 or -errno. */
static int hash_signed(struct gateway *g, struct slice jwt, uint8_t out[MESSAGE_TOKEN_HASH_BYTES])
{
	const char *dot = memrchr(jwt.p, '.', jwt.n);
	const struct slice covered = slice_of(jwt.p, dot ? (size_t)(dot - jwt.p) : jwt.n);

	return digest_sha256(&g->digest, &covered, 1, out);
}

static bool is_signed(struct visitor *c, struct slice signature)
{
	struct gateway *g = c->gateway;
	struct signed_claims claims;
	const char *why = "it is missing";

	if (signature.n && signed_callback_check(signature,
	                           (const struct token_signer *const *)g->signers.items,
	                           g->signers.count, clock_real_ms() / 1000, &claims, &why) >= 0) {
		why = read_claims(c, &claims);
		signed_claims_fini(&claims);
	}
	if (!why && hash_signed(g, signature, c->shown) != 0)
		why = "it cannot be hashed";
	if (why)
		log_info(
		        "the signature of a callback from :%u is refused: %s", c->source_port, why);
	return !why;
}

/* --- a question by path --- */

/* Appends the request's head to c->back.unsent. Returns 0; -EBADMSG if the token is in that head;
 * or another -errno. */
static int write_check(struct visitor *c, const struct proxy_head *head, const struct callback *q)
{
	const uint8_t *p = buf_bytes(&c->in);
	struct buf onward;
	int rc;

	buf_init_secret(&onward, 2 * PROXY_HEAD_MAX);
	rc = callback_write_check(p, head, q, &onward);
	if (!rc && q->token.n && memmem(buf_bytes(&onward), onward.len, q->token.p, q->token.n))
		rc = -EBADMSG;
	if (!rc)
		rc = buf_append(&c->back.unsent, buf_bytes(&onward), onward.len);
	buf_fini(&onward);
	return rc;
}

static enum message_form form_of(const struct callback *q)
{
	return q->tells_body ? MESSAGE_FORM_CHECK : MESSAGE_FORM_CHECK_HEAD;
}

static void begin_check(struct visitor *c, const struct proxy_head *head, const struct callback *q,
        struct session *s)
{
	int rc = write_check(c, head, q);

	if (rc == -EBADMSG) {
		visitor_answer(c, ANSWER_MALFORMED, 400, second);
		return;
	}
	visitor_consume_head(c, head, form_of(q));
	if (rc)
		visitor_close(c);
	else
		visitor_prove(c, s);
}

bool visitor_next_question(struct visitor *c, const struct proxy_head *head)
{
	struct callback q;
	struct session *s;

	if (callback_parse(buf_bytes(&c->in), head, &q) || q.kind != CALLBACK_CHECK ||
	        form_of(&q) != c->form || find(c, &q, &s) != FOUND || s != c->session ||
	        write_check(c, head, &q) != 0)
		return false;
	visitor_consume_head(c, head, c->form);
	return true;
}

/* --- a callback with a signed body --- */

void visitor_forget_body(struct visitor *c)
{
	c->gateway->callback_bytes -= c->body_n;
	c->body_n = 0;
}

/* Makes room for the whole body in c->in. Returns false beyond GATEWAY_CALLBACK_BYTES, or without
 * memory. */
static bool make_room(struct visitor *c, size_t n)
{
	struct gateway *g = c->gateway;
	struct buf whole;

	visitor_forget_body(c); /* of an earlier question on this connection */
	if (n > GATEWAY_CALLBACK_BYTES - g->callback_bytes)
		return false;
	buf_init_secret(&whole, n + GATEWAY_PLAIN_MAX + 2 * GATEWAY_FIRST);
	if (!buf_reserve(&whole, n + 2 * GATEWAY_FIRST) ||
	        buf_append_slice(&whole, buf_slice(&c->in)) != 0) {
		buf_fini(&whole);
		return false;
	}
	buf_fini(&c->in);
	c->in = whole;
	c->body_n = n;
	g->callback_bytes += n;
	return true;
}

static void begin_body(struct visitor *c, const struct proxy_head *head, struct session *s)
{
	const size_t n = (size_t)head->length;

	visitor_belong(c, s);
	visitor_consume_head(c, head, MESSAGE_FORM_CALLBACK);
	c->meter = (struct body_meter){.state = BODY_METER_DONE};
	if (!make_room(c, n)) {
		visitor_answer(c, ANSWER_AWAY, 0, "");
		return;
	}
	visitor_enter(c, VISITOR_BODY);
	loop_deadline_set(&c->gateway->waits[WAIT_PROOF], &c->deadline);
}

/* Returns NULL if the body is the one that was signed and the signature was not used before;
 * otherwise what is wrong. */
static const char *check_body(struct visitor *c, struct slice body)
{
	uint8_t hash[DIGEST_SHA256_BYTES];
	volatile uint8_t difference = 0;

	if (digest_sha256(&c->gateway->digest, &body, 1, hash) != 0)
		return "the body cannot be hashed";
	for (size_t i = 0; i < sizeof(hash); i++)
		difference = difference | (hash[i] ^ c->signed_hash[i]);
	if (difference)
		return "the body is not the one that was signed";
	return replay_take(c->gateway, c->shown, c->signed_until_ms)
	               ? NULL
	               : "the signature was used before";
}

/* Leaves in c->in only what follows the body, in a buffer of the usual size. c->body_n stays: the
 * request, which is about as long as the body, waits for the worker. Returns false without memory.
 */
static bool drop_body(struct visitor *c)
{
	struct buf rest;

	visitor_init_in(&rest);
	buf_consume(&c->in, c->body_n);
	if (c->in.len && (!buf_reserve(&rest, 2 * GATEWAY_FIRST) ||
	                         buf_append_slice(&rest, buf_slice(&c->in)) != 0)) {
		buf_fini(&rest);
		return false;
	}
	buf_fini(&c->in);
	c->in = rest;
	return true;
}

static void take_body(struct visitor *c)
{
	const struct slice body = slice_of(buf_bytes(&c->in), c->body_n);
	const char *why = check_body(c, body);
	bool tells_body;

	if (why) {
		log_info("a callback from :%u is refused: %s", c->source_port, why);
		visitor_answer(c, ANSWER_PROVE, 0, "");
		return;
	}
	buf_fini(&c->back.unsent);
	buf_init(&c->back.unsent, CALLBACK_REQUEST_MAX + 2 * GATEWAY_CHUNK);
	why = callback_write_described(body, c->carry == CARRY_LAST, &tells_body, &c->back.unsent);
	if (why) {
		visitor_answer(c, ANSWER_MALFORMED, 400, why);
		return;
	}
	c->form = tells_body ? MESSAGE_FORM_CALLBACK : MESSAGE_FORM_CALLBACK_HEAD;
	if (!drop_body(c)) {
		visitor_close(c);
		return;
	}
	visitor_prove(c, c->session);
}

bool visitor_body(struct visitor *c)
{
	while (c->in.len < c->body_n)
		if (!visitor_take_in(c))
			return false;
	take_body(c);
	return c->state != VISITOR_CLOSED;
}

/* --- any question --- */

static void begin_langsmith(struct visitor *c, const struct proxy_head *head,
        const struct callback *q, struct session *s)
{
	struct gateway *g = c->gateway;

	if (head->length > CALLBACK_BODY_MAX) {
		visitor_answer(c, ANSWER_MALFORMED, 413, "the callback's body has more than 2 MiB");
	} else if (!address_may_check(g, c->address)) {
		visitor_answer(c, ANSWER_AWAY, 0, "");
	} else if (!is_signed(c, q->signature)) {
		address_check_failed(g, c->address);
		visitor_refuse(c);
	} else {
		begin_body(c, head, s);
	}
}

void visitor_question(struct visitor *c, const struct proxy_head *head)
{
	struct session *s = NULL;
	struct callback q;
	const char *why = callback_parse(buf_bytes(&c->in), head, &q);

	switch (find(c, &q, &s)) {
	case FOUND_NOTHING:
		visitor_answer(c, ANSWER_PROVE, 0, "");
		return;
	case FOUND_WRONG:
		visitor_refuse(c);
		return;
	case FOUND:
		break;
	}
	if (why)
		visitor_answer(c, ANSWER_MALFORMED, 400, why);
	else if (q.kind == CALLBACK_CHECK)
		begin_check(c, head, &q, s);
	else
		begin_langsmith(c, head, &q, s);
}
