/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order of tasks and descriptors, timers, deadlines; and that nothing starves.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "loop/private.h"

struct fixture {
	struct loop *loop;
	struct loop_task task, other;
	struct loop_timer timer;
	struct loop_io io;
	struct loop_deadlines list;
	struct loop_deadline deadlines[3];
	struct loop_signal signal;
	int pair[2];
	unsigned runs, fired, order[8], order_n;
	unsigned events;
};

static struct fixture f;

static int set_up(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	f.loop = loop_new();
	return f.loop && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f.pair) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	loop_io_close(&f.io);
	loop_timer_close(&f.timer);
	loop_signal_close(&f.signal);
	loop_free(f.loop);
	close(f.pair[0]);
	if (f.pair[1] >= 0)
		close(f.pair[1]);
	return 0;
}

static void stop_on_timer(struct loop_timer *timer)
{
	f.fired++;
	loop_stop(timer->loop);
}

static void ask_again(struct loop_task *task)
{
	f.runs++;
	loop_task_queue(f.loop, task);
}

static void test_a_task_that_asks_for_itself_starves_nothing(void **state)
{
	(void)state;
	f.task.run = ask_again;
	loop_task_queue(f.loop, &f.task);
	assert_int_equal(loop_timer_open(f.loop, &f.timer, stop_on_timer), 0);
	loop_timer_set(&f.timer, 20);
	assert_int_equal(loop_run(f.loop), 0);
	assert_int_equal(f.fired, 1);
	assert_true(f.runs > 1);
	loop_task_cancel(f.loop, &f.task);
}

static void note_task(struct loop_task *task)
{
	f.order[f.order_n++] = task == &f.task ? 1 : 2;
	if (f.order_n == 2)
		loop_stop(f.loop);
}

static void test_tasks_run_in_order_and_once(void **state)
{
	(void)state;
	f.task.run = f.other.run = note_task;
	loop_task_queue(f.loop, &f.other);
	loop_task_queue(f.loop, &f.task);
	loop_task_queue(f.loop, &f.other);
	assert_int_equal(loop_run(f.loop), 0);
	assert_int_equal(f.order_n, 2);
	assert_int_equal(f.order[0], 2);
	assert_int_equal(f.order[1], 1);
}

static void cancel_other(struct loop_task *task)
{
	(void)task;
	f.runs++;
	loop_task_cancel(f.loop, &f.other);
	loop_timer_set(&f.timer, 1);
}

static void must_not_run(struct loop_task *task)
{
	(void)task;
	fail();
}

static void test_a_task_may_cancel_one_of_its_round(void **state)
{
	(void)state;
	f.task.run = cancel_other;
	f.other.run = must_not_run;
	assert_int_equal(loop_timer_open(f.loop, &f.timer, stop_on_timer), 0);
	loop_task_queue(f.loop, &f.task);
	loop_task_queue(f.loop, &f.other);
	assert_int_equal(loop_run(f.loop), 0);
	assert_int_equal(f.runs, 1);
}

static void on_readable(struct loop_io *io, unsigned events)
{
	(void)io;
	f.events |= events;
	f.runs++;
}

static void test_edges_come_once_and_tell_of_the_end(void **state)
{
	(void)state;
	assert_int_equal(
	        loop_io_open(f.loop, &f.io, f.pair[0], LOOP_READ | LOOP_CLOSED, on_readable), 0);
	assert_int_equal(write(f.pair[1], "x", 1), 1);
	assert_int_equal(loop_timer_open(f.loop, &f.timer, stop_on_timer), 0);
	loop_timer_set(&f.timer, 30);
	loop_run(f.loop);
	assert_int_equal(f.runs, 1); /* unread, yet told once */
	assert_int_equal(f.events, LOOP_READ);
	close(f.pair[1]);
	f.pair[1] = -1;
	loop_timer_set(&f.timer, 30);
	loop_run(f.loop);
	assert_true(f.events & LOOP_CLOSED);
}

static void not_mine(struct loop_io *io, unsigned events)
{
	(void)io, (void)events;
	fail();
}

