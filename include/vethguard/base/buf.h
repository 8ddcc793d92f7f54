/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf: a growable byte queue with a bound. Bytes are appended at the end and consumed at the front. Memory is
 * allocated on first use and can be freed while idle. Nothing here aborts: what does not fit is refused.
 */
#ifndef VETHGUARD_BASE_BUF_H
#define VETHGUARD_BASE_BUF_H

#include "vethguard/base/slice.h"

struct buf {
	uint8_t *mem; /* owned; NULL until memory is needed */
	size_t start; /* first unread byte */
	size_t len;   /* unread bytes */
	size_t cap;   /* bytes of mem */
	size_t max;   /* bound on len, in bytes */
	bool secret;  /* memory is wiped before it is given back */
};

/* An empty buffer of at most max bytes; allocates nothing yet. */
void buf_init(struct buf *b, size_t max);
/* The same for bytes that may hold a secret: memory that is outgrown or freed is wiped. */
void buf_init_secret(struct buf *b, size_t max);
/* Frees the memory; the buffer stays usable and empty. */
void buf_fini(struct buf *b);
/* Makes room for n more bytes at the end. Returns a pointer to the room, or NULL if the bound is reached or memory
 * runs out. Invalidates earlier pointers into the buffer. */
uint8_t *buf_reserve(struct buf *b, size_t n);
/* Adds n bytes written into the reserved room to the content. */
void buf_commit(struct buf *b, size_t n);
/* Append n bytes, or a slice. Return 0, -ENOBUFS (bound reached) or -ENOMEM; on failure nothing was appended. */
int buf_append(struct buf *b, const void *p, size_t n);
int buf_append_slice(struct buf *b, struct slice s);
/* Appends formatted text; same errors as buf_append(). */
int buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops n <= len bytes from the front. */
void buf_consume(struct buf *b, size_t n);

/* The content, len bytes, valid until the buffer changes; NULL if no memory was allocated yet. */
static inline uint8_t *buf_bytes(const struct buf *b)
{
	return b->mem ? b->mem + b->start : NULL;
}

/* The content as a slice; its pointer is never NULL. */
static inline struct slice buf_slice(const struct buf *b)
{
	return slice_of(b->mem ? b->mem + b->start : (const uint8_t *)"", b->len);
}

#endif
