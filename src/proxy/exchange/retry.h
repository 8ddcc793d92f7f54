/* SPDX-License-Identifier: Apache-2.0 */
/* retry: the part of an exchange that sends the request, and may send it again. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_RETRY_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_RETRY_H

#include <stdbool.h>

#include "proxy/upstream/upstream.h"
#include "vethguard/base/buf.h"

struct exchange;

enum sending_state {
	SENDING_NOTHING,
	SENDING_AGAIN, /* its head was sent; it may be sent again */
	SENDING_ONCE, /* ... but not again: an upstream may have processed it, or not all is kept */
	SENDING_STATE_COUNT
};

struct sending {
	enum sending_state state;
	unsigned retries;
	struct buf kept; /* the body so far, while the request may be sent again */
	struct buf kept_trailers;
	enum upstream_how how; /* what the upstream is asked to speak; set before each try */
	/* Learned from an upstream for all further tries; more than one may be true. */
	bool http1_required; /* the upstream refused HTTP/2 */
	bool prior_in_vain;  /* the upstream does not speak HTTP/2 without TLS */
	bool unprocessed;    /* the request failed, and no upstream has processed it */
};

/* Changes the state; nothing else does. */
void sending_enter(struct exchange *ex, enum sending_state state);

#endif
