/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1: HTTP/1.x messages (RFC 9112) from bytes to structs, in both directions. What two readers
 * could take differently is refused; what the RFC requires to be read is read. Requests are read
 * more strictly than responses where the RFC makes that difference: white space before a colon,
 * folded lines, a length that is given twice. docs/http.md has all the rules.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_HTTP1_H
#define VETHGUARD_SRC_PROXY_HTTP_HTTP1_H

#include "proxy/http/http.h"

#define HTTP1_CHUNK_DIGITS_MAX 16
#define HTTP1_EXTENSIONS_MAX 16384 /* bytes of chunk extensions beyond twice the data's */

enum http1_status {
	HTTP1_MORE, /* all bytes are used; the message goes on */
	HTTP1_DONE, /* the head, or the body with its trailers, is complete */
	HTTP1_BAD,  /* malformed; http1_fault() says why */
	/* The head, its target or its number of fields exceeds a bound; http1_fault() says
	 * which. */
	HTTP1_TOO_LARGE
};

/* --- the chunked coding (RFC 9112 section 7.1), http1_chunked.c --- */

enum chunked_state {
	CHUNKED_SIZE,       /* first digit of a size */
	CHUNKED_DIGITS,     /* further ones */
	CHUNKED_SIZE_BLANK, /* blanks after a size: an extension has to follow */
	CHUNKED_NAME,       /* first byte of an extension's name, or blanks before it */
	CHUNKED_NAME_REST,  /* ... further ones */
	CHUNKED_NAME_BLANK, /* blanks after a name: "=" or ";" has to follow */
	CHUNKED_VALUE,      /* first byte of its value, or blanks before it */
	CHUNKED_TOKEN,
	CHUNKED_QUOTED,
	CHUNKED_ESCAPED,     /* after a backslash in a quoted value */
	CHUNKED_CLOSED,      /* after a quoted value */
	CHUNKED_VALUE_BLANK, /* blanks after a value: ";" has to follow */
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LINE, /* first byte of a trailer line */
	CHUNKED_FIELD,
	CHUNKED_FIELD_BLANK, /* after a trailer's name, in a response */
	CHUNKED_BLANK,       /* before a trailer's value */
	CHUNKED_CONTENT,
	CHUNKED_CONTENT_LF,
	CHUNKED_END_LF,
	CHUNKED_DONE
};

/* A reader of one chunked body: a plain struct, so that a copy can read ahead. */
struct chunked {
	enum chunked_state state;
	bool response; /* accept and drop blanks before a trailer's colon (RFC 9112 section 5.1) */
	unsigned digits;
	uint32_t extension_bytes, trailer_bytes, trailers;
	uint64_t left; /* of the current chunk's data */
};

struct chunked_sink {
	void (*on_body)(void *context, const uint8_t *p, size_t n);
	void *context;
	struct buf *trailers; /* "name: value CRLF" lines, bounded by HTTP_TRAILER_BYTES_MAX */
};

/* Reads up to n bytes; *used tells how many. sink: where content and trailers go; NULL: nowhere.
 * Returns NULL, or what is wrong. In state CHUNKED_DONE the body has ended, and bytes after *used
 * do not belong to it. */
const char *chunked_read(struct chunked *c, const uint8_t *p, size_t n, size_t *used,
        const struct chunked_sink *sink);

/* One direction of one connection. */
struct http1 {
	struct chunked chunked;
	struct buf head;     /* bytes of the head; the parsed struct points into them */
	size_t scanned;      /* bytes of head that were checked line by line */
	size_t last;         /* ... where the last line began */
	unsigned lines;      /* ... number of lines */
	bool folded;         /* the last line continued the field of the one before */
	uint32_t limit;      /* bound on a head, in bytes */
	enum http_body body; /* framing of the body, once the head is done */
	uint64_t left;       /* bytes of the body to come, if its length was given */
	bool response;
	bool head_done, message_done;
	uint8_t led; /* bytes so far of the one empty line that may precede a request */
	struct http_fault fault;
	struct buf trailers; /* "name: value CRLF" lines that may be passed on */
};

/* head_limit: in bytes, at most HTTP_HEAD_MAX. */
void http1_init(struct http1 *h, bool response, uint32_t head_limit);
void http1_fini(struct http1 *h);
/* Forgets the last message and frees its memory. */
void http1_reset(struct http1 *h);

/* Takes bytes of the head; *used tells how many (those after its end are left). HTTP1_DONE: *out is
 * set and points into the parser's buffer until http1_reset(). */
enum http1_status http1_request_head(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, struct http_request *out);
/* no_body: the request was HEAD. */
enum http1_status http1_response_head(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        bool no_body, struct http_response *out);
/* Takes bytes of the body; on_body gets its content without framing. HTTP1_DONE at its end, also if
 * there is no body: call it once with n = 0 after the head. */
enum http1_status http1_body(struct http1 *h, const uint8_t *p, size_t n, size_t *used,
        void (*on_body)(void *context, const uint8_t *p, size_t n), void *context);
/* Checks bytes of the body that have come already, without taking them. False: no part of this
 * request may be passed on; http1_fault() says why. */
bool http1_body_is_sound(struct http1 *h, const uint8_t *p, size_t n);
/* The connection has ended. HTTP1_DONE if this is how the body ends, else HTTP1_BAD. */
enum http1_status http1_end(struct http1 *h);
/* After HTTP1_DONE of the body: complete lines, each "name: value" CRLF; empty without trailers. */
struct slice http1_trailers(const struct http1 *h);
/* After HTTP1_BAD or HTTP1_TOO_LARGE: what is wrong. */
struct http_fault http1_fault(const struct http1 *h);
/* True from the first byte of a head to the end of its message. */
bool http1_busy(const struct http1 *h);

/* --- between http1.c (bytes to lines), http1_start.c (the first line) and http1_head.c (lines to
 * fields, and what they mean) --- */

struct http1_start {
	struct slice method, target, reason;
	uint16_t status;
	uint8_t version;
};

/* Notes the fault and returns false. */
bool http1_refuse(struct http1 *h, uint16_t status, const char *why);
/* Gathers bytes until the head is complete. HTTP1_DONE: it is the first *head_n bytes of
 * h->head. */
enum http1_status http1_gather(
        struct http1 *h, const uint8_t *p, size_t n, size_t *used, size_t *head_n);
/* Checks a request line or a status line, without its CRLF. False: refused. */
bool http1_start_line(struct http1 *h, struct slice line);
/* Reads it. False: refused. */
bool http1_read_start(struct http1 *h, struct slice line, struct http1_start *out);

/* --- writing --- */

/* Writes request line, Host, fields, framing and the injected field. Returns 0, or -ENOBUFS if
 * there is no room. */
int http1_write_request(struct buf *out, const struct outgoing *head);
/* Writes status line, fields, framing by r->body, and "connection: close" or "keep-alive" if the
 * client needs it. upgrade: the protocol of a 101, or empty. Returns 0 or -ENOBUFS. */
int http1_write_response(struct buf *out, const struct http_response *r, uint8_t client_version,
        bool keep_alive, struct slice upgrade);
/* Writes the size line of a chunk of n bytes; content and CRLF have to follow. out: at least 20
 * bytes. Returns the line's length. */
size_t http1_chunk_head(char *out, size_t n);

#endif
