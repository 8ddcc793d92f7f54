/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres: the messages of PostgreSQL's protocol (version 3.0) up to the end of a login: what a client sends first,
 * and the framed messages of both sides. Pure. What comes after the login is not read.
 */
#ifndef VETHGUARD_WIRE_POSTGRES_H
#define VETHGUARD_WIRE_POSTGRES_H

#include "vethguard/base/cursor.h"

#define POSTGRES_STARTUP_MAX 10000 /* bytes of a client's first message; servers have the same bound */
#define POSTGRES_MESSAGE_MAX 16384 /* bytes of any other message of a login, with its head */
#define POSTGRES_PARAMETERS_MAX 64 /* of a startup message */
#define POSTGRES_NAME_MAX 63       /* bytes of a user or a database */
#define POSTGRES_SSL_REQUEST_BYTES 8
#define POSTGRES_CANCEL_BYTES 16
#define POSTGRES_TLS_BYTE 22 /* a connection that begins with TLS, without asking (sslnegotiation=direct) */

enum postgres_status {
	POSTGRES_DONE,
	POSTGRES_MORE, /* valid so far but incomplete: read on */
	POSTGRES_BAD   /* refused; why has the reason */
};

enum postgres_first {
	POSTGRES_ASKS_TLS, /* SSLRequest */
	POSTGRES_ASKS_GSS, /* GSSENCRequest */
	POSTGRES_CANCELS,  /* CancelRequest */
	POSTGRES_STARTS    /* StartupMessage */
};

struct postgres_startup {
	enum postgres_first kind;
	uint16_t minor;          /* of the version that the client speaks: 3.minor */
	struct slice user;       /* borrowed from the input, as what follows */
	struct slice database;   /* empty: none is named */
	struct slice parameters; /* all of them, for postgres_parameter_next() */
	unsigned options;        /* parameters whose name begins with "_pq_." */
	bool replicates;         /* the client asks for a replication connection */
	size_t used;             /* bytes of the message */
	const char *why;         /* static */
};
/* Parses the first message of a client from the n bytes received so far. What follows it is left alone. */
enum postgres_status postgres_startup_parse(const uint8_t *p, size_t n, struct postgres_startup *out);
/* Takes the next parameter off *rest, which is parameters at first. Returns false at the end. */
bool postgres_parameter_next(struct slice *rest, struct slice *name, struct slice *value);
/* True for a parameter of the protocol itself ("_pq_."), which the server may not know. */
bool postgres_is_option(struct slice name);

/* A message with a type. */
struct postgres_message {
	uint8_t type;
	struct slice body; /* borrowed from the input */
	size_t used;       /* bytes of the message, with its head of 5 bytes */
};
/* Parses a message of at most max bytes from the n bytes received so far. BAD: its length cannot be right, or is
 * beyond max. */
enum postgres_status postgres_message_parse(const uint8_t *p, size_t n, size_t max, struct postgres_message *out);

/* What the server of a login says or asks for (a message of the type 'R'). */
enum postgres_auth {
	POSTGRES_AUTH_OK = 0,
	POSTGRES_AUTH_CLEARTEXT = 3,
	POSTGRES_AUTH_MD5 = 5,
	POSTGRES_AUTH_SASL = 10,
	POSTGRES_AUTH_SASL_CONTINUE = 11,
	POSTGRES_AUTH_SASL_FINAL = 12
};
#define POSTGRES_SALT_BYTES 4
struct postgres_authentication {
	uint32_t kind; /* enum postgres_auth, or any other number */
	uint8_t salt[POSTGRES_SALT_BYTES];
	bool scram, scram_plus; /* SASL: the server offers SCRAM-SHA-256, SCRAM-SHA-256-PLUS */
	struct slice data;      /* SASL_CONTINUE, SASL_FINAL */
};
/* Returns false if the body is malformed. */
bool postgres_authentication_parse(struct slice body, struct postgres_authentication *out);
/* The code (SQLSTATE, 5 letters or digits) of an ErrorResponse, or empty. */
struct slice postgres_error_code(struct slice body);

/* The writers append one message each. */
void postgres_write_ssl_request(struct writer *w);
/* The client's parameters with this user, without those of postgres_is_option(), as a StartupMessage of version 3.0. */
void postgres_write_startup(struct writer *w, struct slice user, struct slice parameters);
void postgres_write_message(struct writer *w, uint8_t type, const struct slice *parts, size_t count);
/* 'R' with nothing but its kind: AUTH_OK, AUTH_CLEARTEXT. */
void postgres_write_authentication(struct writer *w, enum postgres_auth kind);
/* Tells the client that it gets version 3.0 and none of its `options` parameters. */
void postgres_write_negotiation(struct writer *w, const struct postgres_startup *startup);
/* An ErrorResponse that ends the connection. */
void postgres_write_error(struct writer *w, const char code[5], const char *message);

#endif
