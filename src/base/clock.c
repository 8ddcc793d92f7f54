/* SPDX-License-Identifier: Apache-2.0 */
/* These clocks exist on every Linux, and clock_gettime(2) cannot fail for them, so no error is
 * returned. */
#include <time.h>

#include "vethguard/base/clock.h"

static int64_t read_us(clockid_t id)
{
	struct timespec t = {0};

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_monotonic_ms(void)
{
	return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_monotonic_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_boot_ms(void)
{
	return read_us(CLOCK_BOOTTIME) / 1000;
}

int64_t clock_real_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}
