/* SPDX-License-Identifier: Apache-2.0 */
/* cpu: the CPU time of this process, in several units. */
#ifndef VETHGUARD_TESTS_BENCH_CPU_H
#define VETHGUARD_TESTS_BENCH_CPU_H

#include <time.h>

static inline double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline double cpu_us(void)
{
	return cpu_ns() / 1e3;
}

static inline double cpu_seconds(void)
{
	return cpu_ns() / 1e9;
}

#endif
