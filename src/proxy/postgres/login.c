/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The login at the database. The database's messages are read one by one and answered here; of them
 * only a refusal is passed on to the sandbox. The password itself is never sent: SCRAM-SHA-256 and
 * MD5 send proofs of it, and a database that asks for the password in clear text is refused. With
 * SCRAM the database has to prove that it knows the password too.
 */
#include "proxy/postgres/postgres.h"

#include <errno.h>
#include <stdio.h>

#include "vethguard/base/hash.h"

#define DERIVE_ROUNDS 4096 /* iterations in one turn of the loop */
#define MESSAGES_MAX 64    /* messages of the database during a login */

static void failed(struct postgres *pg, const char *detail)
{
	postgres_fail(pg, EVENT_CAUSE_UPSTREAM, "08006", detail);
}

static void send_secret(struct postgres *pg, uint8_t type, const struct slice *parts, size_t count)
{
	uint8_t bytes[SCRAM_FINAL_MAX + 64];
	struct writer w = writer_over(bytes, sizeof(bytes));

	postgres_write_message(&w, type, parts, count);
	if (w.failed)
		failed(pg, "the answer to the database is too long");
	else
		socket_write_secret(&pg->back, bytes, w.len);
	secret_wipe(bytes, sizeof(bytes));
}

/* Answers "md5" and the hash of (the hash of password and user) and the database's salt. */
static void answer_md5(struct postgres *pg, const struct postgres_authentication *asked)
{
	char inner[DIGEST_MD5_HEX + 1], outer[DIGEST_MD5_HEX + 1];
	struct postgres_startup s;
	struct slice pair[2], salted[2], answer[2];

	postgres_read_startup(pg, &s);
	pair[0] = secret_slice(&pg->value->rendered);
	pair[1] = s.user;
	salted[0] = slice_of(inner, DIGEST_MD5_HEX);
	salted[1] = slice_of(asked->salt, sizeof(asked->salt));
	answer[0] = SLICE("md5");
	answer[1] = slice_of(outer, sizeof(outer)); /* with its NUL */
	pg->step = POSTGRES_ANSWERED;
	if (digest_md5_hex(pair, 2, inner) < 0 || digest_md5_hex(salted, 2, outer) < 0)
		failed(pg, "OpenSSL has no MD5, which the database asks for");
	else
		send_secret(pg, 'p', answer, 2);
	secret_wipe(inner, sizeof(inner));
	secret_wipe(outer, sizeof(outer));
}

static void begin_scram(struct postgres *pg, const struct postgres_authentication *asked)
{
	uint8_t length[4];
	const size_t n = pg->end_point_n;
	const enum scram_binding binding = n == 0              ? SCRAM_NOT_SUPPORTED
	                                   : asked->scram_plus ? SCRAM_BOUND
	                                                       : SCRAM_NOT_OFFERED;
	char first[SCRAM_FINAL_MAX];
	struct writer w = writer_over(length, sizeof(length));
	struct slice parts[4];

	if (binding != SCRAM_BOUND && !asked->scram) {
		failed(pg, "the database asks for a login by SASL that is not SCRAM-SHA-256");
		return;
	}
	if (scram_begin(&pg->scram, binding, slice_of(pg->end_point, n)) < 0) {
		postgres_fail(pg, EVENT_CAUSE_LIMIT, "53200", "no memory for a login");
		return;
	}
	parts[0] = binding == SCRAM_BOUND ? SLICE("SCRAM-SHA-256-PLUS") : SLICE("SCRAM-SHA-256");
	parts[1] = SLICE("\0");
	parts[2] = slice_of(length, sizeof(length));
	parts[3] = slice_of(first, scram_first(&pg->scram, first));
	writer_u32(&w, (uint32_t)parts[3].n);
	pg->step = POSTGRES_SCRAM_BEGUN;
	send_secret(pg, 'p', parts, 4);
}

static void prove(struct postgres *pg)
{
	char final[SCRAM_FINAL_MAX];
	int n = scram_finish(&pg->scram, &pg->client->proxy->hmac, final);
	const struct slice part = slice_of(final, n > 0 ? (size_t)n : 0);

	pg->step = POSTGRES_SCRAM_PROVED;
	if (n < 0)
		failed(pg, "no proof of the password could be made for the database");
	else
		send_secret(pg, 'p', &part, 1);
	secret_wipe(final, sizeof(final));
}

/* Computes the next portion of the key. After the last one sends the proof, and reads the messages
 * that have come meanwhile. */
static void on_derive(struct loop_task *task)
{
	struct postgres *pg = container_of(task, struct postgres, go_on);
	struct proxy *proxy = pg->client->proxy;
	int rc = scram_derive(
	        &pg->scram, &proxy->hmac, secret_slice(&pg->value->rendered), DERIVE_ROUNDS);

	if (rc < 0) {
		failed(pg, "no proof of the password could be made for the database");
	} else if (rc == 0) {
		loop_task_queue(proxy->config.loop, &pg->go_on);
	} else {
		prove(pg);
		if (pg->state == POSTGRES_LOGIN)
			postgres_login_input(pg);
	}
}

static void take_challenge(struct postgres *pg, struct slice message)
{
	const char *why = scram_challenge(&pg->scram, message);

	if (why) {
		failed(pg, why);
		return;
	}
	pg->step = POSTGRES_SCRAM_DERIVES;
	pg->go_on.run = on_derive;
	loop_task_queue(pg->client->proxy->config.loop, &pg->go_on);
}

static void take_proof(struct postgres *pg, struct slice message)
{
	const char *why = scram_verify(&pg->scram, message);

	if (why)
		failed(pg, why);
	pg->step = POSTGRES_ANSWERED;
}

