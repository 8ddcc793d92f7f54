/* SPDX-License-Identifier: Apache-2.0 */
/* arena: memory of one load, taken in pieces and given back at once. Bounded, so that no policy
 * eats the machine. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_ARENA_H
#define VETHGUARD_SRC_POLICY_LOAD_ARENA_H

#include "vethguard/base/slice.h"

#define ARENA_MAX (1024u << 20) /* bytes of one load */

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t used, size;          /* of the newest block */
	size_t total;
	bool failed; /* memory or the bound said no, at least once */
};

void arena_init(struct arena *arena);
void arena_fini(struct arena *arena);
/* n bytes, zeroed, aligned to 8, or NULL (and failed is set). */
void *arena_take(struct arena *arena, size_t n);
/* A copy of s, NUL-terminated behind its n bytes; empty with failed set where there is no room. */
struct slice arena_copy(struct arena *arena, struct slice s);
/* printf into the arena. */
struct slice arena_printf(struct arena *arena, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
