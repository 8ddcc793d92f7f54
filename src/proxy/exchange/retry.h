/* SPDX-License-Identifier: Apache-2.0 */
/* retry: the part of an exchange that is about sending its request, and sending it again. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_RETRY_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_RETRY_H

#include <stdbool.h>

#include "proxy/upstream/upstream.h"
#include "vethguard/base/buf.h"

struct exchange;

enum sending_state {
	SENDING_NOTHING,
	SENDING_AGAIN, /* its head was sent; it may be sent again */
	SENDING_ONCE,  /* ... and may not: an upstream may have processed it, or not all is kept */
	SENDING_STATE_COUNT
};

struct sending {
	enum sending_state state;
	unsigned retries;
	struct buf kept; /* the body so far, as long as the request could be sent again */
	struct buf kept_trailers;
	enum upstream_how how; /* what the upstream is asked to speak; set before each try */
	/* Facts, learned from an upstream, for all tries that follow; all may be true. */
	bool http1_required; /* it refused HTTP/2 */
	bool prior_in_vain;  /* it does not speak HTTP/2 without TLS */
	bool unprocessed;    /* the request failed, and no upstream has processed it */
};

/* Changes the state; nothing else does. */
void sending_enter(struct exchange *ex, enum sending_state state);

#endif
