/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signing: makes the signature of a request whose credential signs (sigv4, hmac), and what that
 * needs of the body. Most bodies pass as they are. A body that has to be hashed before the head can
 * be sent is held (holding.h); one that is signed in chunks is signed anew chunk by chunk.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_SIGNING_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_SIGNING_H

#include "proxy/http/http.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/sign/aws_chunked.h"

struct exchange;

enum signing_body { SIGNING_PASSES, SIGNING_HOLDS, SIGNING_CHUNKS };

struct signing {
	struct exchange *exchange;
	struct loop_task task;
	enum signing_body body;
	bool with_trailer;
	const char *fault; /* static: the task refuses the request */
	uint16_t status;   /* ... with this status */
	bool ended;        /* the client has sent the whole body */
	bool end_sent;     /* ... and so the upstream was told */
	size_t counted;    /* bytes of it in proxy->body_held */
	/* HOLDS */
	char hash[SIGV4_HEX + 1];
	/* CHUNKS; made with the head */
	struct aws_chunked *chunks;
	bool chunks_taken;
};

/* Begins with a request that was allowed and will be signed. True: the exchange goes on once its
 * body is held (exchange_begin()), or was refused. */
bool signing_begin(struct exchange *ex);
void signing_free(struct exchange *ex);
/* Goes on with a request whose body was held to be signed. */
void signing_go_on(struct exchange *ex);
/* Puts the signature into the head: fields, or parameters of the query. text: locked memory for
 * them. Returns 0; -EBADMSG: it cannot be signed; or -errno. */
int signing_sign(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);

/* The same for a credential by hmac. */
int signing_hmac(struct exchange *ex, const struct policy_credential *spec, struct outgoing *head,
        struct buf *text);
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
/* True if signing_pump() sends the body: its chunks. */
bool signing_has_body(const struct exchange *ex);
/* True if bytes of the request have not been given to the upstream yet. */
bool signing_is_sending(const struct exchange *ex);
/* True if the request can be sent again from its beginning, as far as signing goes. */
bool signing_can_repeat(const struct exchange *ex);

#endif
