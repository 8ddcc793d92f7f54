/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd, by libzstd. The library may have been built with the formats before version 0.8, whose
 * frames have other magic numbers. So this file checks each frame's first four bytes before the
 * library sees them. The library refuses a frame that needs a dictionary, because it has none, and
 * a frame whose window is larger than DECOMPRESS_ZSTD_WINDOW_LOG says.
 *
 * ZSTD_createDCtx_advanced(), which takes the functions that allocate, is outside of what the
 * library calls stable, but has not changed since version 1.0.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <errno.h>
#include <zstd.h>

#include "credential/decompress_private.h"

#define MAGIC_BYTES 4
#define SKIPPABLE_MAGIC 0x184d2a50u /* RFC 8878 section 3.1.2 */
#define SKIPPABLE_MASK 0xfffffff0u

struct zstd_decoder {
	struct decompress_heap *heap;
	ZSTD_DCtx *context;
	uint8_t magic[MAGIC_BYTES]; /* of this frame, as far as it has come */
	size_t magic_n;
};

static void free_zstd(void *decoder)
{
	struct zstd_decoder *d = decoder;

	ZSTD_freeDCtx(d->context);
	decompress_release(d->heap, d);
}

static void *new_zstd(struct decompress_heap *heap)
{
	const ZSTD_customMem memory = {decompress_alloc, decompress_release, heap};
	struct zstd_decoder *d = decompress_alloc(heap, sizeof(*d));

	if (!d)
		return NULL;
	*d = (struct zstd_decoder){.heap = heap, .context = ZSTD_createDCtx_advanced(memory)};
	if (!d->context || ZSTD_isError(ZSTD_DCtx_setParameter(
	                           d->context, ZSTD_d_windowLogMax, DECOMPRESS_ZSTD_WINDOW_LOG))) {
		free_zstd(d);
		return NULL;
	}
	return d;
}

static bool is_magic(const uint8_t p[MAGIC_BYTES])
{
	uint32_t magic =
	        (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;

	return magic == ZSTD_MAGICNUMBER || (magic & SKIPPABLE_MASK) == SKIPPABLE_MAGIC;
}

static int stream_step(struct zstd_decoder *d, struct decompress_io *io)
{
	ZSTD_inBuffer in = {io->in, io->in_n, 0};
	ZSTD_outBuffer out = {io->out, io->out_n, 0};
	size_t rc = ZSTD_decompressStream(d->context, &out, &in);

	io->in += in.pos;
	io->in_n -= in.pos;
	io->out += out.pos;
	io->out_n -= out.pos;
	if (ZSTD_isError(rc))
		return -EBADMSG;
	if (rc == 0)
		d->magic_n = 0; /* the frame is over */
	return rc == 0;
}

static int step_zstd(void *decoder, struct decompress_io *io)
{
	struct zstd_decoder *d = decoder;
	struct decompress_io magic = {d->magic, sizeof(d->magic), io->out, io->out_n};
	int rc;

	if (d->magic_n == sizeof(d->magic))
		return stream_step(d, io);
	for (; d->magic_n < sizeof(d->magic) && io->in_n; io->in_n--)
		d->magic[d->magic_n++] = *io->in++;
	if (d->magic_n < sizeof(d->magic))
		return 0;
	if (!is_magic(d->magic))
		return -EBADMSG;
	rc = stream_step(d, &magic);
	return rc == 0 && magic.in_n ? -EBADMSG : rc;
}

const struct decompress_format decompress_zstd = {
        .repeats = true, .new = new_zstd, .free = free_zstd, .step = step_zstd};
