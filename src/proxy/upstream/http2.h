/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a session with an HTTP/2 upstream share: http2.c (the connection),
 * http2_callbacks.c (nghttp2's callbacks), http2_stream.c, http2_request.c and http2_response.c
 * (its streams). */
#ifndef VETHGUARD_SRC_PROXY_UPSTREAM_HTTP2_H
#define VETHGUARD_SRC_PROXY_UPSTREAM_HTTP2_H

#include "proxy/exchange/exchange.h"
#include "proxy/http/http2.h"
#include "proxy/http/http2_memory.h"
#include "proxy/http/http2_rules.h"
#include "proxy/http/websocket.h"

#define UPSTREAM_HTTP2_STREAMS 100 /* at once per connection */
/* Flow control of responses. What a client does not take is kept, as far as its stream's window
 * goes. The connection's window is reopened at once, so that no stream waits for another's
 * client.
 *
 * - A stream begins with the protocol's default window, without a setting (RFC 9113 section
 *   6.9.2): the setting's acknowledgment would raise windows that are wide already.
 * - Up to UPSTREAM_HTTP2_WIDE_STREAMS streams of a connection, whose clients have taken
 *   UPSTREAM_HTTP2_PROVEN bytes as they came, get a wide window.
 * - A wide window grows by UPSTREAM_HTTP2_GROWTH each time the client has taken a whole window
 *   as it came, if that took so long that the window may have held the upstream back: a window
 *   is at most one round trip's worth.
 * - What all streams of a worker have beyond UPSTREAM_HTTP2_WIDE_WINDOW is bounded.
 *
 * So at most 9.1 MiB are kept for one connection, plus UPSTREAM_HTTP2_GROWN_MAX for all
 * together. */
#define UPSTREAM_HTTP2_WIDE_WINDOW (1u << 20)
#define UPSTREAM_HTTP2_WIDE_STREAMS 3
#define UPSTREAM_HTTP2_PROVEN (32u << 10)
#define UPSTREAM_HTTP2_GROWTH 4 /* factor */
#define UPSTREAM_HTTP2_WIDEST_WINDOW (16u << 20)
#define UPSTREAM_HTTP2_GROWN_MAX (32u << 20)
#define UPSTREAM_HTTP2_QUICK_MS 5        /* a window in less is 200 MB/s or more: wide enough */
#define UPSTREAM_HTTP2_WINDOW (32 << 20) /* of the connection */
/* Bound on frames in one second without a head or content between them in either direction (RFC
 * 9113 section 10.5). */
#define UPSTREAM_HTTP2_EMPTY_FRAMES 2000
/* Content of a DATA frame that, with its header, is one TLS record. */
#define HTTP2_FRAME_HEADER 9
#define HTTP2_DATA_BYTES (SOCKET_RECORD - HTTP2_FRAME_HEADER)

/* The session of one connection. */
struct upstream_http2 {
	struct upstream_conn *conn;
	struct http2_rules rules;
	nghttp2_session *session; /* NULL: unusable */
	struct http2_memory memory;
	struct list streams;
	unsigned open; /* streams that are not freed yet */
	bool inside;   /* in a callback of the session: nothing may be sent */
	bool heading;  /* a head is being written to the socket, which takes all of it */
	bool ending;   /* no further streams are opened */
	bool gone;     /* the connection has ended; only complete responses are left */
	bool secret;   /* heads hold a credential */
	bool served;   /* has had a stream before */
	bool greeted;  /* the upstream's settings have come */
	bool changed;  /* a stream was freed since this was cleared */
	unsigned wide; /* streams with a wide window */
	/* Start of the second in which `empty` counts frames without head or content. */
	int64_t empty_since_ms;
	unsigned empty;
	enum event_cause cause; /* why it is closed */
	const char *detail;
};

/* One request and its response. */
struct upstream_http2_stream {
	struct upstream_http2 *session;
	struct upstream_http2_stream *next_free;
	struct list list;
	int32_t id;        /* 0: the head was not sent */
	bool head_begun;   /* the head was given to nghttp2 */
	bool head_written; /* ... and is written, so that nothing of ours is borrowed any more */
	bool final_head;   /* a response head other than 1xx has come */
	bool response_ended, request_ended;
	bool cut; /* nothing more of the request is sent: the stream is reset */
	/* The upstream has reset the stream; otherwise nghttp2 did, because of what it received. */
	bool reset;
	bool closed;      /* nghttp2 no longer knows the stream */
	uint32_t code;    /* ... for this reason (RFC 9113 section 7) */
	bool congested;   /* the exchange waits until `out` is shorter or the socket takes bytes */
	uint32_t window;  /* if it was widened; 0: the protocol's default */
	size_t taken;     /* bytes of the current window that the client took as they came */
	int64_t taken_ms; /* ... when the last window was full */
	bool counted;     /* the response's content has a length */
	uint64_t left;    /* ... bytes of it to come */
	struct http2_block block;      /* a header block that is being received */
	struct http_trailers trailers; /* of the response */
	struct buf input_buf;          /* of the response: bytes for which the client has no room */
	struct buf out;                /* of the request: beyond the upstream's window */
	struct buf last;               /* the request's trailers, as lines, sent after its body */
	struct slice direct;       /* body of the request that is sent from the caller's memory */
	struct upstream_stream up; /* last: most of it is not cleared for a new stream */
};

static inline struct upstream_http2_stream *stream_of(const struct upstream_stream *u)
{
	return container_of(u, struct upstream_http2_stream, up);
}

/* --- upstream/http2.c --- */

/* Sends what is pending, now if possible, else later. */
void upstream_http2_flush(struct upstream_http2 *s);
/* Has the session looked after in a later turn. */
void upstream_http2_later(struct upstream_http2 *s);

/* --- upstream/http2_callbacks.c --- */

/* Opens nghttp2's session and submits this side's settings. False: no memory. */
bool upstream_http2_open_session(struct upstream_http2 *s);

/* --- upstream/http2_stream.c --- */

/* After each turn: passes on what was kept, and ends a stream that nghttp2 has closed. */
void upstream_http2_stream_go_on(struct upstream_http2_stream *st);
/* Fails the stream: tells the exchange, which lets go of it. */
void upstream_http2_stream_fail(
        struct upstream_http2_stream *st, enum event_cause cause, const char *detail);
void upstream_http2_stream_free(struct upstream_http2_stream *st);
/* nghttp2 has closed the stream: tells an exchange that has not got its whole response. */
void upstream_http2_stream_tell_closed(struct upstream_http2_stream *st);

/* --- upstream/http2_request.c: struct upstream_stream_ops, and for nghttp2 --- */

int upstream_http2_stream_send_head(struct upstream_stream *u, const struct outgoing *head);
void upstream_http2_stream_send_body(struct upstream_stream *u, const uint8_t *p, size_t n);
void upstream_http2_stream_send_end(struct upstream_stream *u, struct slice trailers);
bool upstream_http2_stream_congested(const struct upstream_stream *u);
/* Writes the next n bytes of the body to the socket. */
void upstream_http2_stream_write(struct upstream_http2_stream *st, struct socket *socket, size_t n);

/* --- upstream/http2_response.c --- */

/* Takes a complete header block. False: the exchange was told of an error, and the stream has to be
 * reset. */
bool upstream_http2_stream_head(struct upstream_http2_stream *st, bool ends);
void upstream_http2_stream_trailer(
        struct upstream_http2_stream *st, struct slice name, struct slice value);
/* Takes bytes of the body; those for which the client has no room are kept. */
void upstream_http2_stream_data(struct upstream_http2_stream *st, const uint8_t *p, size_t n);
/* The upstream has ended the response. False: it is incomplete; the exchange was told, and the
 * stream has to be reset. */
bool upstream_http2_stream_end(struct upstream_http2_stream *st);
/* Passes what was kept to the client, as far as it has room. */
void upstream_http2_stream_deliver(struct upstream_http2_stream *st);

#endif
