/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a database at which vethguard logs in: begins it, and passes the client's events
 * to proxy/postgres/. */
#include "proxy/postgres/postgres.h"

#include <stdlib.h>

bool client_is_postgres(const struct client *c, const struct policy_decision *decision)
{
	struct policy_credential credential;

	if (decision->observed || decision->credential == POLICY_NONE)
		return false;
	policy_credential(c->proxy->config.policy, decision->credential, &credential);
	return credential.inject == POLICY_INJECT_POSTGRES;
}

enum client_state client_postgres(struct client *c, const struct policy_decision *decision)
{
	c->decision = *decision;
	c->tunnelled = c->destination;
	c->content = TUNNEL_POSTGRES;
	if (credential_store_has_placeholders(c->proxy->config.credentials)) {
		c->scan = calloc(1, sizeof(*c->scan));
		if (!c->scan)
			return CLIENT_CLOSED;
	}
	c->postgres = postgres_new(c);
	return c->postgres ? CLIENT_POSTGRES : CLIENT_CLOSED;
}

enum client_state client_postgres_input(struct client *c)
{
	struct postgres *pg = c->postgres;

	switch (pg->state) {
	case POSTGRES_FIRST:
	case POSTGRES_FRONT_TLS:
	case POSTGRES_PASSWORD:
		return postgres_front_input(pg);
	case POSTGRES_RELAY:
		return postgres_relay_out(pg);
	case POSTGRES_CLOSED:
		return client_end(c);
	default: /* the sandbox's input waits */
		return c->state;
	}
}

enum client_state client_postgres_timeout(struct client *c)
{
	struct postgres *pg = c->postgres;

	switch (pg->state) {
	case POSTGRES_FIRST:
	case POSTGRES_FRONT_TLS:
	case POSTGRES_PASSWORD:
		postgres_record(pg, EVENT_CAUSE_TIMEOUT, "the sandbox took too long to log in");
		break;
	case POSTGRES_RELAY:
		postgres_record(pg, EVENT_CAUSE_TIMEOUT, "no traffic for too long");
		break;
	case POSTGRES_ENDING:
		postgres_record(pg, EVENT_CAUSE_POLICY, NULL);
		break;
	default:
		return postgres_refuse(
		        pg, EVENT_CAUSE_TIMEOUT, "08001", "the database took too long to answer");
	}
	c->reset = pg->state != POSTGRES_ENDING;
	return CLIENT_CLOSED;
}

void client_postgres_drained(struct client *c)
{
	if (c->postgres->state == POSTGRES_RELAY)
		postgres_relay_in(c->postgres);
}
