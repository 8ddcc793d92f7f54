/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/base/rate.h"

#define START_MS 7000000000

static uint32_t take_all(struct rate *r, int64_t now_ms)
{
	uint32_t n = 0;

	while (n < 100000000 && rate_take(r, now_ms))
		n++;
	return n;
}

static void a_burst_and_no_more(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 100, 2, START_MS);
	for (int i = 0; i < 1000; i++)
		assert_true(rate_has(&r, START_MS));
	assert_int_equal(take_all(&r, START_MS), 200);
	assert_false(rate_has(&r, START_MS));
	assert_false(rate_take(&r, START_MS));
	assert_false(rate_take(&r, START_MS + 9));
	assert_true(rate_take(&r, START_MS + 10));
	assert_false(rate_take(&r, START_MS + 19));
	assert_true(rate_take(&r, START_MS + 20));
}

static void time_fills_it_up_to_the_burst(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 100, 2, START_MS);
	take_all(&r, START_MS);
	assert_int_equal(take_all(&r, START_MS + 1000), 100);
	assert_int_equal(take_all(&r, START_MS + 1500), 50);
	assert_int_equal(take_all(&r, START_MS + 3600000), 200);
	assert_int_equal(take_all(&r, INT64_MAX), 200);
}

/* However often the rate is asked, rounding neither loses nor adds anything. */
static void fractions_add_up(void **state)
{
	struct rate r;
	uint32_t taken = 0;

	(void)state;
	rate_init(&r, 3, 1, START_MS);
	take_all(&r, START_MS);
	for (int64_t ms = 1; ms <= 10000; ms++)
		taken += rate_take(&r, START_MS + ms);
	assert_int_equal(taken, 30);
}

static void a_clock_that_stands_or_goes_back_gives_nothing(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 1000, 1, START_MS);
	take_all(&r, START_MS);
	assert_false(rate_take(&r, START_MS));
	assert_false(rate_take(&r, START_MS - 5000));
	assert_false(rate_take(&r, START_MS));
	assert_true(rate_take(&r, START_MS + 1));
}

static void zero_is_no_bound(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, 0, 2, START_MS);
	for (int i = 0; i < 1000; i++)
		assert_true(rate_take(&r, START_MS));
}

static void numbers_are_cut_to_their_bounds(void **state)
{
	struct rate r;

	(void)state;
	rate_init(&r, UINT32_MAX, UINT32_MAX, START_MS);
	assert_int_equal(take_all(&r, START_MS), RATE_PER_S_MAX * RATE_BURST_S_MAX);
	rate_init(&r, 1, 0, START_MS);
	assert_int_equal(take_all(&r, START_MS), 1);
	assert_int_equal(take_all(&r, START_MS + 999), 0);
	assert_int_equal(take_all(&r, START_MS + 1000), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_burst_and_no_more),
	        cmocka_unit_test(time_fills_it_up_to_the_burst),
	        cmocka_unit_test(fractions_add_up),
	        cmocka_unit_test(a_clock_that_stands_or_goes_back_gives_nothing),
	        cmocka_unit_test(zero_is_no_bound),
	        cmocka_unit_test(numbers_are_cut_to_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
