/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: one connection from the sandbox. First what others have of it; then what its parts know
 * of each other: client.c (the states), peek.c (what a connection is, TLS, CONNECT, tunnels),
 * client/http1.c (requests; client/http1_response.c: their answers), client/http2.c (a connection
 * of many streams).
 */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_CLIENT_H
#define VETHGUARD_SRC_PROXY_CLIENT_CLIENT_H

#include <unistd.h>

#include "proxy/http/http1.h"
#include "proxy/private.h"

struct client_http2;

enum client_state {
	CLIENT_PEEK,     /* what is it? */
	CLIENT_TLS,      /* handshake with the sandbox */
	CLIENT_HTTP,     /* a request head is awaited or read */
	CLIENT_EXCHANGE, /* a request is being served */
	CLIENT_HTTP2,    /* many of them, one per stream */
	CLIENT_DIAL,     /* a tunnel's other end is dialled */
	CLIENT_LINGER, /* the last response was sent; the rest of what comes is read and thrown away
	                */
	CLIENT_CLOSED,
	CLIENT_STATE_COUNT
};

/* What is known of the bytes that a tunnel carries. */
enum tunnel_content {
	TUNNEL_UNSEEN, /* the policy spoke of nothing that they could be besides */
	TUNNEL_TLS,
	TUNNEL_OTHER /* no TLS and no request, or nothing for so long that it was let out as that */
};

/* One connection from the sandbox. */
struct client {
	struct proxy *proxy;
	struct list list;
	enum client_state state;
	struct socket socket;
	struct loop_deadline deadline;
	struct loop_task wake; /* goes on with input, or with the end of an exchange */
	struct ip src, dst;    /* dst: as the sandbox dialled it */
	uint16_t src_port, dst_port;
	struct destination destination; /* what that stands for: synthetic address -> name,
	                                   CONNECT's authority */
	bool holds_name;                /* the synthetic address is held */
	bool explicit_proxy;            /* the connection was made to the proxy port */
	bool connected;                 /* ... and CONNECT was accepted */
	bool tls;                       /* terminated here */
	char sni[POLICY_HOST_MAX + 1];
	size_t sni_n;
	struct buf input_buf; /* plain bytes not used up: first bytes, pipelined requests */
	struct http1 http1;
	struct client_http2 *http2; /* NULL before CLIENT_HTTP2 */
	struct exchange *exchange;
	bool exchange_over;     /* it has ended; told in the next turn */
	bool exchange_complete; /* ... with a whole response */
	bool request_whole;     /* ... after a whole request */
	bool reset;             /* close with a TCP reset */
	struct loop_task deferred_free;
	bool keep_alive;
	bool half_closed;
	bool answered; /* at least one request was answered */
	bool let_out;  /* something it asked for was allowed */
	bool slow;     /* it has not taken its last response within LINGER_MS */
	uint64_t lingered;
	uint64_t sent_seen; /* socket.sent when last looked at */
	struct dial *dial;
	struct tunnel *tunnel;
	struct policy_decision decision; /* of a tunnel */
	struct destination tunnelled;    /* where it goes */
	enum tunnel_content content;
	bool passthrough;
	bool cut; /* the tunnel is to end: reauthorize.c */
	uint16_t tls_version;
	int64_t start_ms;
};

int client_open(struct proxy *proxy, int fd, const struct sockaddr *from);
void client_close(struct client *client);
/* Something that the connection asked for was allowed. */
void client_let_out(struct client *client);
/* Held work may go on. */
void client_wake(struct client *client);
/* Looks for input now. */
void client_process_now(struct client *client);
void client_on_deadline(struct client *client, enum proxy_wait wait);
extern const struct exchange_client client_http1;

/* A stream made no progress for too long. */
void client_http2_stream_on_deadline(struct loop_deadline *deadline);
/* Frees those kept for reuse. */
void client_http2_streams_forget(struct proxy *proxy);
/* Draining: no further streams. True: none is open, the connection may be closed. */
bool client_http2_drain(struct client *client);
/* Whether any request has come over the connection. */
bool client_http2_has_asked(const struct client *client);

/* --- its parts --- */

/* The next bytes to be looked at: those in the input buffer first. SOCKET_OK with them, borrowed
 * until client_used(). */
enum socket_status client_input(struct client *c, struct slice *input);
/* Used of those bytes are done with; the rest stays in the input buffer. False: no memory. */
bool client_used(struct client *c, struct slice input, size_t used);
/* True where the sandbox has taken bytes since this was asked last: it is slow, not dead. */
bool client_takes_bytes(struct client *c);
/* No more will be sent: what is queued is, then the end. The next state. */
enum client_state client_end(struct client *c);
/* Leaves a state from outside of a handler (a tunnel took over, a dial failed). */
void client_move(struct client *c, enum client_state state);

/* Handlers of peek.c: they return the next state. */
enum client_state client_peek(struct client *c);
enum client_state client_peek_timeout(struct client *c);
enum client_state client_shake_hands(struct client *c);
enum client_state client_tls_timeout(struct client *c);
enum client_state client_dial_timeout(struct client *c);
/* c->exchange holds a CONNECT request. */
enum client_state client_connect(struct client *c);
/* How long a new client is waited for to say something. */
enum proxy_wait client_first_wait(struct client *c);
/* Whether the policy lets the tunnel out, and by which decision. */
bool client_tunnel_passes(
        const struct client *c, const struct policy *policy, struct policy_decision *decision);

/* Handlers of client/http1.c. */
enum client_state client_http1_input(struct client *c);
enum client_state client_http1_timeout(struct client *c);
enum client_state client_exchange_input(struct client *c);
enum client_state client_exchange_timeout(struct client *c);
enum client_state client_exchange_over(struct client *c);

/* Handlers of client/http2.c. */
enum client_state client_http2_input(struct client *c);
enum client_state client_http2_timeout(struct client *c);
void client_http2_drained(struct client *c);
/* Ends every stream; the memory stays until client_http2_free(). */
void client_http2_close(struct client *c);
void client_http2_free(struct client *c);

#endif
