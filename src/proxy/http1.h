/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1: HTTP/1.x messages (RFC 9112) from bytes to structs, both directions, strictly: whatever
 * two parsers could read differently is refused. llhttp reads heads; before it sees one, its lines
 * are checked for what llhttp lets pass (obs-fold, bare CR or LF), and after it, what the fields
 * mean for framing is checked once more. Chunked bodies have a reader of their own, which is
 * stricter than llhttp's.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP1_H
#define VETHGUARD_SRC_PROXY_HTTP1_H

#include <llhttp.h>

#include "proxy/http.h"

#define HTTP1_CHUNK_DIGITS_MAX 16
#define HTTP1_EXTENSIONS_MAX 16384 /* bytes of chunk extensions beyond twice the data's */

enum http1_status {
	HTTP1_MORE,     /* all bytes are used; the message goes on */
	HTTP1_DONE,     /* the head, or the body with its trailers, is complete */
	HTTP1_BAD,      /* not acceptable; http1_error() says why */
	HTTP1_TOO_LARGE /* the head exceeds its bound */
};

/* --- the chunked coding (RFC 9112 section 7.1), http1_chunked.c --- */

enum chunked_state {
	CHUNKED_SIZE,      /* first digit of a size */
	CHUNKED_DIGITS,    /* further ones */
	CHUNKED_NAME,      /* first byte of an extension's name */
	CHUNKED_NAME_REST, /* ... further ones */
	CHUNKED_VALUE,     /* first byte of its value */
	CHUNKED_TOKEN,
	CHUNKED_QUOTED,
	CHUNKED_ESCAPED, /* behind a backslash in a quoted value */
	CHUNKED_CLOSED,  /* behind a quoted value */
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LINE, /* first byte of a trailer line */
	CHUNKED_FIELD,
	CHUNKED_BLANK, /* before a trailer's value */
	CHUNKED_CONTENT,
	CHUNKED_CONTENT_LF,
	CHUNKED_END_LF,
	CHUNKED_DONE
};

/* A reader of one chunked body: a plain struct, so that a copy can look ahead. */
struct chunked {
	enum chunked_state state;
	unsigned digits;
	uint32_t extension_bytes, trailer_bytes, trailers;
	uint64_t left; /* of the current chunk's data */
};

struct chunked_sink {
	void (*on_body)(void *context, const uint8_t *p, size_t n);
	void *context;
	struct buf *trailers; /* "name: value CRLF" lines, bounded by HTTP_TRAILER_BYTES_MAX */
};

/* Reads up to n bytes; *used tells how many. sink: where content and trailers go, NULL: nowhere.
 * NULL, or what is wrong. state CHUNKED_DONE: the body has ended, bytes behind *used are not its.
 */
const char *chunked_read(struct chunked *c, const uint8_t *p, size_t n, size_t *used,
        const struct chunked_sink *sink);

/* One direction of one connection. */
struct http1 {
	llhttp_t parser;
	struct chunked chunked;
	bool is_chunked; /* the body is read by chunked_read(), not by llhttp */
	struct buf head; /* bytes of the head: what the parsed struct points into */
	size_t scanned;  /* of head, checked line by line */
	unsigned lines;
	uint32_t limit; /* bytes of a head */
	bool response;
	bool no_body; /* a response that has none whatever its fields say (HEAD) */
	bool head_done, message_done;
	uint8_t led;                /* bytes of the one empty line that may come before a request */
	struct http_fields *fields; /* where llhttp's spans go */
	struct slice url, reason, method;
	const char *error;
	struct buf trailers; /* "name: value CRLF" lines that may be passed on */
	/* The sink of http1_body(). */
	void (*on_body)(void *context, const uint8_t *p, size_t n);
	void *context;
};

/* head_limit: bytes, at most HTTP_HEAD_MAX. */
void http1_init(struct http1 *h, bool response, uint32_t head_limit);
void http1_fini(struct http1 *h);
/* Forgets the last message and gives its memory back. */
void http1_reset(struct http1 *h);

/* Takes bytes of the head; *used tells how many (those after its end are left). HTTP1_DONE: out is
 * filled and points into the parser's buffer until http1_reset(). */
enum http1_status http1_request_head(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, struct http_request *out);
/* no_body: the request was HEAD. */
enum http1_status http1_response_head(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        bool no_body, struct http_response *out);
/* Takes bytes of the body; on_body gets its content without framing. HTTP1_DONE at its end (also
 * when there is none: call it once with n = 0 after the head). */
enum http1_status http1_body(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        void (*on_body)(void *context, const uint8_t *p, size_t n), void *context);
/* Looks at bytes of the body that are here already, without taking them. False: no part of this
 * request should go anywhere; http1_error() says why. */
bool http1_body_is_sound(struct http1 *h, const uint8_t *p, size_t n);
/* The connection ended: HTTP1_DONE where that is how this body ends, else HTTP1_BAD. */
enum http1_status http1_end(struct http1 *h);
/* Complete lines, each "name: value" CRLF; empty without trailers. After HTTP1_DONE of the body. */
struct slice http1_trailers(const struct http1 *h);
const char *http1_error(const struct http1 *h);
/* True from the first byte of a head to the end of its message. */
bool http1_busy(const struct http1 *h);

/* --- between http1.c (bytes to fields) and http1_head.c (what they mean) --- */

/* Gathers bytes until the head is whole: HTTP1_DONE, *head_n bytes of h->head. */
enum http1_status http1_gather(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, size_t *head_n);
/* Runs llhttp over the gathered head. HTTP1_DONE or HTTP1_BAD. */
enum http1_status http1_parse(struct http1 *h, struct http_fields *fields, size_t head_n);

/* --- writing --- */

/* Request line, Host, fields, framing, the injected field. -ENOBUFS: no room. */
int http1_write_request(struct buf *out, const struct outgoing *head);
/* Status line, fields, framing as r->body says, "connection: close" or "keep-alive" where the
 * client needs to hear it. upgrade: the protocol of a 101, or empty. */
int http1_write_response(struct buf *out, const struct http_response *r, uint8_t client_version,
        bool keep_alive, struct slice upgrade);
/* Size line of a chunk of n bytes; the content and CRLF follow. out: at least 20 bytes. Its length.
 */
size_t http1_chunk_head(char *out, size_t n);

#endif
