/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the database, until it is encrypted. The database is asked for TLS and answers
 * with one byte. Nothing may follow that byte unencrypted: an attacker in between could have put it
 * there.
 */
#include "proxy/postgres/postgres.h"

#define ALPN "\x0apostgresql"

static const char no_memory[] = "no memory for a connection";

static void failed(struct postgres *pg, enum event_cause cause, const char *detail)
{
	postgres_fail(pg, cause, "08006", detail);
}

/* Sends the request to cancel. The database does not answer it, but closes the connection. */
static void cancel(struct postgres *pg)
{
	pg->served = true;
	pg->bytes_out = pg->startup.len;
	socket_write(&pg->back, buf_bytes(&pg->startup), pg->startup.len);
	socket_end(&pg->back);
	socket_flush(&pg->back);
	postgres_enter(pg, POSTGRES_ENDING);
}

static void shake_hands(struct postgres *pg)
{
	static const char closed[] = "the database closed the connection during the TLS handshake";
	const char *why;

	switch (socket_handshake(&pg->back)) {
	case SOCKET_OK:
		if (postgres_cancels(pg))
			cancel(pg);
		else
			postgres_login_begin(pg);
		break;
	case SOCKET_AGAIN:
		break;
	case SOCKET_EOF:
		failed(pg, EVENT_CAUSE_UPSTREAM_TLS, closed);
		break;
	case SOCKET_ERROR:
		why = tls_error_text(pg->back.tls);
		failed(pg, EVENT_CAUSE_UPSTREAM_TLS, *why ? why : closed);
		break;
	}
}

static void start_tls(struct postgres *pg)
{
	const struct client *c = pg->client;
	const struct destination *d = &c->tunnelled;
	struct tls_client *client = proxy_tls_client(c->proxy);
	struct tls *tls = client ? tls_connect_new(client, destination_host(d), &d->address,
	                                   SLICE(ALPN), SLICE("postgres"), &c->proxy->sockets.tx)
	                         : NULL;

	if (!tls || socket_start_tls(&pg->back, tls, SLICE("")) < 0) {
		failed(pg, EVENT_CAUSE_LIMIT, no_memory);
		return;
	}
	postgres_enter(pg, POSTGRES_BACK_TLS);
	shake_hands(pg);
}

/* Reads the answer to the request for TLS. */
static void read_answer(struct postgres *pg)
{
	uint8_t *bytes = pg->client->proxy->plain;
	size_t n;

	switch (socket_read(&pg->back, bytes, SOCKET_CHUNK, &n)) {
	case SOCKET_OK:
		break;
	case SOCKET_AGAIN:
		return;
	default:
		failed(pg, EVENT_CAUSE_UPSTREAM,
		        "the database closed the connection when it was asked for TLS");
		return;
	}
	if (bytes[0] == 'S' && n == 1)
		start_tls(pg);
	else if (bytes[0] == 'S')
		failed(pg, EVENT_CAUSE_UPSTREAM,
		        "the database sent unencrypted bytes after its answer about TLS");
	else if (bytes[0] == 'N')
		failed(pg, EVENT_CAUSE_UPSTREAM_TLS,
		        "the database does not offer TLS, and no password is used without it");
	else
		failed(pg, EVENT_CAUSE_UPSTREAM, "the server does not speak PostgreSQL's protocol");
}

static void on_event(struct socket *socket)
{
	struct postgres *pg = container_of(socket, struct postgres, back);

	switch (pg->state) {
	case POSTGRES_BACK_ASKS:
		read_answer(pg);
		break;
	case POSTGRES_BACK_TLS:
		shake_hands(pg);
		break;
	case POSTGRES_LOGIN:
		postgres_login_input(pg);
		break;
	case POSTGRES_RELAY:
	case POSTGRES_ENDING:
		postgres_relay_in(pg);
		break;
	default:
		break;
	}
}

static void on_drained(struct socket *socket)
{
	struct postgres *pg = container_of(socket, struct postgres, back);

	if (pg->state == POSTGRES_RELAY)
		client_wake(pg->client);
}

static void on_dialled(void *context, const struct dial_result *result)
{
	struct postgres *pg = context;
	uint8_t bytes[POSTGRES_SSL_REQUEST_BYTES];
	struct writer w = writer_over(bytes, sizeof(bytes));

	pg->dial = NULL;
	if (result->fd < 0) {
		if (result->cause == EVENT_CAUSE_ADDRESS)
			pg->address = result->address;
		postgres_fail(pg, result->cause, "08001", result->detail);
		return;
	}
	pg->address = result->address;
	if (socket_open(&pg->client->proxy->sockets, &pg->back, result->fd, result->io, on_event,
	            on_drained) < 0) {
		failed(pg, EVENT_CAUSE_LIMIT, no_memory);
		return;
	}
	socket_read_on(&pg->back);
	postgres_write_ssl_request(&w);
	socket_write(&pg->back, bytes, w.len);
	postgres_enter(pg, POSTGRES_BACK_ASKS);
	read_answer(pg);
}

bool postgres_dial(struct postgres *pg)
{
	struct client *c = pg->client;

	postgres_enter(pg, POSTGRES_DIAL);
	pg->dial = dial_start(c->proxy, &c->tunnelled, &c->decision, on_dialled, pg);
	return pg->dial != NULL;
}
