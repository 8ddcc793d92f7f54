/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: workers take no more than the lease has, also at once from two threads; what is given
 * back late stays counted; claims; hostile content of the memory; files that are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vethguard/ipc/quotas.h"

#define HOUR 3600000
#define NOW 1000000

static const uint8_t key[QUOTAS_KEY] = {1, 2, 3};
static const uint8_t other_key[QUOTAS_KEY] = {4};

static uint32_t open_one(struct quotas *q, int bell)
{
	uint32_t index;

	assert_int_equal(quotas_open(q, quotas_create(), bell), 0);
	assert_int_equal(quotas_prepare(q, 3), 0);
	index = quotas_place(q, key, HOUR, 100);
	assert_int_not_equal(index, QUOTAS_NONE);
	return index;
}

static void lend(const struct quotas *q, uint32_t index, uint64_t amount)
{
	const struct quota_lease lease = {
	        .part = 7, .since_ms = NOW, .until_ms = NOW + 1000, .low = 2};

	quotas_claim_add(q, index, lease.part, amount);
	quotas_set_lease(q, index, &lease);
	quotas_add(q, index, amount);
}

static bool rings(int bell)
{
	uint64_t n;

	return read(bell, &n, sizeof(n)) == sizeof(n);
}

static void test_takes_what_is_there(void **state)
{
	int bell = eventfd(0, EFD_NONBLOCK);
	struct quotas q;
	uint32_t i = open_one(&q, bell);

	(void)state;
	assert_false(quotas_take(&q, i, NOW, 0));
	assert_false(quotas_take(&q, i, NOW, 5));
	assert_true(rings(bell));
	assert_int_equal(quotas_take_wanted(&q, i), 5);
	assert_int_equal(quotas_take_wanted(&q, i), 0);
	assert_false(quotas_take(&q, i, NOW, 6)); /* it was rung already */
	assert_false(rings(bell));
	quotas_beat(&q, NOW);
	lend(&q, i, 10);
	assert_true(quotas_take(&q, i, NOW, 0));
	assert_true(quotas_take(&q, i, NOW, 7));
	assert_false(rings(bell));
	assert_true(quotas_take(&q, i, NOW, 2)); /* little is left */
	assert_true(rings(bell));
	assert_false(quotas_take(&q, i, NOW, 2));
	assert_true(quotas_take(&q, i, NOW + 999, 1));
	assert_false(quotas_take(&q, i, NOW, 0));
	assert_int_equal(quotas_taken(&q, i), 10);
	quotas_close(&q);
}

static void test_a_lease_ends(void **state)
{
	struct quotas q;
	uint32_t i = open_one(&q, -1);

	(void)state;
	lend(&q, i, 10);
	assert_int_equal(quotas_left(&q, i, NOW + 999), 10);
	assert_int_equal(quotas_left(&q, i, NOW + 1000), 0);
	assert_false(quotas_take(&q, i, NOW + 1000, 1));
	assert_int_equal(quotas_withdraw(&q, i, 4), 6);
	assert_int_equal(quotas_withdraw(&q, i, 4), 0);
	assert_int_equal(quotas_withdraw(&q, i, 0), 4);
	quotas_close(&q);
}

static void test_gives_back(void **state)
{
	struct quotas q;
	uint32_t i = open_one(&q, -1);

	(void)state;
	lend(&q, i, 10);
	assert_true(quotas_take(&q, i, NOW + 1, 10));
	quotas_give_back(&q, i, NOW + 1, 4);
	assert_int_equal(quotas_left(&q, i, NOW + 2), 4);
	quotas_give_back(&q, i, NOW - 1, 4); /* of the lease before */
	assert_int_equal(quotas_left(&q, i, NOW + 2), 4);
	quotas_close(&q);
}

