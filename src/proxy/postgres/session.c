/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The sandbox speaks PostgreSQL's protocol with vethguard, and vethguard with
 * the database:
 *
 *   FIRST (-> FRONT_TLS -> FIRST) (-> PASSWORD) -> CREDENTIAL -> DIAL -> BACK_ASKS -> BACK_TLS
 *     -> LOGIN -> RELAY (-> ENDING) -> CLOSED
 *
 * A request to cancel a query skips PASSWORD, CREDENTIAL and LOGIN. Until RELAY the sandbox's input
 * is read only in FIRST, FRONT_TLS and PASSWORD; what comes too early waits. The database gets
 * nothing but the request for TLS before its certificate was verified for its name.
 */
#include "proxy/postgres/postgres.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/log.h"

static const char *const state_names[] = {
        [POSTGRES_FIRST] = "FIRST",
        [POSTGRES_FRONT_TLS] = "FRONT_TLS",
        [POSTGRES_PASSWORD] = "PASSWORD",
        [POSTGRES_CREDENTIAL] = "CREDENTIAL",
        [POSTGRES_DIAL] = "DIAL",
        [POSTGRES_BACK_ASKS] = "BACK_ASKS",
        [POSTGRES_BACK_TLS] = "BACK_TLS",
        [POSTGRES_LOGIN] = "LOGIN",
        [POSTGRES_RELAY] = "RELAY",
        [POSTGRES_ENDING] = "ENDING",
        [POSTGRES_CLOSED] = "CLOSED",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == POSTGRES_STATE_COUNT, "a name per state");

/* The deadline that begins with a state. -1: none; a credential's source has its own. */
static const int waits[POSTGRES_STATE_COUNT] = {
        [POSTGRES_FIRST] = WAIT_HELLO,
        [POSTGRES_FRONT_TLS] = WAIT_HELLO,
        [POSTGRES_PASSWORD] = WAIT_HELLO,
        [POSTGRES_CREDENTIAL] = -1,
        [POSTGRES_DIAL] = WAIT_DIAL,
        [POSTGRES_BACK_ASKS] = WAIT_DIAL,
        [POSTGRES_BACK_TLS] = WAIT_DIAL,
        [POSTGRES_LOGIN] = WAIT_DIAL,
        [POSTGRES_RELAY] = WAIT_IDLE,
        [POSTGRES_ENDING] = WAIT_LINGER,
        [POSTGRES_CLOSED] = -1,
};

void postgres_enter(struct postgres *pg, enum postgres_state state)
{
	struct client *c = pg->client;

	if (pg->state != state)
		log_debug("client :%u: postgres: %s -> %s", c->src_port, state_names[pg->state],
		        state_names[state]);
	pg->state = state;
	if (waits[state] < 0)
		loop_deadline_clear(&c->deadline);
	else
		loop_deadline_set(&c->proxy->waits[waits[state]], &c->deadline);
}

void postgres_read_startup(const struct postgres *pg, struct postgres_startup *out)
{
	postgres_startup_parse(buf_bytes(&pg->startup), pg->startup.len, out);
}

void postgres_record(struct postgres *pg, enum event_cause cause, const char *detail)
{
	struct client *c = pg->client;

	if (pg->recorded)
		return;
	pg->recorded = true;
	audit_connection(c, &c->decision, pg->served ? EVENT_ALLOWED : EVENT_DENIED, cause, detail,
	        pg->bytes_out, pg->bytes_in, pg->address.family ? &pg->address : NULL);
}

/* Sends the reason as an error of PostgreSQL's protocol, unless the login is over. */
static void tell(struct postgres *pg, const char code[5], const char *detail)
{
	char text[LIMIT_TEXT_MAX + 64];
	uint8_t bytes[sizeof(text) + 64];
	struct writer w = writer_over(bytes, sizeof(bytes));

	snprintf(text, sizeof(text), "vethguard: %s", detail);
	postgres_write_error(&w, code, text);
	if (!w.failed && !pg->served)
		socket_write(&pg->client->socket, bytes, w.len);
}

static void stop(
        struct postgres *pg, enum event_cause cause, const char code[5], const char *detail)
{
	postgres_record(pg, cause, detail);
	if (!postgres_cancels(pg))
		tell(pg, code, detail);
	postgres_close(pg);
}

enum client_state postgres_refuse(
        struct postgres *pg, enum event_cause cause, const char code[5], const char *detail)
{
	stop(pg, cause, code, detail);
	return client_end(pg->client);
}

void postgres_fail(
        struct postgres *pg, enum event_cause cause, const char code[5], const char *detail)
{
	stop(pg, cause, code, detail);
	client_wake(pg->client);
}

void postgres_end(struct postgres *pg, enum event_cause cause, const char *detail)
{
	postgres_record(pg, cause, detail);
	postgres_close(pg);
	client_wake(pg->client);
}

struct postgres *postgres_new(struct client *c)
{
	struct postgres *pg = calloc(1, sizeof(*pg));

	if (!pg)
		return NULL;
	pg->client = c;
	buf_init(&pg->startup, POSTGRES_STARTUP_MAX);
	buf_init(&pg->received, SOCKET_CHUNK + POSTGRES_MESSAGE_MAX);
	socket_init(&pg->back);
	postgres_enter(pg, POSTGRES_FIRST);
	return pg;
}

void postgres_close(struct postgres *pg)
{
	if (pg->state == POSTGRES_CLOSED)
		return;
	postgres_record(pg, EVENT_CAUSE_CLOSING, NULL);
	postgres_enter(pg, POSTGRES_CLOSED);
	credential_wait_cancel(&pg->wait);
	dial_cancel(pg->dial);
	pg->dial = NULL;
	socket_close(&pg->back, false);
	loop_task_cancel(pg->client->proxy->config.loop, &pg->go_on);
	credential_value_release(pg->value);
	pg->value = NULL;
	scram_end(&pg->scram);
	buf_fini(&pg->received);
	buf_fini(&pg->startup);
}

void postgres_free(struct postgres *pg)
{
	free(pg);
}
