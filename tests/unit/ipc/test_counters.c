/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: no span as long as a period has more than the maximum; old amounts are forgotten in
 * time; two threads add at once; hostile content of the memory; files that are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/ipc/counters.h"

#define MINUTE 60000
#define START 1000000

static const uint8_t key[COUNTERS_KEY] = {1, 2, 3};
static const uint8_t other_key[COUNTERS_KEY] = {4};

static uint32_t open_one(struct counters *c, uint64_t period_ms)
{
	uint32_t index;

	assert_int_equal(counters_open(c, counters_create()), 0);
	index = counters_place(c, key, period_ms, 0, START, NULL, NULL);
	assert_int_not_equal(index, COUNTERS_NONE);
	return index;
}

static void test_amounts(void **state)
{
	struct counters c;
	uint32_t i = open_one(&c, MINUTE);

	(void)state;
	assert_true(counters_add(&c, i, START, 0, 10));
	assert_true(counters_add(&c, i, START, 6, 10));
	assert_false(counters_add(&c, i, START, 5, 10));
	assert_int_equal(counters_used(&c, i, START), 6);
	assert_true(counters_add(&c, i, START + 500, 4, 10));
	assert_false(counters_add(&c, i, START + 500, 1, 10));
	assert_false(counters_add(&c, i, START + 500, 0, 10));
	assert_false(counters_add(&c, i, START + 500, COUNTERS_AMOUNT_MAX, COUNTERS_AMOUNT_MAX));
	assert_int_equal(counters_used(&c, i, START + 500), 10);
	counters_take_back(&c, i, START + 500, 3);
	assert_int_equal(counters_used(&c, i, START + 500), 7);
	counters_take_back(&c, i, START + 500, 100);
	assert_true(counters_used(&c, i, START + 500) < 7);
	counters_close(&c);
}

/* What is taken back late is missing where it was added, and nowhere else. */
static void test_takes_back_late(void **state)
{
	struct counters c;
	uint32_t i = open_one(&c, MINUTE);

	(void)state;
	assert_true(counters_add(&c, i, START, 6, 10));
	assert_true(counters_add(&c, i, START + 5000, 4, 10));
	counters_take_back(&c, i, START, 6);
	assert_int_equal(counters_used(&c, i, START + 5000), 4);
	counters_take_back(&c, i, START, 6); /* it has nothing more */
	assert_int_equal(counters_used(&c, i, START + 5000), 4);
	assert_true(counters_add(&c, i, START + 5000, 6, 10));
	/* The part is of another time meanwhile. */
	assert_true(counters_add(&c, i, START + 200000, 3, 10));
	for (int64_t t = START; t < START + 180000; t += 1000)
		counters_take_back(&c, i, t, 10);
	assert_int_equal(counters_used(&c, i, START + 200000), 3);
	counters_close(&c);
}

/* An amount counts for its period, and for at most a sixtieth of it longer. */
static void test_forgets(void **state)
{
	struct counters c;
	uint32_t i = open_one(&c, MINUTE);

	(void)state;
	assert_true(counters_add(&c, i, START, 10, 10));
	for (int64_t at = START; at <= START + MINUTE; at += 250)
		assert_int_equal(counters_used(&c, i, at), 10);
	assert_int_equal(counters_used(&c, i, START + MINUTE + MINUTE / 60 + 1), 0);
	assert_true(counters_add(&c, i, START + MINUTE + MINUTE / 60 + 1, 10, 10));
	assert_int_equal(counters_used(&c, i, START + 100 * MINUTE), 0);
	counters_close(&c);
}

/* Adding without pause never exceeds the maximum within any span as long as the period. */
static void test_any_span(void **state)
{
	enum { STEPS = 6000, MAX = 97 };
	static uint64_t added[STEPS];
	struct counters c;
	uint32_t i = open_one(&c, 6000);
	uint64_t all = 0;

	(void)state;
	for (int at = 0; at < STEPS; at++) {
		uint64_t n = 1 + (uint64_t)at % 5;

		added[at] = counters_add(&c, i, START + at * 10, n, MAX) ? n : 0;
		all += added[at];
	}
	for (int from = 0; from + 600 <= STEPS; from++) {
		uint64_t sum = 0;

		for (int at = from; at < from + 600; at++)
			sum += added[at];
		assert_true(sum <= MAX);
	}
	assert_true(all > 9 * MAX * 9 / 10); /* of ten periods' maximum, most is let pass */
	counters_close(&c);
}

