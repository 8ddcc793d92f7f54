/* SPDX-License-Identifier: Apache-2.0 */
/* What a session with an upstream (upstream/http2.c; upstream/http2_callbacks.c: nghttp2's
 * callbacks) and its streams (upstream/http2_stream.c) know of each other. */
#ifndef VETHGUARD_SRC_PROXY_UPSTREAM_HTTP2_H
#define VETHGUARD_SRC_PROXY_UPSTREAM_HTTP2_H

#include "proxy/exchange/exchange.h"
#include "proxy/http/http2.h"
#include "proxy/http/http2_rules.h"
#include "proxy/http/websocket.h"

#define UPSTREAM_HTTP2_STREAMS 100 /* at once on one connection */
/* What a client does not take is kept, as far as its stream's window goes; the connection's window
 * is given back at once, so that no stream waits for another's client. A stream begins with the
 * protocol's own window, without a setting (RFC 9113 section 6.9.2), whose acknowledgement would
 * lift those that are wide already. A few streams of a connection, whose clients have taken
 * UPSTREAM_HTTP2_PROVEN bytes as they came, get a wide window. It grows by UPSTREAM_HTTP2_GROWTH
 * each time that the client has taken a whole window as it came, where that took so long that the
 * window may be what held the upstream back: a window is at most one round trip's worth. What all
 * streams of a worker have beyond UPSTREAM_HTTP2_WIDE_WINDOW is bounded. So at most 9.1 MiB are
 * kept for one connection, and UPSTREAM_HTTP2_GROWN_MAX more for all together. */
#define UPSTREAM_HTTP2_WIDE_WINDOW (1u << 20)
#define UPSTREAM_HTTP2_WIDE_STREAMS 3
#define UPSTREAM_HTTP2_PROVEN (32u << 10)
#define UPSTREAM_HTTP2_GROWTH 4 /* times */
#define UPSTREAM_HTTP2_WIDEST_WINDOW (16u << 20)
#define UPSTREAM_HTTP2_GROWN_MAX (32u << 20)
#define UPSTREAM_HTTP2_QUICK_MS 5        /* a window in less is 200 MB/s and more: wide enough */
#define UPSTREAM_HTTP2_WINDOW (32 << 20) /* of the connection */
/* Frames in one second, with no head and no content between them in either direction (RFC 9113
 * section 10.5). */
#define UPSTREAM_HTTP2_EMPTY_FRAMES 2000
/* A frame of this many bytes fills one TLS record together with its header. */
#define HTTP2_FRAME_HEADER 9
#define HTTP2_DATA_BYTES (SOCKET_RECORD - HTTP2_FRAME_HEADER)

/* The session of one connection. */
struct upstream_http2 {
	struct upstream_conn *conn;
	struct http2_rules rules;
	nghttp2_session *session; /* NULL: unusable */
	struct list streams;
	unsigned open;          /* streams */
	bool inside;            /* in a callback of the session: nothing may be sent from there */
	bool heading;           /* a head is on its way to the socket, which takes all of it */
	bool ending;            /* no further streams */
	bool gone;              /* the connection has ended; responses that are whole are left */
	bool secret;            /* heads hold a credential */
	bool served;            /* has had a stream */
	bool greeted;           /* the upstream's settings have come */
	bool changed;           /* a stream was freed since this was cleared */
	unsigned wide;          /* streams with a wide window */
	int64_t empty_since_ms; /* frames without a head or content are counted since then */
	unsigned empty;
	enum event_cause cause; /* why it is closed */
	const char *detail;
};

/* One request and its response. */
struct upstream_http2_stream {
	struct upstream_http2 *session;
	struct upstream_http2_stream *next_free;
	struct list list;
	int32_t id;        /* 0: the head is not sent */
	bool head_begun;   /* ... was given to nghttp2 */
	bool head_written; /* ... and nothing of ours is borrowed any more */
	bool final_head;   /* a response head other than 1xx has come */
	bool response_ended, request_ended;
	bool cut;         /* nothing more of the request is sent: it is reset */
	bool reset;       /* the upstream has reset it; else nghttp2 did, for what had come */
	bool closed;      /* nghttp2 knows it no more */
	uint32_t code;    /* ... for that reason (RFC 9113 section 7) */
	bool congested;   /* the exchange waits until `out` is shorter, or the socket takes bytes */
	uint32_t window;  /* where it was widened; 0: the protocol's own */
	size_t taken;     /* bytes that the client took as they came, since it was widened */
	int64_t taken_ms; /* since then */
	bool counted;     /* the response's content has a length */
	uint64_t left;    /* ... so much of it is to come */
	struct http2_block block;      /* a header block as it comes in */
	struct http_trailers trailers; /* of the response */
	struct buf input_buf;          /* of the response, for which the client has no room */
	struct buf out;                /* of the request, for which the upstream has no window */
	struct buf last;           /* the request's trailers, as lines: they go behind its body */
	struct slice direct;       /* body of the request that is sent from where it lies */
	struct upstream_stream up; /* last: most of it is not cleared for a new stream */
};

static inline struct upstream_http2_stream *stream_of(const struct upstream_stream *u)
{
	return container_of(u, struct upstream_http2_stream, up);
}

/* --- upstream/http2.c --- */

/* Sends what is to be sent, where that is possible now; else later. */
void upstream_http2_flush(struct upstream_http2 *s);
/* Looks after the session in a later turn. */
void upstream_http2_later(struct upstream_http2 *s);

/* --- upstream/http2_callbacks.c --- */

/* Begins the session, with what this side asks for. False: no memory. */
bool upstream_http2_open_session(struct upstream_http2 *s);

/* --- upstream/http2_stream.c --- */

/* After each turn: what was kept goes on, what nghttp2 has closed ends. */
void upstream_http2_stream_go_on(struct upstream_http2_stream *st);
/* It cannot be served; the exchange is told and has let go. */
void upstream_http2_stream_fail(
        struct upstream_http2_stream *st, enum event_cause cause, const char *detail);
void upstream_http2_stream_free(struct upstream_http2_stream *st);
/* nghttp2 has closed the stream: an exchange that has not got its whole response is told. */
void upstream_http2_stream_tell_closed(struct upstream_http2_stream *st);

/* --- upstream/http2_request.c: struct upstream_stream_ops, and for nghttp2 --- */

int upstream_http2_stream_send_head(struct upstream_stream *u, const struct outgoing *head);
void upstream_http2_stream_send_body(struct upstream_stream *u, const uint8_t *p, size_t n);
void upstream_http2_stream_send_end(struct upstream_stream *u, struct slice trailers);
bool upstream_http2_stream_congested(const struct upstream_stream *u);
/* The next n bytes of it go onto the socket. */
void upstream_http2_stream_write(struct upstream_http2_stream *st, struct socket *socket, size_t n);

/* --- upstream/http2_response.c --- */

/* A header block is whole. False: the stream is to be reset, the exchange was told. */
bool upstream_http2_stream_head(struct upstream_http2_stream *st, bool ends);
void upstream_http2_stream_trailer(
        struct upstream_http2_stream *st, struct slice name, struct slice value);
/* Bytes of the body; what the client has no room for is kept. */
void upstream_http2_stream_data(struct upstream_http2_stream *st, const uint8_t *p, size_t n);
/* The response is whole. False: it is not; the stream is to be reset, the exchange was told. */
bool upstream_http2_stream_end(struct upstream_http2_stream *st);
/* What was kept goes to the client as far as it has room. */
void upstream_http2_stream_deliver(struct upstream_http2_stream *st);

#endif
