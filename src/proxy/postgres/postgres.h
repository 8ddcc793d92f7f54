/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres: a connection of the sandbox to a database, at which vethguard logs in with a
 * credential. Parts: session.c (states, refusals, the end), front.c (the sandbox's side until the
 * login), back.c (connecting to the database), login.c (the login there), relay.c (bytes after it).
 */
#ifndef VETHGUARD_SRC_PROXY_POSTGRES_POSTGRES_H
#define VETHGUARD_SRC_PROXY_POSTGRES_POSTGRES_H

#include "proxy/client/client.h"
#include "proxy/dial/dial.h"
#include "vethguard/credential/store.h"
#include "vethguard/sign/scram.h"
#include "vethguard/wire/postgres.h"

enum postgres_state {
	POSTGRES_FIRST, /* waiting for the sandbox's startup message, or another first message */
	POSTGRES_FRONT_TLS,  /* handshake with the sandbox */
	POSTGRES_PASSWORD,   /* waiting for the sandbox's password */
	POSTGRES_CREDENTIAL, /* waiting for the credential's value */
	POSTGRES_DIAL,
	POSTGRES_BACK_ASKS, /* asking the database for TLS */
	POSTGRES_BACK_TLS,  /* handshake with the database */
	POSTGRES_LOGIN,     /* startup message sent: the database asks and is answered */
	POSTGRES_RELAY,
	POSTGRES_ENDING, /* the sandbox has ended its side: what it sent is still delivered */
	POSTGRES_CLOSED,
	POSTGRES_STATE_COUNT
};

/* How far the login at the database has come. */
enum postgres_step {
	POSTGRES_UNASKED,
	POSTGRES_SCRAM_BEGUN,   /* our first message of SCRAM was sent */
	POSTGRES_SCRAM_DERIVES, /* the database has answered: the key is being computed */
	POSTGRES_SCRAM_PROVED,  /* our proof was sent */
	POSTGRES_ANSWERED /* our answer was sent; with SCRAM, the database's proof was verified */
};

struct postgres {
	struct client *client;
	enum postgres_state state;
	unsigned requests;  /* requests for encryption so far */
	struct buf startup; /* the sandbox's startup message, or its request to cancel */
	struct credential_wait wait;
	struct credential_value *value; /* a reference, held until the end of the login */
	struct dial *dial;
	struct socket back; /* the database's side */
	struct ip address;
	struct buf received;                  /* from the database, not used yet */
	uint8_t end_point[TLS_END_POINT_MAX]; /* tls_server_end_point() */
	size_t end_point_n;
	struct scram scram;
	enum postgres_step step;
	unsigned messages;      /* messages of the login from the database, so far */
	struct loop_task go_on; /* computes the key of the login; later relays from the database */
	uint64_t bytes_out, bytes_in;
	bool served; /* the login is over, or the request to cancel was sent */
	bool recorded;
};

/* --- for the client's room --- */

/* Begins; what the sandbox has sent is in the client's input buffer. NULL: no memory. */
struct postgres *postgres_new(struct client *client);
void postgres_free(struct postgres *pg);
/* Closes the database's side, and records the connection unless that was done. */
void postgres_close(struct postgres *pg);
/* Records the connection, once. */
void postgres_record(struct postgres *pg, enum event_cause cause, const char *detail);

/* --- its parts --- */

void postgres_enter(struct postgres *pg, enum postgres_state state);
/* Tells the sandbox why there is no login, records it, and closes the database's side. Returns the
 * client's next state. */
enum client_state postgres_refuse(
        struct postgres *pg, enum event_cause cause, const char code[5], const char *detail);
/* The same from a callback: the client ends at the end of the loop's turn. */
void postgres_fail(
        struct postgres *pg, enum event_cause cause, const char code[5], const char *detail);
/* The same, but tells the sandbox nothing. */
void postgres_end(struct postgres *pg, enum event_cause cause, const char *detail);
/* Parses the startup message again. *out points into pg->startup. */
void postgres_read_startup(const struct postgres *pg, struct postgres_startup *out);
static inline bool postgres_cancels(const struct postgres *pg)
{
	return pg->startup.len == POSTGRES_CANCEL_BYTES;
}

/* front.c */
enum client_state postgres_front_input(struct postgres *pg);
/* back.c: dials the database. False: no memory. */
bool postgres_dial(struct postgres *pg);
/* login.c: begins the login, once TLS to the database is up. */
void postgres_login_begin(struct postgres *pg);
/* Handles the messages of the login that have come. */
void postgres_login_input(struct postgres *pg);
/* relay.c: begins to relay, after the login. */
void postgres_relay_begin(struct postgres *pg);
/* Moves what has come from the sandbox, or from the database. */
enum client_state postgres_relay_out(struct postgres *pg);
void postgres_relay_in(struct postgres *pg);

#endif
