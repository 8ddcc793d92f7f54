/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses what a client sends until it has proved its session. The first byte tells SOCKS5 (RFC
 * 1928, 1929) from a request (request.c).
 *
 * The worker gets the same bytes as from a sandbox over a Unix socket: a SOCKS5 greeting without a
 * login, whose answer the client does not see.
 */
#include "gateway/visitor.h"
#include "vethguard/base/secret.h"
#include "vethguard/wire/socks5.h"

bool visitor_take_in(struct visitor *c)
{
	struct slice more;
	enum front_status status = front_read(&c->front, GATEWAY_FIRST, &more);
	/* All room at once: a buffer that grows leaves copies behind. */
	bool took = status == FRONT_OK && (c->in.mem || buf_reserve(&c->in, 2 * GATEWAY_FIRST)) &&
	            buf_append_slice(&c->in, more) == 0;

	secret_wipe(c->gateway->plain, more.n); /* where front_read() has put it */
	if (took)
		return true;
	if (status != FRONT_AGAIN)
		visitor_close(c);
	return false;
}

/* A question never becomes a tunnel: the other proxy sends the request, and what follows an
 * upgrade. */
void visitor_consume_head(struct visitor *c, const struct proxy_head *head, enum message_form form)
{
	secret_wipe(buf_bytes(&c->in), head->used);
	buf_consume(&c->in, head->used);
	c->looked = 0;
	c->form = form;
	c->carry = head->upgrade && !message_form_is_asked(form) ? CARRY_TUNNEL
	           : head->last                                  ? CARRY_LAST
	                                                         : CARRY_REQUESTS;
	body_meter_begin(&c->meter, head);
}

void visitor_belong(struct visitor *c, struct session *s)
{
	visitor_count_proved(c);
	if (c->front.stream)
		http2_stream_proved(c->front.stream);
	c->session = s;
	list_remove(&c->of_session);
	list_append(&s->visitors, &c->of_session);
}

void visitor_prove(struct visitor *c, struct session *s)
{
	visitor_belong(c, s);
	c->asked = 0;
	visitor_enter(c, VISITOR_ENTERING);
	if (!visitor_ask(c))
		visitor_answer(c, ANSWER_AWAY, 0, "");
}

void visitor_refuse(struct visitor *c)
{
	struct gateway *g = c->gateway;

	buf_fini(&c->in);
	c->answer = ANSWER_PROVE;
	visitor_enter(c, VISITOR_REFUSING);
	loop_deadline_set(&g->waits[address_failed(g, c->address)], &c->deadline);
}

#define TLS_HANDSHAKE 22 /* RFC 8446 section 5.1 */

bool visitor_first(struct visitor *c)
{
	if (!c->in.len && !visitor_take_in(c))
		return false;
	if (front_is_http2(&c->front)) {
		visitor_enter(c, VISITOR_HTTP2);
		if (!http2_open(c))
			visitor_close(c);
		return c->state != VISITOR_CLOSED;
	}
	/* TLS inside of TLS is transparent TLS, proved by the outer connection's certificate. */
	c->tls_inside = c->transparent ||
	                (buf_bytes(&c->in)[0] == TLS_HANDSHAKE && c->front.tls && !c->callback);
	if (c->tls_inside) {
		visitor_enter(c, VISITOR_HELLO);
		return true;
	}
	c->socks = buf_bytes(&c->in)[0] == SOCKS5_VERSION && !c->callback;
	visitor_enter(c, c->socks ? VISITOR_GREETING : VISITOR_HEAD);
	return true;
}

struct session *visitor_certified(const struct visitor *c)
{
	uint8_t hash[TLS_CERTIFICATE_HASH_BYTES];

	return front_certificate(&c->front, hash)
	               ? sessions_find_certificate(c->gateway, hash, &c->source, c->callback)
	               : NULL;
}

/* Asks for the session's worker. The worker gets a greeting without authentication, and then what
 * follows the client's greeting or login, which is the first `used` bytes of c->in. */
static void go_on(struct visitor *c, struct session *s, size_t used)
{
	static const uint8_t greeting[] = {SOCKS5_VERSION, 1, SOCKS5_NO_AUTHENTICATION};
	int rc = buf_append(&c->back.unsent, greeting, sizeof(greeting));

	if (!rc)
		rc = buf_append(&c->back.unsent, buf_bytes(&c->in) + used, c->in.len - used);
	buf_fini(&c->in);
	c->back.swallow = 2; /* the worker's answer to the greeting */
	c->tunnel = true;
	if (rc)
		visitor_close(c);
	else
		visitor_prove(c, s);
}

/* Serves a client that offers method 0, and whose certificate proves a session, without a login.
 * Returns false if it is no such client. */
static bool greet_certified(struct visitor *c, const struct socks5_greeting *greeting)
{
	static const uint8_t none[] = {SOCKS5_VERSION, SOCKS5_NO_AUTHENTICATION};
	struct session *s = greeting->no_authentication ? visitor_certified(c) : NULL;

	if (!s)
		return false;
	c->certified = true;
	front_write(&c->front, none, sizeof(none));
	go_on(c, s, greeting->used);
	return true;
}

bool visitor_greeting(struct visitor *c)
{
	static const uint8_t password[] = {SOCKS5_VERSION, SOCKS5_PASSWORD};
	struct socks5_greeting greeting;
	enum socks5_status status;

	while ((status = socks5_greeting_parse(buf_bytes(&c->in), c->in.len, &greeting)) ==
	        SOCKS5_MORE)
		if (!visitor_take_in(c))
			return false;
	if (status != SOCKS5_BAD && greet_certified(c, &greeting))
		return c->state != VISITOR_CLOSED;
	if (status == SOCKS5_BAD || !greeting.password) {
		visitor_answer(c, ANSWER_NO_METHOD, 0, "");
		return true;
	}
	buf_consume(&c->in, greeting.used);
	front_write(&c->front, password, sizeof(password));
	visitor_enter(c, VISITOR_LOGIN);
	return true;
}

/* A signed token is longer than a password can be: then the user is its first part. */
static bool read_login(const struct socks5_login *login, struct proxy_proof *out)
{
	char text[SOCKS5_LOGIN_MAX];
	bool good;

	if (!login->password.n || !slice_starts_with(login->user, SLICE("eyJ")))
		return proxy_proof_of_pair(login->user, login->password, out);
	memcpy(text, login->user.p, login->user.n);
	memcpy(text + login->user.n, login->password.p, login->password.n);
	good = proxy_proof_take(slice_of(text, login->user.n + login->password.n), out);
	secret_wipe(text, sizeof(text));
	return good;
}

static void decide_login(struct visitor *c, const struct socks5_login *login)
{
	struct session *s = NULL;
	struct proxy_proof proof;
	bool shown;

	if (read_login(login, &proof))
		s = sessions_find(c->gateway, slice_of(proof.text, proof.n), &c->source);
	shown = !s && proof.n && visitor_show(c, slice_of(proof.text, proof.n));
	secret_wipe(&proof, sizeof(proof));
	if (!s) {
		if (!shown)
			visitor_refuse(c);
		return;
	}
	go_on(c, s, login->used);
}

bool visitor_login(struct visitor *c)
{
	struct socks5_login login;
	enum socks5_status status;

	while ((status = socks5_login_parse(buf_bytes(&c->in), c->in.len, &login)) == SOCKS5_MORE)
		if (!visitor_take_in(c))
			return false;
	if (status == SOCKS5_BAD)
		visitor_answer(c, ANSWER_MALFORMED, 0, login.why);
	else
		decide_login(c, &login);
	return c->state != VISITOR_CLOSED;
}
