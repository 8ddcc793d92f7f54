/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleeping_host: a machine that sleeps when the test says so, in no time. CLOCK_BOOTTIME is ahead
 * of the others from then on, and a timer on it that was due meanwhile fires when the machine
 * wakes; timers on other clocks wait on as if nothing had been. The linker puts these in the place
 * of the calls (mk/tests.mk). One timerfd(2). For one file of a program.
 */
#ifndef VETHGUARD_TESTS_LIB_SLEEPING_HOST_H
#define VETHGUARD_TESTS_LIB_SLEEPING_HOST_H

#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __real_timerfd_create(int id, int flags);
int __real_timerfd_settime(
        int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_timerfd_create(int id, int flags);
int __wrap_timerfd_settime(
        int fd, int flags, const struct itimerspec *at, struct itimerspec *before);

static time_t host_slept_s;
static int host_timer_fd = -1, host_timer_clock;
static struct itimerspec host_timer_at; /* as the code under test has set it */

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int result = __real_clock_gettime(id, out);

	if (id == CLOCK_BOOTTIME)
		out->tv_sec += host_slept_s;
	return result;
}

int __wrap_timerfd_create(int id, int flags)
{
	host_timer_clock = id;
	host_timer_fd = __real_timerfd_create(id, flags);
	return host_timer_fd;
}

/* The kernel's own clock has not slept. */
int __wrap_timerfd_settime(
        int fd, int flags, const struct itimerspec *at, struct itimerspec *before)
{
	struct itimerspec real = *at;

	host_timer_at = *at;
	if (host_timer_clock == CLOCK_BOOTTIME && flags & TFD_TIMER_ABSTIME)
		real.it_value.tv_sec -= host_slept_s;
	if (real.it_value.tv_sec < 0 || (real.it_value.tv_sec == 0 && real.it_value.tv_nsec == 0))
		real.it_value = (struct timespec){0, 1};
	return __real_timerfd_settime(fd, flags, &real, before);
}

static inline void host_sleeps(time_t seconds)
{
	host_slept_s += seconds;
	if (host_timer_at.it_value.tv_sec || host_timer_at.it_value.tv_nsec)
		timerfd_settime(host_timer_fd, TFD_TIMER_ABSTIME, &host_timer_at, NULL);
}

#endif
