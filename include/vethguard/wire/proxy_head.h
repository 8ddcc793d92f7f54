/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_head: parses the head of a request to an authenticated HTTP proxy before the client has proved who it is (RFC
 * 9112, RFC 9110 section 11.7): one request line, fields, at most one Proxy-Authorization. Pure and strict: a head that
 * another parser could read differently is refused. The head that is passed on is the same without the proof, and asks
 * to close the connection after the response, so that every request needs its own proof.
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

struct proxy_head {
	struct slice method, target; /* borrowed from the input */
	struct slice authorization;  /* value of Proxy-Authorization; empty: there is none */
	size_t used;                 /* bytes of the head */
	unsigned status;             /* PROXY_HEAD_BAD: of the response */
	const char *why;             /* static */
};

/* Parses the n bytes received so far. *looked is 0 at first; the caller keeps it between calls for the same head, so
 * that no byte is searched twice. */
enum proxy_head_status proxy_head_parse(const uint8_t *p, size_t n, size_t *looked, struct proxy_head *out);
/* Appends the head at p, which was parsed, without its proof. Returns 0 or -errno of buf_append(). */
int proxy_head_write(const uint8_t *p, const struct proxy_head *head, struct buf *out);

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

#endif
