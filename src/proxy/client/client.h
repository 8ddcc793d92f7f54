/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: one connection from the sandbox. First what other rooms use; then what its parts share:
 * client.c (the states), peek.c (what a connection is), peek_tls.c (TLS), connect.c (CONNECT),
 * tunnel_dial.c and tunnel.c (tunnels), socks.c and associate.c (SOCKS5), http1.c (requests),
 * http1_response.c (their responses), base.c (those to requests by a base URL), http2.c (a
 * connection of many streams), reauthorize.c (another policy), handover.c (connections that the
 * gateway hands over).
 */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_CLIENT_H
#define VETHGUARD_SRC_PROXY_CLIENT_CLIENT_H

#include <unistd.h>

#include "proxy/http/http1.h"
#include "proxy/private.h"
#include "vethguard/wire/socks5.h"

struct client_http2;
struct dial_result;
struct postgres;

enum client_state {
	CLIENT_PEEK,          /* finding out what it is */
	CLIENT_SOCKS,         /* waiting for a greeting of SOCKS5, or reading it */
	CLIENT_SOCKS_REQUEST, /* ... for what it asks for */
	CLIENT_ASSOCIATING,   /* a UDP association: waiting for the supervisor's socket */
	CLIENT_ASSOCIATED,    /* the association is served; the connection carries nothing */
	CLIENT_TLS,           /* handshake with the sandbox */
	CLIENT_HTTP,          /* waiting for a request head, or reading it */
	CLIENT_EXCHANGE,      /* serving a request */
	CLIENT_HTTP2,         /* serving many requests, one per stream */
	CLIENT_DIAL,          /* dialing a tunnel's other end */
	CLIENT_POSTGRES,      /* to a database at which vethguard logs in (proxy/postgres/) */
	CLIENT_LINGER,        /* the last response was sent; further input is read and discarded */
	CLIENT_CLOSED,
	CLIENT_STATE_COUNT
};

/* What is known about the bytes of a tunnel. */
enum tunnel_content {
	TUNNEL_UNSEEN, /* unread: the policy has only a tcp:// rule for the destination */
	TUNNEL_TLS,
	TUNNEL_OTHER,   /* neither TLS nor a request, or treated so after a timeout */
	TUNNEL_POSTGRES /* a database at which vethguard logs in: relayed only after the login */
};

/* How the exchange of an HTTP/1 connection has ended. */
enum client_exchange_end {
	CLIENT_EXCHANGE_OPEN,       /* it has not, or there is none */
	CLIENT_EXCHANGE_INCOMPLETE, /* without a complete response */
	CLIENT_EXCHANGE_ANSWERED,   /* with one, while the request was not complete */
	CLIENT_EXCHANGE_COMPLETE
};

/* A client's UDP association (associate.c). */
struct client_association {
	uint64_t id; /* of the question to the supervisor; 0: there is no association */
	bool answered;
	int fd;            /* owned: the supervisor's socket, not served yet; -1: none */
	struct ip address; /* with port: where the client is told to send datagrams */
	uint16_t port;
	uint16_t client_port; /* from which the client says it sends; 0: it does not say */
	struct udp_association *relayed; /* owned; NULL: not served yet */
};

