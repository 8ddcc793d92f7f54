/* SPDX-License-Identifier: Apache-2.0 */
/* decompress: gzip, against zlib's own deflate, in every size of step, and what must be refused.
 * test_decompress_codings.c has what all codings share. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "vethguard/credential/decompress.h"

#define PLAIN 20000
static uint8_t plain[PLAIN], packed[2 * PLAIN];
static struct decompress_memory memory;

static size_t pack(const uint8_t *p, size_t n, uint8_t *out, size_t room, int window_bits)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)p;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLAIN; i++)
		plain[i] = (uint8_t)(rand() % 3 ? "etaoin "[rand() % 7] : rand());
	return 0;
}

/* Decompresses in steps of in_step bytes with out_limit; the bytes made, or -errno. */
static ssize_t run(const uint8_t *p, size_t n, size_t in_step, size_t out_limit, bool *complete,
        uint8_t *result)
{
	struct decompress *u = decompress_new(DECOMPRESS_GZIP, &memory);
	struct buf out;
	ssize_t total = 0;
	size_t at = 0;
	int rc = 0;

	assert_non_null(u);
	buf_init(&out, out_limit);
	while (rc == 0) {
		size_t step = n - at < in_step ? n - at : in_step, used;

		rc = decompress_feed(u, p + at, step, &used, &out, out_limit);
		assert_true(used <= step);
		assert_true(out.len <= out_limit);
		at += used;
		if (out.len == 0 && at == n && rc == 0)
			break;
		if (result && out.len)
			memcpy(result + total, buf_bytes(&out), out.len);
		total += (ssize_t)out.len;
		buf_consume(&out, out.len);
	}
	*complete = decompress_complete(u);
	if (rc < 0) {
		size_t used;

		/* Broken for good. */
		assert_int_equal(decompress_feed(u, p, n, &used, &out, out_limit), rc);
		assert_int_equal(used, 0);
	}
	decompress_free(u);
	buf_fini(&out);
	return rc < 0 ? rc : total;
}

static void test_every_step(void **state)
{
	static const size_t steps[] = {1, 2, 7, 100, 4096, SIZE_MAX},
	                    limits[] = {1, 3, 100, 16384, 1 << 20};
	static uint8_t result[PLAIN];
	size_t n = pack(plain, PLAIN, packed, sizeof(packed), 31);
	bool complete;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
			memset(result, 0, sizeof(result));
			assert_int_equal(
			        run(packed, n, steps[i], limits[k], &complete, result), PLAIN);
			assert_true(complete);
			assert_memory_equal(result, plain, PLAIN);
		}
}

static void test_several_members(void **state)
{
	size_t first = pack(plain, 1000, packed, sizeof(packed), 31);
	size_t second = pack(plain, 0, packed + first, sizeof(packed) - first, 31);
	size_t third = pack(
	        plain + 1000, 2000, packed + first + second, sizeof(packed) - first - second, 31);
	static uint8_t result[3000];
	bool complete;

	(void)state;
	for (size_t step = 1; step < 50; step++) {
		assert_int_equal(
		        run(packed, first + second + third, step, 777, &complete, result), 3000);
		assert_true(complete);
		assert_memory_equal(result, plain, 3000);
	}
	assert_int_equal(run(packed, first, 10, 777, &complete, NULL), 1000);
	assert_true(complete);
}

static void test_truncated_everywhere(void **state)
{
	size_t n = pack(plain, 300, packed, sizeof(packed), 31);
	bool complete;

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		assert_in_range(run(packed, cut, SIZE_MAX, 4096, &complete, NULL), 0, 300);
		assert_false(complete);
	}
}

static void test_damaged(void **state)
{
	size_t n = pack(plain, 300, packed, sizeof(packed), 31);
	bool complete;

	(void)state;
	/* Trailer: CRC and length. */
	for (size_t i = n - 8; i < n; i++) {
		packed[i] ^= 1;
		assert_int_equal(run(packed, n, SIZE_MAX, 4096, &complete, NULL), -EBADMSG);
		packed[i] ^= 1;
	}
	/* Magic, method, reserved flags. */
	for (size_t i = 0; i < 4; i++) {
		packed[i] ^= 0xe0;
		assert_int_equal(run(packed, n, SIZE_MAX, 4096, &complete, NULL), -EBADMSG);
		packed[i] ^= 0xe0;
	}
	/* Garbage behind a member. */
	memcpy(packed + n, "garbage and more of it", 22);
	assert_int_equal(run(packed, n + 22, SIZE_MAX, 4096, &complete, NULL), -EBADMSG);
	assert_false(complete);
}

static void test_other_formats(void **state)
{
	bool complete;
	size_t n;

	(void)state;
	n = pack(plain, 300, packed, sizeof(packed), 15); /* zlib */
	assert_int_equal(run(packed, n, SIZE_MAX, 4096, &complete, NULL), -EBADMSG);
	n = pack(plain, 300, packed, sizeof(packed), -15); /* raw */
	assert_int_equal(run(packed, n, SIZE_MAX, 4096, &complete, NULL), -EBADMSG);
	assert_int_equal(run((const uint8_t *)"{\"plain\":1}", 11, SIZE_MAX, 4096, &complete, NULL),
	        -EBADMSG);
	assert_int_equal(run((const uint8_t *)"", 0, SIZE_MAX, 4096, &complete, NULL), 0);
	assert_false(complete);
}

static void test_no_room_takes_nothing(void **state)
{
	size_t n = pack(plain, 300, packed, sizeof(packed), 31), used = 99;
	struct decompress *u = decompress_new(DECOMPRESS_GZIP, &memory);
	struct buf out;

	(void)state;
	buf_init(&out, 10);
	assert_int_equal(buf_append(&out, "0123456789", 10), 0);
	assert_int_equal(decompress_feed(u, packed, n, &used, &out, 10), 0);
	assert_int_equal(used, 0);
	assert_int_equal(decompress_feed(u, packed, n, &used, &out, 1000), 0);
	assert_int_equal(used, 0);
	assert_int_equal(out.len, 10);
	decompress_free(u);
	decompress_free(NULL);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_every_step),
	        cmocka_unit_test(test_several_members),
	        cmocka_unit_test(test_truncated_everywhere),
	        cmocka_unit_test(test_damaged),
	        cmocka_unit_test(test_other_formats),
	        cmocka_unit_test(test_no_room_takes_nothing),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
