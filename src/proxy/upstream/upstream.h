/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream: an exchange's part of an upstream: a whole HTTP/1 connection while it is served, or one
 * stream of an HTTP/2 connection. The exchange uses struct upstream_stream_ops and knows neither
 * protocol nor connection.
 *
 * upstream_conn: one connection to an upstream, from its dial to its end. TLS tells its protocol
 * (ALPN). Until the first connection for a key has told, further exchanges for that key wait, so
 * that a hundred streams to one HTTP/2 upstream make one connection and not a hundred. Without TLS,
 * the protocol is the one the client uses (upstream/prior_knowledge.c).
 */
#ifndef VETHGUARD_SRC_PROXY_UPSTREAM_UPSTREAM_H
#define VETHGUARD_SRC_PROXY_UPSTREAM_UPSTREAM_H

#include "proxy/destination.h"
#include "proxy/http/http1.h"
#include "proxy/transport/socket.h"
#include "vethguard/base/list.h"
#include "vethguard/wire/event.h"

struct upstream_conn;
struct exchange;
struct upstream_http2;
struct pool_entry;
struct proxy;
struct upstream_stream;

struct upstream_stream_ops {
	/* Sends the head. Returns 0, or -errno if it cannot be sent; then nothing of it was. */
	int (*send_head)(struct upstream_stream *u, const struct outgoing *head);
	/* Sends n > 0 bytes of the body. The caller obeys congested(). */
	void (*send_body)(struct upstream_stream *u, const uint8_t *p, size_t n);
	/* Ends the request. trailers: complete lines, "name: value" CRLF each, or empty. */
	void (*send_end)(struct upstream_stream *u, struct slice trailers);
	/* True if no more of the body can be taken; exchange_upstream_drained() follows. */
	bool (*congested)(const struct upstream_stream *u);
	/* The request makes progress: restarts the deadline for the upstream's silence. */
	void (*touch)(struct upstream_stream *u);
	/* The client takes bytes again. */
	void (*resume)(struct upstream_stream *u);
	/* The response's trailers, once it has ended: writable lines in the upstream's own
	 * memory. */
	struct slice (*trailers)(struct upstream_stream *u);
	/* Gives the stream back: the exchange is over. reusable: both messages were complete. */
	void (*put)(struct upstream_stream *u, bool reusable);
	void (*on_deadline)(struct upstream_stream *u, int wait);
};

struct upstream_stream {
	const struct upstream_stream_ops *ops;
	struct upstream_conn *conn;
	struct exchange *exchange;
	bool ready;           /* the request's head may be sent at once */
	bool reused;          /* the connection has served an exchange before */
	bool response_begun;  /* a byte of the response was received */
	bool untouched;       /* the upstream has certainly not processed the request */
	bool upgraded;        /* after 101: bytes pass as they are */
	uint64_t sent_seen;   /* value of socket.sent when last looked at */
	uint64_t sent_before; /* ... and before this exchange */
	struct loop_deadline deadline;
	struct http_response response;
};

/* Gets a connection, or a stream of one, for the exchange. It is ready at return, or
 * exchange_upstream_ready() or exchange_upstream_failed() follows. fresh: do not take an idle
 * HTTP/1 connection, which may have been closed meanwhile. A request that may not be sent again
 * (retry.c) avoids risky idle ones in any case. NULL: the bound on connections is reached, or no
 * memory. */
struct upstream_stream *upstream_stream_get(struct exchange *exchange, bool fresh);
/* After a 101: bytes pass as they are. */
void upstream_stream_upgrade(struct upstream_stream *u);
/* It serves no exchange any more. */
void upstream_stream_let_go(struct upstream_stream *u);
void upstream_stream_on_deadline(struct upstream_stream *u, int wait);

/* --- upstream/conn.c --- */

/* What is spoken over a connection to an upstream. */
enum upstream_how {
	UPSTREAM_ANY,
	UPSTREAM_HTTP1, /* do not offer HTTP/2 (a WebSocket upgrade needs HTTP/1.1) */
	UPSTREAM_PRIOR  /* HTTP/2 without TLS, as the client does */
};

