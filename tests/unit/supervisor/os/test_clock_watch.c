/* SPDX-License-Identifier: Apache-2.0 */
/* The clock's own time and its jumps. A real jump would be the whole machine's, so the read of the
 * timer says that there was one. */
/* The linker wraps: read __read_chk timerfd_settime */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/os/clock_watch.h"

ssize_t __real_read(int fd, void *p, size_t n);
ssize_t __wrap_read(int fd, void *p, size_t n);
ssize_t __wrap___read_chk(int fd, void *p, size_t n, size_t size);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);

static int jumps; /* reads of the timer that find the clock set */
static int armed, flags_seen;
static struct itimerspec at_seen;
static int rang, jumped_count;
static struct loop *loop;

ssize_t __wrap_read(int fd, void *p, size_t n)
{
	ssize_t got = __real_read(fd, p, n);

	if (jumps == 0 || n != sizeof(uint64_t))
		return got;
	jumps--;
	errno = ECANCELED;
	return -1;
}

/* The function that newer compilers and C libraries call for read() when they check buffers. */
ssize_t __wrap___read_chk(int fd, void *p, size_t n, size_t size)
{
	assert_true(n <= size);
	return __wrap_read(fd, p, n);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	armed++;
	flags_seen = flags;
	at_seen = *at;
	return __real_timerfd_settime(fd, flags, at, old);
}

static void on_time(struct clock_watch *watch, bool jumped)
{
	(void)watch;
	jumped_count += jumped;
	if (++rang == 2)
		loop_stop(loop);
}

static void test_rings(void **state)
{
	struct clock_watch watch = {0};
	time_t now = time(NULL);

	(void)state;
	loop = loop_new();
	assert_non_null(loop);
	jumps = 1;
	assert_int_equal(clock_watch_open(loop, &watch, 1, on_time), 0);
	assert_int_equal(flags_seen, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	assert_true(at_seen.it_value.tv_sec >= now + 1);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(rang, 2);
	assert_int_equal(jumped_count, 1);
	assert_int_equal(armed, 3); /* it goes on after both */
	clock_watch_close(&watch);
	clock_watch_close(&(struct clock_watch){0});
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rings)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
