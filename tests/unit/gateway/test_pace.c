/* SPDX-License-Identifier: Apache-2.0 */
/* How much time connections without a proof may take, and when more is accepted again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/gateway.h"

#define START_MS 1000000

static struct gateway g;

static void begin(void)
{
	g.pace = (struct pace){0, 0};
	assert_false(pace_is_tight(&g, START_MS));
}

/* A tenth of each second may be spent for ever. */
static void test_within_the_share(void **state)
{
	(void)state;
	begin();
	for (int64_t ms = 1; ms <= 60000; ms++) {
		pace_charge(&g, 99);
		assert_false(pace_is_tight(&g, START_MS + ms));
	}
}

static void test_beyond_the_share(void **state)
{
	int64_t ms = 1, tight = 0;

	(void)state;
	begin();
	for (; ms <= 10000; ms++) {
		pace_charge(&g, 200);
		tight += pace_is_tight(&g, START_MS + ms);
	}
	assert_true(tight > 8000); /* once the burst was used up */
	assert_true(pace_is_tight(&g, START_MS + ms));
}

/* However much was spent, connections are accepted again after two seconds. */
static void test_over(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 1000; i++)
		pace_charge(&g, 1000000);
	assert_true(pace_is_tight(&g, START_MS));
	assert_true(pace_is_tight(&g, START_MS + 900));
	assert_false(pace_is_tight(&g, START_MS + 1900 + 1));
}

/* A clock that stands still, or goes back, gives nothing. */
static void test_clock(void **state)
{
	(void)state;
	begin();
	pace_charge(&g, 150000);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(pace_is_tight(&g, START_MS));
	assert_true(pace_is_tight(&g, START_MS - 5000));
	assert_true(pace_is_tight(&g, START_MS - 5000 + 400));
}

/* Time in which nobody came is not saved up beyond the burst. */
static void test_burst(void **state)
{
	(void)state;
	begin();
	assert_false(pace_is_tight(&g, START_MS + 86400000));
	pace_charge(&g, 99999);
	assert_false(pace_is_tight(&g, START_MS + 86400000));
	pace_charge(&g, 1);
	assert_true(pace_is_tight(&g, START_MS + 86400000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_within_the_share),
	        cmocka_unit_test(test_beyond_the_share),
	        cmocka_unit_test(test_over),
	        cmocka_unit_test(test_clock),
	        cmocka_unit_test(test_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