/* One connection from the sandbox. */
struct client {
	struct proxy *proxy;
	struct list list;
	enum client_state state;
	struct socket socket;
	struct loop_deadline deadline;
	struct loop_task wake;          /* goes on with input, or after the end of an exchange */
	struct ip src, dst;             /* dst: as the sandbox dialed it */
	uint16_t src_port, dst_port;    /* src_port: without an address, a number for the trace */
	struct destination destination; /* the name behind dst, or CONNECT's authority */
	bool holds_name;                /* the name of the synthetic address is held */
	bool explicit_proxy;            /* it was made to the proxy port, or to a Unix socket */
	bool connected;                 /* ... and CONNECT, or SOCKS5, was accepted */
	enum message_form form;         /* a base URL's: tls is set by each request */
	bool handed;                    /* the gateway has handed it over (handover.c) */
	bool quiet; /* ... and wrote its SOCKS5 request: the client must not see the answer */
	struct ip reached; /* where the client may send datagrams; family 0: nowhere */
	struct client_association association;
	bool tls; /* TLS is terminated here */
	char sni[POLICY_HOST_MAX + 1];
	size_t sni_n;
	struct buf input_buf; /* plain bytes not used yet: first bytes, pipelined requests */
	struct http1 http1;
	struct client_http2 *http2; /* NULL before CLIENT_HTTP2 */
	struct exchange *exchange;
	enum client_exchange_end exchange_end; /* handled in the next turn */
	bool reset;                            /* close with a TCP reset */
	struct loop_task deferred_free;
	bool keep_alive;
	bool half_closed;
	bool answered; /* at least one request was answered */
	bool let_out;  /* something it asked for was allowed */
	bool slow;     /* the client has not taken its last response within LINGER_MS */
	uint64_t lingered;
	uint64_t sent_seen; /* value of socket.sent when last looked at */
	struct dial *dial;
	struct tunnel *tunnel;
	struct postgres *postgres;       /* owned */
	struct ip tunnel_address;        /* of the tunnel's other end */
	struct policy_decision decision; /* of a tunnel */
	struct destination tunnelled;    /* the tunnel's destination */
	enum tunnel_content content;
	struct credential_scan *scan; /* of what the sandbox sends over a tunnel; NULL: none */
	bool leak_told;               /* a placeholder in it was recorded */
	bool passthrough;
	struct limit_held held; /* by the tunnel */
	bool cut;               /* reauthorize.c: the tunnel is to end */
	uint16_t tls_version;
	int64_t start_ms;
};

/* Takes fd, a connection that came to this listener. */
int client_open(struct listener *listener, int fd, const struct sockaddr *from);
/* original.c: the address that the client connected to. rewritten: as the kernel's connection table
 * has it. Returns false if there is none. */
bool client_dialed_address(int fd, bool rewritten, struct ip *out, uint16_t *port);
void client_close(struct client *client);
/* handover.c. Goes on with a new connection where the gateway has stopped. Returns false if the
 * state of its TLS cannot be used, or without memory; the caller closes the connection. */
bool client_take_over(struct client *client, const struct message_handover *handover);
/* handover.c. Resets all connections that were handed over. */
void client_cut_handed(struct proxy *proxy);
/* Whether closing resets the connection (true) or ends it in order. */
void client_reset_at_end(struct client *client, bool reset);
/* TLS begins on the socket (version 0), or its handshake is over. */
void client_note_tls(struct client *client, uint16_t version);
/* Looks for a placeholder in bytes that are relayed, and records the first, with where (static).
 * Returns where if the connection has to end for it, else NULL. */
const char *client_find_leak(struct client *client, const uint8_t *p, size_t n, const char *where);
/* client/tunnel.c: moves bytes between the client's socket and the dialed one until both directions
 * have ended, then closes the client and records the connection. What the client has sent already
 * (its input buffer) goes first. Takes the dialed socket. Returns 0, or -errno with the dialed
 * socket closed and the client still owned by the caller. */
int client_tunnel(struct client *client, const struct dial_result *upstream);
/* Notes that something the connection asked for was allowed. */
void client_let_out(struct client *client);
/* Goes on with work that was held. */
void client_wake(struct client *client);
/* Looks for input now. */
void client_process_now(struct client *client);
void client_on_deadline(struct client *client, enum proxy_wait wait);
extern const struct exchange_client client_http1;
/* base.c: appends the head of the final response to a request by a base URL. Returns 0 or -errno.
 */
int client_base_response(
        struct buf *out, const struct exchange *ex, const struct http_response *response);

/* reauthorize.c (proxy/reauthorize.c has the order): authorizes again what is under way under the
 * policy next (NULL: allows nothing). Marks what is not allowed any more, and records it with this
 * cause. credential: looks only at exchanges with this credential; POLICY_NONE: at everything.
 * Returns how many were marked. */
