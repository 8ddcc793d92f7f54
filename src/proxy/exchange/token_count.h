/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_count: counts the tokens that the answer to an exchange tells, against limits of tokens and
 * of cost. They are known only at the end, so whatever the answer takes is added then, also beyond
 * the limit: the next request finds no room. What an answer does not tell is estimated from its
 * bytes, and never too little for a client that ends before the numbers come.
 */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_TOKEN_COUNT_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_TOKEN_COUNT_H

#include "proxy/http/http.h"

struct exchange;
struct token_count;

/* Call this when limits let the exchange begin. False: there is no memory, or the request asks for
 * another protocol, in which nothing could be counted; *why (static) says so. */
bool token_count_begin(struct exchange *ex, const char **why);
/* Notes what the head of the final response says. */
void token_count_head(struct exchange *ex, const struct http_response *r);
/* Reads n bytes of its content. */
void token_count_take(struct exchange *ex, const uint8_t *p, size_t n);
/* The response was whole. */
void token_count_whole(struct exchange *ex);
/* Adds what was taken to the counters. Does nothing if nothing is counted. */
void token_count_fini(struct exchange *ex);

#endif
