/* SPDX-License-Identifier: Apache-2.0 */
/* A connection whose first bytes are a ClientHello: opened here, passed through, or refused by an
 * alert. */
#include "proxy/client/peek.h"
#include "proxy/client/peek_policy.h"

/* The alert has the version of a first record (RFC 8446 section 5.1), which any client reads. */
enum client_state client_refuse_hello(struct client *c, const char *detail, uint8_t description)
{
	const struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE};
	const uint8_t alert[] = {21, 3, 1, 0, 2, 2, description};

	audit_connection(
	        c, &none, EVENT_DENIED, EVENT_CAUSE_CLIENT, detail, c->input_buf.len, 0, NULL);
	buf_fini(&c->input_buf);
	socket_write(&c->socket, alert, sizeof(alert));
	return client_end(c);
}

/* Opens TLS here. The ALPN list includes HTTP/1.0, because a client that offers nothing else has to
 * get it or an alert (RFC 7301 section 3.2). A client that offers only other protocols gets the
 * alert: its bytes must not be read as HTTP. */
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

/* Reads the ClientHello's server name into c->sni and d. False: it is not a host name. An address
 * is forbidden there (RFC 6066 section 3), but servers ignore it: then the destination stays as
 * dialed, and *other_address tells whether it differs. */
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

enum client_state client_tls_hello(struct client *c, const struct client_hello *hello)
{
	struct destination d = c->destination;
	struct policy_request q;
	struct policy_decision decision = {.rule = POLICY_NONE, .credential = POLICY_NONE};
	enum policy_tls treatment;
	bool agrees, other_address;

	if (!read_server_name(c, hello, &d, &other_address))
		return client_refuse_hello(
		        c, "the TLS server name is not a host name", TLS_ALERT_UNRECOGNIZED_NAME);
	agrees = !c->sni_n || !c->destination.host_n ||
	         slice_equals(destination_host(&d), destination_host(&c->destination));
	peek_question(&d, &q);
	treatment = policy_decide_tls(c->proxy->config.policy, &q, &decision);
	/* A passthrough sends the ClientHello as it is, and some servers follow any name in it: so
	 * none is sent with an address that was not authorized. */
	if (agrees && treatment == POLICY_TLS_PASSTHROUGH && !other_address)
		return client_dial_tunnel(c, &d, &decision, TUNNEL_TLS);
	/* With a credential vethguard logs in, so nothing is relayed unread. */
	if (agrees && treatment == POLICY_TLS_OPAQUE && decision.credential == POLICY_NONE)
		return client_dial_tunnel(c, &d, &decision, TUNNEL_TLS);
	return open_tls(c);
}

/* Records the failed handshake. If TLS has left an alert, further input is read before the end, so
 * that a reset does not overtake the alert. */
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
	return client_refuse(
	        c, &c->decision, EVENT_CAUSE_TIMEOUT, "the TLS handshake took too long", NULL);
}
