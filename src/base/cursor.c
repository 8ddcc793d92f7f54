/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every read goes through take() and every write through put(). Only these two check bounds, and
 * they compare with the number of bytes left, so that no length can wrap a pointer. After the first
 * failure a reader has nothing left and a writer accepts nothing more; what was written before must
 * not be used.
 */
#include "vethguard/base/cursor.h"

/* The next n bytes, or NULL with the error set. */
static const uint8_t *take(struct reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->failed || n > r->left) {
		r->failed = true;
		r->left = 0;
		return NULL;
	}
	if (n == 0)
		return (const uint8_t *)"";
	r->p += n;
	r->left -= n;
	return p;
}

static uint64_t take_integer(struct reader *r, size_t n)
{
	const uint8_t *p = take(r, n);
	uint64_t v = 0;

	for (size_t i = 0; p && i < n; i++)
		v = v << 8 | p[i];
	return v;
}

uint8_t reader_u8(struct reader *r)
{
	return (uint8_t)take_integer(r, 1);
}

uint16_t reader_u16(struct reader *r)
{
	return (uint16_t)take_integer(r, 2);
}

uint32_t reader_u32(struct reader *r)
{
	return (uint32_t)take_integer(r, 4);
}

uint64_t reader_u64(struct reader *r)
{
	return take_integer(r, 8);
}

struct slice reader_bytes(struct reader *r, size_t n)
{
	const uint8_t *p = take(r, n);

	return p ? slice_of(p, n) : SLICE("");
}

struct slice reader_vector(struct reader *r, unsigned length_bytes, size_t max)
{
	uint64_t n;

	if (length_bytes < 1 || length_bytes > 4)
		r->failed = true;
	n = take_integer(r, length_bytes);
	if (n > max)
		r->failed = true;
	return reader_bytes(r, (size_t)n);
}

void reader_copy(struct reader *r, void *out, size_t n)
{
	const uint8_t *p = take(r, n);

	if (n == 0)
		return;
	if (p)
		memcpy(out, p, n);
	else
		memset(out, 0, n);
}

bool reader_done(const struct reader *r)
{
	return !r->failed && r->left == 0;
}

/* Room for the next n bytes, or NULL with the error set. */
static uint8_t *put(struct writer *w, size_t n)
{
	uint8_t *p;

	if (w->failed || n > w->cap - w->len) {
		w->failed = true;
		return NULL;
	}
	p = w->p + w->len;
	w->len += n;
	return p;
}

static void put_integer(struct writer *w, size_t n, uint64_t v)
{
	uint8_t *p = put(w, n);

	for (size_t i = n; p && i > 0; i--, v >>= 8)
		p[i - 1] = (uint8_t)v;
}

void writer_u8(struct writer *w, uint8_t v)
{
	put_integer(w, 1, v);
}

void writer_u16(struct writer *w, uint16_t v)
{
	put_integer(w, 2, v);
}

void writer_u32(struct writer *w, uint32_t v)
{
	put_integer(w, 4, v);
}

void writer_u64(struct writer *w, uint64_t v)
{
	put_integer(w, 8, v);
}

void writer_bytes(struct writer *w, const void *p, size_t n)
{
	uint8_t *out;

	if (n == 0)
		return;
	out = put(w, n);
	if (out)
		memcpy(out, p, n);
}

void writer_vector(struct writer *w, unsigned length_bytes, struct slice s)
{
	if (length_bytes < 1 || length_bytes > 4 || (uint64_t)s.n >> (8 * length_bytes) != 0) {
		w->failed = true;
		return;
	}
	put_integer(w, length_bytes, s.n);
	writer_bytes(w, s.p, s.n);
}