static void test_away(void **state)
{
	struct quotas q;
	uint32_t i = open_one(&q, -1);

	(void)state;
	assert_true(quotas_are_away(&q, i, NOW)); /* no sign of life yet */
	quotas_beat(&q, NOW);
	assert_false(quotas_are_away(&q, i, NOW + QUOTAS_BEAT_MS));
	assert_true(quotas_are_away(&q, i, NOW + QUOTAS_BEAT_MS + 1));
	assert_true(quotas_are_away(&q, i, NOW - 1)); /* a sign of life that is still to come */
	quotas_set_state(&q, i, QUOTA_AWAY, 0, 7);
	assert_true(quotas_are_away(&q, i, NOW));
	assert_int_equal(quotas_used_by_all(&q, i), 7);
	quotas_set_state(&q, i, QUOTA_USED_UP, NOW + 5000, UINT64_MAX);
	assert_int_equal(quotas_used_by_all(&q, i), 7);
	assert_int_equal(quotas_wait_ms(&q, i, NOW), 5000);
	assert_int_equal(quotas_wait_ms(&q, i, NOW + 4900), 1000);
	quotas_owe(&q, i, 3);
	quotas_owe(&q, i, 4);
	assert_int_equal(quotas_owed(&q, i), 7);
	quotas_owed_sub(&q, i, 5);
	assert_int_equal(quotas_owed(&q, i), 2);
	quotas_owed_sub(&q, i, 5);
	assert_int_equal(quotas_owed(&q, i), 0);
	assert_int_equal(quotas_hosts(&q), 3);
	quotas_close(&q);
}

static void test_places(void **state)
{
	struct quotas q;
	uint32_t i = open_one(&q, -1);
	uint8_t id[QUOTAS_ID], again[QUOTAS_ID];

	(void)state;
	assert_int_equal(quotas_place(&q, key, HOUR, 100), i);
	assert_int_not_equal(quotas_place(&q, key, HOUR, 101), i);
	assert_int_not_equal(quotas_place(&q, key, 2 * HOUR, 100), i);
	assert_int_not_equal(quotas_place(&q, other_key, HOUR, 100), i);
	assert_int_equal(quotas_find(&q, key, HOUR, 100), i);
	assert_int_equal(quotas_find(&q, key, HOUR, 102), QUOTAS_NONE);
	for (uint64_t n = 4; n < QUOTAS_MAX; n++)
		assert_int_not_equal(quotas_place(&q, other_key, HOUR, 1000 + n), QUOTAS_NONE);
	assert_int_equal(quotas_place(&q, other_key, HOUR, 5), QUOTAS_NONE);
	quotas_id(&q, id);
	assert_int_equal(quotas_prepare(&q, 0), 0);
	quotas_id(&q, again);
	assert_memory_equal(id, again, QUOTAS_ID);
	assert_int_equal(quotas_hosts(&q), 0);
	quotas_close(&q);
}

static void test_claims(void **state)
{
	struct quotas q;
	uint32_t i = open_one(&q, -1);
	int64_t part;

	(void)state;
	quotas_claim_add(&q, i, 70, 5);
	quotas_claim_add(&q, i, 70, 6);
	assert_int_equal(quotas_claim(&q, i, 70 % QUOTAS_CLAIMS, &part), 11);
	assert_int_equal(part, 70);
	quotas_claim_sub(&q, i, 70, 4);
	quotas_claim_sub(&q, i, 70 + QUOTAS_CLAIMS, 4); /* another part's */
	assert_int_equal(quotas_claim(&q, i, 70 % QUOTAS_CLAIMS, &part), 7);
	quotas_claim_sub(&q, i, 70, 100);
	assert_int_equal(quotas_claim(&q, i, 70 % QUOTAS_CLAIMS, &part), 0);
	quotas_claim_add(&q, i, 70, 5);
	quotas_claim_add(&q, i, 70 + QUOTAS_CLAIMS, 1); /* the old part counts no more */
	assert_int_equal(quotas_claim(&q, i, 70 % QUOTAS_CLAIMS, &part), 1);
	quotas_claim_add(&q, i, 71, QUOTAS_AMOUNT_MAX);
	quotas_claim_add(&q, i, 71, QUOTAS_AMOUNT_MAX);
	assert_int_equal(quotas_claim(&q, i, 71 % QUOTAS_CLAIMS, &part), QUOTAS_AMOUNT_MAX);
	quotas_close(&q);
}

/* Two threads take at once while a third lends and takes away: nothing is taken twice. */
struct taker {
	struct quotas *q;
	uint32_t index;
	uint64_t got;
};

