/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1: HTTP/1.x messages (RFC 9112) from bytes to structs, both directions, strictly: whatever
 * two parsers could read differently is refused. llhttp does the reading; before it sees a head,
 * the head's lines are checked for what llhttp lets pass (obs-fold, bare CR or LF), and after it,
 * what the fields mean for framing is checked once more.
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP1_H
#define VETHGUARD_SRC_PROXY_HTTP1_H

#include <llhttp.h>

#include "proxy/http.h"

#define HTTP1_TRAILERS_MAX 8192 /* bytes of a trailer section */

enum http1_status {
	HTTP1_MORE,     /* all bytes are used; the message goes on */
	HTTP1_DONE,     /* the head, or the body with its trailers, is complete */
	HTTP1_BAD,      /* not acceptable; http1_error() says why */
	HTTP1_TOO_LARGE /* the head exceeds its bound */
};

/* One direction of one connection. */
struct http1 {
	llhttp_t parser;
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
/* The connection ended: HTTP1_DONE where that is how this body ends, else HTTP1_BAD. */
enum http1_status http1_end(struct http1 *h);
/* Complete lines, each "name: value" CRLF; empty without trailers. After HTTP1_DONE of the body. */
struct slice http1_trailers(const struct http1 *h);
const char *http1_error(const struct http1 *h);
/* True from the first byte of a head to the end of its message. */
bool http1_busy(const struct http1 *h);

/* --- writing --- */

/* Request line, Host, fields, framing. extra: complete further lines (an injected credential), may
 * be empty. query: what to send after '?' (has_query tells an empty one from none). */
int http1_write_request(struct buf *out, const struct http_request *r, bool has_query,
        struct slice query, struct slice extra);
/* Status line, fields, framing as r->body says, "connection: close" or "keep-alive" where the
 * client needs to hear it. upgrade: the protocol of a 101, or empty. */
int http1_write_response(struct buf *out, const struct http_response *r, uint8_t client_version,
        bool keep_alive, struct slice upgrade);
/* Size line of a chunk of n bytes; the content and CRLF follow. out: at least 20 bytes. Its length.
 */
size_t http1_chunk_head(char *out, size_t n);

#endif
