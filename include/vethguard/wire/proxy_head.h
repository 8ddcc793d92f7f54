/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_head: parses the head of a request to the gateway before the client has proved who it is (RFC 9112, RFC 9110
 * section 11.7): one request line and fields. Pure and strict: a head that another parser could read differently is
 * refused. The head that is passed on is the same without the proof.
 */
#ifndef VETHGUARD_WIRE_PROXY_HEAD_H
#define VETHGUARD_WIRE_PROXY_HEAD_H

#include "vethguard/base/buf.h"

#define PROXY_HEAD_MAX 16384 /* bytes of a head, with its empty line */
#define PROXY_HEAD_FIELDS_MAX 128
#define PROXY_PROOF_MAX 4096 /* bytes of a token */

enum proxy_head_status {
	PROXY_HEAD_DONE,
	PROXY_HEAD_MORE, /* valid so far but incomplete: read on */
	PROXY_HEAD_BAD   /* refused; status and why say for what */
};

enum proxy_form {
	PROXY_FORM_CONNECT,
	PROXY_FORM_ABSOLUTE, /* a whole http:// URL (RFC 9112 section 3.2.2) */
	PROXY_FORM_ORIGIN    /* a path: a request to the gateway itself, for base_url.h */
};

/* Fields of a request to a base URL that may hold the proof, in the order in which they are looked for. */
enum proxy_key_field { PROXY_KEY_AUTHORIZATION, PROXY_KEY_X_API_KEY, PROXY_KEY_X_GOOG_API_KEY, PROXY_KEY_FIELDS };

/* Where the request's body ends (RFC 9112 section 6.3). */
enum proxy_body { PROXY_BODY_NONE, PROXY_BODY_LENGTH, PROXY_BODY_CHUNKED };

struct proxy_head {
	struct slice method, target; /* borrowed from the input, as all that follows */
	struct slice authorization;  /* value of Proxy-Authorization; empty: there is none */
	struct slice host;           /* value of Host; empty: there is none */
	struct slice keys[PROXY_KEY_FIELDS];
	bool keys_twice;                                         /* one of these fields is there twice */
	struct slice origin, preflight_method, preflight_fields; /* Origin, Access-Control-Request-Method, -Headers */
	enum proxy_form form;
	enum proxy_body body;
	uint64_t length; /* PROXY_BODY_LENGTH */
	bool last;       /* no request follows on the connection: HTTP/1.0, Connection: close, or an upgrade */
	bool upgrade;    /* what follows the head may be another protocol */
	size_t used;     /* bytes of the head */
	unsigned status; /* PROXY_HEAD_BAD: of the response */
	const char *why; /* static */
};

/* Parses the n bytes received so far. *looked is 0 at first; the caller keeps it between calls for the same head, so
 * that no byte is searched twice. */
enum proxy_head_status proxy_head_parse(const uint8_t *p, size_t n, size_t *looked, struct proxy_head *out);
/* Appends the head at p, which was parsed, without Proxy-Authorization. If it is the connection's last, the head asks
 * for the connection's end after its response. Returns 0 or -errno of buf_append(). */
int proxy_head_write(const uint8_t *p, const struct proxy_head *head, struct buf *out);

/* The next field of a head that was parsed; *at is 0 at first. line: the field with its CR LF. Returns false after the
 * last one. */
bool proxy_head_next_field(
        const uint8_t *p, const struct proxy_head *head, size_t *at, struct slice *line, struct slice *name);

/* A token that a client shows. Wipe it after use. */
struct proxy_proof {
	size_t n; /* 0: none */
	char text[PROXY_PROOF_MAX];
};

/* Reads the value of Proxy-Authorization: Bearer (RFC 6750 section 2.1), or Basic (RFC 7617), of which the password is
 * the token, or the user where the password is empty. Returns false if it is neither. */
bool proxy_proof_read(struct slice authorization, struct proxy_proof *out);
/* The same for a user and password that are not encoded, as in SOCKS5. */
bool proxy_proof_of_pair(struct slice user, struct slice password, struct proxy_proof *out);
/* The same for a token that stands alone. */
bool proxy_proof_take(struct slice token, struct proxy_proof *out);

#endif
