/* SPDX-License-Identifier: Apache-2.0 */
/* A delta begins with the sizes of the base and of the object. Then instructions follow: copy a
 * range of the base, or insert the bytes that follow. */
#include "git/delta.h"

#include "vethguard/base/cursor.h"

#define COPY 0x80u
#define SIZE_BITS_MAX 28u /* the largest shift: enough for every size that is read here */
#define COPY_DEFAULT 0x10000u

static size_t read_size(struct reader *r)
{
	size_t size = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = reader_u8(r);
		if (shift > SIZE_BITS_MAX)
			r->failed = true;
		else
			size |= (size_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !r->failed);
	return size;
}

bool delta_size(struct slice delta, size_t base_n, size_t max, size_t *out)
{
	struct reader r = reader_over(delta.p, delta.n);
	size_t base = read_size(&r);

	*out = read_size(&r);
	return !r.failed && base == base_n && *out <= max;
}

/* Reads a copy instruction. Bits 0 to 3 of op say which bytes of the offset follow, bits 4 to 6
 * which bytes of the size. */
static struct slice read_copy(struct reader *r, uint8_t op, struct slice base)
{
	size_t offset = 0, size = 0;

	for (unsigned i = 0; i < 4; i++)
		if (op >> i & 1)
			offset |= (size_t)reader_u8(r) << 8 * i;
	for (unsigned i = 0; i < 3; i++)
		if (op >> (4 + i) & 1)
			size |= (size_t)reader_u8(r) << 8 * i;
	if (size == 0)
		size = COPY_DEFAULT;
	if (offset > base.n || size > base.n - offset)
		r->failed = true;
	return r->failed ? SLICE("") : slice_of(base.p + offset, size);
}

bool delta_apply(struct slice delta, struct slice base, uint8_t *out)
{
	struct reader r = reader_over(delta.p, delta.n);
	struct writer w;
	size_t size;

	read_size(&r);
	size = read_size(&r);
	w = writer_over(out, size);
	while (!r.failed && r.left) {
		uint8_t op = reader_u8(&r);
		struct slice piece = (op & COPY) ? read_copy(&r, op, base) : reader_bytes(&r, op);

		r.failed |= op == 0;
		writer_bytes(&w, piece.p, piece.n);
	}
	return !r.failed && !w.failed && w.len == size;
}
