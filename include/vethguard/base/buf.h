/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf: a growable byte queue with a bound. Bytes are appended at the end and consumed at the front; memory is taken
 * on first use and can be given back while idle. Nothing here aborts: what does not fit is refused.
 */
#ifndef VETHGUARD_BASE_BUF_H
#define VETHGUARD_BASE_BUF_H

#include "vethguard/base/slice.h"

struct buf {
	uint8_t *mem;  /* owned; NULL while empty and never grown */
	size_t start;  /* first unread byte */
	size_t len;    /* unread bytes */
	size_t cap;    /* bytes of mem */
	size_t max;    /* bound on len, in bytes */
};

/* An empty buffer of at most max bytes; takes no memory yet. */
void buf_init(struct buf *b, size_t max);
/* Frees the memory; the buffer stays usable and empty. */
void buf_fini(struct buf *b);
/* Room for n more bytes at the end: a pointer to it, or NULL when the bound or memory says no. Pointers into the
 * buffer taken before are void afterwards. */
uint8_t *buf_reserve(struct buf *b, size_t n);
/* Counts n bytes written into the reserved room as content. */
void buf_commit(struct buf *b, size_t n);
/* n bytes, or a slice, onto the end. 0, or -ENOBUFS (bound reached) or -ENOMEM; on failure nothing was appended. */
int buf_append(struct buf *b, const void *p, size_t n);
int buf_append_slice(struct buf *b, struct slice s);
/* printf onto the end; same errors as buf_append. */
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops n <= len bytes from the front. */
void buf_consume(struct buf *b, size_t n);

/* The content, len bytes, valid until the buffer changes; NULL where there is no memory yet. */
static inline uint8_t *buf_bytes(const struct buf *b)
{
	return b->mem ? b->mem + b->start : NULL;
}

/* The same as a slice, never of NULL. */
static inline struct slice buf_slice(const struct buf *b)
{
	return slice_of(b->mem ? b->mem + b->start : (const uint8_t *)"", b->len);
}

#endif
