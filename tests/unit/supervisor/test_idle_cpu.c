/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another CPU idles can be tested only where it does not, because somebody else runs: who
 * goes from one CPU to another is counted nowhere for a moment, so that not every look has to see
 * it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/idle_cpu.h"
#include "vethguard/wire/message.h"

#define LOOKS 1000

static void none_is_free_where_somebody_runs(void **state)
{
	pid_t busy = fork();
	int seen = 0;

	(void)state;
	if (busy == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			getppid();
	}
	for (int i = 0; i < LOOKS; i++)
		seen += idle_cpu_beside() == MESSAGE_CPU_ANY;
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	assert_in_range(seen, LOOKS * 9 / 10, LOOKS);
}

static void it_is_the_own_one_or_none(void **state)
{
	cpu_set_t all;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	for (int i = 0; i < LOOKS; i++) {
		unsigned cpu = idle_cpu_beside();

		assert_true(cpu == MESSAGE_CPU_ANY || CPU_ISSET(cpu, &all));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(none_is_free_where_somebody_runs),
	        cmocka_unit_test(it_is_the_own_one_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
