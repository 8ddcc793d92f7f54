/* SPDX-License-Identifier: Apache-2.0 */
/* decompress: every coding in every size of step, and what must be refused; the bounds on memory
 * and on what content may become. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "decompress_test.h"
#include "vethguard/credential/inflate.h"

static void refuses(unsigned way, const uint8_t *p, size_t n)
{
	bool complete;

	assert_int_equal(run(way, p, n, SIZE_MAX, 4096, &complete, NULL), -EBADMSG);
	assert_int_equal(run(way, p, n, 1, 4096, &complete, NULL), -EBADMSG);
	assert_int_equal(memory.used, 0);
}

static void test_every_step(void **state)
{
	static const size_t steps[] = {1, 2, 7, 100, 4096, SIZE_MAX},
	                    limits[] = {1, 3, 100, 16384, 1 << 20};
	static uint8_t result[PLAIN];
	bool complete;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		size_t n = compress_in(way, plain, PLAIN, 6, packed, sizeof(packed));

		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
			for (size_t k = 0; k < sizeof(limits) / sizeof(*limits); k++) {
				memset(result, 0, sizeof(result));
				assert_int_equal(
				        run(way, packed, n, steps[i], limits[k], &complete, result),
				        PLAIN);
				assert_true(complete);
				assert_memory_equal(result, plain, PLAIN);
			}
	}
	assert_int_equal(memory.used, 0);
}

/* What a server flushes comes out before anything follows it: events must not wait. */
static void test_flushed_bytes_come_out(void **state)
{
	BrotliEncoderState *encoder = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	struct decompress *u = decompress_new(DECOMPRESS_BROTLI, &memory);
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	for (int i = 0; i < 20; i++) {
		const uint8_t *in = (const uint8_t *)"data: event\n\n";
		uint8_t *to = packed;
		size_t in_n = 13, room = sizeof(packed), used;

		assert_true(BrotliEncoderCompressStream(
		        encoder, BROTLI_OPERATION_FLUSH, &in_n, &in, &room, &to, NULL));
		assert_int_equal(
		        decompress_feed(u, packed, sizeof(packed) - room, &used, &out, 4096), 0);
		assert_int_equal(used, sizeof(packed) - room);
		assert_int_equal(out.len, 13);
		buf_consume(&out, out.len);
	}
	assert_false(decompress_complete(u));
	BrotliEncoderDestroyInstance(encoder);
	decompress_free(u);
	buf_fini(&out);
}

static void test_truncated_everywhere(void **state)
{
	bool complete;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		size_t n = compress_in(way, plain, 300, 6, packed, sizeof(packed));

		for (size_t cut = 0; cut < n; cut++) {
			assert_in_range(
			        run(way, packed, cut, SIZE_MAX, 4096, &complete, NULL), 0, 300);
			assert_false(complete);
		}
	}
}

static void test_what_follows_the_end(void **state)
{
	static uint8_t result[2000];
	bool complete;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		bool repeats = way == DECOMPRESS_GZIP || way == DECOMPRESS_ZSTD;
		size_t n = compress_in(way, plain, 1000, 6, packed, sizeof(packed));

		memset(packed + n, 'x', 10);
		refuses(way, packed, n + 10);
		n += compress_in(way, plain + 1000, 1000, 6, packed + n, sizeof(packed) - n);
		if (!repeats) {
			refuses(way, packed, n);
			continue;
		}
		for (size_t step = 1; step < 50; step++) {
			assert_int_equal(run(way, packed, n, step, 777, &complete, result), 2000);
			assert_true(complete);
			assert_memory_equal(result, plain, 2000);
		}
	}
}

/* A stream with a checksum never gives other content after one of its bytes has changed. (zlib's
 * Adler-32 does not count: it is the same for some changes of three bytes.) */
static void test_damaged(void **state)
{
	static uint8_t result[4096];
	bool complete;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		bool has_sum = way == DECOMPRESS_GZIP || way == DECOMPRESS_ZSTD;
		size_t n = compress_in(way, plain, 300, 6, packed, sizeof(packed));

		for (size_t i = 0; i < n; i++) {
			ssize_t made;

			packed[i] ^= 0x20;
			made = run(way, packed, n, SIZE_MAX, 4096, &complete, result);
			packed[i] ^= 0x20;
			if (has_sum && complete)
				assert_memory_equal(result, plain, 300);
			assert_true(made >= 0 || made == -EBADMSG || made == -EFBIG);
		}
		assert_int_equal(memory.used, 0);
	}
}

