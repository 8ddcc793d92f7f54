/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of an HTTP/2 connection from the sandbox know of each other: client/http2.c (the
 * connection), client/http2_callbacks.c (nghttp2's callbacks), client/http2_stream.c (one stream is
 * one exchange), client/http2_response.c (its response), client/http2_limits.c (what a client may
 * cost).
 *
 * Bounds of one connection: HTTP2_EXCHANGES_MAX exchanges; for each at most
 * CLIENT_HTTP2_STREAM_WINDOW bytes of its request that the upstream has not taken, and about
 * SOCKET_HIGH + SOCKET_CHUNK bytes of its response that the client has not taken.
 */
#ifndef VETHGUARD_SRC_PROXY_CLIENT_HTTP2_H
#define VETHGUARD_SRC_PROXY_CLIENT_HTTP2_H

#include "proxy/exchange/exchange.h"
#include "proxy/http/http2.h"
#include "proxy/http/http2_rules.h"
#include "proxy/http/websocket.h"

#define CLIENT_HTTP2_STREAMS_MAX 100u
/* With those whose stream is over for the client, which may open others, while their upstream has
 * not said its last word yet. Of open ones nghttp2 allows no more than CLIENT_HTTP2_STREAMS_MAX. */
#define HTTP2_EXCHANGES_MAX (2 * CLIENT_HTTP2_STREAMS_MAX)
/* Bytes of a request's body under way. No wider on purpose: libcurl 7.88 with GnuTLS (git in Debian
 * 12) sends frames twice where the socket is full before the window is (docs/clients.md). */
#define CLIENT_HTTP2_STREAM_WINDOW (64u << 10)
/* All streams' together; given back at once, so that it never keeps one stream from another. */
#define HTTP2_CONNECTION_WINDOW (1u << 20)
#define CLIENT_HTTP2_STREAMS_KEPT 64 /* per proxy, for reuse */
#define HTTP2_FRAME_HEAD 9           /* RFC 9113 section 4.1 */
/* Content of a DATA frame that is one TLS record together with its head. */
#define HTTP2_FRAME_DATA (SOCKET_RECORD - HTTP2_FRAME_HEAD)

/* What a client may make the proxy do for nothing: purses that fill with time and with what is
 * useful. */
struct client_http2_limits {
	int64_t at_ms; /* when they were filled last */
	int32_t frames, resets, bytes;
	size_t block_bytes; /* of the header block that is being received, as sent */
};
void client_http2_limits_init(struct client_http2_limits *guard, struct loop *loop);
/* A frame begins. NULL, or a sentence that says what is too much. */
const char *client_http2_limits_frame(
        struct client_http2_limits *guard, struct loop *loop, const nghttp2_frame_hd *hd);
/* A stream was reset by the client, or because of it. */
const char *client_http2_limits_reset(struct client_http2_limits *guard, struct loop *loop);
/* So many bytes were received, of whatever. */
const char *client_http2_limits_bytes(
        struct client_http2_limits *guard, struct loop *loop, size_t n);
/* Content has passed in either direction, received bytes of it received: a few frames that control
 * it are in order. */
void client_http2_limits_progress(struct client_http2_limits *guard, size_t received);

struct client_http2 {
	struct client *client;
	nghttp2_session *session;
	struct list streams;
	size_t stream_count;
	struct client_http2_stream *heading; /* whose header block is being received */
	struct loop_task flush;
	size_t paused;  /* streams whose upstream waits for the client to take bytes */
	bool receiving; /* inside nghttp2's reading: nothing is sent */
	bool sending;   /* inside nghttp2's writing */
	bool settled;   /* the client has acknowledged the settings */
	bool leaving;   /* GOAWAY was sent */
	bool drained;   /* ... or is due */
	bool broken;    /* the session cannot go on */
	const char *violation;
	uint32_t violation_code; /* RFC 9113 section 7 */
	struct client_http2_limits guard;
	struct http2_rules rules;
};

