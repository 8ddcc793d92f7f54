/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler is asked what became of it. Each test is a process of its own: a test must not
 * leave those after it before everybody else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/jail/capabilities.h"
#include "supervisor/os/priority.h"

#define RAISED (SCHED_RR | SCHED_RESET_ON_FORK)
#define ORDINARY (SCHED_OTHER | SCHED_RESET_ON_FORK)
#define CANNOT 77 /* this machine lets nobody have such a priority */

/* A message that nobody checks would let the test pass. */
#define NEED(what)                                \
	do {                                      \
		if (!(what))                      \
			_exit(__LINE__ % 70 + 1); \
	} while (0)

static void apart(int (*test)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(test());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct loop *open_loop(struct priority *p)
{
	struct loop *loop = loop_new();

	*p = (struct priority){0};
	NEED(loop);
	int error = priority_open(p, loop);
	if (error == -EPERM)
		_exit(CANNOT);
	NEED(error == 0);
	return loop;
}

static int policy_of_a_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(sched_getscheduler(0));
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int raise_and_close(void)
{
	struct priority p;
	struct sched_param param;
	struct loop *loop = open_loop(&p);

	NEED(sched_getscheduler(0) == RAISED);
	NEED(sched_getparam(0, &param) == 0 && param.sched_priority == 1);
	NEED(policy_of_a_child() == SCHED_OTHER);
	priority_close(&p);
	NEED(sched_getscheduler(0) == ORDINARY);
	loop_free(loop);
	return 0;
}

static void it_is_raised_and_its_children_are_not(void **state)
{
	(void)state;
	apart(raise_and_close);
}

struct looks {
	struct loop_timer busy, rested;
	struct loop *loop;
	int while_busy, after_it, later;
};

static void compute(int64_t ms)
{
	const int64_t end_ms = clock_monotonic_ms() + ms;

	while (clock_monotonic_ms() < end_ms)
		;
}

static void on_busy(struct loop_timer *t)
{
	struct looks *l = container_of(t, struct looks, busy);

	if (!l->while_busy) {
		compute(2 * PRIORITY_TURN_MS);
		l->while_busy = sched_getscheduler(0);
		loop_timer_set(&l->busy, 3 * PRIORITY_TURN_MS); /* from when this turn began */
		return;
	}
	l->after_it = sched_getscheduler(0);
	loop_timer_set(&l->rested, PRIORITY_REST_MS + 100);
}

static void on_rested(struct loop_timer *t)
{
	struct looks *l = container_of(t, struct looks, rested);

	l->later = sched_getscheduler(0);
	loop_stop(l->loop);
}

/* Twice: the kernel has moved the limit the first time. */
static int overrun_twice(void)
{
	struct priority p;
	struct loop *loop = open_loop(&p);

	for (int i = 0; i < 2; i++) {
		struct looks l = {.loop = loop};

		NEED(loop_timer_open(loop, &l.busy, on_busy) == 0);
		NEED(loop_timer_open(loop, &l.rested, on_rested) == 0);
		loop_timer_set(&l.busy, 1);
		NEED(loop_run(loop) == 0);
		NEED(l.while_busy == RAISED);
		NEED(l.after_it == ORDINARY);
		NEED(l.later == RAISED);
		loop_timer_close(&l.busy);
		loop_timer_close(&l.rested);
	}
	priority_close(&p);
	loop_free(loop);
	return 0;
}

static void who_computes_for_long_is_as_all_others_for_a_while(void **state)
{
	(void)state;
	apart(overrun_twice);
}

/* Many short turns are what it is raised for. */
static int short_turns(void)
{
	struct priority p;
	struct loop *loop = open_loop(&p);

	for (int i = 0; i < 8; i++) {
		compute(PRIORITY_TURN_MS / 4);
		usleep(1000);
		NEED(sched_getscheduler(0) == RAISED);
	}
	priority_close(&p);
	loop_free(loop);
	return 0;
}

static void who_waits_between_short_turns_stays(void **state)
{
	(void)state;
	apart(short_turns);
}

static int without_the_capability(void)
{
	struct rlimit none = {0, 0};
	struct priority p = {0};
	struct loop *loop = loop_new();
	struct capabilities have;

	NEED(loop && setrlimit(RLIMIT_RTPRIO, &none) == 0);
	NEED(capabilities_get(&have) == 0);
	have.effective &= ~(1ull << CAP_SYS_NICE);
	NEED(capabilities_set(&have) == 0);
	NEED(priority_open(&p, loop) == -EPERM);
	NEED(sched_getscheduler(0) == SCHED_OTHER);
	priority_close(&p); /* harmless, and twice */
	priority_close(&p);
	NEED(signal(SIGXCPU, SIG_DFL) == SIG_DFL);
	loop_free(loop);
	return 0;
}

static void without_the_capability_nothing_changes(void **state)
{
	(void)state;
	apart(without_the_capability);
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

/* A lent priority can be taken back, and nothing else changes. */
static int lend_and_take_back(void)
{
	struct priority p;
	struct loop *loop = open_loop(&p);
	pid_t pid = sleeper();

	priority_lend(pid);
	NEED(sched_getscheduler(pid) == RAISED);
	priority_take_back(pid);
	NEED(sched_getscheduler(pid) == SCHED_OTHER);
	priority_take_back(pid);
	NEED(sched_getscheduler(pid) == SCHED_OTHER);
	kill(pid, SIGKILL);
	priority_close(&p);
	loop_free(loop);
	return 0;
}

static void a_process_has_it_until_it_is_taken_back(void **state)
{
	(void)state;
	apart(lend_and_take_back);
}

static int lend_none(void)
{
	struct priority p;
	struct loop *loop = open_loop(&p);
	pid_t pid = sleeper();

	priority_take_back(0); /* nobody: above all not this one */
	NEED(sched_getscheduler(0) == RAISED);
	priority_close(&p);
	priority_lend(0);
	NEED(sched_getscheduler(0) == ORDINARY);
	priority_lend(pid);
	NEED(sched_getscheduler(pid) == SCHED_OTHER);
	kill(pid, SIGKILL);
	loop_free(loop);
	return 0;
}

static void who_has_none_lends_none(void **state)
{
	(void)state;
	apart(lend_none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_is_raised_and_its_children_are_not),
	        cmocka_unit_test(who_computes_for_long_is_as_all_others_for_a_while),
	        cmocka_unit_test(who_waits_between_short_turns_stays),
	        cmocka_unit_test(without_the_capability_nothing_changes),
	        cmocka_unit_test(a_process_has_it_until_it_is_taken_back),
	        cmocka_unit_test(who_has_none_lends_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