/* The database has accepted the login: tells the sandbox, and begins the relay. */
static void logged_in(struct postgres *pg)
{
	uint8_t bytes[16];
	struct writer w = writer_over(bytes, sizeof(bytes));

	credential_value_release(pg->value);
	pg->value = NULL;
	scram_end(&pg->scram);
	pg->served = true;
	postgres_write_authentication(&w, POSTGRES_AUTH_OK);
	socket_write(&pg->client->socket, bytes, w.len);
	postgres_relay_begin(pg);
}

static void take_authentication(struct postgres *pg, struct slice body)
{
	struct postgres_authentication a;

	if (!postgres_authentication_parse(body, &a)) {
		failed(pg, "the database sent a malformed message during the login");
		return;
	}
	if (a.kind == POSTGRES_AUTH_OK &&
	        (pg->step == POSTGRES_UNASKED || pg->step == POSTGRES_ANSWERED))
		logged_in(pg);
	else if (a.kind == POSTGRES_AUTH_MD5 && pg->step == POSTGRES_UNASKED)
		answer_md5(pg, &a);
	else if (a.kind == POSTGRES_AUTH_SASL && pg->step == POSTGRES_UNASKED)
		begin_scram(pg, &a);
	else if (a.kind == POSTGRES_AUTH_SASL_CONTINUE && pg->step == POSTGRES_SCRAM_BEGUN)
		take_challenge(pg, a.data);
	else if (a.kind == POSTGRES_AUTH_SASL_FINAL && pg->step == POSTGRES_SCRAM_PROVED)
		take_proof(pg, a.data);
	else if (pg->step == POSTGRES_UNASKED)
		failed(pg, a.kind == POSTGRES_AUTH_CLEARTEXT
		                   ? "the database asks for the password itself, which is never "
		                     "sent; it has to use scram-sha-256 or md5"
		                   : "the database asks for a login that is neither SCRAM-SHA-256 "
		                     "nor MD5");
	else
		failed(pg, "the database accepted the login without proving that it knows the "
		           "password, "
		           "or asked for it twice");
}

/* Passes the database's refusal on to the sandbox: it cannot hold the password, which was never
 * sent. */
static void take_error(struct postgres *pg, const struct postgres_message *m, const uint8_t *whole)
{
	struct slice code = postgres_error_code(m->body);
	char text[80];

	snprintf(text, sizeof(text), "the database refused the login (%.*s)",
	        SLICE_ARG(code.n ? code : SLICE("no code")));
	socket_write(&pg->client->socket, whole, m->used);
	postgres_end(pg, EVENT_CAUSE_UPSTREAM, text);
}

/* Handles one whole message of the database. */
static void take_message(
        struct postgres *pg, const struct postgres_message *m, const uint8_t *whole)
{
	switch (m->type) {
	case 'R':
		take_authentication(pg, m->body);
		break;
	case 'E':
		take_error(pg, m, whole);
		break;
	case 'N': /* a notice */
		break;
	default:
		failed(pg, "the database sent a message that does not belong to a login");
		break;
	}
}

/* Takes the next message out of pg->received, because handling it may begin the relay of the rest.
 * Returns false if none is whole. */
static bool take_next(struct postgres *pg)
{
	struct buf *in = &pg->received;
	uint8_t bytes[POSTGRES_MESSAGE_MAX];
	struct postgres_message m;
	enum postgres_status status =
	        postgres_message_parse(buf_bytes(in), in->len, POSTGRES_MESSAGE_MAX, &m);

	if (status == POSTGRES_BAD)
		failed(pg, "the database sent a malformed message during the login");
	if (status != POSTGRES_DONE)
		return false;
	if (++pg->messages > MESSAGES_MAX) {
		failed(pg, "the database sent too many messages during the login");
		return false;
	}
	memcpy(bytes, buf_bytes(in), m.used);
	buf_consume(in, m.used);
	postgres_message_parse(bytes, m.used, POSTGRES_MESSAGE_MAX, &m);
	take_message(pg, &m, bytes);
	return true;
}

void postgres_login_input(struct postgres *pg)
{
	uint8_t *bytes = pg->client->proxy->plain;
	enum socket_status status;
	size_t n;

	for (;;) {
		while (pg->state == POSTGRES_LOGIN && pg->step != POSTGRES_SCRAM_DERIVES)
			if (!take_next(pg))
				break;
		if (pg->state != POSTGRES_LOGIN || pg->step == POSTGRES_SCRAM_DERIVES)
			return;
		status = socket_read(&pg->back, bytes, SOCKET_CHUNK, &n);
		if (status == SOCKET_AGAIN)
			return;
		if (status != SOCKET_OK) {
			failed(pg, "the database closed the connection during the login");
			return;
		}
		if (buf_append(&pg->received, bytes, n) < 0) {
			failed(pg, "the database sent too much during the login");
			return;
		}
	}
}

void postgres_login_begin(struct postgres *pg)
{
	uint8_t bytes[POSTGRES_STARTUP_MAX + 64];
	struct writer w = writer_over(bytes, sizeof(bytes));
	struct postgres_startup s;

	postgres_read_startup(pg, &s);
	postgres_write_startup(&w, s.user, s.parameters);
	if (w.failed) {
		failed(pg, "the startup message is too long");
		return;
	}
	pg->end_point_n = tls_server_end_point(pg->back.tls, pg->end_point);
	pg->bytes_out = w.len;
	socket_write(&pg->back, bytes, w.len);
	postgres_enter(pg, POSTGRES_LOGIN);
	postgres_login_input(pg);
}
