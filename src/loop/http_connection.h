/* SPDX-License-Identifier: Apache-2.0 */
/* What the server of the control API (http_server.c) and its connections (http_connection.c) know
 * of each other. */
#ifndef VETHGUARD_SRC_LOOP_HTTP_CONNECTION_H
#define VETHGUARD_SRC_LOOP_HTTP_CONNECTION_H

#include "vethguard/loop/http_server.h"
#include "vethguard/wire/control_http.h"

enum connection_state {
	IDLE,      /* nothing of a request has come */
	READING,   /* some of it has */
	ANSWERING, /* the handler has it */
	WRITING,   /* its answer goes out */
	LINGERING, /* the last answer is out: what still comes is thrown away */
};

struct http_exchange {
	struct list place;
	struct http_server *server;
	enum connection_state state;
	struct http_peer peer; /* its groups are owned */
	struct loop_io io;
	struct loop_timer timer;
	struct loop_task task;
	int fd;
	struct buf in, out;
	struct control_head head; /* of the request; borrows from in */
	bool continued;           /* the client was told to go on */
	bool closes;              /* no further request after this one */
	bool stranger;            /* it may not speak: it is told so, and gone */
	unsigned reads;           /* in this turn of the loop */
};

struct http_server {
	struct loop *loop;
	struct http_handler *handler;
	struct loop_io io;
	struct loop_timer retry;
	int fd;
	struct list connections; /* struct http_exchange */
	size_t count;            /* of those that may speak */
	size_t strangers;        /* the others */
};

/* Takes fd and the peer's groups where it returns a connection. stranger: only to be refused.
 * NULL: no memory. */
struct http_exchange *http_connection_new(
        struct http_server *server, int fd, const struct http_peer *peer, bool stranger);
void http_connection_free(struct http_exchange *connection);
/* The server's own answer: the connection is of no use afterwards. */
void http_connection_refuse(struct http_exchange *connection, unsigned status, const char *detail);

#endif
