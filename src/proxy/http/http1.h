/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1: HTTP/1.x messages (RFC 9112) from bytes to structs, both directions. What two readers
 * could take differently is refused; what the RFC wants to be read is read. What the sandbox says
 * is read more strictly than what an upstream says, where the RFC makes that difference: white
 * space before a colon, folded lines, a length that is given twice. docs/http.md tells all of it.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP1_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP1_H

#include "proxy/http/http.h"

#define HTTP1_CHUNK_DIGITS_MAX 16
#define HTTP1_EXTENSIONS_MAX 16384 /* bytes of chunk extensions beyond twice the data's */

enum http1_status {
	HTTP1_MORE,     /* all bytes are used; the message goes on */
	HTTP1_DONE,     /* the head, or the body with its trailers, is complete */
	HTTP1_BAD,      /* not acceptable; http1_fault() says why */
	HTTP1_TOO_LARGE /* the head, its target or the number of its fields exceeds a bound; the
	                   same */
};

/* --- the chunked coding (RFC 9112 section 7.1), http1_chunked.c --- */

enum chunked_state {
	CHUNKED_SIZE,       /* first digit of a size */
	CHUNKED_DIGITS,     /* further ones */
	CHUNKED_SIZE_BLANK, /* blanks behind a size: an extension has to follow */
	CHUNKED_NAME,       /* first byte of an extension's name, or blanks before it */
	CHUNKED_NAME_REST,  /* ... further ones */
	CHUNKED_NAME_BLANK, /* blanks behind a name: "=" or ";" has to follow */
	CHUNKED_VALUE,      /* first byte of its value, or blanks before it */
	CHUNKED_TOKEN,
	CHUNKED_QUOTED,
	CHUNKED_ESCAPED,     /* behind a backslash in a quoted value */
	CHUNKED_CLOSED,      /* behind a quoted value */
	CHUNKED_VALUE_BLANK, /* blanks behind a value: ";" has to follow */
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LINE, /* first byte of a trailer line */
	CHUNKED_FIELD,
	CHUNKED_FIELD_BLANK, /* behind a trailer's name, in a response */
	CHUNKED_BLANK,       /* before a trailer's value */
	CHUNKED_CONTENT,
	CHUNKED_CONTENT_LF,
	CHUNKED_END_LF,
	CHUNKED_DONE
};

/* A reader of one chunked body: a plain struct, so that a copy can look ahead. */
struct chunked {
	enum chunked_state state;
	bool response; /* blanks before a trailer's colon are taken and dropped (RFC 9112
	                  section 5.1) */
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
	struct chunked chunked;
	struct buf head;     /* bytes of the head: what the parsed struct points into */
	size_t scanned;      /* of head, checked line by line */
	size_t last;         /* ... where the last of them began */
	unsigned lines;      /* ... so many */
	bool folded;         /* the last one went on with the field of the one before */
	uint32_t limit;      /* bytes of a head */
	enum http_body body; /* how the body is framed, once the head is done */
	uint64_t left;       /* bytes of it, where its length was given */
	bool response;
	bool head_done, message_done;
	uint8_t led; /* bytes of the one empty line that may come before a request */
	struct http_fault fault;
	struct buf trailers; /* "name: value CRLF" lines that may be passed on */
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
 * request should go anywhere; http1_fault() says why. */
bool http1_body_is_sound(struct http1 *h, const uint8_t *p, size_t n);
/* The connection ended: HTTP1_DONE where that is how this body ends, else HTTP1_BAD. */
enum http1_status http1_end(struct http1 *h);
/* Complete lines, each "name: value" CRLF; empty without trailers. After HTTP1_DONE of the body. */
struct slice http1_trailers(const struct http1 *h);
/* After HTTP1_BAD or HTTP1_TOO_LARGE. */
struct http_fault http1_fault(const struct http1 *h);
/* True from the first byte of a head to the end of its message. */
bool http1_busy(const struct http1 *h);

/* --- between http1.c (bytes to lines) and http1_head.c (lines to fields, and what they mean) ---
 */

/* False, with the fault noted. */
bool http1_refuse(struct http1 *h, uint16_t status, const char *why);
/* Gathers bytes until the head is whole: HTTP1_DONE, *head_n bytes of h->head. */
enum http1_status http1_gather(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, size_t *head_n);
/* A request line or a status line, without its CRLF, by its grammar. False: refused. */
bool http1_start_line(struct http1 *h, struct slice line);

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
