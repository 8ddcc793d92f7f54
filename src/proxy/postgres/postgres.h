/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres: a connection of the sandbox to a database, on which vethguard logs in with a
 * credential. First what the client's room uses; then what its parts share: session.c (states,
 * refusals, the end), front.c (what the sandbox says first), back.c (to the database), login.c (the
 * login there), relay.c (bytes after it).
 */
#ifndef VETHGUARD_SRC_PROXY_POSTGRES_POSTGRES_H
#define VETHGUARD_SRC_PROXY_POSTGRES_POSTGRES_H

#include "proxy/client/client.h"
#include "proxy/dial/dial.h"
#include "vethguard/credential/store.h"
#include "vethguard/sign/scram.h"
#include "vethguard/wire/postgres.h"

enum postgres_state {
	POSTGRES_FIRST,      /* waiting for the sandbox's first message, or for another one */
	POSTGRES_FRONT_TLS,  /* handshake with the sandbox */
	POSTGRES_PASSWORD,   /* waiting for the sandbox's password */
	POSTGRES_CREDENTIAL, /* waiting for the credential's value */
	POSTGRES_DIAL,
	POSTGRES_BACK_ASKS, /* asking the database for TLS */
	POSTGRES_BACK_TLS,  /* handshake with it */
	POSTGRES_LOGIN,     /* startup message sent: the database asks and is answered */
	POSTGRES_RELAY,
	POSTGRES_ENDING, /* the sandbox has ended its side: what it sent is still delivered */
	POSTGRES_CLOSED,
	POSTGRES_STATE_COUNT
};

/* What is known of the login at the database. */
enum postgres_step {
	POSTGRES_UNASKED,
	POSTGRES_SCRAM_BEGUN,   /* our first message of SCRAM was sent */
	POSTGRES_SCRAM_DERIVES, /* its answer has come: the key is being computed */
	POSTGRES_SCRAM_PROVED,  /* our proof was sent */
	POSTGRES_ANSWERED       /* whatever was asked for was answered, and verified for SCRAM */
};

struct postgres {
	struct client *client;
	enum postgres_state state;
	unsigned requests;  /* for encryption, so far */
	struct buf startup; /* the sandbox's startup message, or its request to cancel */
	struct credential_wait wait;
	struct credential_value
	        *value; /* one reference, from its arrival to the end of the login */
	struct dial *dial;
	struct socket back; /* the database's side */
	struct ip address;
	struct buf received;                  /* from the database, not used yet */
	uint8_t end_point[TLS_END_POINT_MAX]; /* tls_server_end_point() */
	size_t end_point_n;
	struct scram scram;
	enum postgres_step step;
	unsigned messages;      /* of the login, from the database */
	struct loop_task go_on; /* with the key of a login, then with what the database sends */
	uint64_t bytes_out, bytes_in;
	bool served; /* the login is over, or the request to cancel was sent */
	bool recorded;
};

/* --- for the client's room --- */

/* Begins: what has come is in the client's input buffer. NULL: no memory. */
struct postgres *postgres_new(struct client *client);
void postgres_free(struct postgres *pg);
/* Closes the database's side, and records the connection if that was not done. */
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
/* The same with nothing said. */
void postgres_end(struct postgres *pg, enum event_cause cause, const char *detail);
/* The startup message, read again. */
void postgres_read_startup(const struct postgres *pg, struct postgres_startup *out);
static inline bool postgres_cancels(const struct postgres *pg)
{
	return pg->startup.len == POSTGRES_CANCEL_BYTES;
}

/* front.c */
enum client_state postgres_front_input(struct postgres *pg);
/* back.c: dials the database. False: no memory. */
bool postgres_dial(struct postgres *pg);
/* login.c: TLS to the database is there. */
void postgres_login_begin(struct postgres *pg);
/* Reads what has come of the login. */
void postgres_login_input(struct postgres *pg);
/* relay.c: the login is over. */
void postgres_relay_begin(struct postgres *pg);
/* Moves what has come from the sandbox, or from the database. */
enum client_state postgres_relay_out(struct postgres *pg);
void postgres_relay_in(struct postgres *pg);

#endif
