/* SPDX-License-Identifier: Apache-2.0 */
/* hash: fast keyed hashing of short byte strings, for tables whose keys an attacker chooses. */
#ifndef VETHGUARD_BASE_HASH_H
#define VETHGUARD_BASE_HASH_H

#include "vethguard/base/slice.h"

/* Key of SipHash-1-3. A table inside one process uses hash_random_key(). */
struct hash_key {
	uint64_t k0, k1;
};

struct hash_key hash_random_key(void);
uint64_t hash_bytes(const struct hash_key *key, const void *p, size_t n);
/* Writes n bytes from getrandom(2). Never returns fewer; aborts if the kernel cannot give randomness at all. */
void random_bytes(void *out, size_t n);

#endif
