/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what a connection is. Its first bytes decide:
 * - a TLS ClientHello: authorized by its server name, then opened here, passed through, or answered
 *   with an explanation;
 * - an HTTP request, or the preface of HTTP/2;
 * - on an explicit proxy: a greeting of SOCKS5 (socks.c), or an HTTP request;
 * - anything else: only a tcp:// rule can allow it. Without one, if the policy mentions http for
 *   the destination, it is a malformed request and answered with 400.
 *
 * In a protocol in which the server speaks first, only the policy can decide: if it has only a
 * tcp:// rule for the destination, nothing is waited for.
 */
#include "proxy/client/peek.h"
#include "proxy/client/peek_policy.h"
#include "vethguard/wire/socks5.h"

#define METHOD_PEEK_MAX (2 * POLICY_METHOD_MAX) /* a method that is too long is HTTP as well */

static enum client_state opaque(struct client *c)
{
	struct verdict j;

	if (!peek_opaque_is_allowed(c, &j))
		return client_refuse(c, &j.decision, EVENT_CAUSE_POLICY, NULL, NULL);
	return client_dial_tunnel(c, &c->destination, &j.decision, TUNNEL_OTHER);
}

/* Handles bytes that do not begin a request. A client that speaks TLS, but wrongly, gets an alert.
 * If only http can be meant, they are a malformed request and answered as such. */
static enum client_state other(struct client *c)
{
	struct verdict j;
	uint8_t alert;
	bool more;

	if (peek_opaque_is_allowed(c, &j))
		return opaque(c);
	alert = client_hello_stray_alert(buf_bytes(&c->input_buf), c->input_buf.len, &more);
	if (alert)
		return client_refuse_hello(c, "TLS that does not begin with a ClientHello", alert);
	if (more)
		return CLIENT_PEEK;
	return peek_http_may_be_allowed(c->proxy->config.policy, &c->destination) ? CLIENT_HTTP
	                                                                          : opaque(c);
}

enum guess { GUESS_HTTP, GUESS_MORE, GUESS_OTHER };

/* Matches a method (any token), a space, then a path, an http URL or an asterisk. */
static enum guess guess_http(struct slice first)
{
	size_t i = slice_token_length(
	        slice_of(first.p, first.n < METHOD_PEEK_MAX ? first.n : METHOD_PEEK_MAX));
	struct slice rest, scheme = SLICE("http");

	if (i == first.n && i < METHOD_PEEK_MAX)
		return GUESS_MORE;
	if (i == 0 || i == first.n || first.p[i] != ' ')
		return GUESS_OTHER;
	rest = slice_of(first.p + i + 1, first.n - i - 1);
	if (rest.n == 0)
		return GUESS_MORE;
	if (rest.p[0] == '/' || rest.p[0] == '*')
		return GUESS_HTTP;
	scheme.n = rest.n < scheme.n ? rest.n : scheme.n;
	if (!slice_equals_ignoring_case(slice_of(rest.p, scheme.n), scheme))
		return GUESS_OTHER;
	return rest.n < sizeof("http") - 1 ? GUESS_MORE : GUESS_HTTP;
}

/* Matches the preface of HTTP/2 without TLS by prior knowledge (RFC 9113 section 3.3). */
static enum guess guess_http2(struct slice first)
{
	static const struct slice preface = {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24};

	if (first.n >= preface.n)
		return slice_starts_with(first, preface) ? GUESS_HTTP : GUESS_OTHER;
	return slice_starts_with(preface, first) ? GUESS_MORE : GUESS_OTHER;
}

/* Decides from the input buffer. CLIENT_PEEK: more bytes are needed. */
static enum client_state decide(struct client *c)
{
	struct slice first = buf_slice(&c->input_buf);
	struct client_hello hello;

	if (first.n == 0)
		return CLIENT_PEEK;
	if (c->explicit_proxy && !c->connected)
		return first.p[0] == SOCKS5_VERSION ? CLIENT_SOCKS : CLIENT_HTTP;
	switch (client_hello_parse((const uint8_t *)first.p, first.n, &hello)) {
	case CLIENT_HELLO_DONE:
		return client_tls_hello(c, &hello);
	case CLIENT_HELLO_MORE:
		return CLIENT_PEEK;
	case CLIENT_HELLO_BAD:
		return client_refuse_hello(c, "malformed TLS ClientHello", hello.alert);
	case CLIENT_HELLO_NOT_TLS:
		break;
	}
	switch (guess_http2(first)) {
	case GUESS_HTTP:
		return CLIENT_HTTP2;
	case GUESS_MORE:
		return CLIENT_PEEK;
	case GUESS_OTHER:
		break;
	}
	switch (guess_http(first)) {
	case GUESS_HTTP:
		return CLIENT_HTTP;
	case GUESS_MORE:
		return CLIENT_PEEK;
	default:
		return other(c);
	}
}

/* The client has ended the connection before the first bytes decided. */
static enum client_state ended_unsaid(struct client *c)
{
	struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE}, decision;
	const bool observed =
	        (!c->explicit_proxy || c->connected) && peek_is_only_observed(c, &decision);
	const enum event_decision outcome = observed ? EVENT_OBSERVED : EVENT_DENIED;

	if (!observed)
		decision = none;
	if (c->input_buf.len == 0)
		audit_silent(c, &decision, outcome);
	else
		audit_connection(c, &decision, outcome, EVENT_CAUSE_CLIENT,
		        "the sandbox closed the connection before it sent a request",
		        c->input_buf.len, 0, NULL);
	c->reset = true;
	return CLIENT_CLOSED;
}

bool client_take_in(struct client *c, enum client_state *next)
{
	size_t n;
	enum socket_status status = socket_read(&c->socket, c->proxy->plain, SOCKET_CHUNK, &n);

	*next = c->state;
	if (status == SOCKET_AGAIN)
		return false;
	if (status != SOCKET_OK) {
		*next = ended_unsaid(c);
		return false;
	}
	if (buf_append(&c->input_buf, c->proxy->plain, n) == 0)
		return true;
	c->decision.rule = c->decision.credential = POLICY_NONE;
	*next = client_refuse(c, &c->decision, EVENT_CAUSE_CLIENT,
	        "the first bytes are too many to be examined", NULL);
	return false;
}

enum client_state client_peek(struct client *c)
{
	const bool ends_here = !c->explicit_proxy || c->connected;
	struct verdict j = {.allowed = false};

	if (ends_here && peek_opaque_is_allowed(c, &j) && client_is_postgres(c, &j.decision))
		return client_postgres(c, &j.decision);
	if (j.allowed && !j.decision.observed &&
	        !peek_web_may_be_allowed(c->proxy->config.policy, &c->destination) &&
	        !peek_web_is_denied(c->proxy->config.policy, &c->destination))
		return client_dial_tunnel(c, &c->destination, &j.decision, TUNNEL_UNSEEN);
	for (;;) {
		enum client_state next = decide(c);

		if (next != CLIENT_PEEK || !client_take_in(c, &next))
			return next;
	}
}

/* Nothing, or not enough, was sent. In a connection that is only observed, the server may be the
 * one to speak first. */
enum client_state client_peek_timeout(struct client *c)
{
	return opaque(c);
}
