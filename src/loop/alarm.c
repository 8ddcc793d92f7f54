/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alarms. Timers count CLOCK_MONOTONIC, which stands still while the machine sleeps, but what a
 * person limits to two hours has to end after two hours anyway. So all alarms of a loop share one
 * timerfd(2) on CLOCK_BOOTTIME, made when the first alarm is opened and set to the first alarm of a
 * list in order of time. If that time comes while the machine sleeps, the kernel makes the timerfd
 * readable when the machine wakes.
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "loop/private.h"

static struct loop_alarm *first_of(const struct loop_alarms *all)
{
	return list_is_empty(&all->members)
	               ? NULL
	               : container_of(all->members.next, struct loop_alarm, place);
}

/* Sets the timerfd to the first alarm's time. If the list is empty, keeps the old time: an early
 * wake-up costs less. */
static void arm(struct loop_alarms *all)
{
	const struct loop_alarm *first = first_of(all);
	struct itimerspec at = {0};

	if (!first)
		return;
	at.it_value.tv_sec = first->at_ms / 1000;
	at.it_value.tv_nsec = first->at_ms % 1000 * 1000000;
	/* fails only for invalid times */
	(void)timerfd_settime(all->io.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void on_time(struct loop_io *io, unsigned events)
{
	struct loop_alarms *all = container_of(io, struct loop_alarms, io);
	int64_t now_ms = clock_boot_ms();
	struct loop_alarm *first;
	uint64_t count;

	(void)events;
	(void)!read(io->fd, &count, sizeof(count));
	while ((first = first_of(all)) && first->at_ms <= now_ms) {
		list_remove(&first->place);
		first->on_time(first);
	}
	arm(all);
}

static int open_all(struct loop *loop, struct loop_alarms *all)
{
	int fd, rc;

	if (all->io.watch)
		return 0;
	fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	list_init(&all->members);
	rc = loop_io_open_level(loop, &all->io, fd, LOOP_READ, on_time);
	if (rc)
		close(fd);
	return rc;
}

void loop_alarms_close(struct loop_alarms *all)
{
	int fd = all->io.watch ? all->io.fd : -1;

	loop_io_close(&all->io);
	if (fd >= 0)
		close(fd);
}

int loop_alarm_open(
        struct loop *loop, struct loop_alarm *alarm, void (*ring)(struct loop_alarm *alarm))
{
	*alarm = (struct loop_alarm){.loop = loop, .on_time = ring};
	return open_all(loop, loop_alarms_of(loop));
}

void loop_alarm_set(struct loop_alarm *alarm, int64_t delay_ms)
{
	struct loop_alarms *all = loop_alarms_of(alarm->loop);
	struct list *before = &all->members;

	list_remove(&alarm->place);
	alarm->at_ms = clock_boot_ms() + (delay_ms < 0 ? 0 : delay_ms);
	/* from the end, because what is set later is usually due later */
	while (before->prev != &all->members &&
	        container_of(before->prev, struct loop_alarm, place)->at_ms > alarm->at_ms)
		before = before->prev;
	list_append(before, &alarm->place);
	if (first_of(all) == alarm)
		arm(all);
}

void loop_alarm_cancel(struct loop_alarm *alarm)
{
	list_remove(&alarm->place);
}
