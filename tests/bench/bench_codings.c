/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_codings: what a response in each content coding costs the worker, in CPU time per byte of
 * plain content: decompressing it, and what compressing it again (the quickest level of each) would
 * cost on top. The content is text like JSON, at a level that servers use.
 */
#include <brotli/encode.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>
#include <zstd.h>

#include "vethguard/credential/decompress.h"

#define BODY (8u << 20)
#define STEP (64u << 10)
#define ROUNDS 8

static const char *const names[] = {"gzip", "deflate", "br", "zstd"};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(bool fact)
{
	if (!fact)
		exit(1);
}

static void fill(char *body)
{
	static const char *const words[] = {"\"name\":", "\"value\":", "true", "false", "null",
	        "\"repository\"", "\"https://api.example.com/v1/items/\"", "{", "}", "[", "],"};
	size_t at = 0;
	unsigned seed = 1;

	while (at + 64 < BODY) {
		seed = seed * 1103515245 + 12345;
		at += (size_t)snprintf(body + at, 64, "%s%u,",
		        words[seed / 65536 % (sizeof(words) / sizeof(*words))],
		        seed / 65536 % 1000);
	}
	memset(body + at, ' ', BODY - at);
}

static size_t zlib_pack(const void *p, size_t n, int level, int bits, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
	        .avail_in = (uInt)n,
	        .next_out = out,
	        .avail_out = (uInt)room};

	must(deflateInit2(&z, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	must(deflate(&z, Z_FINISH) == Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static size_t pack(enum decompress_coding coding, const void *p, size_t n, bool quick, uint8_t *out,
        size_t room)
{
	size_t made = room;

	switch (coding) {
	case DECOMPRESS_GZIP:
		return zlib_pack(p, n, quick ? 1 : 6, 31, out, room);
	case DECOMPRESS_DEFLATE:
		return zlib_pack(p, n, quick ? 1 : 6, 15, out, room);
	case DECOMPRESS_BROTLI:
		must(BrotliEncoderCompress(quick ? 0 : 5, BROTLI_DEFAULT_WINDOW,
		        BROTLI_MODE_GENERIC, n, p, &made, out));
		return made;
	default:
		made = ZSTD_compress(out, room, p, n, quick ? 1 : 3);
		must(!ZSTD_isError(made));
		return made;
	}
}

static void unpack(enum decompress_coding coding, const uint8_t *p, size_t n, struct buf *out)
{
	struct decompress_memory memory = {0};
	struct decompress *u = decompress_new(coding, &memory);
	size_t at = 0, used, total = 0;

	must(u != NULL);
	while (total < BODY) {
		must(decompress_feed(u, p + at, n - at, &used, out, STEP) == 0);
		at += used;
		total += out->len;
		buf_consume(out, out->len);
	}
	must(decompress_complete(u));
	decompress_free(u);
	must(memory.used == 0);
}

int main(void)
{
	char *body = malloc(BODY);
	uint8_t *packed = malloc(2 * BODY), *again = malloc(2 * BODY);
	struct buf out;

	must(body && packed && again);
	fill(body);
	buf_init(&out, 2 * STEP);
	for (unsigned coding = 0; coding < DECOMPRESS_CODING_COUNT; coding++) {
		size_t n = pack(coding, body, BODY, false, packed, 2 * BODY), again_n = 0;
		double begin = cpu_seconds(), decoded, encoded;

		for (int i = 0; i < ROUNDS; i++)
			unpack(coding, packed, n, &out);
		decoded = (cpu_seconds() - begin) / ROUNDS / BODY * 1e9;
		begin = cpu_seconds();
		for (int i = 0; i < ROUNDS; i++)
			again_n = pack(coding, body, BODY, true, again, 2 * BODY);
		encoded = (cpu_seconds() - begin) / ROUNDS / BODY * 1e9;
		printf("%-7s decompressed: %.2f ns per byte (%.0f %% of it came); compressed "
		       "again: %.2f "
		       "ns per byte more (to %.0f %%)\n",
		        names[coding], decoded, 100.0 * (double)n / BODY, encoded,
		        100.0 * (double)again_n / BODY);
	}
	buf_fini(&out);
	free(body);
	free(packed);
	free(again);
	return 0;
}
