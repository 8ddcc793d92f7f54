/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server: HTTP/1.1 over a listening Unix socket, for a control API that few trusted programs use. The server
 * knows the credentials of every connection's peer (unix(7), SO_PEERCRED) before it reads a byte. Connections, heads,
 * bodies and times are bounded. Every response is what the handler says or, from the server itself, a problem
 * document (RFC 9457).
 *
 * evhttp of libevent 2.1 is not used: it bounds neither connections nor the time a request takes, reports a
 * connection only after it has read a whole request, and refuses in HTML.
 */
#ifndef VETHGUARD_LOOP_HTTP_SERVER_H
#define VETHGUARD_LOOP_HTTP_SERVER_H

#include <sys/types.h>

#include "vethguard/base/slice.h"
#include "vethguard/loop/loop.h"

#define HTTP_SERVER_CONNECTIONS_MAX 64 /* at a time; one user other than root may have half of them */
/* More connections, of peers that are refused, while they take their response. */
#define HTTP_SERVER_STRANGERS_MAX 8
#define HTTP_SERVER_IDLE_MS 60000    /* between two requests */
#define HTTP_SERVER_REQUEST_MS 10000 /* from a request's first byte to its last */
#define HTTP_SERVER_ANSWER_MS 30000  /* for the client to take a response */
#define HTTP_SERVER_LINGER_MS 2000   /* for the client to read the last one (RFC 9112 section 9.6) */
#define HTTP_SERVER_RETRY_MS 100     /* until the next accept(2) after descriptors ran out */
#define HTTP_SERVER_READS_MAX 16     /* reads of one connection per turn of the loop */

#define HTTP_PEER_UNTOLD (-1) /* pidfd: the kernel does not give one (before Linux 6.5) */
#define HTTP_PEER_ENDED (-2)

struct http_peer {
	pid_t pid; /* at connect time; the process may have exited since, and another may have its number */
	int pidfd; /* valid during admit(): the process that connected (SO_PEERPIDFD), or one of the constants
	              above */
	uid_t uid;
	gid_t gid;
	size_t group_count;
	const gid_t *groups; /* supplementary groups (SO_PEERGROUPS), borrowed from the connection */
};

/* True if gid is the peer's group or one of its supplementary groups. */
bool http_peer_in_group(const struct http_peer *peer, gid_t gid);

struct http_server;
struct http_exchange; /* one request that waits for its response */

struct http_request {
	struct http_peer peer;
	struct slice method, target, content_type, body; /* borrowed until the response */
};

struct http_handler {
	/* Returns NULL if the peer may use the server, else one sentence that says why not: the peer gets it (403),
	 * and nothing it sends is read. */
	const char *(*admit)(struct http_handler *handler, const struct http_peer *peer);
	/* Has to call http_respond() exactly once, now or later. */
	void (*on_request)(
	        struct http_handler *handler, struct http_exchange *exchange, const struct http_request *request);
};

/* fd: a listening socket, which stays the caller's. Returns NULL if out of memory. */
struct http_server *http_server_new(struct loop *loop, int fd, struct http_handler *handler);
/* Closes every connection. Exchanges that wait for their response are invalid: do not respond to them afterwards. */
void http_server_free(struct http_server *server);
/* hold: stops accepting connections until called with false. Clients wait in the queue, for this process or another
 * one that listens on the same socket. Returns 0, or -errno when accepting again fails. */
int http_server_hold(struct http_server *server, bool hold);

/* Sends the response and ends the exchange. content_type: a literal. fields: further header lines, each with its CR
 * LF, or "". body is copied. If out of memory, closes the connection instead. Does nothing if the client is gone. */
void http_respond(struct http_exchange *exchange, unsigned status, const char *content_type, const char *fields,
        struct slice body);
/* Responds with status and a problem document that contains only this detail. */
void http_respond_problem(struct http_exchange *exchange, unsigned status, const char *detail);

#endif
