/* SPDX-License-Identifier: Apache-2.0 */
/* cursor: nothing is read or written past the end, and the first failure sticks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/base/cursor.h"

static const uint8_t sample[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};

static void reads_network_order(void **state)
{
	struct reader r = reader_over(sample, sizeof(sample));

	(void)state;
	assert_int_equal(reader_u8(&r), 1);
	assert_int_equal(reader_u16(&r), 0x0203);
	assert_int_equal(reader_u8(&r), 4);
	assert_int_equal(reader_u16(&r), 0x0506);
	assert_int_equal(reader_u32(&r), 0x0708090a);
	assert_true(reader_u64(&r) == 0x0b0c0d0e0f101112u);
	assert_true(reader_done(&r));
	assert_int_equal(reader_u8(&r), 0);
	assert_true(r.failed);
	assert_false(reader_done(&r));
}

/* Each read, at each number of bytes left: it succeeds exactly where all of it is there. */
static void fails_at_every_short_end(void **state)
{
	static const size_t widths[] = {1, 2, 4, 8, 5, 6};

	(void)state;
	for (size_t n = 0; n <= 9; n++) {
		for (int kind = 0; kind < 6; kind++) {
			struct reader r = reader_over(sample, n);
			uint8_t copy[6] = "xxxxx";
			bool fits = widths[kind] <= n;

			switch (kind) {
			case 0:
				assert_int_equal(reader_u8(&r) != 0, fits);
				break;
			case 1:
				assert_int_equal(reader_u16(&r) != 0, fits);
				break;
			case 2:
				assert_int_equal(reader_u32(&r) != 0, fits);
				break;
			case 3:
				assert_int_equal(reader_u64(&r) != 0, fits);
				break;
			case 4:
				assert_int_equal(reader_bytes(&r, 5).n, fits ? 5 : 0);
				break;
			default:
				reader_copy(&r, copy, 6);
				assert_int_equal(copy[5], fits ? 6 : 0);
				assert_int_equal(copy[0], fits ? 1 : 0);
			}
			assert_int_equal(r.failed, !fits);
			if (fits)
				assert_int_equal(r.left, n - widths[kind]);
		}
	}
}

static void failure_sticks(void **state)
{
	struct reader r = reader_over(sample, 3);
	uint8_t copy[2] = {9, 9};

	(void)state;
	reader_u32(&r);
	assert_int_equal(reader_u8(&r), 0);
	assert_int_equal(reader_bytes(&r, 1).n, 0);
	assert_int_equal(reader_bytes(&r, 0).n, 0);
	assert_int_equal(reader_vector(&r, 1, 10).n, 0);
	reader_copy(&r, copy, 2);
	assert_int_equal(copy[0] | copy[1], 0);
	assert_false(reader_done(&r));
}

static void vectors_hold_their_bounds(void **state)
{
	static const uint8_t three[] = {3, 'a', 'b', 'c'};
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 1, 2, 3};
	struct reader r = reader_over(three, 4);

	(void)state;
	assert_true(slice_equals(reader_vector(&r, 1, 3), SLICE("abc")));
	assert_true(reader_done(&r));
	r = reader_over(three, 4);
	assert_int_equal(reader_vector(&r, 1, 2).n, 0);
	assert_true(r.failed);
	r = reader_over(three, 3);
	assert_int_equal(reader_vector(&r, 1, 3).n, 0);
	assert_true(r.failed);
	for (unsigned width = 0; width <= 6; width++) {
		r = reader_over(huge, sizeof(huge));
		assert_int_equal(reader_vector(&r, width, SIZE_MAX).n, 0);
		assert_true(r.failed);
	}
	r = reader_over("\0\0\0\2xy", 6);
	assert_true(slice_equals(reader_vector(&r, 4, 2), SLICE("xy")));
	r = reader_over("\0\0\2xy", 5);
	assert_true(slice_equals(reader_vector(&r, 3, 2), SLICE("xy")));
	r = reader_over("\0\2xy", 4);
	assert_true(slice_equals(reader_vector(&r, 2, 2), SLICE("xy")));
	r = reader_over("\0", 1);
	assert_int_equal(reader_vector(&r, 1, 0).n, 0);
	assert_true(reader_done(&r));
}

static void huge_lengths_do_not_wrap(void **state)
{
	struct reader r = reader_over(sample, sizeof(sample));

	(void)state;
	reader_u8(&r);
	assert_int_equal(reader_bytes(&r, SIZE_MAX).n, 0);
	assert_true(r.failed);
}

static void writes_network_order(void **state)
{
	uint8_t out[18];
	struct writer w = writer_over(out, sizeof(out));

	(void)state;
	writer_u8(&w, 1);
	writer_u16(&w, 0x0203);
	writer_u8(&w, 4);
	writer_u16(&w, 0x0506);
	writer_u32(&w, 0x0708090a);
	writer_u64(&w, 0x0b0c0d0e0f101112u);
	assert_false(w.failed);
	assert_int_equal(w.len, sizeof(out));
	assert_memory_equal(out, sample, sizeof(out));
	writer_bytes(&w, NULL, 0);
	assert_false(w.failed);
	writer_u8(&w, 1);
	assert_true(w.failed);
}

static void writes_nothing_past_the_end(void **state)
{
	(void)state;
	for (size_t cap = 0; cap < 8; cap++) {
		uint8_t out[9];
		struct writer w = writer_over(out, cap);

		memset(out, 0xee, sizeof(out));
		writer_u64(&w, 0);
		assert_true(w.failed);
		assert_int_equal(w.len, 0);
		writer_u8(&w, 0); /* would fit, but the failure sticks */
		writer_bytes(&w, "", 1);
		for (size_t i = 0; i < sizeof(out); i++)
			assert_int_equal(out[i], 0xee);
	}
}

static void refuses_values_that_do_not_fit(void **state)
{
	static char big[65536];
	static uint8_t out[70000];
	struct writer w = writer_over(out, sizeof(out));

	(void)state;
	writer_vector(&w, 1, slice_of(big, 255));
	assert_false(w.failed);
	assert_int_equal(w.len, 256);
	writer_vector(&w, 1, slice_of(big, 256));
	assert_true(w.failed);
	w = writer_over(out, sizeof(out));
	writer_vector(&w, 2, slice_of(big, 65536));
	assert_true(w.failed);
	w = writer_over(out, sizeof(out));
	writer_vector(&w, 3, slice_of(big, 65536));
	assert_false(w.failed);
	assert_memory_equal(out, "\1\0\0", 3);
	w = writer_over(out, sizeof(out));
	writer_vector(&w, 5, SLICE("a"));
	assert_true(w.failed);
	w = writer_over(out, sizeof(out));
	writer_vector(&w, 0, SLICE("a"));
	assert_true(w.failed);
	w = writer_over(out, 3);
	writer_bytes(&w, big, SIZE_MAX);
	assert_true(w.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(reads_network_order),
	        cmocka_unit_test(fails_at_every_short_end),
	        cmocka_unit_test(failure_sticks),
	        cmocka_unit_test(vectors_hold_their_bounds),
	        cmocka_unit_test(huge_lengths_do_not_wrap),
	        cmocka_unit_test(writes_network_order),
	        cmocka_unit_test(writes_nothing_past_the_end),
	        cmocka_unit_test(refuses_values_that_do_not_fit),
	};

	return cmocka_run_group_tests_name("cursor", tests, NULL, NULL);
}
