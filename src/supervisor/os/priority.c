/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel measures how long a real-time process computes without waiting, and reports too long a
 * turn by SIGXCPU (RLIMIT_RTTIME, getrlimit(2)). A daemon that recovers a thousand sandboxes, or is
 * made to compute by a client, then runs at ordinary priority for a while, and takes no CPU from
 * those it serves.
 *
 * A worker or keeper that is woken by this thread would wait for its CPU until this thread sleeps:
 * the kernel tends to run a woken process on the CPU of its waker, especially on a virtual machine,
 * where an idle CPU counts as taken. At the same priority it is placed on another CPU.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "vethguard/base/log.h"
#include "supervisor/os/priority.h"

#define US_PER_MS 1000
#define RAISED (SCHED_RR | SCHED_RESET_ON_FORK)

static const struct sched_param lowest = {.sched_priority = 1}, none = {0};

/* The kernel raises the limit each time it was reached, so it is set for each turn. */
static int bound_turn(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_RTTIME, &limit) < 0)
		return -errno;
	limit.rlim_cur = PRIORITY_TURN_MS * US_PER_MS;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_RTTIME, &limit) < 0 ? -errno : 0;
}

static int raise_own(void)
{
	int rc = bound_turn();

	if (!rc && sched_setscheduler(0, RAISED, &lowest) < 0)
		rc = -errno;
	return rc;
}

static void lower_own(void)
{
	sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
}

static void on_overrun(struct loop_signal *s)
{
	struct priority *p = container_of(s, struct priority, overrun);

	lower_own();
	loop_timer_set(&p->rest, PRIORITY_REST_MS);
}

static void on_rested(struct loop_timer *timer)
{
	int rc = raise_own();

	(void)timer;
	if (rc)
		log_warn("the daemon stays at ordinary priority: %s", strerror(-rc));
}

static void stop_listening(struct priority *p)
{
	loop_signal_close(&p->overrun);
	loop_timer_close(&p->rest);
}

int priority_open(struct priority *p, struct loop *loop)
{
	int rc = loop_timer_open(loop, &p->rest, on_rested);

	if (!rc)
		rc = loop_signal_open(loop, &p->overrun, SIGXCPU, on_overrun);
	if (!rc)
		rc = raise_own();
	if (rc)
		stop_listening(p);
	return rc;
}

void priority_close(struct priority *p)
{
	if (p->overrun.event)
		lower_own();
	stop_listening(p);
}

void priority_lend(pid_t pid)
{
	if (pid > 0 && sched_getscheduler(0) == RAISED)
		sched_setscheduler(pid, RAISED, &lowest);
}

void priority_take_back(pid_t pid)
{
	if (pid > 0)
		sched_setscheduler(pid, SCHED_OTHER, &none);
}
