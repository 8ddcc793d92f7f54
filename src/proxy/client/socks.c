/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOCKS5 (RFC 1928) on an explicit proxy: the states SOCKS and SOCKS_REQUEST of client.c. An
 * accepted request leaves the connection where an accepted CONNECT leaves it: what comes next is
 * looked at as on a connection to the destination itself, and is authorized by what it is.
 *
 * As with CONNECT, success is answered before anything is dialed: which request is allowed is known
 * only when it has come. A destination that no rule mentions is refused at once.
 */
#include "proxy/exchange/exchange.h"
#include "vethguard/wire/client_hello.h"
#include "vethguard/wire/socks5.h"

static void drop_input(struct client *c, size_t n)
{
	buf_consume(&c->input_buf, n);
	if (!c->input_buf.len)
		buf_fini(&c->input_buf);
}

/* Sends the refusal, then the end once the sandbox has taken it. */
static enum client_state refuse(struct client *c, const struct policy_decision *decision,
        enum event_cause cause, const char *why, struct slice answer)
{
	audit_connection(c, decision, EVENT_DENIED, cause, why, c->input_buf.len, 0, NULL);
	buf_fini(&c->input_buf);
	socket_write(&c->socket, answer.p, answer.n);
	return client_end(c);
}

enum client_state client_socks_refuse(struct client *c, const struct policy_decision *decision,
        enum event_cause cause, const char *why, enum socks5_reply reply)
{
	static const char alert[] = {21, 3, 3, 0, 2, 2, TLS_ALERT_ACCESS_DENIED};
	uint8_t answer[SOCKS5_ANSWER_BYTES];

	if (c->quiet)
		return refuse(c, decision, cause, why, slice_of(alert, sizeof(alert)));
	socks5_answer(reply, answer);
	return refuse(c, decision, cause, why, slice_of(answer, sizeof(answer)));
}

static const struct policy_decision none = {.rule = POLICY_NONE, .credential = POLICY_NONE};

/* --- the greeting --- */

static enum client_state answer_greeting(struct client *c, const struct socks5_greeting *greeting)
{
	static const char accepted[] = {SOCKS5_VERSION, SOCKS5_NO_AUTHENTICATION};
	static const char refused[] = {SOCKS5_VERSION, (char)SOCKS5_NO_METHOD};

	if (!greeting->no_authentication)
		return refuse(c, &none, EVENT_CAUSE_CLIENT,
		        "the SOCKS client insists on authentication: set it up without a user",
		        slice_of(refused, sizeof(refused)));
	drop_input(c, greeting->used);
	socket_write(&c->socket, accepted, sizeof(accepted));
	return CLIENT_SOCKS_REQUEST;
}

enum client_state client_socks(struct client *c)
{
	for (;;) {
		struct slice input = buf_slice(&c->input_buf);
		struct socks5_greeting greeting;
		enum client_state next;

		if (socks5_greeting_parse((const uint8_t *)input.p, input.n, &greeting) ==
		        SOCKS5_DONE)
			return answer_greeting(c, &greeting); /* BAD: not by this version */
		if (!client_take_in(c, &next))
			return next;
	}
}

/* --- the request --- */

/* An address literal that is sent as a name is an address, as in CONNECT; a synthetic address is
 * its name. False: neither an address nor a host name. */
static bool find_destination(
        const struct client *c, const struct socks5_request *r, struct destination *d)
{
	struct slice name = SLICE("");
	char host[POLICY_HOST_MAX + 1];
	size_t n;

	memset(d, 0, sizeof(*d));
	d->port = r->port;
	d->address = r->address;
	if (r->name.n && !ip_parse(r->name, &d->address)) {
		if (!url_canonical_host(r->name, host, &n))
			return false;
		name = slice_of(host, n);
	}
	if (!name.n)
		(void)names_lookup(c->proxy->config.names, &d->address, &name);
	return !name.n || destination_set_host(d, name);
}

static enum client_state answer_request(struct client *c, const struct socks5_request *r)
{
	uint8_t answer[SOCKS5_ANSWER_BYTES];
	struct policy_decision decision;
	struct destination d;

	if (r->command == SOCKS5_UDP_ASSOCIATE)
		return client_associate(c, r);
	if (!find_destination(c, r, &d))
		return client_socks_refuse(c, &none, EVENT_CAUSE_CLIENT,
		        "a SOCKS request whose host is not a host name", SOCKS5_FAILURE);
	c->destination = d;
	if (!client_connect_passes(c, &d, &decision))
		return client_socks_refuse(
		        c, &decision, EVENT_CAUSE_POLICY, NULL, SOCKS5_NOT_ALLOWED);
	drop_input(c, r->used);
	c->connected = true;
	socks5_answer(SOCKS5_SUCCEEDED, answer);
	if (!c->quiet)
		socket_write(&c->socket, answer, sizeof(answer));
	return CLIENT_PEEK;
}

enum client_state client_socks_request(struct client *c)
{
	while (!c->proxy->held) {
		struct slice input = buf_slice(&c->input_buf);
		struct socks5_request request;
		enum client_state next;

		switch (socks5_request_parse((const uint8_t *)input.p, input.n, &request)) {
		case SOCKS5_DONE:
			return answer_request(c, &request);
		case SOCKS5_BAD:
			return client_socks_refuse(
			        c, &none, EVENT_CAUSE_CLIENT, request.why, request.reply);
		case SOCKS5_MORE:
			break;
		}
		if (!client_take_in(c, &next))
			return next;
	}
	return c->state;
}

enum client_state client_socks_timeout(struct client *c)
{
	audit_connection(c, &none, EVENT_DENIED, EVENT_CAUSE_TIMEOUT,
	        "the SOCKS client took too long to send its request", c->input_buf.len, 0, NULL);
	c->reset = true;
	return CLIENT_CLOSED;
}
