/* SPDX-License-Identifier: Apache-2.0 */
/*
 * still_clock: CLOCK_MONOTONIC as the code under test reads it stands still when the test says so,
 * and goes on by what the test says; the code then does not notice how long the machine takes. The
 * kernel's timers and libevent's go on as ever. For one file of a program, which has the line "The
 * linker wraps: clock_gettime" (mk/tests.mk).
 */
#ifndef VETHGUARD_TESTS_STILL_CLOCK_H
#define VETHGUARD_TESTS_STILL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

static bool clock_stands;
static int64_t clock_stands_at_ms;

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int result = __real_clock_gettime(id, out);

	if (id == CLOCK_MONOTONIC && clock_stands)
		*out = (struct timespec){
		        clock_stands_at_ms / 1000, clock_stands_at_ms % 1000 * 1000000};
	return result;
}

static inline void clock_stop(void)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	clock_stands_at_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	clock_stands = true;
}

static inline void clock_move(int64_t ms)
{
	clock_stands_at_ms += ms;
}

/* The clock is the machine's again. */
static inline void clock_go(void)
{
	clock_stands = false;
}

#endif
