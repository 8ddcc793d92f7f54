/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of memory with the unread bytes somewhere inside. Room at the end is made first by moving
 * the content to the front, which costs no memory, and only then by growing to the next power of
 * two. An empty buffer starts at the front again, so that alternating fills and drains move
 * nothing.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/secret.h"

#define BUF_FIRST_BYTES 256

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_init_secret(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max, .secret = true};
}

static void give_back(struct buf *b)
{
	if (b->secret && b->mem)
		secret_wipe(b->mem, b->cap);
	free(b->mem);
}

void buf_fini(struct buf *b)
{
	give_back(b);
	*b = (struct buf){.max = b->max, .secret = b->secret};
}

static int grow(struct buf *b, size_t need)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST_BYTES;
	uint8_t *mem;

	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	mem = malloc(cap);
	if (!mem)
		return -ENOMEM;
	if (b->mem)
		memcpy(mem, b->mem + b->start, b->len);
	give_back(b);
	b->mem = mem;
	b->start = 0;
	b->cap = cap;
	return 0;
}

/* Makes room for n content bytes and, beyond the bound, for extra bytes that never become content
 * (a NUL). */
static int make_room(struct buf *b, size_t n, size_t extra)
{
	size_t need;

	if (n > b->max - b->len || n > SIZE_MAX - extra - b->len)
		return -ENOBUFS;
	need = b->len + n + extra;
	if (b->mem && need <= b->cap - b->start)
		return 0;
	if (!b->mem || need > b->cap)
		return grow(b, need);
	memmove(b->mem, b->mem + b->start, b->len);
	b->start = 0;
	return 0;
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
	return make_room(b, n, 0) == 0 ? b->mem + b->start + b->len : NULL;
}

void buf_commit(struct buf *b, size_t n)
{
	b->len += n;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
	int rc;

	if (n == 0)
		return 0;
	rc = make_room(b, n, 0);
	if (rc)
		return rc;
	memcpy(b->mem + b->start + b->len, p, n);
	b->len += n;
	return 0;
}

int buf_append_slice(struct buf *b, struct slice s)
{
	return buf_append(b, s.p, s.n);
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int n;
	int rc;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return -ENOMEM;
	rc = make_room(b, (size_t)n, 1);
	if (rc)
		return rc;
	va_start(args, format);
	vsnprintf((char *)b->mem + b->start + b->len, (size_t)n + 1, format, args);
	va_end(args);
	b->len += (size_t)n;
	return 0;
}

void buf_consume(struct buf *b, size_t n)
{
	b->len -= n;
	b->start = b->len ? b->start + n : 0;
}
