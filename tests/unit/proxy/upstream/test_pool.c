/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's entries, one for each key, where there is no memory. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "no_memory.h"
#include "proxy/private.h"
#include "proxy/upstream/upstream.h"

#define ENTRIES 200 /* the table grows on the way */

static struct proxy proxy;
static struct pool_entry *entries[ENTRIES];

static struct upstream_key key_of(unsigned i)
{
	struct upstream_key key = {0};

	key.n = (size_t)snprintf((char *)key.bytes, sizeof(key.bytes), "host-%u", i);
	return key;
}

static void get(unsigned i)
{
	struct upstream_key key = key_of(i);

	entries[i] = pool_entry_get(&proxy, &key);
}

static void one_finds_no_room_and_the_others_stay(void **state)
{
	unsigned nth = 0, refused;

	(void)state;
	do {
		no_memory_at(++nth);
		for (unsigned i = 0; i < ENTRIES; i++)
			get(i);
		refused = no_memory_met();
		for (unsigned i = 0; i < ENTRIES; i++) {
			struct upstream_key key = key_of(i);

			refused -= !entries[i];
			if (!entries[i])
				get(i); /* there is memory again */
			assert_ptr_equal(pool_entry_get(&proxy, &key), entries[i]);
			pool_entry_release(&proxy, entries[i]);
		}
		assert_int_equal(refused, 0);
		for (unsigned i = 0; i < ENTRIES; i++)
			pool_entry_release(&proxy, entries[i]);
		assert_null(proxy.pool);
	} while (nth < ENTRIES + 4); /* entries, the table, its buckets and more of them */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(one_finds_no_room_and_the_others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
