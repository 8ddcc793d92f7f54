/* SPDX-License-Identifier: Apache-2.0 */
/* decompress_private: what the decoders of the content codings share with decompress.c. */
#ifndef VETHGUARD_SRC_CREDENTIAL_DECOMPRESS_PRIVATE_H
#define VETHGUARD_SRC_CREDENTIAL_DECOMPRESS_PRIVATE_H

#include "vethguard/credential/decompress.h"

/* One step's input and room; each function moves the pointers past what it has used. */
struct decompress_io {
	const uint8_t *in;
	size_t in_n;
	uint8_t *out;
	size_t out_n; /* at least 1 */
};

/* What a library's decoder may allocate from. */
struct decompress_heap {
	struct decompress_memory *memory;
	bool starved; /* an allocation failed, or was refused */
};

/* A coding. Each decoder is a struct of its own, which new() allocates. */
struct decompress_format {
	bool repeats; /* after its end the stream may begin again */
	/* Returns NULL if there is no memory. heap outlives the decoder. */
	void *(*new)(struct decompress_heap *heap);
	void (*free)(void *decoder);
	/* Calls the library once. Returns 0; 1: the stream has ended here; or -EBADMSG (a failed
	 * allocation shows in heap->starved). */
	int (*step)(void *decoder, struct decompress_io *io);
};

extern const struct decompress_format decompress_gzip, decompress_deflate, decompress_brotli,
        decompress_zstd;

/* Allocates n bytes from the heap; NULL if there is no memory or DECOMPRESS_MEMORY_MAX is reached.
 * The memory is wiped when it is freed. */
void *decompress_alloc(void *heap, size_t n);
void decompress_release(void *heap, void *p); /* p: may be NULL */

#endif
