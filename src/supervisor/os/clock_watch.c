/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates end by the wall clock. A timerfd(2) on CLOCK_REALTIME with TFD_TIMER_CANCEL_ON_SET
 * becomes readable when its time comes, also if that was while the machine slept, and its read
 * fails with ECANCELED when the clock was set.
 */
#include "supervisor/os/clock_watch.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int arm(const struct clock_watch *watch)
{
	struct itimerspec at = {0};

	if (clock_gettime(CLOCK_REALTIME, &at.it_value) < 0)
		return -errno;
	at.it_value.tv_sec += watch->every_s;
	return timerfd_settime(
	               watch->io.fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) < 0
	               ? -errno
	               : 0;
}

static void on_ready(struct loop_io *io, unsigned events)
{
	struct clock_watch *watch = container_of(io, struct clock_watch, io);
	uint64_t count;
	ssize_t n = read(io->fd, &count, sizeof(count));
	bool jumped = n < 0 && errno == ECANCELED;

	(void)events;
	arm(watch);
	if (n > 0 || jumped)
		watch->on_time(watch, jumped);
}

int clock_watch_open(struct loop *loop, struct clock_watch *watch, int every_s,
        void (*on_time)(struct clock_watch *watch, bool jumped))
{
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	*watch = (struct clock_watch){.every_s = every_s, .on_time = on_time};
	rc = loop_io_open_level(loop, &watch->io, fd, LOOP_READ, on_ready);
	if (!rc)
		rc = arm(watch);
	if (rc) {
		loop_io_close(&watch->io);
		close(fd);
	}
	return rc;
}

void clock_watch_close(struct clock_watch *watch)
{
	int fd = watch->io.watch ? watch->io.fd : -1;

	loop_io_close(&watch->io);
	if (fd >= 0)
		close(fd);
}