static void *take_many(void *context)
{
	struct taker *t = context;

	for (int i = 0; i < 20000; i++)
		t->got += quotas_take(t->q, t->index, NOW, 3) ? 3 : 0;
	return NULL;
}

static void test_at_once(void **state)
{
	struct quotas q;
	uint32_t i = open_one(&q, -1);
	struct taker takers[2] = {{&q, i, 0}, {&q, i, 0}};
	pthread_t threads[2];
	uint64_t lent = 0, back = 0;

	(void)state;
	lend(&q, i, 0);
	for (size_t k = 0; k < 2; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, take_many, &takers[k]), 0);
	for (int k = 0; k < 5000; k++) {
		quotas_add(&q, i, 7);
		lent += 7;
		back += k % 3 == 0 ? quotas_withdraw(&q, i, 1) : 0;
	}
	for (size_t k = 0; k < 2; k++)
		pthread_join(threads[k], NULL);
	back += quotas_withdraw(&q, i, 0);
	assert_int_equal(takers[0].got + takers[1].got + back, lent);
	quotas_close(&q);
}

/* Whatever a worker writes into the memory, the numbers stay within their bounds. */
static void test_hostile_content(void **state)
{
	int fd = quotas_create(), copy = dup(fd);
	size_t size = (size_t)lseek(fd, 0, SEEK_END);
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0);
	struct quota_lease lease;
	struct quotas q;
	int64_t part;

	(void)state;
	assert_int_equal(quotas_open(&q, fd, -1), 0);
	for (int fill = 0x7f; fill <= 0xff; fill += 0x80) {
		memset(p, fill, size);
		assert_true(quotas_left(&q, 0, NOW) <= QUOTAS_AMOUNT_MAX);
		assert_true(quotas_owed(&q, 0) <= QUOTAS_AMOUNT_MAX);
		assert_true(quotas_used_by_all(&q, 0) <= QUOTAS_AMOUNT_MAX);
		assert_true(quotas_claim(&q, 0, 5, &part) <= QUOTAS_AMOUNT_MAX);
		assert_true(quotas_state(&q, 0) < QUOTA_STATE_COUNT);
		quotas_owe(&q, 0, 5);
		quotas_claim_add(&q, 0, -5, 5);
		quotas_lease(&q, 0, &lease);
		assert_true(quotas_withdraw(&q, 0, 0) <= QUOTAS_AMOUNT_MAX);
		assert_true(quotas_take_wanted(&q, 0) <= QUOTAS_AMOUNT_MAX);
	}
	munmap(p, size);
	close(copy);
	quotas_close(&q);
}

static void test_files(void **state)
{
	char path[] = "/tmp/vethguard-quotas-XXXXXX";
	int dir, fd;
	struct quotas q;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_PATH | O_DIRECTORY);
	assert_int_equal(quotas_open_at(dir, "a"), -ENOENT);
	fd = quotas_create_at(dir, "a");
	assert_true(fd >= 0);
	assert_int_equal(quotas_create_at(dir, "a"), -EEXIST);
	assert_int_equal(quotas_open(&q, fd, -1), 0);
	assert_int_not_equal(quotas_place(&q, key, HOUR, 9), QUOTAS_NONE);
	quotas_close(&q);
	assert_true(quotas_are_lost(&q));
	fd = quotas_open_at(dir, "a");
	assert_int_equal(quotas_open(&q, fd, -1), 0);
	assert_int_not_equal(quotas_find(&q, key, HOUR, 9), QUOTAS_NONE);
	quotas_close(&q);
	fd = openat(dir, "a", O_RDWR);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1); /* another layout */
	assert_int_equal(quotas_open_at(dir, "a"), -EBADMSG);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(quotas_open_at(dir, "a"), -EBADMSG);
	assert_int_equal(quotas_open(&q, fd, -1), -EBADMSG);
	unlinkat(dir, "a", 0);
	close(dir);
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_takes_what_is_there),
	        cmocka_unit_test(test_a_lease_ends), cmocka_unit_test(test_gives_back),
	        cmocka_unit_test(test_away), cmocka_unit_test(test_places),
	        cmocka_unit_test(test_claims), cmocka_unit_test(test_at_once),
	        cmocka_unit_test(test_hostile_content), cmocka_unit_test(test_files)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
