/* SPDX-License-Identifier: Apache-2.0 */
/* hash: fast keyed hashing of short byte strings for tables that hold what an attacker names. */
#ifndef VETHGUARD_BASE_HASH_H
#define VETHGUARD_BASE_HASH_H

#include "vethguard/base/slice.h"

/* Of SipHash-1-3. A table inside one process has one from hash_random_key(). */
struct hash_key {
	uint64_t k0, k1;
};

struct hash_key hash_random_key(void);
uint64_t hash_bytes(const struct hash_key *key, const void *p, size_t n);
/* n bytes from getrandom(2); never fails short (aborts where the kernel cannot give randomness at all). */
void random_bytes(void *out, size_t n);

#endif