static void test_wait(void **state)
{
	struct counters c;
	uint32_t i = open_one(&c, MINUTE);
	int64_t wait;

	(void)state;
	assert_int_equal(counters_wait_ms(&c, i, START, 11, 10), -1);
	assert_int_equal(counters_wait_ms(&c, i, START, 5, 10), 0);
	assert_true(counters_add(&c, i, START, 4, 10));
	assert_true(counters_add(&c, i, START + 30000, 6, 10));
	wait = counters_wait_ms(&c, i, START + 40000, 4, 10);
	assert_true(wait > 20000 && wait <= 21000);
	assert_false(counters_add(&c, i, START + 40000 + wait - 1, 4, 10));
	assert_true(counters_add(&c, i, START + 40000 + wait, 4, 10));
	wait = counters_wait_ms(&c, i, START + 62000, 0, 10);
	assert_true(wait > 28000 && wait <= 29000);
	counters_close(&c);
}

static void *add_many(void *context)
{
	const struct counters *c = context;
	size_t count = 0;

	for (size_t n = 0; n < 200000; n++)
		count += counters_add(c, 0, START, 1, 50000);
	return (void *)count;
}

static void test_at_once(void **state)
{
	struct counters c;
	pthread_t threads[2];
	size_t all = 0;

	(void)state;
	assert_int_equal(open_one(&c, MINUTE), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, &c), 0);
	for (int i = 0; i < 2; i++) {
		void *count;

		pthread_join(threads[i], &count);
		all += (size_t)count;
	}
	assert_int_equal(all, 50000);
	assert_int_equal(counters_used(&c, 0, START), 50000);
	counters_close(&c);
}

static bool keeps_first(void *context, const uint8_t *k, uint64_t period_ms)
{
	(void)context;
	(void)period_ms;
	return memcmp(k, key, COUNTERS_KEY) == 0;
}

static void test_places(void **state)
{
	struct counters c;
	uint32_t i = open_one(&c, MINUTE), j;
	uint8_t k[COUNTERS_KEY] = {9};

	(void)state;
	assert_true(counters_add(&c, i, START, 7, 10));
	assert_int_equal(counters_place(&c, key, MINUTE, 0, START, NULL, NULL), i);
	assert_int_equal(counters_find(&c, key, MINUTE), i);
	assert_int_equal(counters_find(&c, other_key, MINUTE), COUNTERS_NONE);
	/* A counter of another period takes over what was used. */
	j = counters_place(&c, key, 2 * MINUTE, 0, START, NULL, NULL);
	assert_int_not_equal(i, j);
	assert_int_equal(counters_used(&c, j, START), 7);
	/* Back to the first period: what was added meanwhile counts, unless it is too old. */
	assert_true(counters_add(&c, j, START, 2, 10));
	assert_int_equal(counters_place(&c, key, MINUTE, 0, START, NULL, NULL), i);
	assert_int_equal(counters_used(&c, i, START), 9);
	assert_int_equal(counters_place(&c, key, MINUTE, 0, START + MINUTE * 3 / 2, NULL, NULL), i);
	assert_int_equal(counters_used(&c, i, START + MINUTE * 3 / 2), 0);
	/* A new counter begins with `at_least` (a full one, if the file was lost). */
	j = counters_place(&c, other_key, MINUTE, 50, START, NULL, NULL);
	assert_int_equal(counters_used(&c, j, START), 50);
	for (uint32_t n = 3; n < COUNTERS_MAX; n++) {
		memcpy(k + 1, &n, sizeof(n));
		assert_int_equal(counters_place(&c, k, MINUTE, 0, START, NULL, NULL), n);
	}
	k[0] = 10;
	assert_int_equal(counters_place(&c, k, MINUTE, 0, START, NULL, NULL), COUNTERS_NONE);
	j = counters_place(&c, k, MINUTE, 0, START, keeps_first, NULL);
	assert_true(j > 2 && j != COUNTERS_NONE);
	/* A counter that holds an amount is not given away. */
	for (uint32_t n = 0; n < COUNTERS_MAX; n++)
		counters_add(&c, n, START, 1, 100);
	k[0] = 11;
	assert_int_equal(counters_place(&c, k, MINUTE, 0, START, keeps_first, NULL), COUNTERS_NONE);
	counters_close(&c);
}

