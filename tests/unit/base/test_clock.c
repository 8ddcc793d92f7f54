/* SPDX-License-Identifier: Apache-2.0 */
/* clock: units agree with each other and with the system's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "vethguard/base/clock.h"

static void units_agree(void **state)
{
	int64_t us = clock_monotonic_us();
	int64_t ms = clock_monotonic_ms();
	int64_t real = clock_real_ms();
	int64_t now = (int64_t)time(NULL);

	(void)state;
	assert_true(us > 0);
	assert_true(ms >= us / 1000 && ms - us / 1000 < 10000);
	assert_true(real / 1000 <= now + 1 && now - real / 1000 < 10);
	assert_true(clock_monotonic_us() >= us);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(units_agree)};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
