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
#include "proxy/client/peek_policy.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/authorize.h"
#include "proxy/tunnel/tunnel.h"
#include "proxy/dial/dial.h"
#include "vethguard/wire/client_hello.h"
#include "vethguard/wire/socks5.h"

#define METHOD_PEEK_MAX (2 * POLICY_METHOD_MAX) /* a method that is too long is HTTP as well */

/* Ends a connection that began as TLS: sends a fatal alert, unencrypted, then the end once the
 * sandbox has taken it. The record's version is that of a first record (RFC 8446 section 5.1),
 * which any client reads. */
static enum client_state refuse_hello(struct client *c, const char *detail, uint8_t description)
{
	const struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE};
	const uint8_t alert[] = {21, 3, 1, 0, 2, 2, description};

	audit_connection(
	        c, &none, EVENT_DENIED, EVENT_CAUSE_CLIENT, detail, c->input_buf.len, 0, NULL);
	buf_fini(&c->input_buf);
	socket_write(&c->socket, alert, sizeof(alert));
	return client_end(c);
}

/* --- tunnels --- */

static enum client_state refuse_connection(struct client *c, const struct policy_decision *decision,
        enum event_cause cause, const char *detail, const struct ip *upstream)
{
	audit_connection(c, decision, EVENT_DENIED, cause, detail, c->input_buf.len, 0, upstream);
	c->reset = true;
	return CLIENT_CLOSED;
}

/* The connection was let out but could not be connected. */
static enum client_state fail_tunnel(
        struct client *c, enum event_cause cause, const char *detail, const struct ip *upstream)
{
	const bool failed = cause == EVENT_CAUSE_RESOLVE || cause == EVENT_CAUSE_CONNECT ||
	                    cause == EVENT_CAUSE_TIMEOUT;

	if (!failed || !c->decision.observed)
		return refuse_connection(c, &c->decision, cause, detail, upstream);
	audit_connection(
	        c, &c->decision, EVENT_OBSERVED, cause, detail, c->input_buf.len, 0, upstream);
	c->reset = true;
	return CLIENT_CLOSED;
}

static void on_tunnel_dialled(void *context, const struct dial_result *result)
{
	struct client *c = context;

	c->dial = NULL;
	if (result->fd < 0) {
		client_move(
		        c, fail_tunnel(c, result->cause, result->detail,
		                   result->cause == EVENT_CAUSE_ADDRESS ? &result->address : NULL));
		return;
	}
	if (client_tunnel(c, result) < 0)
		client_move(c, refuse_connection(c, &c->decision, EVENT_CAUSE_LIMIT,
		                       "no memory for a tunnel", NULL));
}

/* Looks for a placeholder in what is known of a tunnel before it is dialed: the host's name and the
 * ClientHello. Returns NULL, or a sentence that says where one is. */
static const char *find_leak(
        struct client *c, const struct destination *d, enum tunnel_content content)
{
	const struct credential_store *store = c->proxy->config.credentials;

	if (credential_store_name_mentions(store, destination_host(d)) ||
	        credential_store_name_mentions(store, slice_of(c->sni, c->sni_n)))
		return "a credential's placeholder was sent where it does not belong: in the "
		       "host's name";
	if (content == TUNNEL_TLS &&
	        credential_store_mentions_placeholder(store, buf_slice(&c->input_buf), 0))
		return "a credential's placeholder was sent where it does not belong: in the "
		       "ClientHello of a connection that is relayed unread";
	return NULL;
}

/* Records what find_leak() has found. Returns true if the policy refuses the connection for it. */
static bool is_leak(struct client *c, const char *where, struct policy_decision *decision)
{
	const bool refused = where && policy_refuses_leaks(c->proxy->config.policy);

	if (!where)
		return false;
	if (refused)
		decision->reason = POLICY_REASON_LEAK;
	audit_finding(c->proxy, c, EVENT_FINDING_PLACEHOLDER_LEAK, 0, SLICE(""), where);
	return refused;
}

static enum client_state dial_tunnel(struct client *c, const struct destination *d,
        const struct policy_decision *allowed, enum tunnel_content content)
{
	struct policy_decision made = *allowed, *decision = &made;
	const char *where = find_leak(c, d, content);
	struct limit_hit hit;
	char text[LIMIT_TEXT_MAX];

	if (is_leak(c, where, &made))
		return refuse_connection(c, &made, EVENT_CAUSE_POLICY, where, NULL);
	if (c->proxy->paused)
		return refuse_connection(
		        c, decision, c->proxy->pause_cause, c->proxy->pause_text, NULL);
	if (!limit_begin_relay(c->proxy, decision->rule, &c->held, &hit))
		return refuse_connection(c, decision, EVENT_CAUSE_POLICY_LIMIT,
		        limit_text(c->proxy, &hit, text), NULL);
	c->let_out = true;
	c->decision = *decision;
	c->tunnelled = *d;
	c->content = content;
	c->passthrough = decision->passthrough;
	c->dial = dial_start(c->proxy, d, decision, on_tunnel_dialled, c);
	if (!c->dial)
		return refuse_connection(
		        c, decision, EVENT_CAUSE_LIMIT, "no memory for a connection", NULL);
	return CLIENT_DIAL;
}

