/* SPDX-License-Identifier: Apache-2.0 */
/* Alarms: in order, and also where the machine sleeps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/base/clock.h"
#include "vethguard/loop/loop.h"
#include "sleeping_host.h"

#define HOUR_S 3600
#define HOUR_MS 3600000

static struct {
	struct loop *loop;
	struct loop_timer patience;
	struct loop_alarm alarms[3];
	char rung[16]; /* a letter for each, in order */
} f;

static void ring(struct loop_alarm *alarm)
{
	char letter[2] = {(char)('a' + (alarm - f.alarms)), 0};

	strcat(f.rung, letter);
	if (alarm == &f.alarms[1])
		loop_alarm_cancel(&f.alarms[2]); /* which may be due as well */
}

static void stop(struct loop_timer *timer)
{
	loop_stop(timer->loop);
}

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	host_slept_s = 0;
	host_timer_at = (struct itimerspec){0};
	f.loop = loop_new();
	for (size_t i = 0; i < 3; i++)
		if (loop_alarm_open(f.loop, &f.alarms[i], ring) != 0)
			return -1;
	return loop_timer_open(f.loop, &f.patience, stop);
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		loop_alarm_cancel(&f.alarms[i]);
	loop_timer_close(&f.patience);
	loop_free(f.loop);
	return 0;
}

/* What has rung after so long. */
static const char *after(int64_t ms)
{
	loop_timer_set(&f.patience, ms);
	assert_int_equal(loop_run(f.loop), 0);
	return f.rung;
}

static void they_ring_in_order_of_time(void **state)
{
	(void)state;
	loop_alarm_set(&f.alarms[2], 20);
	loop_alarm_set(&f.alarms[0], 10);
	assert_string_equal(after(100), "ac");
	loop_alarm_set(&f.alarms[0], -5); /* now */
	loop_alarm_set(&f.alarms[2], 0);
	assert_string_equal(after(50), "acac");
}

static void one_that_is_set_anew_or_cancelled_does_not_ring(void **state)
{
	(void)state;
	loop_alarm_set(&f.alarms[0], 10);
	loop_alarm_set(&f.alarms[0], HOUR_MS);
	loop_alarm_set(&f.alarms[2], 20);
	loop_alarm_cancel(&f.alarms[2]);
	loop_alarm_cancel(&f.alarms[2]);
	assert_string_equal(after(100), "");
	loop_alarm_set(&f.alarms[0], 10);
	assert_string_equal(after(100), "a");
}

static void one_that_is_cancelled_by_another_of_its_time_does_not_ring(void **state)
{
	(void)state;
	loop_alarm_set(&f.alarms[1], 10);
	loop_alarm_set(&f.alarms[2], 10);
	assert_string_equal(after(100), "b");
}

static void one_whose_time_came_while_the_machine_slept_rings_when_it_wakes(void **state)
{
	const int64_t before_ms = clock_monotonic_ms();

	(void)state;
	loop_alarm_set(&f.alarms[0], HOUR_MS);
	loop_alarm_set(&f.alarms[2], 3 * (int64_t)HOUR_MS);
	assert_string_equal(after(50), "");
	host_sleeps(2 * HOUR_S);
	assert_string_equal(after(100), "a");
	host_sleeps(HOUR_S);
	assert_string_equal(after(100), "ac");
	assert_true(clock_monotonic_ms() - before_ms < HOUR_MS); /* as timers see it */
}

static void what_is_set_after_a_sleep_counts_from_then(void **state)
{
	(void)state;
	host_sleeps(5 * HOUR_S);
	loop_alarm_set(&f.alarms[0], HOUR_MS);
	loop_alarm_set(&f.alarms[2], 10);
	assert_string_equal(after(100), "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(they_ring_in_order_of_time, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                one_that_is_set_anew_or_cancelled_does_not_ring, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                one_that_is_cancelled_by_another_of_its_time_does_not_ring, set_up,
	                tear_down),
	        cmocka_unit_test_setup_teardown(
	                one_whose_time_came_while_the_machine_slept_rings_when_it_wakes, set_up,
	                tear_down),
	        cmocka_unit_test_setup_teardown(
	                what_is_set_after_a_sleep_counts_from_then, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
