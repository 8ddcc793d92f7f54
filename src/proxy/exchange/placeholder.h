/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder: the part of an exchange that looks for placeholders in the request. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_PLACEHOLDER_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_PLACEHOLDER_H

#include "vethguard/credential/decompress.h"
#include "vethguard/credential/store.h"
#include "vethguard/loop/loop.h"

enum scanning_state {
	SCANNING_HEAD, /* nothing was found, and no content has come */
	SCANNING_BODY, /* content is looked at */
	SCANNING_SEEN, /* a placeholder was found: the search has ended */
	SCANNING_LEAK, /* ... and the request is refused for it */
	SCANNING_ENDS, /* ... although it has begun to leave: the exchange is about to end */
	SCANNING_STATE_COUNT
};

struct scanning {
	enum scanning_state state;
	const char *leak;      /* LEAK, ENDS: which placeholder or secret was found where */
	struct loop_task task; /* ENDS: ends the exchange */
	bool begun;            /* content has come, and decoder was made if the content needs it */
	struct credential_scan scan;
	struct decompress *decoder; /* of the request's body; NULL: the body is not compressed */
};

/* True if the search for placeholders has ended. */
static inline bool scanning_is_over(const struct scanning *s)
{
	return s->state >= SCANNING_SEEN;
}

/* True if nothing more of the request may be passed on. */
static inline bool scanning_ends(const struct scanning *s)
{
	return s->state == SCANNING_ENDS;
}

#endif
