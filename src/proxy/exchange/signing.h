/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signing: makes the signature of a request whose credential signs (sigv4, hmac), and what that
 * needs of the body. A body in which placeholders are replaced is held here too (fill.h). Most
 * bodies pass as they are. A body that has to be hashed before the head can be sent is held, up to
 * a bound; one that is signed in chunks is signed anew chunk by chunk.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_SIGNING_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_SIGNING_H

#include "proxy/exchange/fill.h"
#include "proxy/http/http.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/sign/aws_chunked.h"

struct exchange;

#define SIGNING_HELD_MAX (16u << 20)     /* bytes of a body that is held */
#define SIGNING_HELD_ALL_MAX (64u << 20) /* of all bodies and chunks that a worker holds */
#define SIGNING_PIECE (64u << 10)        /* bytes given to an upstream at once */

enum signing_body { SIGNING_PASSES, SIGNING_HOLDS, SIGNING_CHUNKS };

struct signing {
	struct exchange *exchange;
	struct loop_task task;
	enum signing_body body;
	bool with_trailer;
	bool fills;        /* HOLDS: placeholders in the body are replaced */
	const char *fault; /* static: the task refuses the request */
	uint16_t status;   /* ... with this status */
	bool ended;        /* the client has sent the whole body */
	bool end_sent;     /* ... and so the upstream was told */
	size_t counted;    /* bytes of it in proxy->signing_held */
	/* HOLDS */
	struct buf held;
	size_t sent;
	char hash[SIGV4_HEX + 1];
	struct fill *fill; /* made with the head */
	/* CHUNKS; made with the head */
	struct aws_chunked *chunks;
	bool chunks_taken;
};

/* True for a request that is signed, or that has a body in which placeholders are replaced. */
bool signing_is_wanted(const struct exchange *ex);
/* Begins with such a request, which was allowed. True: the exchange goes on once its
 * body is held (exchange_begin()), or was refused. */
bool signing_begin(struct exchange *ex);
void signing_free(struct exchange *ex);
/* Puts the signature into the head: fields, or parameters of the query. text: locked memory for
 * them. Returns 0; -EBADMSG: it cannot be signed; or -errno. */
int signing_sign(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);

/* The same for a credential by hmac. */
int signing_hmac(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);
/* Replaces placeholders in the body that is held, and begins it. Call it before the head is sent,
 * which tells the length. Returns 0 or -errno. */
int signing_fill(struct exchange *ex, const struct substitute *s);
/* True if the body that is sent holds a credential. */
bool signing_is_secret(const struct exchange *ex);
/* Begins the body, or begins it again, of a head that has this signature. Returns 0 or -errno. */
int signing_begin_body(struct exchange *ex, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, const char signature[SIGV4_HEX + 1]);

/* Each of these asks about or serves an exchange with a signing. */
/* False: the client is not to be read now. */
bool signing_takes_body(const struct exchange *ex);
/* Take the body and its end. False: they pass as they are, and nothing was done. */
bool signing_request_body(struct exchange *ex, const uint8_t *p, size_t n);
bool signing_request_end(struct exchange *ex);
/* Sends what is ready, as far as the upstream takes it. */
void signing_pump(struct exchange *ex);
/* True if signing_pump() sends the body. */
bool signing_has_body(const struct exchange *ex);
/* True if bytes of the request have not been given to the upstream yet. */
bool signing_is_sending(const struct exchange *ex);
/* True if the request can be sent again from its beginning, as far as signing goes. */
bool signing_can_repeat(const struct exchange *ex);

#endif