static void test_hostile(void **state)
{
	struct counters c;
	int fd = counters_create(), copy = dup(fd);
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);

	(void)state;
	assert_true(p != MAP_FAILED);
	assert_int_equal(ftruncate(copy, 64), -1); /* the size is sealed */
	assert_int_equal(counters_open(&c, fd), 0);
	for (unsigned seed = 0; seed < 64; seed++) {
		srand(seed);
		for (off_t n = 0; n < size; n++)
			p[n] = seed == 0 ? 0xff : (uint8_t)rand();
		for (uint32_t i = 0; i < COUNTERS_MAX; i += 17) {
			counters_used(&c, i, START);
			counters_add(&c, i, START, 5, 10);
			counters_take_back(&c, i, START, 5);
			counters_wait_ms(&c, i, START, 5, 10);
		}
		counters_place(&c, key, MINUTE, 0, START, NULL, NULL);
	}
	munmap(p, (size_t)size);
	close(copy);
	counters_close(&c);
	assert_true(counters_are_lost(&c));
	/* A memfd of another size is refused. */
	assert_int_equal(counters_open(&c, memfd_create("small", MFD_ALLOW_SEALING)), -EBADMSG);
	assert_true(counters_are_lost(&c));
}

static void test_files(void **state)
{
	char folder[] = "/tmp/counters-XXXXXX";
	struct counters c;
	int dir, fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir = open(folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(counters_open_at(dir, "a"), -ENOENT);
	fd = counters_create_at(dir, "a");
	assert_true(fd >= 0);
	assert_int_equal(counters_create_at(dir, "a"), -EEXIST);
	assert_int_equal(counters_open(&c, fd), 0);
	assert_int_equal(counters_place(&c, key, MINUTE, 0, START, NULL, NULL), 0);
	assert_true(counters_add(&c, 0, START, 3, 10));
	counters_close(&c);
	/* The file still has what was counted. */
	assert_int_equal(counters_open(&c, counters_open_at(dir, "a")), 0);
	assert_int_equal(counters_used(&c, counters_find(&c, key, MINUTE), START), 3);
	counters_close(&c);
	/* Refused: another boot, truncated, writable by others, a link, a folder. */
	fd = openat(dir, "a", O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, 6), 1);
	assert_int_equal(counters_open_at(dir, "a"), -EBADMSG);
	assert_int_equal(ftruncate(fd, 64), 0);
	assert_int_equal(counters_open_at(dir, "a"), -EBADMSG);
	close(fd);
	unlinkat(dir, "a", 0);
	fd = counters_create_at(dir, "a");
	fchmod(fd, 0666);
	close(fd);
	assert_int_equal(counters_open_at(dir, "a"), -EBADMSG);
	assert_int_equal(symlinkat("a", dir, "b"), 0);
	assert_int_equal(counters_open_at(dir, "b"), -EBADMSG);
	assert_int_equal(mkdirat(dir, "c", 0700), 0);
	assert_int_equal(counters_open_at(dir, "c"), -EBADMSG);
	unlinkat(dir, "a", 0);
	unlinkat(dir, "b", 0);
	unlinkat(dir, "c", AT_REMOVEDIR);
	close(dir);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_amounts),
	        cmocka_unit_test(test_takes_back_late),
	        cmocka_unit_test(test_forgets),
	        cmocka_unit_test(test_any_span),
	        cmocka_unit_test(test_wait),
	        cmocka_unit_test(test_at_once),
	        cmocka_unit_test(test_places),
	        cmocka_unit_test(test_hostile),
	        cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
