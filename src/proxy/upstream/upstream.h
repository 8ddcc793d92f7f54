/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream: what one exchange has of an upstream: all of an HTTP/1 connection while it is served,
 * or one stream of an HTTP/2 connection. The exchange speaks to it through struct
 * upstream_stream_ops and knows neither protocol nor connection.
 *
 * upstream_conn: one connection to an upstream, from its dial to its end. TLS tells which protocol
 * it speaks (ALPN); until the first connection for a key has told, further exchanges for that key
 * wait, so that a hundred streams to one HTTP/2 upstream make one connection and not a hundred.
 * Without TLS the protocol is the client's own (upstream/prior_knowledge.c).
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
	/* 0 or -errno: the head cannot be sent, nothing of it was. */
	int (*send_head)(struct upstream_stream *u, const struct outgoing *head);
	/* n > 0. The caller obeys congested(). */
	void (*send_body)(struct upstream_stream *u, const uint8_t *p, size_t n);
	/* trailers: complete lines, "name: value" CRLF each, or empty. */
	void (*send_end)(struct upstream_stream *u, struct slice trailers);
	/* No more of the body can be taken; exchange_upstream_drained() follows. */
	bool (*congested)(const struct upstream_stream *u);
	/* The request makes progress: the upstream's silence is counted anew. */
	void (*touch)(struct upstream_stream *u);
	/* The client takes bytes again. */
	void (*resume)(struct upstream_stream *u);
	/* The response's, once it has ended: writable lines in the upstream's own memory. */
	struct slice (*trailers)(struct upstream_stream *u);
	/* The exchange is over. reusable: both messages were whole. */
	void (*put)(struct upstream_stream *u, bool reusable);
	void (*on_deadline)(struct upstream_stream *u, int wait);
};

struct upstream_stream {
	const struct upstream_stream_ops *ops;
	struct upstream_conn *conn;
	struct exchange *exchange;
	bool ready;           /* the request's head may be sent at once */
	bool reused;          /* the connection has served an exchange before */
	bool response_begun;  /* a byte of the response has come */
	bool untouched;       /* the upstream said that it has done nothing with the request */
	bool upgraded;        /* after 101: bytes pass as they are */
	uint64_t sent_seen;   /* bytes the socket had taken when last looked at */
	uint64_t sent_before; /* ... and before this exchange */
	struct loop_deadline deadline;
	struct http_response response;
};

/* A connection, or a share of one, for the exchange: ready at return, or exchange_upstream_ready()
 * or exchange_upstream_failed() follows. fresh: no idle HTTP/1 connection, which may have been
 * closed meanwhile. What may not be sent again (retry.c) takes no chances with idle ones. NULL: the
 * bound on connections is reached, or no memory. */
struct upstream_stream *upstream_stream_get(struct exchange *exchange, bool fresh);
/* After a 101: bytes pass as they are. */
void upstream_stream_upgrade(struct upstream_stream *u);
/* It serves no exchange any more. */
void upstream_stream_let_go(struct upstream_stream *u);
void upstream_stream_on_deadline(struct upstream_stream *u, int wait);

/* --- upstream/conn.c --- */

enum upstream_conn_state {
	UPSTREAM_CONN_WAITING, /* another one for the same key will tell the protocol */
	UPSTREAM_CONN_DIALING,
	UPSTREAM_CONN_TLS,
	UPSTREAM_CONN_PRIOR, /* HTTP/2 without TLS: the upstream's settings are awaited */
	UPSTREAM_CONN_BUSY,  /* serves an exchange, or several streams */
	UPSTREAM_CONN_IDLE,
	UPSTREAM_CONN_CLOSED,
	UPSTREAM_CONN_STATE_COUNT
};

/* How a connection speaks once it is established. */
struct upstream_conn_protocol {
	/* Serves conn->own.exchange. */
	void (*begin)(struct upstream_conn *c);
	void (*on_event)(struct upstream_conn *c);   /* BUSY or IDLE, something may be read */
	void (*on_drained)(struct upstream_conn *c); /* the socket takes bytes again */
	void (*go_on)(struct upstream_conn *c);      /* a later turn */
	void (*close)(
	        struct upstream_conn *c); /* lets go of what is its own; no exchange is left */
};
extern const struct upstream_conn_protocol upstream_conn_http1, upstream_conn_http2;

struct upstream_conn {
	struct proxy *proxy;
	struct list all, pooled;
	struct pool_entry *entry;
	const struct upstream_conn_protocol *protocol;
	enum upstream_conn_state state;
	bool tls, http1_only, prior;
	bool settled; /* its dial has told, or failed */
	bool counted; /* among proxy->upstream_count: from its dial on */
	int64_t idle_since_ms;
	bool cut; /* closed with a reset: what the kernel still holds of a request stays here */
	struct destination destination;
	struct ip address; /* dialled */
	struct dial *dial;
	struct socket socket;
	struct http1 http1;
	struct upstream_stream own;   /* of whoever it was dialled for; all of HTTP/1 */
	struct upstream_http2 *http2; /* streams, where it speaks HTTP/2 */
	struct loop_task go_on;
	struct loop_task deferred_free;
};

