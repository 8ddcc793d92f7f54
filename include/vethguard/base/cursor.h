/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader and writer: cursors over bytes in network byte order. The first thing that does not fit sets the sticky
 * error. After that every read returns zero or an empty slice, and every write is dropped, so a parser checks only
 * once, at its end.
 */
#ifndef VETHGUARD_BASE_CURSOR_H
#define VETHGUARD_BASE_CURSOR_H

#include "vethguard/base/slice.h"

struct reader {
	const uint8_t *p;
	size_t left;
	bool failed;
};

static inline struct reader reader_over(const void *p, size_t n)
{
	return (struct reader){p, n, false};
}

uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);
/* The next n bytes, borrowed from the input. */
struct slice reader_bytes(struct reader *r, size_t n);
/* A vector with a length prefix of 1 to 4 bytes; fails if the length exceeds max. */
struct slice reader_vector(struct reader *r, unsigned length_bytes, size_t max);
/* Copies the next n bytes into out; on failure out is zeroed. */
void reader_copy(struct reader *r, void *out, size_t n);
/* True if nothing failed and nothing is left: trailing bytes are an error. */
bool reader_done(const struct reader *r);

struct writer {
	uint8_t *p;
	size_t len;
	size_t cap;
	bool failed;
};

static inline struct writer writer_over(void *p, size_t cap)
{
	return (struct writer){p, 0, cap, false};
}

void writer_u8(struct writer *w, uint8_t v);
void writer_u16(struct writer *w, uint16_t v);
void writer_u32(struct writer *w, uint32_t v);
void writer_u64(struct writer *w, uint64_t v);
void writer_bytes(struct writer *w, const void *p, size_t n);
/* Writes the length in length_bytes bytes, then the bytes; fails if s.n does not fit the prefix. */
void writer_vector(struct writer *w, unsigned length_bytes, struct slice s);

#endif
