/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: the connection to the quota server: names, TCP, TLS, login, and one question at a time.
 * The server is not trusted: answers have a bound and a time limit, and anything unexpected ends
 * the connection. Another one is made after a pause.
 */
#ifndef VETHGUARD_SRC_QUOTA_SERVER_H
#define VETHGUARD_SRC_QUOTA_SERVER_H

#include "quota/reply.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/secret.h"
#include "vethguard/loop/resolver.h"
#include "vethguard/tls/tls.h"
#include "vethguard/wire/message.h"

#define SERVER_LOGIN_MS 2000  /* from the name to the end of the login */
#define SERVER_ANSWER_MS 1000 /* of one answer */
#define SERVER_PAUSE_FIRST_MS 100
#define SERVER_PAUSE_MOST_MS 1000
/* A connection that has lasted so long, and answered, ends the growth of pauses. */
#define SERVER_LASTS_MS 1000
#define SERVER_OUT_MAX 65536
#define SERVER_WHY_MAX 256

enum server_state {
	SERVER_PAUSED = 0, /* there is no connection */
	SERVER_RESOLVING = 1,
	SERVER_CONNECTING = 2,
	SERVER_HANDSHAKE = 3,
	SERVER_PASSWORD = 4, /* AUTH is answered next */
	SERVER_DATABASE = 5, /* SELECT is answered next */
	SERVER_READY = 6,    /* a question may be asked */
	SERVER_ASKED = 7,
	SERVER_STATE_COUNT
};

struct server {
	enum server_state state;
	struct loop *loop;
	const struct message_quota_start *start; /* borrowed */
	struct slice password;                   /* borrowed; empty: none */
	struct tls_client *tls_client;           /* borrowed; NULL: without TLS */
	struct resolver *resolver;               /* borrowed */
	struct resolver_wait wait;
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	size_t address_count, address_next;
	struct loop_io io;
	struct loop_timer timer; /* the time limit, or the end of the pause */
	struct loop_task task;
	int fd; /* -1: none */
	struct tls *tls;
	struct buf out; /* bytes for the socket */
	struct reply_reader reader;
	int64_t pause_ms;
	int64_t ready_ms; /* when the login was complete: loop_now_ms() */
	bool told_away;
	char told[SERVER_WHY_MAX]; /* why it was away the last time */
	/* The server can be asked from now on; it can be asked again. */
	void (*on_ready)(struct server *server, bool anew);
	/* The answer to the question. */
	void (*on_answer)(struct server *server, const struct reply *reply);
	/* It cannot be asked; why is a sentence. A question that was under way gets no answer.
	 * Called once for each reason in a row, until it can be asked again. */
	void (*on_away)(struct server *server, const char *why);
};

/* Begins to connect. The fields above that are borrowed, loop and the callbacks are set by the
 * caller. Returns 0 or -ENOMEM. */
int server_open(struct server *server);
void server_close(struct server *server);
/* Asks, in state SERVER_READY. command: bytes, copied. */
void server_ask(struct server *server, const char *command, size_t n);
/* The last answer makes no sense: ends the connection. */
void server_refuse(struct server *server, const char *why);

#endif
