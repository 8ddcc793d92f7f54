/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signing: signs requests whose credential is a signing key (sigv4, hmac), and handles their
 * bodies. Most bodies pass unchanged. A body that must be hashed before the head can be sent is
 * held (holding.h); a body that is signed in chunks is signed anew chunk by chunk.
 */
#ifndef VETHGUARD_SRC_PROXY_SIGNING_SIGNING_H
#define VETHGUARD_SRC_PROXY_SIGNING_SIGNING_H

#include "proxy/http/http.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/sign/aws_chunked.h"

struct aws_keys;
struct exchange;

enum signing_body { SIGNING_PASSES, SIGNING_HOLDS, SIGNING_CHUNKS };

struct signing {
	struct exchange *exchange;
	struct loop_task task;
	enum signing_body body;
	bool with_trailer;
	const char *fault; /* static: the task refuses the request */
	uint16_t status;   /* with this status */
	bool ended;        /* the client has sent the whole body */
	bool end_sent;     /* the upstream was told that the body has ended */
	size_t counted;    /* bytes of this body that are counted in proxy->body_held */
	/* HOLDS: the hash of the held body */
	char hash[SIGV4_HEX + 1];
	/* Of a sealed login: the keys that the request was signed with in the sandbox; else NULL */
	struct aws_keys *keys;
	/* CHUNKS: made when the head is signed */
	struct aws_chunked *chunks;
	bool chunks_taken;
};

/* Begins with a request that was allowed and will be signed. Returns true if the exchange does not
 * go on now: it goes on once the whole body is held (exchange_begin()), or it was refused. */
bool signing_begin(struct exchange *ex);
void signing_free(struct exchange *ex);
/* Goes on with a request whose body was held to be signed. */
void signing_go_on(struct exchange *ex);
/* Puts the signature into the head, as fields or as parameters of the query. text: locked memory
 * for them. Returns 0; -EBADMSG: it cannot be signed; -ENOKEY: the keys of its login are not held
 * any more; or -errno. */
int signing_sign(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);

/* The same for an hmac credential. */
int signing_hmac(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);
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
/* True if signing_pump() sends the body: its chunks. */
bool signing_has_body(const struct exchange *ex);
/* True if the upstream has not been given all bytes of the request yet. */
bool signing_is_sending(const struct exchange *ex);
/* True if signing does not prevent that the request is sent again from its beginning. */
bool signing_can_repeat(const struct exchange *ex);

#endif
