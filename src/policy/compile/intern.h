/* SPDX-License-Identifier: Apache-2.0 */
/* intern: maps equal byte strings to equal small numbers, counted from 0 in the order of first
 * appearance. */
#ifndef VETHGUARD_SRC_POLICY_COMPILE_INTERN_H
#define VETHGUARD_SRC_POLICY_COMPILE_INTERN_H

#include "vethguard/base/hash.h"
#include "policy/vec.h"

struct intern {
	struct hash_key key;
	struct vec keys; /* struct slice, borrowed */
	uint32_t *slots; /* owned; index + 1, or 0 */
	size_t slot_count;
	bool failed;
};

void intern_init(struct intern *in);
void intern_fini(struct intern *in);
/* Returns the number of key, new or known (*added tells which). key is borrowed until
 * intern_fini(). UINT32_MAX: no memory. */
uint32_t intern_put(struct intern *in, struct slice key, bool *added);
/* The number of key, or UINT32_MAX if key was never put. */
uint32_t intern_find(const struct intern *in, struct slice key);

#endif
