/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a list of blocks; memory is taken from the newest block. What does not fit
 * opens another block. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/yaml/arena.h"

#define BLOCK_BYTES (256u << 10)

struct arena_block {
	struct arena_block *next;
	uint64_t bytes[];
};

void arena_init(struct arena *arena)
{
	memset(arena, 0, sizeof(*arena));
}

void arena_fini(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
	arena_init(arena);
}

static bool open_block(struct arena *arena, size_t n)
{
	size_t size = n > BLOCK_BYTES / 4 ? n : BLOCK_BYTES;
	struct arena_block *block;

	if (size > ARENA_MAX - arena->total)
		return false;
	block = calloc(1, sizeof(*block) + size);
	if (!block)
		return false;
	arena->total += size;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->used = 0;
	arena->size = size;
	return true;
}

void *arena_take(struct arena *arena, size_t n)
{
	void *p;

	if (n > ARENA_MAX)
		goto fail;
	n = (n + 7) & ~(size_t)7;
	if (n > arena->size - arena->used && !open_block(arena, n))
		goto fail;
	p = (uint8_t *)arena->blocks->bytes + arena->used;
	arena->used += n;
	return p;
fail:
	arena->failed = true;
	return NULL;
}

struct slice arena_copy(struct arena *arena, struct slice s)
{
	char *p = s.n < ARENA_MAX ? arena_take(arena, s.n + 1) : NULL;

	if (!p) {
		arena->failed = true;
		return SLICE("");
	}
	if (s.n > 0)
		memcpy(p, s.p, s.n);
	return slice_of(p, s.n);
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args;
	char *p;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	p = n < 0 ? NULL : arena_take(arena, (size_t)n + 1);
	if (!p) {
		arena->failed = true;
		return SLICE("");
	}
	va_start(args, format);
	vsnprintf(p, (size_t)n + 1, format, args);
	va_end(args);
	return slice_of(p, (size_t)n);
}
