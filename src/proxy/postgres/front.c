/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's side of the login. Encryption by GSSAPI is declined. TLS is offered (with the
 * sandbox's own CA, as for https), and a client without TLS is served too, because only the
 * sandbox's own link is unencrypted then. The user must be the credential's, because vethguard logs
 * in as no other. If the credential has a placeholder inside, the password must be that
 * placeholder: another password is one of another account.
 */
#include "proxy/postgres/postgres.h"

#include <stdio.h>

#include "vethguard/base/log.h"

#define ALPN "\x0apostgresql"
#define REQUESTS_MAX 4 /* requests for encryption on one connection */

static const char no_memory[] = "no memory for a connection";

/* Reads more into the client's input buffer. False: nothing has come; *next is the client's next
 * state. */
static bool take_in(struct postgres *pg, enum client_state *next)
{
	struct client *c = pg->client;
	size_t n;
	enum socket_status status = socket_read(&c->socket, c->proxy->plain, SOCKET_CHUNK, &n);

	*next = c->state;
	if (status == SOCKET_AGAIN)
		return false;
	if (status == SOCKET_OK && buf_append(&c->input_buf, c->proxy->plain, n) == 0)
		return true;
	postgres_record(pg, EVENT_CAUSE_CLIENT,
	        pg->state == POSTGRES_PASSWORD
	                ? "the sandbox closed the connection instead of sending its password"
	                : "the sandbox closed the connection before it logged in");
	client_reset_at_end(c, status != SOCKET_EOF);
	*next = CLIENT_CLOSED;
	return false;
}

static enum client_state refuse(struct postgres *pg, const char code[5], const char *detail)
{
	return postgres_refuse(pg, EVENT_CAUSE_CLIENT, code, detail);
}

/* --- TLS --- */

static enum client_state shake_hands(struct postgres *pg)
{
	struct client *c = pg->client;
	enum socket_status status;

	c->proxy->shaking_hands = c;
	status = socket_handshake(&c->socket);
	c->proxy->shaking_hands = NULL;
	if (status == SOCKET_AGAIN)
		return c->state;
	if (status == SOCKET_OK) {
		client_note_tls(c, tls_version(c->socket.tls));
		postgres_enter(pg, POSTGRES_FIRST);
		return postgres_front_input(pg);
	}
	postgres_record(pg, EVENT_CAUSE_CLIENT,
	        status == SOCKET_ERROR && !c->socket.broken
	                ? tls_error_text(c->socket.tls)
	                : "the sandbox ended the TLS handshake");
	if (status != SOCKET_ERROR || c->socket.broken)
		return CLIENT_CLOSED;
	socket_drop_tls(&c->socket);
	postgres_close(pg);
	return client_end(c);
}

/* Opens TLS towards the sandbox. All input after the request for TLS is fed to TLS, so no byte that
 * came unencrypted is taken for an encrypted one. */
static enum client_state open_tls(struct postgres *pg)
{
	struct client *c = pg->client;
	struct tls_server *server = proxy_tls_server(c->proxy);
	struct tls *tls =
	        server ? tls_accept_new(server, SLICE(ALPN), &c->proxy->sockets.tx) : NULL;

	if (!tls || socket_start_tls(&c->socket, tls, buf_slice(&c->input_buf)) < 0)
		return CLIENT_CLOSED;
	client_note_tls(c, 0);
	buf_fini(&c->input_buf);
	postgres_enter(pg, POSTGRES_FRONT_TLS);
	return shake_hands(pg);
}

/* --- the login of the sandbox --- */

static void on_value(struct credential_wait *wait, struct credential_value *v, const char *error)
{
	struct postgres *pg = container_of(wait, struct postgres, wait);

	if (!v) {
		log_debug("client :%u: postgres: %s", pg->client->src_port, error);
		postgres_fail(pg, EVENT_CAUSE_CREDENTIAL, "28000", error);
		return;
	}
	credential_value_retain(v);
	pg->value = v;
	if (!postgres_dial(pg))
		postgres_fail(pg, EVENT_CAUSE_LIMIT, "53000", no_memory);
}

