/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server: HTTP/1.1 over a listening Unix socket, for a control API that few trusted programs use. Every
 * connection's peer is known by its credentials before a byte of it is read (unix(7), SO_PEERCRED), everything is
 * bounded (connections, heads, bodies, time), and every answer, also the server's own, is a problem document (RFC
 * 9457) or what the handler says.
 *
 * Not evhttp: that of libevent 2.1 bounds neither connections nor the time a request takes, tells of a connection
 * only after it has read a whole request, and answers in HTML where it refuses by itself.
 */
#ifndef VETHGUARD_LOOP_HTTP_SERVER_H
#define VETHGUARD_LOOP_HTTP_SERVER_H

#include <sys/types.h>

#include "vethguard/base/slice.h"
#include "vethguard/loop/loop.h"

#define HTTP_SERVER_CONNECTIONS_MAX 64 /* at a time; one user that is not root may have half of them */
#define HTTP_SERVER_STRANGERS_MAX 8    /* beside those, that may not speak and wait for the whole answer */
#define HTTP_SERVER_IDLE_MS 60000      /* between two requests */
#define HTTP_SERVER_REQUEST_MS 10000   /* from a request's first byte to its last */
#define HTTP_SERVER_ANSWER_MS 30000    /* for the client to take an answer */
#define HTTP_SERVER_LINGER_MS 2000     /* for it to read the last one (RFC 9112 section 9.6) */
#define HTTP_SERVER_RETRY_MS 100       /* before the next accept(2) where descriptors ran out */
#define HTTP_SERVER_READS_MAX 16       /* of one connection in a turn of the loop */

#define HTTP_PEER_UNTOLD (-1) /* of pidfd: the kernel has none to give (before Linux 6.5) */
#define HTTP_PEER_ENDED (-2)

struct http_peer {
	pid_t pid; /* when it connected; it may have ended since, and another process have its number */
	int pidfd; /* during admit(): of the very process that connected (SO_PEERPIDFD), or one of the above */
	uid_t uid;
	gid_t gid;
	size_t group_count;
	const gid_t *groups; /* further ones (SO_PEERGROUPS), borrowed from the connection */
};

/* Whether that is its group, or one of the further ones. */
bool http_peer_in_group(const struct http_peer *peer, gid_t gid);

struct http_server;
struct http_exchange; /* one request that waits for its answer */

struct http_request {
	struct http_peer peer;
	struct slice method, target, content_type, body; /* borrowed until the answer */
};

struct http_handler {
	/* NULL: the peer may speak; else why it may not, one sentence: it is told so (403) and nothing it sends is read. */
	const char *(*admit)(struct http_handler *handler, const struct http_peer *peer);
	/* Answers exactly once with http_respond(), now or later. */
	void (*on_request)(struct http_handler *handler, struct http_exchange *exchange, const struct http_request *request);
};

/* fd: listens; stays the caller's. NULL: no memory. */
struct http_server *http_server_new(struct loop *loop, int fd, struct http_handler *handler);
/* Closes every connection. Exchanges that wait for their answer are void: none may be answered afterwards. */
void http_server_free(struct http_server *server);
/* Accepts no connection, until that is lifted: who connects waits in the queue, for this process or another one that
 * listens on the same socket. 0 or -errno (of lifting). */
int http_server_hold(struct http_server *server, bool hold);

/* content_type: a literal. fields: further header lines, each with its CR LF, or "". body is copied. Without memory the
 * connection is closed instead. Harmless where the client has gone. Ends the exchange. */
void http_respond(struct http_exchange *exchange, unsigned status, const char *content_type, const char *fields,
	struct slice body);
/* An answer of status with a problem document of nothing but this detail. */
void http_respond_problem(struct http_exchange *exchange, unsigned status, const char *detail);

#endif
