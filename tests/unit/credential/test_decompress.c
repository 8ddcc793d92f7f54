/* SPDX-License-Identifier: Apache-2.0 */
/* decompress: several members of gzip, and what is refused as gzip. test_decompress_codings.c has
 * what all codings share. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "decompress_test.h"

#define GZIP_WINDOW 31
#define ZLIB_WINDOW 15
#define RAW_WINDOW (-15)

static size_t pack(const uint8_t *p, size_t n, uint8_t *out, size_t room, int window_bits)
{
	return compress_zlib(p, n, 6, window_bits, out, room);
}

static ssize_t run_gzip(const uint8_t *p, size_t n, size_t in_step, bool *complete, uint8_t *result)
{
	return run(DECOMPRESS_GZIP, p, n, in_step, 4096, complete, result);
}

static void test_several_members(void **state)
{
	size_t first = pack(plain, 1000, packed, sizeof(packed), GZIP_WINDOW);
	size_t second = pack(plain, 0, packed + first, sizeof(packed) - first, GZIP_WINDOW);
	size_t third = pack(plain + 1000, 2000, packed + first + second,
	        sizeof(packed) - first - second, GZIP_WINDOW);
	static uint8_t result[3000];
	bool complete;

	(void)state;
	for (size_t step = 1; step < 50; step++) {
		assert_int_equal(
		        run_gzip(packed, first + second + third, step, &complete, result), 3000);
		assert_true(complete);
		assert_memory_equal(result, plain, 3000);
	}
	assert_int_equal(run_gzip(packed, first, 10, &complete, NULL), 1000);
	assert_true(complete);
}

static void test_truncated_everywhere(void **state)
{
	size_t n = pack(plain, 300, packed, sizeof(packed), GZIP_WINDOW);
	bool complete;

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		assert_in_range(run_gzip(packed, cut, SIZE_MAX, &complete, NULL), 0, 300);
		assert_false(complete);
	}
}

static void test_damaged(void **state)
{
	size_t n = pack(plain, 300, packed, sizeof(packed), GZIP_WINDOW);
	bool complete;

	(void)state;
	/* Trailer: CRC and length. */
	for (size_t i = n - 8; i < n; i++) {
		packed[i] ^= 1;
		assert_int_equal(run_gzip(packed, n, SIZE_MAX, &complete, NULL), -EBADMSG);
		packed[i] ^= 1;
	}
	/* Magic, method, reserved flags. */
	for (size_t i = 0; i < 4; i++) {
		packed[i] ^= 0xe0;
		assert_int_equal(run_gzip(packed, n, SIZE_MAX, &complete, NULL), -EBADMSG);
		packed[i] ^= 0xe0;
	}
	/* Garbage behind a member. */
	memcpy(packed + n, "garbage and more of it", 22);
	assert_int_equal(run_gzip(packed, n + 22, SIZE_MAX, &complete, NULL), -EBADMSG);
	assert_false(complete);
}

static void test_other_formats(void **state)
{
	bool complete;
	size_t n;

	(void)state;
	n = pack(plain, 300, packed, sizeof(packed), ZLIB_WINDOW);
	assert_int_equal(run_gzip(packed, n, SIZE_MAX, &complete, NULL), -EBADMSG);
	n = pack(plain, 300, packed, sizeof(packed), RAW_WINDOW);
	assert_int_equal(run_gzip(packed, n, SIZE_MAX, &complete, NULL), -EBADMSG);
	assert_int_equal(run_gzip((const uint8_t *)"{\"plain\":1}", 11, SIZE_MAX, &complete, NULL),
	        -EBADMSG);
	assert_int_equal(run_gzip((const uint8_t *)"", 0, SIZE_MAX, &complete, NULL), 0);
	assert_false(complete);
}

static void test_no_room_takes_nothing(void **state)
{
	size_t n = pack(plain, 300, packed, sizeof(packed), GZIP_WINDOW), used = 99;
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
	        cmocka_unit_test(test_several_members),
	        cmocka_unit_test(test_truncated_everywhere),
	        cmocka_unit_test(test_damaged),
	        cmocka_unit_test(test_other_formats),
	        cmocka_unit_test(test_no_room_takes_nothing),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
