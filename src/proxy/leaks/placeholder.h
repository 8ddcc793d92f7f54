/* SPDX-License-Identifier: Apache-2.0 */
/* placeholder: the part of an exchange that looks for placeholders in the request. */
#ifndef VETHGUARD_SRC_PROXY_LEAKS_PLACEHOLDER_H
#define VETHGUARD_SRC_PROXY_LEAKS_PLACEHOLDER_H

#include "vethguard/credential/decompress.h"
#include "vethguard/credential/store.h"
#include "vethguard/loop/loop.h"

struct exchange;

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

/* Looks for placeholders where they do not belong, and drops the fields whose placeholder the
 * credential replaces. */
void exchange_check_placeholders(struct exchange *ex);
/* Records that a placeholder was found; where is the finding's text. foreign: it is not the
 * placeholder of the credential that the request gets. */
void exchange_found_placeholder(struct exchange *ex, const char *where, bool foreign);
/* Notes that a secret refuses the request. text says what was found (borrowed). */
void exchange_refuse_secret(struct exchange *ex, const char *text);
/* If a placeholder or secret was found and the policy refuses such a request, makes the verdict say
 * so. Returns true if it did. */
bool exchange_refuses_leak(struct exchange *ex);
/* The same for a request that has begun to leave: the exchange ends in a later turn, since its body
 * is being read. Returns true from then on: nothing more of the request may be passed on. */
bool exchange_ends_leak(struct exchange *ex);
/* Looks for a placeholder in a text that comes in pieces; where is the finding's text. */
void exchange_scan_text(struct exchange *ex, const uint8_t *p, size_t n, const char *where);
/* The same for a request's body. */
void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n);

#endif
