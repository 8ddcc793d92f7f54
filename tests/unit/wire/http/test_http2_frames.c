/* SPDX-License-Identifier: Apache-2.0 */
/* How large a DATA frame may be, and whose fault a reset is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/wire/http2_frames.h"

static void test_data_size(void **state)
{
	(void)state;
	assert_int_equal(http2_data_size(16375, INT32_MAX, INT32_MAX, 1u << 24), 16375);
	assert_int_equal(http2_data_size(16375, 100, 200, 16384), 100);
	assert_int_equal(http2_data_size(16375, 200, 100, 16384), 100);
	assert_int_equal(http2_data_size(16375, 20000, 20000, 1000), 1000);
	assert_int_equal(http2_data_size(16375, 0, 100, 16384), 0);
	/* A window may be negative (RFC 9113 section 6.9.2). */
	assert_int_equal(http2_data_size(16375, 100, -5, 16384), -5);
	assert_int_equal(http2_data_size(UINT32_MAX, INT32_MAX, INT32_MAX, UINT32_MAX), INT32_MAX);
}

static void test_faults(void **state)
{
	static const uint32_t ours[] = {0, 2, 8, 10},
	                      theirs[] = {1, 3, 4, 5, 6, 7, 9, 11, 12, 13, 14, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		assert_false(http2_is_clients_fault(ours[i]));
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		assert_true(http2_is_clients_fault(theirs[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_data_size),
	        cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
