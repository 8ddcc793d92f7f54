/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealing: answers of a token endpoint (a rule with seal). The answer is held until it
 * is whole; the tokens in it stay outside, and the sandbox gets texts that stand for them. An
 * answer that cannot be read is refused.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_SEALING_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_SEALING_H

#include "proxy/http/http.h"

struct exchange;

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

#endif
