/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that is one of several: what it is told before it begins, and what of that ends it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy/policy_test.h"
#include "worker_fixture.h"
#include "vethguard/ipc/team.h"

static struct fixture f;
static int memory;

static int set_up(void **state)
{
	(void)state;
	fixture_open(&f);
	memory = team_create();
	return memory < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(memory);
	fixture_close(&f);
	return 0;
}

static void tell(uint32_t seat, bool further, const int *fds, size_t count)
{
	const struct message_worker_team m = {.seat = seat, .further = further};
	uint8_t message[64];

	assert_int_equal(ipc_send_blocking(f.supervisor, message,
	                         message_worker_team_encode(
	                                 message, sizeof(message), MESSAGE_WORKER_TEAM, 3, &m),
	                         fds, count),
	        0);
}

static void begin(void)
{
	fixture_send_keeper(&f);
	fixture_send_start(&f, f.start, f.start_n, START_FDS);
	fixture_expect_question(&f);
	fixture_give_ca(&f, CA_QUESTION);
	fixture_expect(f.supervisor, MESSAGE_WORKER_READY, START_ID);
}

static void end(void)
{
	fixture_send(f.supervisor, MESSAGE_STOP, 77);
	fixture_expect(f.supervisor, MESSAGE_STOPPED, 77);
	fixture_expect_exit(&f, 0, "");
}

/* Only the first one gives addresses to names from now on. */
static void the_first_takes_over_the_names(void **state)
{
	struct shared_names before;

	(void)state;
	assert_int_equal(shared_names_open(&before, dup(f.fds[5])), 0);
	tell(0, false, &memory, 1);
	begin();
	assert_false(shared_names_newest(&before));
	end();
	shared_names_close(&before);
}

static void a_further_one_leaves_them_to_the_first(void **state)
{
	struct shared_names first;

	(void)state;
	assert_int_equal(shared_names_open(&first, dup(f.fds[5])), 0);
	tell(TEAM_SEATS - 1, true, &memory, 1);
	begin();
	assert_true(shared_names_newest(&first));
	end();
	shared_names_close(&first);
}

static void without_its_memory_it_ends(void **state)
{
	int other = shared_names_create(64);
	int two[2];

	assert_true(other >= 0);
	tell(0, true, NULL, 0);
	fixture_expect_exit(&f, 125, "first message is not the one expected");
	tear_down(state);
	set_up(state);
	two[0] = two[1] = memory;
	tell(0, true, two, 2);
	fixture_expect_exit(&f, 125, "first message is not the one expected");
	tear_down(state);
	set_up(state);
	tell(0, true, &other, 1);
	fixture_expect_exit(&f, 125, "first message is not the one expected");
	close(other);
}

static void told_twice_it_ends(void **state)
{
	(void)state;
	tell(1, true, &memory, 1);
	tell(2, true, &memory, 1);
	fixture_expect_exit(&f, 125, "first message is not the one expected");
}

static void told_later_it_ends(void **state)
{
	(void)state;
	begin();
	tell(1, true, &memory, 1);
	fixture_expect_exit(&f, 125, NULL);
}

#define TEAM(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEAM(the_first_takes_over_the_names),
	        TEAM(a_further_one_leaves_them_to_the_first),
	        TEAM(without_its_memory_it_ends),
	        TEAM(told_twice_it_ends),
	        TEAM(told_later_it_ends),
	};

	alarm(900);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, fixture_make_parts, fixture_free_parts);
}
