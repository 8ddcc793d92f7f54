/* SPDX-License-Identifier: Apache-2.0 */
/* compress: the content codings as servers make them, for tests of what reads them. Include it
 * behind cmocka.h. */
#ifndef VETHGUARD_TESTS_LIB_COMPRESS_H
#define VETHGUARD_TESTS_LIB_COMPRESS_H

#include <brotli/encode.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "vethguard/credential/decompress.h"

#define COMPRESS_RAW DECOMPRESS_CODING_COUNT /* "deflate" without zlib's format */
#define COMPRESS_WAYS (COMPRESS_RAW + 1)
#define COMPRESS_LEVEL_STORED 0 /* gzip, deflate: as it is; the others: little compressed */

static inline enum decompress_coding compress_coding(unsigned way)
{
	return way == COMPRESS_RAW ? DECOMPRESS_DEFLATE : (enum decompress_coding)way;
}

static inline const char *compress_name(unsigned way)
{
	static const char *const names[] = {"gzip", "deflate", "br", "zstd", "deflate"};

	return names[way];
}

static inline size_t compress_zlib(
        const void *p, size_t n, int level, int window_bits, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
	        .avail_in = (uInt)n,
	        .next_out = out,
	        .avail_out = (uInt)room};

	assert_int_equal(
	        deflateInit2(&z, level, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

/* With the checksum that the zstd program writes. */
static inline size_t compress_zstd(const void *p, size_t n, int level, uint8_t *out, size_t room)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t made;

	assert_non_null(context);
	assert_false(ZSTD_isError(
	        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level ? level : 1)));
	assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)));
	made = ZSTD_compress2(context, out, room, p, n);
	assert_false(ZSTD_isError(made));
	ZSTD_freeCCtx(context);
	return made;
}

/* Compresses p in one of COMPRESS_WAYS; level: 0 to 9. Returns the bytes written to out. */
static inline size_t compress_in(
        unsigned way, const void *p, size_t n, int level, uint8_t *out, size_t room)
{
	size_t made = room;

	switch (way) {
	case DECOMPRESS_GZIP:
		return compress_zlib(p, n, level, 15 + 16, out, room);
	case DECOMPRESS_DEFLATE:
		return compress_zlib(p, n, level, 15, out, room);
	case COMPRESS_RAW:
		return compress_zlib(p, n, level, -15, out, room);
	case DECOMPRESS_BROTLI:
		assert_true(BrotliEncoderCompress(
		        level, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, n, p, &made, out));
		return made;
	default:
		return compress_zstd(p, n, level, out, room);
	}
}

#endif