static enum client_state dial(struct postgres *pg)
{
	return postgres_dial(pg) ? pg->client->state
	                         : postgres_refuse(pg, EVENT_CAUSE_LIMIT, "53000", no_memory);
}

static enum client_state get_value(struct postgres *pg)
{
	struct client *c = pg->client;
	struct credential_value *v;

	postgres_enter(pg, POSTGRES_CREDENTIAL);
	pg->wait.on_value = on_value;
	v = credential_store_get(c->proxy->config.credentials, c->decision.credential, &pg->wait);
	if (!v)
		return c->state;
	credential_value_retain(v);
	pg->value = v;
	return dial(pg);
}

/* Looks for a placeholder in a text of the sandbox before the relay. Returns true if it is refused.
 */
static bool leaks(struct postgres *pg, struct slice text, uint64_t except)
{
	static const char where[] = "a credential's placeholder was sent where it does not belong: "
	                            "in the login to a database";
	struct client *c = pg->client;

	if (!credential_store_mentions_placeholder(c->proxy->config.credentials, text, except))
		return false;
	audit_finding(c->proxy, c, EVENT_FINDING_PLACEHOLDER_LEAK, 0, SLICE(""), where);
	return policy_refuses_leaks(c->proxy->config.policy);
}

static enum client_state refuse_leak(struct postgres *pg)
{
	pg->client->decision.reason = POLICY_REASON_LEAK;
	return postgres_refuse(pg, EVENT_CAUSE_POLICY, "28000",
	        "the login carries a credential's placeholder to where it does not belong");
}

/* The checks before any connection goes out: placeholders, pause and limits. */
static enum client_state go_on(struct postgres *pg)
{
	struct client *c = pg->client;
	struct limit_hit hit;
	char text[LIMIT_TEXT_MAX];

	if (leaks(pg, destination_host(&c->destination), 0))
		return refuse_leak(pg);
	if (c->proxy->paused)
		return postgres_refuse(pg, c->proxy->pause_cause, "57P03", c->proxy->pause_text);
	if (!limit_begin_relay(c->proxy, c->decision.rule, &c->held, &hit))
		return postgres_refuse(
		        pg, EVENT_CAUSE_POLICY_LIMIT, "53300", limit_text(c->proxy, &hit, text));
	client_let_out(c);
	return postgres_cancels(pg) ? dial(pg) : get_value(pg);
}

static enum client_state check_password(struct postgres *pg, struct slice password)
{
	struct client *c = pg->client;
	struct credential_store *store = c->proxy->config.credentials;
	const uint32_t own = c->decision.credential;

	if (slice_equals(password, credential_store_placeholder(store, own)))
		return go_on(pg);
	if (leaks(pg, password, UINT64_C(1) << own))
		return refuse_leak(pg);
	c->decision.reason = POLICY_REASON_FOREIGN;
	return postgres_refuse(pg, EVENT_CAUSE_POLICY, "28P01",
	        "the program sent another password than this sandbox's placeholder; the real one "
	        "is "
	        "added outside");
}

static enum client_state read_password(struct postgres *pg)
{
	struct buf *in = &pg->client->input_buf;
	struct postgres_message m;
	enum client_state next;
	struct slice password;

	for (;;) {
		switch (postgres_message_parse(buf_bytes(in), in->len, POSTGRES_MESSAGE_MAX, &m)) {
		case POSTGRES_BAD:
			return refuse(pg, "08P01", "a malformed message instead of a password");
		case POSTGRES_DONE:
			if (m.type != 'p' || !m.body.n || m.body.p[m.body.n - 1])
				return refuse(pg, "08P01", "another message than a password");
			password = slice_of(m.body.p, m.body.n - 1);
			next = check_password(pg, password);
			if (pg->state != POSTGRES_CLOSED)
				buf_consume(in, m.used);
			return next;
		case POSTGRES_MORE:
			break;
		}
		if (!take_in(pg, &next))
			return next;
	}
}

static enum client_state ask_password(struct postgres *pg)
{
	uint8_t bytes[16];
	struct writer w = writer_over(bytes, sizeof(bytes));