/* The registration changes owners between an edge and its report. */
static void test_a_registration_changes_hands(void **state)
{
	struct loop_io first = {0};

	(void)state;
	assert_int_equal(
	        loop_io_open(f.loop, &first, f.pair[0], LOOP_READ | LOOP_CLOSED, not_mine), 0);
	assert_int_equal(write(f.pair[1], "x", 1), 1);
	loop_io_move(&first, &f.io, on_readable);
	loop_io_close(&first); /* harmless: it watches nothing any more */
	assert_int_equal(loop_timer_open(f.loop, &f.timer, stop_on_timer), 0);
	loop_timer_set(&f.timer, 20);
	loop_run(f.loop);
	assert_int_equal(f.runs, 1);
	assert_int_equal(f.io.fd, f.pair[0]);
	loop_io_close(&f.io);
	assert_int_equal(write(f.pair[1], "x", 1), 1);
	loop_timer_set(&f.timer, 20);
	loop_run(f.loop);
	assert_int_equal(f.runs, 1);
}

static int64_t due[3];

static void on_deadline(struct loop_deadline *d)
{
	due[d - f.deadlines] = clock_monotonic_ms();
	if (++f.fired == 2)
		loop_stop(f.loop);
}

static void test_deadlines_are_never_early_and_move(void **state)
{
	int64_t start = clock_monotonic_ms();

	(void)state;
	memset(due, 0, sizeof(due));
	assert_int_equal(loop_deadlines_open(f.loop, &f.list, 40, on_deadline), 0);
	for (int i = 0; i < 3; i++)
		loop_deadline_set(&f.list, &f.deadlines[i]);
	loop_deadline_clear(&f.deadlines[1]);
	loop_deadline_set(&f.list, &f.deadlines[0]);
	loop_run(f.loop);
	assert_true(due[0] >= start + 40 && due[0] < start + 1000);
	assert_int_equal(due[1], 0);
	assert_true(due[2] >= start + 40);
	loop_deadline_set(&f.list, &f.deadlines[1]);
	loop_deadlines_close(&f.list);
	assert_null(f.deadlines[1].list);
}

static void on_signal(struct loop_signal *s)
{
	f.fired++;
	loop_stop(s->loop);
}

static void test_signals_come_in_the_loop(void **state)
{
	(void)state;
	assert_int_equal(loop_signal_open(f.loop, &f.signal, SIGUSR1, on_signal), 0);
	raise(SIGUSR1);
	assert_int_equal(f.fired, 0);
	loop_run(f.loop);
	assert_int_equal(f.fired, 1);
}

static inline void on_nothing(struct loop_io *io, unsigned events)
{
	(void)io, (void)events;
}

/* What libevent keeps for each descriptor ever seen lies apart from the heap, and is freed with the
 * loop. */
static void test_records_of_descriptors_have_their_cells(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	(void)state;
	skip(); /* there all goes through its own allocator */
#else
	enum { COPIES = 500 };
	struct loop_io io = {0};
	int fds[COPIES];
	size_t before = loop_cells_in_use();
	struct loop *other = loop_new();
	size_t own = loop_cells_in_use();
	(void)state;

	for (size_t i = 0; i < COPIES; i++) {
		fds[i] = dup(f.pair[0]);
		assert_true(fds[i] >= 0);
		assert_int_equal(loop_io_open(other, &io, fds[i], LOOP_READ, on_nothing), 0);
		loop_io_close(&io);
	}
	assert_in_range(loop_cells_in_use() - own, COPIES, COPIES + 8);
	for (size_t i = 0; i < COPIES; i++) { /* the same descriptors need no others */
		assert_int_equal(loop_io_open(other, &io, fds[i], LOOP_READ, on_nothing), 0);
		loop_io_close(&io);
	}
	assert_in_range(loop_cells_in_use() - own, COPIES, COPIES + 8);
	loop_free(other);
	assert_int_equal(loop_cells_in_use(), before);
	for (size_t i = 0; i < COPIES; i++)
		close(fds[i]);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(
	                test_a_task_that_asks_for_itself_starves_nothing, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_tasks_run_in_order_and_once, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_a_task_may_cancel_one_of_its_round, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_edges_come_once_and_tell_of_the_end, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_a_registration_changes_hands, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_deadlines_are_never_early_and_move, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(test_signals_come_in_the_loop, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(
	                test_records_of_descriptors_have_their_cells, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
