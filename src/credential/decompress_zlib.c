/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip and deflate, by zlib, which checks each member's CRC and length, or the stream's Adler-32.
 *
 * The coding "deflate" is zlib's format; some servers send DEFLATE without it (RFC 9110 section
 * 8.4.1.2). The first two bytes decide, as they do for clients: they are zlib's header (RFC 1950
 * section 2.2) or else the beginning of DEFLATE itself. A stream that needs a dictionary is
 * refused: zlib does not go on without one.
 */
#include <errno.h>
#include <limits.h>
#include <zlib.h>

#include "credential/decompress_private.h"

#define WINDOW_BITS 15                      /* the largest window */
#define WINDOW_GZIP_ONLY (WINDOW_BITS + 16) /* inflateInit2: gzip's header is required */
#define WINDOW_RAW (-WINDOW_BITS)           /* neither header nor checksum */
#define ZLIB_HEADER_BYTES 2

struct zlib_decoder {
	struct decompress_heap *heap;
	z_stream z;
	/* deflate: the first bytes, which tell the format. */
	uint8_t first[ZLIB_HEADER_BYTES];
	size_t first_n;
	bool begun; /* the format is known, and z was made */
};

static void *z_alloc(void *heap, uInt items, uInt size)
{
	return decompress_alloc(heap, (size_t)items * size);
}

static struct zlib_decoder *new_decoder(struct decompress_heap *heap)
{
	struct zlib_decoder *d = decompress_alloc(heap, sizeof(*d));

	if (d)
		*d = (struct zlib_decoder){.heap = heap,
		        .z = {.zalloc = z_alloc, .zfree = decompress_release, .opaque = heap}};
	return d;
}

static void free_decoder(void *decoder)
{
	struct zlib_decoder *d = decoder;

	if (d->begun)
		inflateEnd(&d->z);
	decompress_release(d->heap, d);
}

static bool begin(struct zlib_decoder *d, int window_bits)
{
	d->begun = inflateInit2(&d->z, window_bits) == Z_OK;
	return d->begun;
}

static void *new_gzip(struct decompress_heap *heap)
{
	struct zlib_decoder *d = new_decoder(heap);

	if (d && !begin(d, WINDOW_GZIP_ONLY)) {
		free_decoder(d);
		d = NULL;
	}
	return d;
}

static void *new_deflate(struct decompress_heap *heap)
{
	return new_decoder(heap);
}

static int inflate_step(struct zlib_decoder *d, struct decompress_io *io)
{
	uInt in_n = io->in_n < UINT_MAX ? (uInt)io->in_n : UINT_MAX;
	uInt out_n = io->out_n < UINT_MAX ? (uInt)io->out_n : UINT_MAX;
	int rc;

	d->z.next_in = (Bytef *)(uintptr_t)io->in;
	d->z.avail_in = in_n;
	d->z.next_out = io->out;
	d->z.avail_out = out_n;
	rc = inflate(&d->z, Z_NO_FLUSH);
	io->in += in_n - d->z.avail_in;
	io->in_n -= in_n - d->z.avail_in;
	io->out += out_n - d->z.avail_out;
	io->out_n -= out_n - d->z.avail_out;
	d->z.next_in = NULL;
	d->z.next_out = NULL;
	if (rc == Z_STREAM_END)
		return inflateReset(&d->z) == Z_OK ? 1 : -EBADMSG;
	return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : -EBADMSG;
}

static int step_gzip(void *decoder, struct decompress_io *io)
{
	return inflate_step(decoder, io);
}

/* True for the header of zlib's format: compression method 8, a window of at most 32 KiB, and the
 * check bits. */
static bool is_zlib(const uint8_t p[ZLIB_HEADER_BYTES])
{
	return (p[0] & 0x0f) == 8 && p[0] >> 4 <= 7 && (p[0] << 8 | p[1]) % 31 == 0;
}

static int step_deflate(void *decoder, struct decompress_io *io)
{
	struct zlib_decoder *d = decoder;
	struct decompress_io kept;
	int rc;

	if (d->begun)
		return inflate_step(d, io);
	for (; d->first_n < sizeof(d->first) && io->in_n; io->in_n--)
		d->first[d->first_n++] = *io->in++;
	if (d->first_n < sizeof(d->first))
		return 0;
	if (!begin(d, is_zlib(d->first) ? WINDOW_BITS : WINDOW_RAW))
		return -EBADMSG;
	kept = (struct decompress_io){d->first, d->first_n, io->out, io->out_n};
	rc = inflate_step(d, &kept);
	io->out = kept.out;
	io->out_n = kept.out_n;
	if (kept.in_n) /* zlib keeps both bytes, unless the stream ends before: it is damaged */
		return -EBADMSG;
	return rc;
}

const struct decompress_format decompress_gzip = {
        .repeats = true, .new = new_gzip, .free = free_decoder, .step = step_gzip};
const struct decompress_format decompress_deflate = {
        .new = new_deflate, .free = free_decoder, .step = step_deflate};
