/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: to the gateway as an HTTP proxy, or by a base URL, which stands for another host. Each
 * head proves its session. The worker gets the head without its proof; a base URL becomes the URL
 * that it stands for. A head that would go on with the token anywhere in it is refused.
 */
#include <errno.h>

#include "gateway/visitor.h"
#include "vethguard/base/secret.h"

enum decision {
	DECIDED_PROVED,
	DECIDED_UNPROVED, /* there is no proof, or it cannot be read */
	DECIDED_WRONG,
	DECIDED_PREFLIGHT,
	DECIDED_MALFORMED
};

/* A head and what was found out about it. */
struct request {
	struct proxy_head head;
	struct proxy_proof proof; /* wiped by forget() */
	enum message_form form;
	struct base_url url;  /* form is a base URL's */
	struct slice without; /* the field that held the proof; empty: none did */
	struct session *session;
	const char *why; /* MALFORMED */
};

static void forget(struct request *r)
{
	secret_wipe(&r->proof, sizeof(r->proof));
}

/* Finds the session of r->proof. */
static enum decision look_up(const struct visitor *c, struct request *r)
{
	r->session = sessions_find(c->gateway, slice_of(r->proof.text, r->proof.n), &c->source);
	return r->session ? DECIDED_PROVED : DECIDED_WRONG;
}

static enum decision malformed(struct request *r, const char *why)
{
	r->why = why;
	return DECIDED_MALFORMED;
}

static bool is_preflight(const struct proxy_head *head)
{
	return slice_equals(head->method, SLICE("OPTIONS")) && head->origin.n &&
	       slice_token_length(head->preflight_method) == head->preflight_method.n &&
	       head->preflight_method.n;
}

/* --- by a base URL --- */

static const struct message_gateway_base *find_base(const struct gateway *g, struct slice host)
{
	ptrdiff_t colon = slice_find_byte(host, ':');

	if (colon >= 0)
		host.n = (size_t)colon;
	for (size_t i = 0; i < g->start.base_count; i++)
		if (slice_equals_ignoring_case(host, g->start.bases[i].name))
			return &g->start.bases[i];
	return NULL;
}

/* The proof is in the field in which clients send an API's key. */
static bool read_key(struct request *r)
{
	const struct proxy_head *head = &r->head;

	for (unsigned i = 0; i < PROXY_KEY_FIELDS; i++) {
		if (!head->keys[i].n)
			continue;
		r->without = base_url_key_name((enum proxy_key_field)i);
		return i == PROXY_KEY_AUTHORIZATION ? proxy_proof_read(head->keys[i], &r->proof)
		                                    : proxy_proof_take(head->keys[i], &r->proof);
	}
	return false;
}

static enum decision decide_by_name(
        const struct visitor *c, struct request *r, const struct message_gateway_base *base)
{
	const char *why = base_url_check_path(r->head.target);

	r->form = MESSAGE_FORM_BASE_NAME;
	r->url = (struct base_url){.token = SLICE(""),
	        .https = base->https,
	        .authority = base->authority,
	        .path = r->head.target};
	if (why)
		return malformed(r, why);
	if (is_preflight(&r->head)) /* browsers send no proof with it */
		return DECIDED_PREFLIGHT;
	if (r->head.keys_twice)
		return malformed(r, "the field with the token appears twice");
	return read_key(r) ? look_up(c, r) : DECIDED_UNPROVED;
}

static enum decision decide_by_url(const struct visitor *c, struct request *r)
{
	const struct message_gateway_base *base = find_base(c->gateway, r->head.host);
	enum decision decision;
	const char *why;

	r->form = MESSAGE_FORM_BASE_PATH;
	if (!r->head.host.n)
		return malformed(r, "there is no Host");
	if (base)
		return decide_by_name(c, r, base);
	why = base_url_parse(r->head.target, &r->url);
	if (why)
		return malformed(r, why);
	if (!proxy_proof_take(r->url.token, &r->proof))
		return DECIDED_UNPROVED;
	decision = look_up(c, r);
	return decision == DECIDED_PROVED && is_preflight(&r->head) ? DECIDED_PREFLIGHT : decision;
}

/* --- any request --- */