/* nghttp2's session with its callbacks (client/http2_callbacks.c). 0, or an error of nghttp2. */
int client_http2_open_session(struct client_http2 *server);
/* Frames that are due go into the socket, now or (from inside of nghttp2) soon. */
void client_http2_send(struct client_http2 *server);
/* The client broke the protocol: the connection ends after this turn. */
void client_http2_violated(struct client_http2 *server, uint32_t code, const char *detail);

/* One stream: at once with its exchange, or waiting for its first or last bytes. */
struct client_http2_stream {
	struct list list;
	struct client_http2 *server;
	struct client_http2_stream *next_free;
	struct exchange *exchange;
	struct loop_deadline deadline;
	struct loop_task task; /* the request goes on; a closed stream's exchange ends */
	struct http2_block block;
	struct buf input_buf; /* of the request's body: what the upstream has not taken yet */
	struct http_trailers trailers; /* the request's */
	struct buf out;        /* of the response's body: what the client has not taken yet */
	struct buf last;       /* the response's trailers, as lines */
	const uint8_t *direct; /* of the response's body: being sent from where it lies */
	size_t direct_n;
	uint64_t left;    /* of the response's body, where its length was announced */
	bool counted;     /* ... which is so */
	uint64_t owed;    /* of the request's body, where its length was announced */
	bool owes;        /* ... which is so */
	size_t discarded; /* of the request's body, after the answer */
	int32_t id;
	uint32_t code;       /* of the RST_STREAM that an unfinished exchange causes */
	const char *failure; /* what the upstream did wrong, where this file found it */
	char websocket_key[WEBSOCKET_KEY_MAX + 1]; /* sent upstream for an extended CONNECT */
	bool closed;                               /* nghttp2 does not know it any more */
	bool peer_reset;                           /* by the client */
	bool reset;                                /* by this side, or by nghttp2 */
	bool asked;                                /* it has had its exchange */
	bool request_whole;                        /* END_STREAM has come */
	bool waiting;    /* the exchange is not begun: the recorder is behind */
	bool whole;      /* all of the response is in out, direct and last */
	bool end_sent;   /* END_STREAM has gone out */
	bool given_back; /* no upstream has done anything with it: REFUSED_STREAM */
	bool paused;     /* the upstream waits until the client takes bytes */
};

static inline struct loop *client_http2_stream_loop(const struct client_http2_stream *s)
{
	return s->server->client->proxy->config.loop;
}
struct client_http2_stream *client_http2_stream_new(struct client_http2 *server, int32_t id);
void client_http2_stream_free(struct client_http2_stream *stream);
/* Its head is whole. */
void client_http2_stream_begin(struct client_http2_stream *stream);
/* Its head, or what follows, is against the protocol: recorded; nothing reaches the upstream. */
void client_http2_stream_refused(struct client_http2_stream *stream, const char *detail);
/* The recorder has caught up. */
void client_http2_stream_start(struct client_http2_stream *stream);
void client_http2_stream_data(struct client_http2_stream *stream, const uint8_t *p, size_t n);
void client_http2_stream_trailer(
        struct client_http2_stream *stream, struct slice name, struct slice value);
void client_http2_stream_ended(struct client_http2_stream *stream); /* END_STREAM has come */
void client_http2_stream_reset(struct client_http2_stream *stream, uint32_t code);
void client_http2_stream_closed(struct client_http2_stream *stream);
/* Ends its exchange, without a word to the client. The stream is gone where it was closed. */
void client_http2_stream_abort(
        struct client_http2_stream *stream, enum event_cause cause, const char *detail);
/* Its upstream is told that there is room again, where it waits for that and where it is so. */
bool client_http2_stream_tell_drained(struct client_http2_stream *stream);
/* nghttp2 sends of its body: copies frame head and n bytes into the socket. */
void client_http2_stream_put(
        struct client_http2_stream *stream, const uint8_t *frame_head, size_t n);
void client_http2_stream_set_paused(struct client_http2_stream *stream, bool paused);
void client_http2_stream_watch(struct client_http2_stream *stream);

extern const struct exchange_client client_http2;

#endif
