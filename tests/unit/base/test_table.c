/* SPDX-License-Identifier: Apache-2.0 */
/* Tables without memory: an element that finds no room is not in the table, all others stay. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "no_memory.h"
#include "vethguard/base/table.h"

#define ELEMENTS 500 /* a table grows several times on the way */

struct element {
	int key;
	UT_hash_handle hh;
};

static struct element elements[ELEMENTS], *table;

static struct element *find(int key)
{
	struct element *found;

	HASH_FIND_INT(table, &key, found);
	return found;
}

static void add(int key)
{
	elements[key] = (struct element){.key = key};
	HASH_ADD_INT(table, key, &elements[key]);
}

static void delete_all(void)
{
	for (int key = 0; key < ELEMENTS; key++)
		if (elements[key].hh.tbl)
			HASH_DEL(table, &elements[key]);
	assert_null(table);
}

/* All were added while perhaps one allocation failed. Returns how many are missing. */
static int lost(void)
{
	struct element *e, *next;
	int count = 0, lost = 0;

	for (int key = 0; key < ELEMENTS; key++) {
		assert_ptr_equal(find(key), elements[key].hh.tbl ? &elements[key] : NULL);
		lost += !elements[key].hh.tbl;
	}
	HASH_ITER(hh, table, e, next)
	count++;
	assert_int_equal(count, ELEMENTS - lost);
	assert_int_equal(HASH_COUNT(table), ELEMENTS - lost);
	return lost;
}

static void one_finds_no_room_and_the_others_stay(void **state)
{
	unsigned nth = 0;
	bool met;

	(void)state;
	do {
		no_memory_at(++nth);
		for (int key = 0; key < ELEMENTS; key++)
			add(key);
		met = no_memory_met();
		assert_int_equal(lost(), met);
		for (int key = 0; key < ELEMENTS; key++)
			if (!elements[key].hh.tbl)
				add(key); /* there is memory again */
		assert_int_equal(lost(), 0);
		delete_all();
	} while (met);
	assert_true(nth > 4); /* the table, its first buckets, more of them twice */
}

static void nothing_is_found_where_there_never_was_memory(void **state)
{
	(void)state;
	for (int key = 0; key < ELEMENTS; key++) {
		no_memory_at(1);
		add(key);
		assert_true(no_memory_met());
		assert_null(find(key));
	}
	assert_null(table);
	delete_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(one_finds_no_room_and_the_others_stay),
	        cmocka_unit_test(nothing_is_found_where_there_never_was_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
