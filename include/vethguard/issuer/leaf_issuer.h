/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mint: a worker's leaf certificates, kept per host with an LRU bound; names that no rule mentions are minted under a
 * rate limit, so that a hostile sandbox cannot spend the host's CPU on signatures.
 */
#ifndef VETHGUARD_ISSUER_LEAF_ISSUER_H
#define VETHGUARD_ISSUER_LEAF_ISSUER_H

#include "vethguard/tls/ca.h"

struct leaf_issuer;

struct leaf_issuer_limits {
	uint32_t leaves;              /* kept at a time, mentioned and blocked names apart: a flood of the latter evicts none
	                                 of the former */
	uint32_t blocked_per_minute;  /* fresh leaves for names that no rule mentions; a token bucket of that size */
};

/* Takes issuer. NULL: no memory. */
struct leaf_issuer *leaf_issuer_new(struct ca *issuer, const struct leaf_issuer_limits *limits);
void leaf_issuer_free(struct leaf_issuer *leaf_issuer);
/* The leaf for a host or address with a key of that kind; borrowed, valid until the next leaf_issuer_get (retain it to keep
 * it). The RSA key is made when it is first asked for. mentioned: some policy rule names it. NULL: rate limit reached or
 * failure: the connection is to be reset. now_ms: monotonic. */
struct tls_identity *leaf_issuer_get(struct leaf_issuer *leaf_issuer, struct slice host, const struct ip *address, enum tls_key_kind kind,
	bool mentioned, int64_t now_ms);

#endif