static enum decision decide(const struct visitor *c, struct request *r)
{
	r->form = MESSAGE_FORM_PROXY;
	r->without = SLICE("");
	r->session = NULL;
	r->why = "";
	r->proof.n = 0;
	if (r->head.form == PROXY_FORM_ORIGIN)
		return decide_by_url(c, r);
	if (proxy_proof_read(r->head.authorization, &r->proof))
		return look_up(c, r);
	/* Only a head without Proxy-Authorization may be proved by the certificate. */
	r->session = r->head.authorization.n ? NULL : visitor_certified(c);
	return r->session ? DECIDED_PROVED : DECIDED_UNPROVED;
}

/* Puts the head that goes on into c->back.unsent. Returns 0; -EBADMSG: the token is in it; or
 * -errno. */
static int write_onward(struct visitor *c, const struct request *r)
{
	const uint8_t *p = buf_bytes(&c->in);
	struct buf onward;
	int rc;

	buf_init_secret(&onward, 2 * PROXY_HEAD_MAX);
	rc = r->form == MESSAGE_FORM_PROXY
	             ? proxy_head_write(p, &r->head, &onward)
	             : base_url_write(p, &r->head, &r->url, r->without, &onward);
	if (!rc && r->proof.n && memmem(buf_bytes(&onward), onward.len, r->proof.text, r->proof.n))
		rc = -EBADMSG;
	if (!rc)
		rc = buf_append(&c->back.unsent, buf_bytes(&onward), onward.len);
	buf_fini(&onward);
	return rc;
}

static void go_on(struct visitor *c, const struct request *r)
{
	static const char second[] = "the token appears in a second place";
	int rc = write_onward(c, r);

	if (rc == -EBADMSG) {
		visitor_answer(c, ANSWER_MALFORMED, 400, second);
		return;
	}
	visitor_consume_head(c, &r->head, r->form);
	c->tunnel = r->head.form == PROXY_FORM_CONNECT && c->carry == CARRY_TUNNEL;
	if (!rc && c->carry == CARRY_TUNNEL) {
		rc = buf_append(&c->back.unsent, buf_bytes(&c->in), c->in.len);
		buf_fini(&c->in);
	}
	if (rc)
		visitor_close(c);
	else
		visitor_prove(c, r->session);
}

static void carry_out(struct visitor *c, struct request *r)
{
	const enum decision decision = decide(c, r);

	c->form = r->form;
	switch (decision) {
	case DECIDED_PROVED:
		go_on(c, r);
		break;
	case DECIDED_UNPROVED:
		visitor_answer(c, ANSWER_PROVE, 0, "");
		break;
	case DECIDED_WRONG:
		if (!visitor_show(c, slice_of(r->proof.text, r->proof.n)))
			visitor_refuse(c);
		break;
	case DECIDED_PREFLIGHT:
		visitor_answer_preflight(c, r->head.preflight_method, r->head.preflight_fields);
		break;
	case DECIDED_MALFORMED:
		visitor_answer(c, ANSWER_MALFORMED, 400, r->why);
		break;
	}
}

bool visitor_head(struct visitor *c)
{
	struct request r;

	for (;;) {
		switch (proxy_head_parse(buf_bytes(&c->in), c->in.len, &c->looked, &r.head)) {
		case PROXY_HEAD_DONE:
			if (c->callback)
				visitor_question(c, &r.head);
			else
				carry_out(c, &r);
			forget(&r);
			return c->state != VISITOR_CLOSED;
		case PROXY_HEAD_BAD:
			visitor_answer(c, ANSWER_MALFORMED, r.head.status, r.head.why);
			return true;
		default:
			break;
		}
		if (!visitor_take_in(c))
			return false;
	}
}

enum next_request visitor_next_request(struct visitor *c)
{
	enum next_request next = NEXT_ANEW;
	struct request r;

	switch (proxy_head_parse(buf_bytes(&c->in), c->in.len, &c->looked, &r.head)) {
	case PROXY_HEAD_MORE:
		return NEXT_MORE;
	case PROXY_HEAD_BAD:
		return NEXT_ANEW;
	default:
		break;
	}
	if (c->callback)
		return visitor_next_question(c, &r.head) ? NEXT_SENT : NEXT_ANEW;
	if (r.head.form != PROXY_FORM_CONNECT && decide(c, &r) == DECIDED_PROVED &&
	        r.session == c->session && r.form == c->form && write_onward(c, &r) == 0) {
		visitor_consume_head(c, &r.head, r.form);
		next = NEXT_SENT;
	}
	forget(&r);
	return next;
}
