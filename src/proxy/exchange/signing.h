/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signing: signs requests whose credential is a signing key (sigv4, hmac), and handles their
 * bodies. Most bodies pass unchanged. A body that must be hashed before the head can be sent is
 * held, up to a bound; a body that is signed in chunks is signed anew chunk by chunk. A body in
 * which placeholders are replaced is held here too (fill.h).
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
#define SIGNING_HELD_ALL_MAX (64u << 20) /* bytes of all bodies and chunks that a worker holds */
#define SIGNING_PIECE (64u << 10)        /* bytes given to an upstream at once */

enum signing_body { SIGNING_PASSES, SIGNING_HOLDS, SIGNING_CHUNKS };

struct signing {
	struct exchange *exchange;
	struct loop_task task;
	enum signing_body body;
	bool with_trailer;
	bool fills;        /* HOLDS: placeholders in the body are replaced */
	const char *fault; /* static: the task refuses the request */
	uint16_t status;   /* with this status */
	bool ended;        /* the client has sent the whole body */
	bool end_sent;     /* the upstream was told that the body has ended */
	size_t counted;    /* bytes of this body that are counted in proxy->signing_held */
	/* HOLDS: the body so far */
	struct buf held;
	size_t sent;
	char hash[SIGV4_HEX + 1];
	struct fill *fill; /* made when the head is sent */
	/* CHUNKS: made when the head is signed */
	struct aws_chunked *chunks;
	bool chunks_taken;
};

/* True for a request that is signed, or that has a body in which placeholders are replaced. */
bool signing_is_wanted(const struct exchange *ex);
/* Begins with such a request, which was allowed. Returns true if the exchange does not go on now:
 * it goes on once the whole body is held (exchange_begin()), or it was refused. */
bool signing_begin(struct exchange *ex);
void signing_free(struct exchange *ex);
/* Puts the signature into the head, as fields or as parameters of the query. text: locked memory
 * for them. Returns 0; -EBADMSG: it cannot be signed; or -errno. */
int signing_sign(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);

/* The same for an hmac credential. */
int signing_hmac(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);
/* Replaces placeholders in the body that is held, and begins the body. Call it before the head is
 * sent, which tells the length. Returns 0 or -errno. */
int signing_fill(struct exchange *ex, const struct substitute *s);
/* True if the body that is sent holds a credential. */
bool signing_is_secret(const struct exchange *ex);
/* Begins the body whose head has this signature, or begins it again. Returns 0 or -errno. */
int signing_begin_body(struct exchange *ex, const uint8_t key[HMAC_BYTES],
        const struct sigv4_scope *scope, const char signature[SIGV4_HEX + 1]);

/* The functions below are for exchanges that have a signing. */
/* Returns false if the client must not be read now. */
bool signing_takes_body(const struct exchange *ex);
/* Take the body and its end. Return false, without having done anything, if the body passes
 * unchanged. */
bool signing_request_body(struct exchange *ex, const uint8_t *p, size_t n);
bool signing_request_end(struct exchange *ex);
/* Sends the ready bytes, as many as the upstream takes. */
void signing_pump(struct exchange *ex);
/* True if signing_pump() sends the body. */
bool signing_has_body(const struct exchange *ex);
/* True if the upstream has not been given all bytes of the request yet. */
bool signing_is_sending(const struct exchange *ex);
/* True if signing does not prevent that the request is sent again from its beginning. */
bool signing_can_repeat(const struct exchange *ex);

#endif
