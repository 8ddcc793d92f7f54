/* SPDX-License-Identifier: Apache-2.0 */
/* redact: the part of an exchange that masks the credential in the response. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_REDACT_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_REDACT_H

#include "proxy/exchange/charset.h"
#include "vethguard/base/buf.h"
#include "vethguard/credential/decompress.h"
#include "vethguard/credential/mask.h"
#include "vethguard/loop/loop.h"

struct exchange;
struct inspection;

/* How far the response's content has come from the upstream. */
enum redacting_state {
	REDACTING_NONE,
	REDACTING_COMES,
	REDACTING_EMPTY, /* the content has ended without a byte */
	REDACTING_WHOLE, /* the content has ended; some of it may still be in `compressed` */
	REDACTING_STATE_COUNT
};

struct redacting {
	enum redacting_state state;
	const char *undecodable; /* why the content cannot be passed on (static); NULL: it can */
	struct mask_stream mask;
	/* How much of mask.waited and inspection_waited() the credential store was told. */
	unsigned waits_told;
	struct charset_start start; /* of the content */
	struct inspection
	        *inspection; /* searches compressed content that is passed on as it came */
	struct decompress *decompress; /* decodes content that is passed on decompressed */
	struct buf compressed;         /* input of `decompress` that waits for room at the client */
	char *etag;                /* owned; the changed entity tag of a decompressed response */
	struct loop_deadline held; /* bounds how long the mask keeps bytes back */
	/* The codings that the client accepts, if it does not forbid changing the content: a bit
	 * for each enum decompress_coding. */
	unsigned accepted;
	/* Facts beside the state. */
	bool more;      /* the decoder holds more output than there was room for */
	bool uncovered; /* the credential was found where it could not be covered */
};

/* True once the response's head has come and the response is searched. */
static inline bool redacting_is_on(const struct redacting *r)
{
	return r->mask.mask != NULL;
}

static inline bool redacting_has_ended(const struct redacting *r)
{
	return r->state == REDACTING_EMPTY || r->state == REDACTING_WHOLE;
}

/* Note that the upstream has sent some of the content (begin), or all of it (end). */
void redacting_begin(struct exchange *ex);
void redacting_end(struct exchange *ex);

#endif
