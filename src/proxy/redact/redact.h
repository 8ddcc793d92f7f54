/* SPDX-License-Identifier: Apache-2.0 */
/* redact: the part of an exchange that masks the credential in the response. */
#ifndef VETHGUARD_SRC_PROXY_REDACT_REDACT_H
#define VETHGUARD_SRC_PROXY_REDACT_REDACT_H

#include "proxy/redact/charset.h"
#include "vethguard/base/buf.h"
#include "vethguard/credential/decompress.h"
#include "vethguard/credential/mask.h"
#include "vethguard/loop/loop.h"
#include "vethguard/wire/event.h"

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

/* Searches, masks and decompresses bytes of the response's body, and sends what is certain. */
void exchange_redact_body(struct exchange *ex, const uint8_t *p, size_t n);
extern const char exchange_guessed_text[]; /* why exchange_is_guessed() ends a response */
/* Masks the credential in the response's head. */
void exchange_mask_fields(struct exchange *ex, struct http_response *r);
/* Masks the credential in the response's head and prepares masking its content. Returns 0, or -1
 * with *why and *cause set. */
int exchange_begin_masking(
        struct exchange *ex, struct http_response *r, enum event_cause *cause, const char **why);
/* Returns why content cannot be passed on (static). rc: the error of decompress_feed(). */
const char *exchange_undecodable_text(int rc);
/* Marks that the response's content cannot be passed on; why is static. */
void exchange_mark_undecodable(struct exchange *ex, const char *why);
/* Checks the beginning of the content. False: it shows a character set that cannot be searched, and
 * the exchange is marked undecodable. */
bool exchange_start_is_right(struct exchange *ex, const uint8_t *p, size_t n);
/* Goes on with compressed input that waited for room. True: no input waits any more. */
bool exchange_decompress_more(struct exchange *ex);
/* Tells the sandbox's other workers that the credential may be being guessed, or learns it from
 * them. */
void exchange_share_guess(const struct exchange *ex);
/* Sets or clears the deadline for what the mask keeps back. */
void exchange_await_more(struct exchange *ex);
/* The deadline has passed: releases what was kept back. ex may be freed afterwards. */
void exchange_release_held(struct exchange *ex);
/* True if the credential is being guessed (credential_store_waited()): then nothing more is passed
 * on of a response to a request that had it. */
bool exchange_is_guessed(struct exchange *ex);
/* Sends what masking and decompressing kept back. Returns 0, or -EBADMSG if compressed data ended
 * early or is damaged. */
int exchange_flush_body(struct exchange *ex);

#endif