size_t client_reauthorize(struct client *client, const struct policy *next, uint32_t credential,
        enum event_cause cause, const char *detail);
/* Ends what was marked. policy_is_new: as in exchange_take_step(). */
void client_end_marked(struct client *client, bool policy_is_new);
/* Ends the connection if it is between requests. */
void client_retire(struct client *client);

/* The stream made no progress for too long. */
void client_http2_stream_on_deadline(struct loop_deadline *deadline);
/* Frees the streams that are kept for reuse. */
void client_http2_streams_forget(struct proxy *proxy);
/* Draining: accepts no further streams. True: none is open, so the connection may be closed. */
bool client_http2_drain(struct client *client);
/* True if any request has come over the connection. */
bool client_http2_has_asked(const struct client *client);

/* --- its parts --- */

/* Gets the next bytes to look at, first those in the input buffer. SOCKET_OK: *input is set,
 * borrowed until client_used(). */
enum socket_status client_input(struct client *c, struct slice *input);
/* Marks `used` of those bytes as done; the rest stays in the input buffer. False: no memory. */
bool client_used(struct client *c, struct slice input, size_t used);
/* True if the sandbox has taken bytes since the last call: it is slow, not dead. */
bool client_takes_bytes(struct client *c);
/* linger.c: ends the output: what is queued is sent, then the end. Returns the next state. */
enum client_state client_end(struct client *c);
/* Handlers of linger.c. */
enum client_state client_linger_input(struct client *c);
enum client_state client_linger_timeout(struct client *c);
/* Changes the state from outside a handler (a tunnel took over, a dial failed). */
void client_move(struct client *c, enum client_state state);

/* Handlers of peek.c, peek_tls.c, tunnel_dial.c and connect.c; each returns the next state. */
enum client_state client_peek(struct client *c);
enum client_state client_peek_timeout(struct client *c);
enum client_state client_shake_hands(struct client *c);
enum client_state client_tls_timeout(struct client *c);
enum client_state client_dial_timeout(struct client *c);
/* Handles the CONNECT request in c->exchange. */
enum client_state client_connect(struct client *c);
/* True if the policy may allow something at this destination, for which a client asked an explicit
 * proxy; *decision is the last one that was asked for. */
bool client_connect_passes(
        const struct client *c, const struct destination *d, struct policy_decision *decision);
/* Appends what has come to the input buffer. False: nothing has; *next is the next state. */
bool client_take_in(struct client *c, enum client_state *next);
/* peek_policy.c: how long a new client may take to send something. */
enum proxy_wait client_first_wait(struct client *c);
/* True if the policy allows the tunnel; *decision is the decision. */
bool client_tunnel_passes(
        const struct client *c, const struct policy *policy, struct policy_decision *decision);

/* client/postgres.c: true if vethguard logs in at the destination of this decision's connection. */
bool client_is_postgres(const struct client *c, const struct policy_decision *decision);
enum client_state client_postgres(struct client *c, const struct policy_decision *decision);
enum client_state client_postgres_input(struct client *c);
enum client_state client_postgres_timeout(struct client *c);
/* Call this when the sandbox takes bytes again. */
void client_postgres_drained(struct client *c);

/* Handlers of socks.c. */
enum client_state client_socks(struct client *c);
enum client_state client_socks_request(struct client *c);
enum client_state client_socks_timeout(struct client *c);
/* Sends the refusal, then the end once the client has taken it. */
enum client_state client_socks_refuse(struct client *c, const struct policy_decision *decision,
        enum event_cause cause, const char *why, enum socks5_reply reply);

/* associate.c: handles the request for a UDP association. */
enum client_state client_associate(struct client *c, const struct socks5_request *r);
/* Handlers of associate.c. */
enum client_state client_associating(struct client *c);
enum client_state client_associated(struct client *c);
enum client_state client_associated_timeout(struct client *c);
/* Ends the association, if there is one. */
void client_leave_association(struct client *c);

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
/* Ends every stream. client_http2_free() frees the memory later. */
void client_http2_close(struct client *c);
void client_http2_free(struct client *c);

#endif