/* Each coding's stream under each other's name. DEFLATE without zlib's format has no mark of its
 * own, but the other codings' streams are not valid DEFLATE. */
static void test_other_codings(void **state)
{
	static const char text[] = "{\"plain\":1}";
	size_t n;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_RAW; way++) {
		for (unsigned as = 0; as < COMPRESS_RAW; as++) {
			bool complete;

			n = compress_in(way, plain, 300, 6, packed, sizeof(packed));
			if (as == way)
				continue;
			(void)run(as, packed, n, SIZE_MAX, 4096, &complete, NULL);
			assert_false(complete);
		}
		if (way == DECOMPRESS_GZIP || way == DECOMPRESS_ZSTD)
			refuses(way, (const uint8_t *)text, sizeof(text) - 1);
	}
}

/* --- deflate --- */

static void test_a_dictionary_of_deflate(void **state)
{
	z_stream z = {
	        .next_in = plain, .avail_in = 300, .next_out = packed, .avail_out = sizeof(packed)};

	(void)state;
	assert_int_equal(deflateInit(&z, 6), Z_OK);
	assert_int_equal(deflateSetDictionary(&z, plain, 300), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	refuses(DECOMPRESS_DEFLATE, packed, sizeof(packed) - z.avail_out);
}

static void test_smallest_deflate(void **state)
{
	static const uint8_t raw[] = {3, 0}, headless[] = {0x78, 0x9d, 3, 0, 0, 0, 0, 1},
	                     header[] = {0x78, 0x9c, 3, 0, 0, 0, 0, 1};
	bool complete;

	(void)state;
	for (size_t step = 1; step < 9; step++) {
		assert_int_equal(run(COMPRESS_RAW, raw, sizeof(raw), step, 10, &complete, NULL), 0);
		assert_true(complete);
		assert_int_equal(
		        run(COMPRESS_RAW, header, sizeof(header), step, 10, &complete, NULL), 0);
		assert_true(complete);
	}
	refuses(COMPRESS_RAW, headless, sizeof(headless)); /* check bits: a stored block, whose
	                                                      length is not repeated */
	assert_int_equal(run(COMPRESS_RAW, raw, 1, 1, 10, &complete, NULL), 0);
	assert_false(complete);
}

/* --- br --- */

static void test_windows_of_brotli(void **state)
{
	uint8_t result[300];
	bool complete;

	(void)state;
	for (int bits = BROTLI_MIN_WINDOW_BITS; bits <= BROTLI_LARGE_MAX_WINDOW_BITS; bits++) {
		BrotliEncoderState *encoder = BrotliEncoderCreateInstance(NULL, NULL, NULL);
		const uint8_t *in = plain;
		uint8_t *to = packed;
		size_t in_n = 300, room = sizeof(packed);
		bool large = bits > BROTLI_MAX_WINDOW_BITS;

		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_LARGE_WINDOW, large);
		BrotliEncoderSetParameter(encoder, BROTLI_PARAM_LGWIN, (uint32_t)bits);
		assert_true(BrotliEncoderCompressStream(
		        encoder, BROTLI_OPERATION_FINISH, &in_n, &in, &room, &to, NULL));
		BrotliEncoderDestroyInstance(encoder);
		if (large) {
			refuses(DECOMPRESS_BROTLI, packed, sizeof(packed) - room);
			continue;
		}
		assert_int_equal(run(DECOMPRESS_BROTLI, packed, sizeof(packed) - room, 7, 300,
		                         &complete, result),
		        300);
		assert_true(complete);
		assert_memory_equal(result, plain, 300);
	}
}

/* --- zstd --- */

#define MAGIC 0x28, 0xb5, 0x2f, 0xfd
#define BLOCK_X 9, 0, 0, 'x' /* the last block, as it is, of one byte */

