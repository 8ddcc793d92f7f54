/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the server of the control API (http_server.c) and its connections
 * (http_connection.c). */
#ifndef VETHGUARD_SRC_LOOP_HTTP_CONNECTION_H
#define VETHGUARD_SRC_LOOP_HTTP_CONNECTION_H

#include "vethguard/loop/http_server.h"
#include "vethguard/wire/control_http.h"

enum connection_state {
	IDLE,      /* nothing of a request has arrived */
	READING,   /* a part of a request has arrived */
	ANSWERING, /* the handler has the request */
	WRITING,   /* the response is being sent */
	LINGERING, /* the last response is sent; further input is discarded */
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
	bool continued;           /* "100 Continue" was sent */
	bool closes;              /* no further request after this one */
	bool stranger;            /* the peer is only refused and then disconnected */
	unsigned reads;           /* in this turn of the loop */
};

struct http_server {
	struct loop *loop;
	struct http_handler *handler;
	struct loop_io io;
	struct loop_timer retry;
	int fd;
	struct list connections; /* struct http_exchange */
	size_t count;            /* of admitted peers */
	size_t strangers;        /* of the others */
};

/* On success takes fd and the peer's groups. stranger: only to be refused. Returns NULL if out of
 * memory. */
struct http_exchange *http_connection_new(
        struct http_server *server, int fd, const struct http_peer *peer, bool stranger);
void http_connection_free(struct http_exchange *connection);
/* Sends a response of the server itself and then closes the connection. */
void http_connection_refuse(struct http_exchange *connection, unsigned status, const char *detail);

#endif