enum upstream_conn_state {
	UPSTREAM_CONN_WAITING, /* another connection for the same key will tell the protocol */
	UPSTREAM_CONN_DIALING,
	UPSTREAM_CONN_TLS,
	UPSTREAM_CONN_PRIOR, /* HTTP/2 without TLS: waiting for the upstream's settings */
	UPSTREAM_CONN_BUSY,  /* serving an exchange, or several streams */
	UPSTREAM_CONN_IDLE,
	UPSTREAM_CONN_CLOSED,
	UPSTREAM_CONN_STATE_COUNT
};

/* A protocol's handlers for an established connection. */
struct upstream_conn_protocol {
	/* Begins to serve conn->own.exchange. */
	void (*begin)(struct upstream_conn *c);
	void (*on_event)(struct upstream_conn *c);   /* BUSY or IDLE: something may be readable */
	void (*on_drained)(struct upstream_conn *c); /* the socket takes bytes again */
	void (*go_on)(struct upstream_conn *c);      /* continues in a later turn */
	void (*close)(
	        struct upstream_conn *c); /* frees the protocol's own state; no exchange is left */
};
extern const struct upstream_conn_protocol upstream_conn_http1, upstream_conn_http2;

struct upstream_conn {
	struct proxy *proxy;
	struct list all, pooled;
	struct pool_entry *entry;
	const struct upstream_conn_protocol *protocol;
	enum upstream_conn_state state;
	bool tls;
	struct tls_identity *identity; /* the client's certificate, or NULL */
	struct upstream_sign *sign;    /* its key is in a token; else NULL */
	enum upstream_how how;
	bool settled; /* its dial has told the protocol, or failed */
	bool counted; /* included in proxy->upstream_count: from its dial on */
	int64_t idle_since_ms;
	/* Close with a reset, so that what the kernel still holds of a request does not leave. */
	bool cut;
	struct destination destination;
	struct ip address; /* the address that was dialed */
	struct dial *dial;
	struct socket socket;
	struct http1 http1;
	struct upstream_stream own;   /* of the exchange it was dialed for; HTTP/1 has only this */
	struct upstream_http2 *http2; /* the session, if it speaks HTTP/2 */
	struct loop_task go_on;
	struct loop_task deferred_free;
};

/* Changes a connection's state; nothing else does. */
void upstream_conn_enter(struct upstream_conn *c, enum upstream_conn_state state);
/* Makes a connection for the exchange, which waits in it. NULL: no memory. */
struct upstream_conn *upstream_conn_new(struct exchange *exchange, struct pool_entry *entry);
/* Goes on with the TLS handshake. */
void upstream_conn_shake_hands(struct upstream_conn *c);
/* Dials. Returns 0, or -errno: the bound on connections is reached, or no memory. */
int upstream_conn_dial(struct upstream_conn *c);
/* Closes the connection and frees it at the end of the loop's turn, so that a callback may close
 * what it was called from. */
void upstream_conn_close(struct upstream_conn *c);
/* The connection has failed for the exchange that it was made for or serves. */
void upstream_conn_failed(struct upstream_conn *c, enum event_cause cause, const char *detail);
/* Says why a connection ended before a response: usual, unless the upstream refused the client's
 * certificate. In TLS 1.3 it does so after the handshake. */
const char *upstream_conn_end_text(
        const struct upstream_conn *c, enum socket_status status, const char *usual);
void upstream_conn_wait(struct upstream_stream *u, int wait);
/* Closes connections without streams, so that parts of their requests that the kernel still holds
 * are not sent. On a connection with other streams, what was written is sent with them. */
void upstream_conns_cut_orphaned(struct proxy *proxy);
/* Handles a deadline: closes a connection that is idle or has no own exchange, otherwise fails its
 * exchange or waits on. */
void upstream_conn_on_deadline(struct upstream_conn *c, int wait);

extern const struct upstream_stream_ops upstream_http1, upstream_http2;

