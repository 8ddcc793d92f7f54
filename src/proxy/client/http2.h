/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of an HTTP/2 connection from the sandbox share: http2.c (the connection),
 * http2_callbacks.c (nghttp2's callbacks), http2_stream.c (one stream is one exchange),
 * http2_response.c (its response), http2_limits.c (what a client may cost).
 *
 * Bounds per connection: HTTP2_EXCHANGES_MAX exchanges; for each, at most
 * CLIENT_HTTP2_STREAM_WINDOW bytes of its request that the upstream has not taken, and about
 * SOCKET_HIGH + SOCKET_CHUNK bytes of its response that the client has not taken.
 */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_HTTP2_H
#define VETHGUARD_SRC_PROXY_CLIENT_HTTP2_H

#include "proxy/exchange/exchange.h"
#include "proxy/http/http2.h"
#include "proxy/http/http2_memory.h"
#include "proxy/http/http2_rules.h"
#include "proxy/http/websocket.h"

#define CLIENT_HTTP2_STREAMS_MAX 100u
/* Includes exchanges whose stream is over for the client, which may then open others, while their
 * upstream has not finished. nghttp2 allows at most CLIENT_HTTP2_STREAMS_MAX open streams. */
#define HTTP2_EXCHANGES_MAX (2 * CLIENT_HTTP2_STREAMS_MAX)
/* Bytes of a request's body under way. Not wider on purpose: libcurl 7.88 with GnuTLS (git in
 * Debian 12) sends frames twice if the socket is full before the window is (docs/clients.md). */
#define CLIENT_HTTP2_STREAM_WINDOW (64u << 10)
/* For all streams together. It is reopened at once, so that it never keeps one stream from
 * another. */
#define HTTP2_CONNECTION_WINDOW (1u << 20)
#define CLIENT_HTTP2_STREAMS_KEPT 64 /* per proxy, for reuse */
#define HTTP2_FRAME_HEAD 9           /* RFC 9113 section 4.1 */
/* Content of a DATA frame that, with its head, is one TLS record. */
#define HTTP2_FRAME_DATA (SOCKET_RECORD - HTTP2_FRAME_HEAD)

/* What a client may make the proxy do for nothing: token buckets ("purses") that time and useful
 * frames fill. */
struct client_http2_limits {
	int64_t at_ms; /* when time filled the purses last */
	int32_t frames, resets, bytes;
	size_t block_bytes; /* of the header block that is being received, as sent */
};
void client_http2_limits_init(struct client_http2_limits *guard, struct loop *loop);
/* Accounts for a frame that begins. Returns NULL, or a sentence that says what is too much. */
const char *client_http2_limits_frame(
        struct client_http2_limits *guard, struct loop *loop, const nghttp2_frame_hd *hd);
/* Accounts for a stream that was reset by the client or because of it. */
const char *client_http2_limits_reset(struct client_http2_limits *guard, struct loop *loop);
/* Accounts for n received bytes of any kind. */
const char *client_http2_limits_bytes(
        struct client_http2_limits *guard, struct loop *loop, size_t n);
/* Content has passed in either direction, `received` bytes of it received: allows a few frames that
 * control it. */
void client_http2_limits_progress(struct client_http2_limits *guard, size_t received);

struct client_http2 {
	struct client *client;
	nghttp2_session *session;
	struct list streams;
	size_t stream_count;
	struct client_http2_stream *heading; /* the stream whose header block is being received */
	struct loop_task flush;
	size_t paused;  /* streams whose upstream waits until the client takes bytes */
	bool receiving; /* inside nghttp2's reading: nothing may be sent */
	bool sending;   /* inside nghttp2's writing */
	bool settled;   /* the client has acknowledged our settings */
	bool leaving;   /* GOAWAY was sent */
	bool drained;   /* ... or is queued */
	bool broken;    /* the session cannot go on */
	const char *violation;
	uint32_t violation_code; /* RFC 9113 section 7 */
	struct client_http2_limits guard;
	struct http2_rules rules;
	struct http2_memory memory;
};

/* Opens nghttp2's session with its callbacks (client/http2_callbacks.c). Returns 0 or an error of
 * nghttp2. */
int client_http2_open_session(struct client_http2 *server);
/* Writes pending frames to the socket: now, or soon if called from inside nghttp2. */
void client_http2_send(struct client_http2 *server);
/* The client broke the protocol: the connection ends after this turn. */
void client_http2_violated(struct client_http2 *server, uint32_t code, const char *detail);

/* One stream: with its exchange, or waiting for its first or last bytes. */
struct client_http2_stream {
	struct list list;
	struct client_http2 *server;
	struct client_http2_stream *next_free;
	struct exchange *exchange;
	struct loop_deadline deadline;
	struct loop_task task; /* continues the request, or ends the exchange of a closed stream */
	struct http2_block block;
	struct buf input_buf; /* of the request's body: bytes that the upstream has not taken yet */
	struct http_trailers trailers; /* of the request */
	struct buf out;        /* of the response's body: bytes that the client has not taken yet */
	struct buf last;       /* trailers of the response, as lines */
	const uint8_t *direct; /* response body bytes sent from the upstream's memory */
	size_t direct_n;
	uint64_t left;    /* of the response's body, if its length was announced */
	bool counted;     /* ... which it was */
	uint64_t owed;    /* of the request's body, if its length was announced */
	bool owes;        /* ... which it was */
	size_t discarded; /* of the request's body, after the response */
	int32_t id;
	uint32_t code;       /* for RST_STREAM if the exchange does not complete */
	const char *failure; /* what the upstream did wrong, if http2_response.c found it */
	char websocket_key[WEBSOCKET_KEY_MAX + 1]; /* sent upstream for an extended CONNECT */
	bool closed;                               /* nghttp2 no longer knows the stream */
	bool peer_reset;                           /* reset by the client */
	bool reset;                                /* reset by this side or by nghttp2 */
	bool asked;                                /* an exchange was opened for it */
	bool request_whole;                        /* END_STREAM was received */
	bool waiting;    /* the exchange has not begun: the recorder is behind */
	bool whole;      /* the whole rest of the response is in out, direct and last */
	bool end_sent;   /* END_STREAM was sent */
	bool given_back; /* no upstream has processed the request: REFUSED_STREAM */
	bool paused;     /* the upstream waits until the client takes bytes */
};

static inline struct loop *client_http2_stream_loop(const struct client_http2_stream *s)
{
	return s->server->client->proxy->config.loop;
}
struct client_http2_stream *client_http2_stream_new(struct client_http2 *server, int32_t id);
void client_http2_stream_free(struct client_http2_stream *stream);
/* The stream's head is complete. */
void client_http2_stream_begin(struct client_http2_stream *stream);
/* The stream's head, or what follows, is against the protocol: records this; nothing (more) reaches
 * the upstream. */
void client_http2_stream_refused(struct client_http2_stream *stream, const char *detail);
/* Starts the exchange after the recorder has caught up. */
void client_http2_stream_start(struct client_http2_stream *stream);
void client_http2_stream_data(struct client_http2_stream *stream, const uint8_t *p, size_t n);
void client_http2_stream_trailer(
        struct client_http2_stream *stream, struct slice name, struct slice value);
void client_http2_stream_ended(struct client_http2_stream *stream); /* END_STREAM was received */
void client_http2_stream_reset(struct client_http2_stream *stream, uint32_t code);
void client_http2_stream_closed(struct client_http2_stream *stream);
/* Ends the exchange without telling the client. If the stream was closed, it is freed. */
void client_http2_stream_abort(
        struct client_http2_stream *stream, enum event_cause cause, const char *detail);
/* Tells the upstream that there is room again, if it waits for that and there is. True: told. */
bool client_http2_stream_tell_drained(struct client_http2_stream *stream);
/* nghttp2 sends the stream's body: copies the frame head and n bytes into the socket. */
void client_http2_stream_put(
        struct client_http2_stream *stream, const uint8_t *frame_head, size_t n);
void client_http2_stream_set_paused(struct client_http2_stream *stream, bool paused);
void client_http2_stream_watch(struct client_http2_stream *stream);

extern const struct exchange_client client_http2;

#endif
