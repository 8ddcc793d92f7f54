/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_issuer: a worker's leaf certificates, kept per host with an LRU bound. Leaves for names that no rule mentions
 * are made under a rate limit, so that a hostile sandbox cannot spend the host's CPU on signatures.
 */
#ifndef VETHGUARD_ISSUER_LEAF_ISSUER_H
#define VETHGUARD_ISSUER_LEAF_ISSUER_H

#include "vethguard/tls/ca.h"

struct leaf_issuer;

struct leaf_issuer_limits {
	uint32_t leaves;             /* kept at a time, for mentioned and for other names each: a flood of other
	                                names evicts no leaf of a mentioned one */
	uint32_t blocked_per_minute; /* new leaves for names that no rule mentions; a token bucket of that size */
};

/* Takes issuer. Returns NULL if there is no memory. */
struct leaf_issuer *leaf_issuer_new(struct ca *issuer, const struct leaf_issuer_limits *limits);
void leaf_issuer_free(struct leaf_issuer *leaf_issuer);
/* Returns the leaf for a host or address with a key of that kind: borrowed, valid until the next leaf_issuer_get()
 * (retain it to keep it). The RSA key is made when it is first requested. mentioned: some policy rule names the host.
 * NULL: the rate limit is reached, or a failure; reset the connection. now_ms: monotonic. */
struct tls_identity *leaf_issuer_get(struct leaf_issuer *leaf_issuer, struct slice host, const struct ip *address,
        enum tls_key_kind kind, bool mentioned, int64_t now_ms);

#endif