/* The one place where a connection changes its state. */
void upstream_conn_enter(struct upstream_conn *c, enum upstream_conn_state state);
/* For the exchange, which waits in it. NULL: no memory. */
struct upstream_conn *upstream_conn_new(struct exchange *exchange, struct pool_entry *entry);
/* -errno: the bound on connections is reached, no memory. */
int upstream_conn_dial(struct upstream_conn *c);
/* Frees it at the end of the loop's turn, so that a callback may close what it was called from. */
void upstream_conn_close(struct upstream_conn *c);
/* The connection cannot serve the exchange it was made for, or serves. */
void upstream_conn_failed(struct upstream_conn *c, enum event_cause cause, const char *detail);
void upstream_conn_wait(struct upstream_stream *u, int wait);
/* Where its own exchange is BUSY or it is dialled. */
void upstream_conn_on_deadline(struct upstream_conn *c, int wait);

extern const struct upstream_stream_ops upstream_http1, upstream_http2;

/* Its protocol is told: whoever waits for that goes on. */
void upstream_conn_told(struct upstream_conn *c);

/* --- upstream/prior_knowledge.c --- */

/* The request goes on as it came: over HTTP/2 without TLS. */
bool prior_is_wanted(const struct exchange *ex);
/* The upstream does not answer in HTTP/2: the exchange of a connection that waits for that, in
 * whatever state, goes on over HTTP/1.1, or fails where that cannot be. told: the upstream said
 * something else. */
void prior_failed(struct upstream_conn *c, bool told);
/* So it would be with this one. */
bool prior_is_in_vain(const struct upstream_conn *c);

/* --- upstream/http2.c --- */

/* HTTP/2 without TLS: something has come before the upstream's settings. */
void upstream_http2_on_greeting(struct upstream_conn *c);
/* True where one more stream may be opened. */
bool upstream_http2_has_room(const struct upstream_conn *c);
/* True where it takes extended CONNECT (RFC 8441 section 3). */
bool upstream_http2_connects(const struct upstream_conn *c);
/* True where exchanges had streams, and all of them are over. */
bool upstream_http2_is_orphaned(const struct upstream_conn *c);
/* A stream for the exchange. NULL: no memory. */
struct upstream_stream *upstream_http2_stream_open(
        struct upstream_conn *c, struct exchange *exchange);

/* Memory kept for further streams goes, when the proxy ends. */
void upstream_http2_free_kept(struct proxy *proxy);

/* --- pool.c --- */

#define UPSTREAM_KEY_TAIL 11
#define UPSTREAM_KEY_MAX (POLICY_HOST_MAX + 32)

/* What an upstream connection may be shared among: same host, port, TLS and credential, and the
 * same addresses that may be dialled. */
struct upstream_key {
	char bytes[UPSTREAM_KEY_MAX];
	size_t n;
};
enum upstream_how {
	UPSTREAM_ANY,
	UPSTREAM_HTTP1, /* HTTP/2 is not offered (a WebSocket upgrade needs HTTP/1.1) */
	UPSTREAM_PRIOR  /* HTTP/2 without TLS */
};
/* turn: of the policy that decided, since another one has other credentials under the same numbers.
 */
void upstream_key_make(struct upstream_key *key, const struct destination *d, bool tls,
        enum upstream_how how, const struct policy_decision *decision, uint32_t turn);

/* The entry for a key, made where needed; counted. NULL: no memory. */
struct pool_entry *pool_entry_get(struct proxy *proxy, const struct upstream_key *key);
void pool_entry_release(struct proxy *proxy, struct pool_entry *entry);
struct slice pool_entry_key(const struct pool_entry *entry);

/* The newest idle HTTP/1 connection, taken out, which has been idle for less than that; NULL: none.
 */
struct upstream_conn *pool_take(struct pool_entry *entry, int64_t idle_ms);
/* An HTTP/2 connection with room for a stream; NULL: none. It stays. */
struct upstream_conn *pool_shared(struct pool_entry *entry);
void pool_add_idle(struct upstream_conn *c);
/* HTTP/2: open for streams from now on / no longer. */
void pool_share(struct upstream_conn *c);
void pool_unshare(struct upstream_conn *c);
/* HTTP/2 without a stream may be evicted. */
void pool_mark_idle(struct upstream_conn *c);
void pool_mark_busy(struct upstream_conn *c);
/* Takes it out of wherever it is. */
void pool_remove(struct upstream_conn *c);
/* True where a further exchange had better wait for the connection that is being made. */
bool pool_should_wait(const struct pool_entry *entry);
void pool_wait(struct upstream_conn *c);
/* A dial has begun; it has told its protocol (NULL: it failed). Whoever waits goes on. */
void pool_dial_begun(struct pool_entry *entry);
void pool_dial_ended(struct proxy *proxy, struct pool_entry *entry, struct upstream_conn *told);
/* Closes the least recently used idle connection; false: there is none. */
bool pool_evict(struct proxy *proxy);

#endif