static void test_frames_of_zstd(void **state)
{
	static const uint8_t largest[] = {MAGIC, 0, 0x68, BLOCK_X},
	                     too_large[] = {MAGIC, 0, 0x69, BLOCK_X},
	                     far_too_large[] = {MAGIC, 0, 0xff, BLOCK_X},
	                     /* one segment of 8 MiB and a byte */
	        too_long[] = {MAGIC, 0xa0, 1, 0, 0x80, 0, BLOCK_X},
	                     dictionary[] = {MAGIC, 1, 0x68, 7, BLOCK_X},
	                     reserved[] = {MAGIC, 8, 0x68, BLOCK_X},
	                     old[] = {0x27, 0xb5, 0x2f, 0xfd, 0, 0x68, BLOCK_X},
	                     older[] = {0x24, 0xb5, 0x2f, 0xfd, 0, 0x68, BLOCK_X},
	                     oldest[] = {0xfd, 0x2f, 0xb5, 0x1e, 0, 0x68, BLOCK_X},
	                     skipped[] = {0x5f, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'a', 'b', MAGIC, 0,
	                             0x68, BLOCK_X, 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0};
	bool complete;

	(void)state;
	for (size_t step = 1; step <= sizeof(skipped); step++) {
		uint8_t result[2] = {0};

		assert_int_equal(run(DECOMPRESS_ZSTD, largest, sizeof(largest), step, 100,
		                         &complete, result),
		        1);
		assert_true(complete && result[0] == 'x');
		assert_int_equal(
		        run(DECOMPRESS_ZSTD, skipped, sizeof(skipped), step, 1, &complete, result),
		        1);
		assert_true(complete && result[0] == 'x');
	}
	refuses(DECOMPRESS_ZSTD, too_large, sizeof(too_large));
	refuses(DECOMPRESS_ZSTD, far_too_large, sizeof(far_too_large));
	refuses(DECOMPRESS_ZSTD, too_long, sizeof(too_long));
	refuses(DECOMPRESS_ZSTD, dictionary, sizeof(dictionary));
	refuses(DECOMPRESS_ZSTD, reserved, sizeof(reserved));
	refuses(DECOMPRESS_ZSTD, old, sizeof(old));
	refuses(DECOMPRESS_ZSTD, older, sizeof(older));
	refuses(DECOMPRESS_ZSTD, oldest, sizeof(oldest));
}

/* --- bounds --- */

/* 64 MiB of zeros are refused, and INFLATED_FREE bytes of zeros are not, in each coding. */
static void test_bombs(void **state)
{
	const size_t n = 64u << 20, fits = INFLATED_FREE, room = 1u << 20;
	uint8_t *zeros = calloc(1, n), *bomb = malloc(room);
	bool complete;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		size_t bomb_n = compress_in(way, zeros, n, 9, bomb, room);
		ssize_t made = run(way, bomb, bomb_n, SIZE_MAX, 65536, &complete, NULL);

		assert_true(n > INFLATED_FREE + INFLATED_RATIO * bomb_n);
		assert_int_equal(made, -EFBIG);
		bomb_n = compress_in(way, zeros, fits, 9, bomb, room);
		assert_int_equal(
		        run(way, bomb, bomb_n, 100, 65536, &complete, NULL), (ssize_t)fits);
		assert_true(complete);
		assert_int_equal(memory.used, 0);
	}
	free(zeros);
	free(bomb);
}

/* Wherever the decoder meets the bound on memory, it fails for good, and gives everything back. */
static void test_memory_is_bounded(void **state)
{
	static uint8_t result[PLAIN];
	bool complete;

	(void)state;
	for (unsigned way = 0; way < COMPRESS_WAYS; way++) {
		size_t n = compress_in(way, plain, PLAIN, 6, packed, sizeof(packed)), left;
		unsigned failed = 0;

		for (left = 0;; left += left / 16 + 64) {
			ssize_t made;

			memory.used = DECOMPRESS_MEMORY_MAX - left;
			made = run(way, packed, n, 1000, 5000, &complete, result);
			assert_int_equal(memory.used, DECOMPRESS_MEMORY_MAX - left);
			if (made == PLAIN)
				break;
			assert_int_equal(made, -ENOMEM);
			failed++;
		}
		assert_true(failed > 2 && complete);
		assert_memory_equal(result, plain, PLAIN);
		assert_true(left < 9u << 20);
		memory.used = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_step),
	        cmocka_unit_test(test_flushed_bytes_come_out),
	        cmocka_unit_test(test_truncated_everywhere),
	        cmocka_unit_test(test_what_follows_the_end),
	        cmocka_unit_test(test_damaged),
	        cmocka_unit_test(test_other_codings),
	        cmocka_unit_test(test_a_dictionary_of_deflate),
	        cmocka_unit_test(test_smallest_deflate),
	        cmocka_unit_test(test_windows_of_brotli),
	        cmocka_unit_test(test_frames_of_zstd),
	        cmocka_unit_test(test_bombs),
	        cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
