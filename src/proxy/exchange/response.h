/* SPDX-License-Identifier: Apache-2.0 */
/* response: the part of an exchange that sends the response to the client. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_RESPONSE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_RESPONSE_H

#include <stdbool.h>

#include "proxy/http/http.h"
#include "vethguard/loop/loop.h"

struct exchange;

enum responding_state {
	RESPONDING_NONE,
	RESPONDING_WAITS, /* the upstream's head waits for the end of this turn, or for content */
	RESPONDING_BEGUN, /* a final head was sent to the client */
	RESPONDING_STATE_COUNT
};

struct responding {
	enum responding_state state;
	struct loop_task task; /* sends a head in state WAITS */
	unsigned interims;     /* interim responses so far */
	enum http_body framing;
	bool counted;    /* the client was told the response's length */
	uint64_t length; /* ... which is this, in bytes */
};

static inline bool responding_has_begun(const struct responding *r)
{
	return r->state == RESPONDING_BEGUN;
}

/* Changes the state; nothing else does. */
void responding_enter(struct exchange *ex, enum responding_state state);

#endif
