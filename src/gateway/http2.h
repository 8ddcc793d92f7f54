/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection in HTTP/2 (RFC 9113), by ALPN. Each stream is a visitor with its own proof and its
 * own connection to a worker. The stream's head is turned into one in HTTP/1.1, and the worker's
 * response in HTTP/1.1 into the stream's response. So the same code judges requests of both
 * versions, to the proxy and to base URLs.
 *
 * http2.c holds the connection, http2_session.c nghttp2's callbacks, http2_stream.c and
 * http2_response.c the streams, http2_limits.c the bounds on what a client may cost.
 */
#ifndef VETHGUARD_SRC_GATEWAY_HTTP2_H
#define VETHGUARD_SRC_GATEWAY_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "gateway/visitor.h"
#include "vethguard/wire/http1_response.h"
#include "vethguard/wire/http2_head.h"

#define GATEWAY_HTTP2_STREAMS_MAX 100u
/* Bytes of a stream that its worker has not taken: before its session is proved, and after. */
#define GATEWAY_HTTP2_WINDOW_FIRST (16u << 10)
#define GATEWAY_HTTP2_WINDOW (256u << 10)
/* For all streams together. It is reopened at once, so that no stream keeps another one waiting. */
#define GATEWAY_HTTP2_WINDOW_ALL (1u << 20)
#define GATEWAY_HTTP2_FIRST (128u << 10)  /* bytes of a connection of which no stream is proved */
#define GATEWAY_HTTP2_FRAME_DATA (16375u) /* with its head, it is one TLS record */

/* What a client may still make the gateway do for nothing (http2_limits.c). */
struct http2_limits {
	int64_t at_ms; /* when time filled the purses last */
	int32_t frames, resets;
	size_t block_bytes; /* of the header block that is being received, as sent */
};
void http2_limits_init(struct http2_limits *l, int64_t now_ms);
/* Accounts for a frame that begins. Returns false if it is too much. */
bool http2_limits_frame(struct http2_limits *l, const nghttp2_frame_hd *hd, int64_t now_ms);
/* Accounts for a stream that was reset. Returns false if it is too much. */
bool http2_limits_reset(struct http2_limits *l, int64_t now_ms);
/* Content has passed in either direction: allows a few frames that control it. */
void http2_limits_progress(struct http2_limits *l);

struct http2 {
	struct visitor *visitor;
	struct list of_gateway;
	nghttp2_session *session;
	struct list streams;
	size_t stream_count;
	struct loop_task send;
	struct http2_limits limits;
	size_t received;   /* bytes; bounded before the first proof */
	unsigned extended; /* how often the deadline was extended before the first proof */
	bool proved;       /* one of its streams has proved a session */
	bool broken;       /* the session cannot go on */
};

/* Opens nghttp2's session with its callbacks (http2_session.c). Returns 0 or an error of nghttp2.
 */
int http2_open_session(struct http2 *h);
/* Sends pending frames at the end of this turn. */
void http2_send_soon(struct http2 *h);
/* A stream has proved a session: the connection counts as proved. */
void http2_proved(struct http2 *h);
/* Call when a stream has left: the connection may now be idle. */
void http2_left(struct http2 *h);

struct http2_stream {
	struct list of_connection;
	struct http2 *http2; /* NULL: nghttp2 does not know the stream any more */
	struct visitor *visitor;
	int32_t id;
	struct http2_head head; /* while its header block is received */
	struct buf rx;          /* the head, then content that the visitor has not read */
	size_t owed; /* bytes of received content that flow control returns once rx is read */
	enum http1_request_kind request;
	bool chunked;     /* content is put into chunks */
	bool rx_ended;    /* END_STREAM was received */
	struct buf early; /* bytes of the response's head, until it is whole */
	size_t looked;
	struct http1_content content;
	bool answered; /* the response's head was submitted */
	bool ended;    /* the visitor writes no more */
	bool end_sent;
};

/* Makes a stream, whose header block is about to come. Returns NULL without memory. */
struct http2_stream *http2_stream_new(struct http2 *h, int32_t id);
/* Call when the head is complete: begins the visitor. ended: no content follows. */
void http2_stream_begin(struct http2_stream *s, bool ended);
void http2_stream_data(struct http2_stream *s, const uint8_t *p, size_t n);
void http2_stream_ended(struct http2_stream *s);
/* Call when nghttp2 forgets the stream. */
void http2_stream_gone(struct http2_stream *s);
/* Call when the last byte of the response was sent. */
void http2_stream_sent(struct http2_stream *s);
/* Gives nghttp2 at most n bytes of the response. Returns how many, or NGHTTP2_ERR_DEFERRED. */
ssize_t http2_stream_give(struct http2_stream *s, uint8_t *p, size_t n, uint32_t *flags);

#endif
