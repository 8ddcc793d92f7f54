/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: no more than the maximum is open at all seats together, whoever adds at the same time; a
 * seat that is cleared has nothing open; hostile content of the memory; memories that are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/team.h"

static int memory;

static int set_up(void **state)
{
	(void)state;
	memory = team_create();
	return memory < 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(memory);
}

static struct team sit(uint32_t seat)
{
	struct team team;

	assert_int_equal(team_open(&team, dup(memory), seat), 0);
	return team;
}

static void seats_share_a_maximum(void **state)
{
	struct team a = sit(0), b = sit(TEAM_SEATS - 1);

	(void)state;
	assert_true(team_enter(&a, 0, 3));
	assert_true(team_enter(&b, 0, 3));
	assert_true(team_enter(&b, 0, 3));
	assert_false(team_enter(&a, 0, 3));
	assert_false(team_enter(&b, 0, 3));
	assert_int_equal(team_open_count(&a, 0), 3);
	assert_true(team_enter(&a, TEAM_GAUGES - 1, 1)); /* another gauge */
	assert_false(team_enter(&b, TEAM_GAUGES - 1, 1));
	assert_false(team_enter(&b, 1, 0));
	team_leave(&b, 0);
	assert_true(team_enter(&a, 0, 3));
	assert_int_equal(team_open_count(&b, 0), 3);
	assert_int_equal(team_open_count(&b, 1), 0);
	team_close(&a);
	team_close(&b);
}

static void a_cleared_seat_has_nothing_open(void **state)
{
	struct team a = sit(1), b = sit(2);

	(void)state;
	for (uint32_t i = 0; i < TEAM_GAUGES; i++) {
		assert_true(team_enter(&a, i, 2));
		assert_true(team_enter(&b, i, 2));
	}
	team_clear(&a);
	for (uint32_t i = 0; i < TEAM_GAUGES; i++)
		assert_int_equal(team_open_count(&b, i), 1);
	team_leave(&a, 0); /* never below nothing */
	assert_int_equal(team_open_count(&b, 0), 1);
	team_close(&a);
	team_close(&b);
}

static void all_know_of_guesses(void **state)
{
	struct team a = sit(0), b = sit(1);

	(void)state;
	for (uint32_t i = 0; i < TEAM_CREDENTIALS; i++)
		assert_false(team_is_guessed(&b, i));
	team_note_guess(&a, 0);
	team_note_guess(&a, TEAM_CREDENTIALS - 1);
	team_clear(&a);
	assert_true(team_is_guessed(&b, 0));
	assert_true(team_is_guessed(&b, TEAM_CREDENTIALS - 1));
	assert_false(team_is_guessed(&b, 1));
	team_close(&a);
	team_close(&b);
}

#define WORKERS 4
#define TURNS 20000
#define MOST 3

static _Atomic unsigned holding;
static _Atomic bool too_many;

/* Counts what the team lets in besides the team. */
static void *work(void *context)
{
	const struct team *team = context;

	for (unsigned i = 0; i < TURNS; i++) {
		if (!team_enter(team, 5, MOST))
			continue;
		if (atomic_fetch_add(&holding, 1) >= MOST)
			atomic_store(&too_many, true);
		atomic_fetch_sub(&holding, 1);
		team_leave(team, 5);
	}
	return NULL;
}

static void never_more_at_the_same_time(void **state)
{
	struct team teams[WORKERS];
	pthread_t threads[WORKERS];

	(void)state;
	for (uint32_t i = 0; i < WORKERS; i++) {
		teams[i] = sit(i);
		assert_int_equal(pthread_create(&threads[i], NULL, work, &teams[i]), 0);
	}
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_false(too_many);
	assert_int_equal(team_open_count(&teams[0], 5), 0);
	for (uint32_t i = 0; i < WORKERS; i++)
		team_close(&teams[i]);
}

/* Whatever a worker has written, sums are sums, and what is refused leaves nothing behind. */
static void hostile_content(void **state)
{
	struct team team = sit(3);
	struct stat st;
	void *p;

	(void)state;
	assert_int_equal(fstat(memory, &st), 0);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	assert_true(p != MAP_FAILED);
	memset(p, 0xff, (size_t)st.st_size);
	assert_int_equal(team_open_count(&team, 7), (uint64_t)UINT32_MAX * TEAM_SEATS);
	assert_false(team_enter(&team, 7, 1000));
	assert_true(team_is_guessed(&team, 9));
	team_clear(&team);
	assert_int_equal(team_open_count(&team, 7), (uint64_t)UINT32_MAX * (TEAM_SEATS - 1));
	munmap(p, (size_t)st.st_size);
	team_close(&team);
}

static void what_is_no_team(void **state)
{
	struct team team;
	int fd;

	(void)state;
	assert_int_equal(team_open(&team, dup(memory), TEAM_SEATS), -EBADMSG);
	assert_null(team.memory);
	assert_int_equal(team_open(&team, dup(memory), UINT32_MAX), -EBADMSG);
	fd = memfd_create("not-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(team_open(&team, fd, 0), -EBADMSG);
	assert_null(team.memory);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* it took the descriptor all the same */
	team_close(&team);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(seats_share_a_maximum),
	        TEST(a_cleared_seat_has_nothing_open),
	        TEST(all_know_of_guesses),
	        TEST(never_more_at_the_same_time),
	        TEST(hostile_content),
	        TEST(what_is_no_team),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
