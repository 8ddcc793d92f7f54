/* SPDX-License-Identifier: Apache-2.0 */
/* arena: the memory of one load, taken in pieces and freed at once. Bounded, so that no policy eats
 * the machine's memory. */
#ifndef VETHGUARD_SRC_POLICY_YAML_ARENA_H
#define VETHGUARD_SRC_POLICY_YAML_ARENA_H

#include "vethguard/base/slice.h"

#define ARENA_MAX (1024u << 20) /* bytes of one load */

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first */
	size_t used, size;          /* of the newest block */
	size_t total;
	bool failed; /* an allocation failed or met the bound, at least once */
};

void arena_init(struct arena *arena);
void arena_fini(struct arena *arena);
/* Returns n bytes, zeroed and aligned to 8, or NULL with failed set. */
void *arena_take(struct arena *arena, size_t n);
/* Returns a copy of s with a NUL behind its n bytes; empty with failed set if there is no room. */
struct slice arena_copy(struct arena *arena, struct slice s);
/* printf into the arena. */
struct slice arena_printf(struct arena *arena, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