bool client_tunnel_passes(
        const struct client *c, const struct policy *policy, struct policy_decision *decision)
{
	const struct destination *d = &c->tunnelled;
	struct policy_request q;
	struct verdict j;

	if (c->content == TUNNEL_TLS) {
		enum policy_tls treatment;

		peek_question(d, &q);
		treatment = policy_decide_tls(policy, &q, decision);
		return treatment == POLICY_TLS_PASSTHROUGH || treatment == POLICY_TLS_OPAQUE;
	}
	authorize_opaque(policy, d, POLICY_TCP, &j);
	*decision = j.decision;
	if (c->content == TUNNEL_POSTGRES)
		return j.allowed && !j.decision.observed;
	return j.allowed &&
	       (c->content == TUNNEL_OTHER || j.decision.observed ||
	               (!peek_web_may_be_allowed(policy, d) && !peek_web_is_denied(policy, d)));
}

enum client_state client_dial_timeout(struct client *c)
{
	return fail_tunnel(
	        c, EVENT_CAUSE_TIMEOUT, "connecting to the destination took too long", NULL);
}

static enum client_state opaque(struct client *c)
{
	struct verdict j;

	if (!peek_opaque_is_allowed(c, &j))
		return refuse_connection(c, &j.decision, EVENT_CAUSE_POLICY, NULL, NULL);
	return dial_tunnel(c, &c->destination, &j.decision, TUNNEL_OTHER);
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
		return refuse_hello(c, "TLS that does not begin with a ClientHello", alert);
	if (more)
		return CLIENT_PEEK;
	return peek_http_may_be_allowed(c->proxy->config.policy, &c->destination) ? CLIENT_HTTP
	                                                                          : opaque(c);
}

/* --- TLS --- */

/* Opens TLS here. The ALPN list includes HTTP/1.0, because a client that offers nothing else has to
 * be given it or an alert (RFC 7301 section 3.2). All other protocols get the alert: bytes of a
 * client that means another protocol must not be read as HTTP. */
static enum client_state open_tls(struct client *c)
{
	static const char alpn[] = "\x02h2\x08http/1.1\x08http/1.0";
	struct tls_server *server = proxy_tls_server(c->proxy);
	struct tls *tls =
	        server ? tls_accept_new(server, SLICE(alpn), &c->proxy->sockets.tx) : NULL;
	struct slice first = buf_slice(&c->input_buf);

	if (!tls)
		return CLIENT_CLOSED;
	c->tls = true;
	if (socket_start_tls(&c->socket, tls, first) < 0)
		return CLIENT_CLOSED;
	buf_fini(&c->input_buf);
	return CLIENT_TLS;
}

/* Reads the ClientHello's server name into c->sni and d. An address may not be there (RFC 6066
 * section 3); servers ignore it, so the destination stays what was dialed. False: it is not a host
 * name. */
static bool read_server_name(struct client *c, const struct client_hello *hello,
        struct destination *d, bool *other_address)
{
	struct slice name = slice_of(hello->sni, hello->sni_n);
	struct ip literal;

	*other_address = false;
	if (!name.n)
		return true;
	if (ip_parse(name, &literal)) {
		*other_address = d->host_n || !ip_equals(&literal, &d->address);
		return true;
	}
	if (!url_canonical_host(name, c->sni, &c->sni_n))
		return false;
	return destination_set_host(d, slice_of(c->sni, c->sni_n));
}

static enum client_state tls_hello(struct client *c, const struct client_hello *hello)
{
	struct destination d = c->destination;
	struct policy_request q;
	struct policy_decision decision = {.rule = POLICY_NONE, .credential = POLICY_NONE};
	enum policy_tls treatment;
	bool agrees, other_address;

	if (!read_server_name(c, hello, &d, &other_address))
		return refuse_hello(
		        c, "the TLS server name is not a host name", TLS_ALERT_UNRECOGNIZED_NAME);
	agrees = !c->sni_n || !c->destination.host_n ||
	         slice_equals(destination_host(&d), destination_host(&c->destination));
	peek_question(&d, &q);
	treatment = policy_decide_tls(c->proxy->config.policy, &q, &decision);
	/* A server behind a passthrough gets the ClientHello as it is, and some servers follow any
	 * name in it: an address that was not authorized is not sent there. */
	if (agrees && treatment == POLICY_TLS_PASSTHROUGH && !other_address)
		return dial_tunnel(c, &d, &decision, TUNNEL_TLS);
	/* Where vethguard logs in, nothing is relayed unread. */
	if (agrees && treatment == POLICY_TLS_OPAQUE && decision.credential == POLICY_NONE)
		return dial_tunnel(c, &d, &decision, TUNNEL_TLS);
	return open_tls(c);
}