/* The protocol is known: connections that wait for it go on. */
void upstream_conn_told(struct upstream_conn *c);

/* --- upstream/prior_knowledge.c --- */

/* True if the request is to be sent by HTTP/2 without TLS, as it came. */
bool prior_is_wanted(const struct exchange *ex);
/* The upstream does not answer in HTTP/2. An exchange whose connection waits for that, in whatever
 * state, goes on over HTTP/1.1, or fails if it cannot. told: the upstream sent something else. */
void prior_failed(struct upstream_conn *c, bool told);
/* True if prior_failed() is due for this connection before it is dialed. */
bool prior_is_in_vain(const struct upstream_conn *c);

/* --- upstream/http2.c --- */

/* HTTP/2 without TLS: something has come before the upstream's settings. */
void upstream_http2_on_greeting(struct upstream_conn *c);
/* True if one more stream may be opened. */
bool upstream_http2_has_room(const struct upstream_conn *c);
/* True if the upstream supports extended CONNECT (RFC 8441 section 3). */
bool upstream_http2_connects(const struct upstream_conn *c);
/* True if streams are left, but the exchanges of all of them are over. */
bool upstream_http2_is_orphaned(const struct upstream_conn *c);
/* Opens a stream for the exchange. NULL: no memory. */
struct upstream_stream *upstream_http2_stream_open(
        struct upstream_conn *c, struct exchange *exchange);

/* Frees the memory kept for further streams, when the proxy ends. */
void upstream_http2_free_kept(struct proxy *proxy);

/* --- upstream/pool.c --- */

#define UPSTREAM_KEY_TAIL 15
#define UPSTREAM_KEY_MAX (POLICY_HOST_MAX + 32)

/* Connections are shared only within one key: same host, port, TLS and credential, the same
 * client's certificate, and the same addresses that may be dialed. */
struct upstream_key {
	char bytes[UPSTREAM_KEY_MAX];
	size_t n;
};
/* turn: of the policy that decided, because another policy has other credentials under the same
 * numbers. serial: of the client's certificate; 0: none. */
void upstream_key_make(struct upstream_key *key, const struct destination *d, bool tls,
        enum upstream_how how, const struct policy_decision *decision, uint32_t turn,
        uint32_t serial);

/* The entry for a key, made if there is none, with a reference for the caller. NULL: no memory. */
struct pool_entry *pool_entry_get(struct proxy *proxy, const struct upstream_key *key);
void pool_entry_release(struct proxy *proxy, struct pool_entry *entry);
struct slice pool_entry_key(const struct pool_entry *entry);

/* Takes out the newest idle HTTP/1 connection, if it has been idle for less than idle_ms. NULL:
 * none. */
struct upstream_conn *pool_take(struct pool_entry *entry, int64_t idle_ms);
/* An HTTP/2 connection with room for a stream, which stays in the pool. NULL: none. */
struct upstream_conn *pool_shared(struct pool_entry *entry);
void pool_add_idle(struct upstream_conn *c);
/* Opens an HTTP/2 connection for streams of others; ends that. */
void pool_share(struct upstream_conn *c);
void pool_unshare(struct upstream_conn *c);
/* Marks a connection as idle, so that it may be evicted; ends that. */
void pool_mark_idle(struct upstream_conn *c);
void pool_mark_busy(struct upstream_conn *c);
/* Takes a connection out of the pool, wherever it is. */
void pool_remove(struct upstream_conn *c);
/* True if another exchange should wait for the connection that is being made. */
bool pool_should_wait(const struct pool_entry *entry);
void pool_wait(struct upstream_conn *c);
/* A dial has begun; a dial has ended, and told has the protocol (NULL: it failed). Waiting
 * connections go on. */
void pool_dial_begun(struct pool_entry *entry);
void pool_dial_ended(struct proxy *proxy, struct pool_entry *entry, struct upstream_conn *told);
/* Closes the least recently used idle connection. False: there is none. */
bool pool_evict(struct proxy *proxy);

#endif
