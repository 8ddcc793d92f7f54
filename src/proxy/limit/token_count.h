/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_count: counts the tokens that a model's response reports, against limits of tokens and
 * cost. The response's end tells them, so all of them are added then, beyond the limit too: the
 * next request finds no room. What a response does not report is estimated from its bytes. If it is
 * not whole, its output counts for at least the estimate, so that a client gains nothing by ending
 * early.
 */
#ifndef VETHGUARD_SRC_PROXY_LIMIT_TOKEN_COUNT_H
#define VETHGUARD_SRC_PROXY_LIMIT_TOKEN_COUNT_H

#include "proxy/http/http.h"

struct exchange;
struct token_count;

/* Call this when the limits have let the exchange begin. False: there is no memory, or the request
 * asks for another protocol, in which nothing could be counted; *why (static) says which. */
bool token_count_begin(struct exchange *ex, const char **why);
/* Reads the counts in the head of the final response. */
void token_count_head(struct exchange *ex, const struct http_response *r);
/* Reads n bytes of its content. */
void token_count_take(struct exchange *ex, const uint8_t *p, size_t n);
/* The response was whole. */
void token_count_whole(struct exchange *ex);
/* Adds the tokens to the counters, and ends the count. Does nothing if nothing is counted. */
void token_count_fini(struct exchange *ex);

#endif