/* The handshake has failed. If TLS has left an alert, further input is read before the end, so that
 * a reset does not overtake the alert. */
static enum client_state handshake_failed(struct client *c, bool in_tls)
{
	/* The usual reason: the client does not trust the sandbox's CA. */
	c->decision.rule = c->decision.credential = POLICY_NONE;
	audit_connection(c, &c->decision, EVENT_DENIED, EVENT_CAUSE_CLIENT,
	        in_tls ? tls_error_text(c->socket.tls) : "the sandbox ended the TLS handshake", 0,
	        0, NULL);
	if (!in_tls)
		return CLIENT_CLOSED;
	socket_drop_tls(&c->socket);
	return client_end(c);
}

enum client_state client_shake_hands(struct client *c)
{
	enum socket_status status;

	c->proxy->shaking_hands = c;
	status = socket_handshake(&c->socket);
	c->proxy->shaking_hands = NULL;
	switch (status) {
	case SOCKET_OK:
		c->tls_version = tls_version(c->socket.tls);
		return slice_equals(tls_alpn(c->socket.tls), SLICE("h2")) ? CLIENT_HTTP2
		                                                          : CLIENT_HTTP;
	case SOCKET_AGAIN:
		return CLIENT_TLS;
	default:
		return handshake_failed(c, status == SOCKET_ERROR && !c->socket.broken);
	}
}

enum client_state client_tls_timeout(struct client *c)
{
	c->decision.rule = c->decision.credential = POLICY_NONE;
	return refuse_connection(
	        c, &c->decision, EVENT_CAUSE_TIMEOUT, "the TLS handshake took too long", NULL);
}

/* --- first bytes --- */

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
		return tls_hello(c, &hello);
	case CLIENT_HELLO_MORE:
		return CLIENT_PEEK;
	case CLIENT_HELLO_BAD:
		return refuse_hello(c, "malformed TLS ClientHello", hello.alert);
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
	*next = refuse_connection(c, &c->decision, EVENT_CAUSE_CLIENT,
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
		return dial_tunnel(c, &c->destination, &j.decision, TUNNEL_UNSEEN);
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

/* --- CONNECT (RFC 9110 section 9.3.6) --- */

bool client_connect_passes(
        const struct client *c, const struct destination *d, struct policy_decision *decision)
{
	struct policy_request q;

	peek_question(d, &q);
	if (policy_decide_tls(c->proxy->config.policy, &q, decision) != POLICY_TLS_REFUSE)
		return true;
	q.scheme = POLICY_HTTP;
	policy_decide(c->proxy->config.policy, &q, decision);
	if (decision->verdict == POLICY_ALLOW)
		return true;
	q.scheme = POLICY_TCP;
	policy_decide(c->proxy->config.policy, &q, decision);
	return decision->verdict == POLICY_ALLOW;
}

enum client_state client_connect(struct client *c)
{
	static const char accepted[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	static const char misplaced[] = "CONNECT is for the proxy port only";
	struct exchange *ex = c->exchange;
	struct url_authority *a = &ex->request.authority;
	struct destination d = {.port = a->port};
	struct slice name;

	c->keep_alive = false;
	if (a->host_n)
		destination_set_host(&d, slice_of(a->host, a->host_n));
	else if (names_lookup(c->proxy->config.names, &a->address, &name))
		destination_set_host(&d, name);
	else
		d.address = a->address;
	exchange_introduce_connect(ex, &d);
	if (!c->explicit_proxy || c->connected) {
		audit_finding(c->proxy, c, EVENT_FINDING_SMUGGLING, ex->id, SLICE(""), misplaced);
		exchange_refuse(ex, 400, EVENT_CAUSE_CLIENT, misplaced);
		return CLIENT_EXCHANGE;
	}
	if (!client_connect_passes(c, &d, &ex->verdict.decision)) {
		exchange_refuse(ex, 403, EVENT_CAUSE_POLICY, NULL);
		return CLIENT_EXCHANGE;
	}
	c->destination = d;
	c->connected = true;
	c->exchange = NULL;
	exchange_drop(ex);
	http1_reset(&c->http1);
	socket_write(&c->socket, accepted, sizeof(accepted) - 1);
	return CLIENT_PEEK;
}
