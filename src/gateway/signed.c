/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that shows a signed token which is not known yet. Its signature is verified here, in the
 * process that reads hostile bytes anyway, and the supervisor is asked whose session it is. The
 * supervisor verifies it once more, because a gateway that was taken over must not make sessions.
 * With its answer the client's proof is read again, and is known then.
 */
#include "gateway/visitor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/secret.h"

static bool hash_of(struct visitor *c, struct slice token)
{
	return digest_sha256(&c->gateway->digest, &token, 1, c->shown) == 0;
}

/* Returns false if the question cannot be sent. */
static bool ask(struct visitor *c, struct slice token)
{
	struct gateway *g = c->gateway;
	const struct message_gateway_token m = {c->source, token};
	uint8_t message[MESSAGE_SIGNED_TOKEN_MAX + 128];

	c->question = ++g->last_question;
	HASH_ADD(hh, g->entering, question, sizeof(c->question), c);
	return c->hh.tbl && ipc_send_secret(&g->supervisor, message,
	                            message_gateway_token_encode(message, sizeof(message),
	                                    MESSAGE_GATEWAY_TOKEN, c->question, &m),
	                            NULL, 0) == 0;
}

bool visitor_show(struct visitor *c, struct slice token)
{
	struct gateway *g = c->gateway;

	if (!g->signers.count || c->decided || !signed_token_is_like(token))
		return false;
	if (!address_may_check(g, c->address)) {
		visitor_answer(c, ANSWER_AWAY, 0, "");
		return true;
	}
	if (!signers_know(g, token) || !hash_of(c, token)) {
		address_check_failed(g, c->address);
		return false;
	}
	visitor_enter(c, VISITOR_ASKING);
	if (!rate_take(&g->asks, clock_monotonic_ms()))
		loop_deadline_set(&g->waits[WAIT_RETRY], &c->deadline);
	else if (ask(c, token))
		loop_deadline_set(&g->waits[WAIT_ENTER], &c->deadline);
	else
		visitor_answer(c, ANSWER_AWAY, 0, "");
	return true;
}

void visitor_show_again(struct visitor *c)
{
	c->looked = 0;
	loop_deadline_set(&c->gateway->waits[WAIT_PROOF], &c->deadline);
	visitor_enter(c, c->socks ? VISITOR_LOGIN : VISITOR_HEAD);
}

bool visitor_decided(struct gateway *g, uint64_t question, const struct message_gateway_verdict *m)
{
	struct session *s;
	struct visitor *c;

	HASH_FIND(hh, g->entering, &question, sizeof(question), c);
	if (!c) /* the connection has ended meanwhile */
		return true;
	if (c->state != VISITOR_ASKING)
		return false;
	visitor_leave_question(c);
	s = m->verdict == MESSAGE_TOKEN_ACCEPTED ? sessions_get(g, m->sandbox_id) : NULL;
	if (m->verdict == MESSAGE_TOKEN_REFUSED) {
		visitor_refuse(c);
	} else if (s) {
		/* What it shows now is known, or is refused. */
		c->decided = true;
		tokens_add(g, c->shown, s, (int64_t)m->expires_s * 1000);
		visitor_show_again(c);
		loop_task_queue(g->loop, &c->wake);
	} else if (++c->asked < VISITOR_ASKED_MAX) {
		loop_deadline_set(&g->waits[WAIT_RETRY], &c->deadline);
	} else {
		visitor_answer(c, ANSWER_AWAY, 0, "");
	}
	return true;
}
