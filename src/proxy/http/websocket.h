/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket: the frames of one direction (RFC 6455 section 5), and the handshake before them
 * (sections 4 and 9). Frames are read strictly, and none of their content is kept. Errors are found
 * while the head is read, before a byte of the frame has to be passed on.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_WEBSOCKET_H
#define VETHGUARD_SRC_PROXY_HTTP_WEBSOCKET_H

#include "proxy/http/http.h"
#include "vethguard/base/utf8.h"

#define WEBSOCKET_HEAD_MAX 14
#define WEBSOCKET_CONTROL_MAX 125 /* bytes of a control frame's content */

enum websocket_opcode {
	WEBSOCKET_CONTINUATION = 0,
	WEBSOCKET_TEXT = 1,
	WEBSOCKET_BINARY = 2,
	WEBSOCKET_CLOSE = 8,
	WEBSOCKET_PING = 9,
	WEBSOCKET_PONG = 10
};

/* Codes of close frames (RFC 6455 section 7.4.1). */
#define WEBSOCKET_PROTOCOL_ERROR 1002
#define WEBSOCKET_BAD_DATA 1007
#define WEBSOCKET_POLICY 1008
#define WEBSOCKET_TOO_BIG 1009

enum websocket_step {
	WEBSOCKET_PARTIAL, /* the beginning of a head, which waits in the struct */
	WEBSOCKET_HEAD,    /* a head is complete: opcode, fin and left describe it */
	WEBSOCKET_CONTENT, /* content of the frame */
	WEBSOCKET_OVER,    /* bytes after a close frame, which are ignored */
	WEBSOCKET_BAD      /* a protocol error, for good; error says which */
};

/* To begin, zero the struct and set the first two members. */
struct websocket {
	bool masked;  /* from a client, which has to mask; others must not */
	bool deflate; /* permessage-deflate was agreed on: the first reserved bit has a meaning */
	bool in_message; /* a further fragment has to follow */
	bool compressed; /* of the message */
	bool text;       /* of the message: its content is UTF-8 */
	bool closed;     /* a complete close frame has come */
	bool fin;        /* of the frame */
	uint8_t opcode;  /* of the frame */
	uint8_t head[WEBSOCKET_HEAD_MAX];
	uint8_t head_n;   /* bytes of a head that is not complete yet */
	uint8_t head_was; /* bytes of the last complete head, still in head[] */
	uint8_t key[4];   /* of the frame's content; zeros: not masked */
	uint64_t left;    /* content still to come */
	uint64_t at;      /* content that has come */
	const char *error;
};

/* Takes the first run of p[n] (n > 0) that is of one kind; returns its length. */
size_t websocket_next(struct websocket *w, const uint8_t *p, size_t n, enum websocket_step *step);
/* Unmasks content that websocket_next() has just reported (RFC 6455 section 5.3). */
void websocket_unmask(const struct websocket *w, const uint8_t *p, size_t n, uint8_t *out);
static inline bool websocket_is_control(const struct websocket *w)
{
	return w->opcode & 8;
}
/* True if the frame is the last one of its message. */
static inline bool websocket_ends_message(const struct websocket *w)
{
	return w->fin && !websocket_is_control(w);
}

/* --- websocket_content.c --- */

/* Checks content of a data frame that websocket_next() has just reported; n is 0 if the frame has
 * none. False: it belongs to a text message and is not UTF-8 (RFC 6455 section 8.1). Compressed
 * messages are not checked here. */
bool websocket_is_text(const struct websocket *w, struct utf8 *text, const uint8_t *p, size_t n);
extern const char websocket_no_text[]; /* the error text for that */
/* Checks the whole content of a close frame (sections 5.5.1, 7.4). Returns NULL, or what is wrong
 * with *code set to the code to close with. */
const char *websocket_close_is_wrong(const uint8_t *p, size_t n, uint16_t *code);

/* --- websocket.c --- */

/* Writes the head of an unmasked frame of n bytes; returns the head's length. */
size_t websocket_write_head(uint8_t out[WEBSOCKET_HEAD_MAX], bool fin, uint8_t opcode, uint64_t n);
/* Writes a complete close frame; returns its length. masked: as a client sends it. */
#define WEBSOCKET_CLOSE_BYTES 8
size_t websocket_write_close(uint8_t out[WEBSOCKET_CLOSE_BYTES], uint16_t code, bool masked);
/* Begins a frame of n bytes that is a whole text message, masked with a new key. Its head is the
 * first head_was bytes of w->head; its content goes through websocket_mask(), piece by piece. */
void websocket_begin_text(struct websocket *w, uint64_t n);
void websocket_mask(struct websocket *w, const uint8_t *p, size_t n, uint8_t *out);

/* --- websocket_handshake.c --- */

#define WEBSOCKET_KEY_MAX 24 /* letters of a Sec-WebSocket-Key */
#define WEBSOCKET_ACCEPT_MAX 28

/* The agreement on compression, as far as it concerns the client's messages (RFC 7692). */
struct websocket_deflate {
	bool agreed;
	bool forgets;        /* client_no_context_takeover */
	uint8_t window_bits; /* client_max_window_bits, 8 to 15 */
};

/* Makes a new key, with a NUL: used when the proxy does the client's side of the handshake (RFC
 * 8441). */
void websocket_key(char out[WEBSOCKET_KEY_MAX + 1]);
/* Makes the answer to a key (RFC 6455 section 4.2.2). Returns 0 or -errno. */
int websocket_accept(struct slice key, char out[WEBSOCKET_ACCEPT_MAX + 1]);
/* True if this Sec-WebSocket-Accept is the answer to that key. */
bool websocket_accepts(const char *key, struct slice accept);
/* Drops the client's extension offers unless all of them are understood here, i.e. are
 * permessage-deflate. */
void websocket_limit_offer(struct http_fields *request);
/* Checks that the response (a 101) answers the request as it was sent. Returns NULL with *out set,
 * or one sentence that says why not. */
const char *websocket_check_answer(const struct http_fields *request,
        const struct http_fields *response, struct websocket_deflate *out);

#endif
