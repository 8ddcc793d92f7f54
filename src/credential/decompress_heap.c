/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoders' memory. Their windows hold what was decompressed last, with a credential in it if
 * the upstream sent it back. So a block is wiped when it is freed, and a large one has pages of its
 * own, which the kernel takes back: wiping a window would first touch every page of it.
 */
#include <sys/mman.h>
#include <stdlib.h>

#include "credential/decompress_private.h"
#include "vethguard/base/secret.h"

#define OWN_PAGES_BYTES (128u << 10) /* blocks from this size on have pages of their own */

struct block {
	size_t n; /* bytes, including this */
	_Alignas(max_align_t) uint8_t bytes[];
};

void *decompress_alloc(void *heap, size_t n)
{
	struct decompress_heap *h = heap;
	size_t left = DECOMPRESS_MEMORY_MAX - h->memory->used;
	struct block *b = NULL;

	if (left > sizeof(*b) && n <= left - sizeof(*b)) {
		n += sizeof(*b);
		if (n < OWN_PAGES_BYTES)
			b = malloc(n);
		else
			b = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			        0);
	}
	if (!b || b == MAP_FAILED) {
		h->starved = true;
		return NULL;
	}
	b->n = n;
	h->memory->used += n;
	return b->bytes;
}

void decompress_release(void *heap, void *p)
{
	struct decompress_heap *h = heap;
	struct block *b =
	        p ? (struct block *)(void *)((uint8_t *)p - offsetof(struct block, bytes)) : NULL;

	if (!b)
		return;
	h->memory->used -= b->n;
	if (b->n >= OWN_PAGES_BYTES) {
		munmap(b, b->n);
		return;
	}
	secret_wipe(b, b->n);
	free(b);
}
