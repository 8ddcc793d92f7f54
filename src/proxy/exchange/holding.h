/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holding: keeps a request's whole body before a byte of it leaves: because a rule asks for what is
 * in it, because it has to be hashed before the head can be signed, or because placeholders are
 * replaced in it (filling.h). While it is held, the exchange is HOLDING. A refused client learns
 * the bound from the refusal.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_HOLDING_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_HOLDING_H

#include "vethguard/base/buf.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/body.h"

struct exchange;
struct fill;

#define HOLDING_MAX POLICY_INSPECT_MAX /* bytes of one body */
#define HOLDING_ALL_MAX (64u << 20)    /* of all bodies and chunks that a worker holds */
#define HOLDING_PIECE (64u << 10)      /* bytes given to an upstream at once */

enum holding_why { HOLDING_TO_DECIDE, HOLDING_TO_SIGN, HOLDING_TO_FILL, HOLDING_TO_ANSWER };

struct holding {
	struct exchange *exchange;
	struct loop_task task;
	enum holding_why why;
	struct buf bytes;
	struct policy_body body; /* read once the bytes are whole and a policy asks for them */
	struct fill *fill;       /* what is replaced in the body; NULL: nothing */
	const char *fault;       /* static: the task refuses the request */
	uint16_t status;         /* ... with this status */
	bool ended;              /* the client has sent the whole body */
	bool end_sent;           /* ... and the upstream was told so */
	size_t sent;             /* bytes that the upstream was given */
};

extern const char holding_too_large_to_fill[];

/* Begins to hold the exchange's body, of which nothing has come. The exchange goes on once it is
 * whole, or was refused. */
void holding_begin(struct exchange *ex, enum holding_why why);
void holding_free(struct exchange *ex);

/* Each of these asks about or serves an exchange with a holding. */
/* The body, once it is whole. */
struct slice holding_bytes(const struct exchange *ex);
bool holding_is_whole(const struct exchange *ex);
/* The body for a policy that asks for it: unread until it is whole. */
const struct policy_body *holding_body(struct exchange *ex, const struct policy *policy);
/* False: the client must not be read now. */
bool holding_takes_body(const struct exchange *ex);
void holding_request_body(struct exchange *ex, const uint8_t *p, size_t n);
void holding_request_end(struct exchange *ex);
/* The first sends the body from its beginning, the second the rest of it, as far as the upstream
 * takes it. */
void holding_send(struct exchange *ex);
void holding_pump(struct exchange *ex);
/* True if bytes of the request have not been given to the upstream yet. */
bool holding_is_sending(const struct exchange *ex);

#endif
