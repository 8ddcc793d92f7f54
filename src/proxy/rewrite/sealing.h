/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealing: answers of a token endpoint (a rule with seal). The answer is held until it
 * is whole; the tokens in it stay outside, and the sandbox gets texts that stand for them. An
 * answer that cannot be read is refused.
 */
#ifndef VETHGUARD_SRC_PROXY_REWRITE_SEALING_H
#define VETHGUARD_SRC_PROXY_REWRITE_SEALING_H

#include "proxy/rewrite/kept_head.h"
#include "vethguard/credential/jar.h"
#include "vethguard/credential/mask.h"

struct exchange;

/* An answer that is sealed. */
struct sealing {
	struct kept_head kept;
	struct secret body, out; /* of SECRET_MAX bytes */
	struct secret jar;       /* with the answer's own tokens */
	size_t count;            /* tokens of the answer */
	struct buf sent;         /* bytes written into out */
	bool has_keys;           /* the answer is XML with keys of AWS, not JSON */
};

#define SEALING_ANSWER_MAX (48u << 10) /* bytes of an answer */

/* True if the answer to this exchange is sealed. */
bool sealing_is_wanted(const struct exchange *ex);
/* Begins an answer with content: keeps its head. Returns NULL, or why it is refused. */
const char *sealing_begin(struct exchange *ex, const struct http_response *r);
/* NULL, or why an answer without content is refused. */
const char *sealing_check_empty(const struct http_response *r);
/* Takes a piece of the content; a fault is marked (exchange_mark_undecodable()). */
void sealing_take(struct exchange *ex, const uint8_t *p, size_t n);
/* Seals the whole answer and sends its head and content. Returns NULL, or why it is refused. */
const char *sealing_end(struct exchange *ex);
void sealing_free(struct exchange *ex);

/* --- for sealing_keys.c --- */

extern const char sealing_no_memory[], sealing_too_large[];
/* Puts a token into this answer's jar and into the store's, where the next request finds it. end:
 * memory for *token. Returns NULL, or why not. */
const char *sealing_keep_token(
        struct exchange *ex, struct slice value, struct jar_token *token, char end[JAR_END_MAX]);
/* Masks the head and what was written. */
void sealing_mask(struct sealing *s, const struct mask *mask);

/* --- sealing_keys.c --- */

/* Reads an answer of AWS's STS and writes it with texts in place of its keys. Returns NULL, or why
 * it is refused. */
const char *sealing_read_keys(struct exchange *ex);

#endif