	postgres_write_authentication(&w, POSTGRES_AUTH_CLEARTEXT);
	socket_write(&pg->client->socket, bytes, w.len);
	postgres_enter(pg, POSTGRES_PASSWORD);
	return read_password(pg);
}

static enum client_state refuse_user(struct postgres *pg, struct slice user)
{
	struct client *c = pg->client;
	struct policy_credential credential;
	char asked[POSTGRES_NAME_MAX * 4 + 1], own[POSTGRES_NAME_MAX * 4 + 1], text[1024];

	policy_credential(c->proxy->config.policy, c->decision.credential, &credential);
	snprintf(text, sizeof(text),
	        "this connection logs in as \"%s\", and not as \"%s\"; set PGUSER, or the user in "
	        "the connection's settings",
	        slice_escape(credential.username, own, sizeof(own)),
	        slice_escape(user, asked, sizeof(asked)));
	c->decision.reason = POLICY_REASON_FOREIGN;
	return postgres_refuse(pg, EVENT_CAUSE_POLICY, "28000", text);
}

static enum client_state start(struct postgres *pg)
{
	struct client *c = pg->client;
	uint8_t bytes[POSTGRES_STARTUP_MAX + 64];
	struct writer w = writer_over(bytes, sizeof(bytes));
	struct policy_credential credential;
	struct postgres_startup s;

	postgres_read_startup(pg, &s);
	policy_credential(c->proxy->config.policy, c->decision.credential, &credential);
	if (s.replicates)
		return postgres_refuse(
		        pg, EVENT_CAUSE_POLICY, "28000", "replication connections are not served");
	if (!slice_equals(s.user, credential.username))
		return refuse_user(pg, s.user);
	if (leaks(pg, s.parameters, 0))
		return refuse_leak(pg);
	if (s.minor || s.options) {
		postgres_write_negotiation(&w, &s);
		socket_write(&c->socket, bytes, w.len);
	}
	if (credential_store_placeholder(c->proxy->config.credentials, c->decision.credential).n)
		return ask_password(pg);
	return go_on(pg);
}

/* Handles the message at the beginning of the input. */
static enum client_state take_first(struct postgres *pg, const struct postgres_startup *s)
{
	struct client *c = pg->client;
	const bool decline = s->kind == POSTGRES_ASKS_GSS || c->tls;

	if (s->kind == POSTGRES_ASKS_TLS || s->kind == POSTGRES_ASKS_GSS) {
		buf_consume(&c->input_buf, s->used);
		if (++pg->requests > REQUESTS_MAX)
			return c->state;
		socket_write(&c->socket, decline ? "N" : "S", 1);
		return decline ? c->state : open_tls(pg);
	}
	if (buf_append(&pg->startup, buf_bytes(&c->input_buf), s->used) < 0)
		return CLIENT_CLOSED;
	buf_consume(&c->input_buf, s->used);
	return s->kind == POSTGRES_CANCELS ? go_on(pg) : start(pg);
}

static enum client_state read_first(struct postgres *pg)
{
	struct client *c = pg->client;
	struct buf *in = &c->input_buf;
	struct postgres_startup s;
	enum client_state next;

	while (pg->requests <= REQUESTS_MAX) {
		if (in->len && !c->tls && *buf_bytes(in) == POSTGRES_TLS_BYTE)
			return open_tls(pg);
		switch (postgres_startup_parse(buf_bytes(in), in->len, &s)) {
		case POSTGRES_BAD:
			return refuse(pg, "08P01", s.why);
		case POSTGRES_DONE:
			next = take_first(pg, &s);
			if (next != c->state || pg->state != POSTGRES_FIRST)
				return next;
			break;
		case POSTGRES_MORE:
			if (!take_in(pg, &next))
				return next;
		}
	}
	return refuse(pg, "08P01", "too many requests for encryption");
}

enum client_state postgres_front_input(struct postgres *pg)
{
	if (pg->state == POSTGRES_FRONT_TLS)
		return shake_hands(pg);
	return pg->state == POSTGRES_PASSWORD ? read_password(pg) : read_first(pg);
}
