/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first write to a page of the heap causes a page fault. It takes a microsecond, or in a
 * virtual machine as long as the host needs to find a page, which can be milliseconds. A sandbox
 * takes some ten pages. So heap_warm() allocates and writes more than that, and frees it again. The
 * pages stay at the heap's end, because the C library leaves 128 KiB there (M_TRIM_THRESHOLD,
 * M_TOP_PAD).
 */
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/os/heap.h"

#define PIECE_BYTES (HEAP_OWN_PAGES_BYTES * 3 / 4)
#define PIECES 3 /* for a sandbox, its attachment and the call */

void heap_open(void)
{
	mallopt(M_MMAP_THRESHOLD, HEAP_OWN_PAGES_BYTES);
}

void heap_warm(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *pieces[PIECES];

	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE_BYTES);
		for (size_t at = 0; pieces[i] && at < PIECE_BYTES; at += page)
			pieces[i][at] = 0;
	}
	for (size_t i = PIECES; i-- > 0;)
		free((void *)(uintptr_t)pieces[i]);
}
