/* SPDX-License-Identifier: Apache-2.0 */
/* buf: content survives growth, moves and refusals; the bound holds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "vethguard/base/buf.h"

static void starts_without_memory(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_null(b.mem);
	assert_int_equal(buf_slice(&b).n, 0);
	assert_int_equal(buf_append(&b, NULL, 0), 0);
	assert_null(b.mem);
	buf_fini(&b);
	assert_int_equal(b.max, 10);
}

static void holds_its_bound(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_int_equal(buf_append(&b, "0123456789", 10), 0);
	assert_int_equal(buf_append(&b, "x", 1), -ENOBUFS);
	assert_null(buf_reserve(&b, 1));
	assert_int_equal(buf_printf(&b, "%d", 1), -ENOBUFS);
	assert_true(slice_equals(buf_slice(&b), SLICE("0123456789")));
	buf_consume(&b, 4);
	assert_int_equal(buf_append(&b, "abcde", 5), -ENOBUFS);
	assert_int_equal(buf_append(&b, "abcd", 4), 0);
	assert_true(slice_equals(buf_slice(&b), SLICE("456789abcd")));
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_int_equal(buf_append(&b, "x", SIZE_MAX), -ENOBUFS);
	buf_fini(&b);
}

/* Searches the heap, without the guard pages that musl puts there. */
static bool heap_holds(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long begin, end;
	char line[512];
	bool found = false;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[heap]") && sscanf(line, "%lx-%lx", &begin, &end) == 2 &&
		        strstr(line, " rw"))
			found |= memmem((const void *)begin, end - begin, text, strlen(text)) !=
			         NULL;
	fclose(maps);
	return found;
}

/* Memory that a buffer outgrows or frees is wiped. */
static void wipes_secrets(void **state)
{
	char text[48];
	struct buf b;

	(void)state;
	memset(text, '#', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	buf_init_secret(&b, 1 << 16);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(buf_append(&b, text, sizeof(text) - 1), 0);
	buf_consume(&b, 100 * sizeof(text));
	buf_fini(&b);
	assert_true(b.secret);
	assert_false(heap_holds(text));
	assert_int_equal(buf_append(&b, text, sizeof(text) - 1), 0);
	buf_fini(&b);
	assert_false(heap_holds(text));
}

/* AddressSanitizer, where it is on, is to fail a huge malloc as the C library does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void refuses_sizes_that_wrap(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, SIZE_MAX);
	assert_int_equal(buf_append(&b, "abc", 3), 0);
	assert_null(buf_reserve(&b, SIZE_MAX));
	assert_null(buf_reserve(&b, SIZE_MAX - 3));
	assert_true(slice_equals(buf_slice(&b), SLICE("abc")));
	buf_fini(&b);
}

static void prints_exactly(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 5);
	assert_int_equal(buf_printf(&b, "%s", "12345"), 0);
	assert_true(slice_equals(buf_slice(&b), SLICE("12345")));
	buf_consume(&b, 5);
	assert_int_equal(buf_printf(&b, "%s", "123456"), -ENOBUFS);
	assert_int_equal(b.len, 0);
	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	buf_fini(&b);
}

static void reserves_and_commits(void **state)
{
	struct buf b;
	uint8_t *p;

	(void)state;
	buf_init(&b, 100000);
	p = buf_reserve(&b, 70000);
	assert_non_null(p);
	memset(p, 'a', 70000);
	assert_int_equal(b.len, 0);
	buf_commit(&b, 65000);
	assert_int_equal(b.len, 65000);
	assert_null(buf_reserve(&b, 35001));
	assert_non_null(buf_reserve(&b, 35000));
	assert_int_equal(buf_bytes(&b)[64999], 'a');
	buf_fini(&b);
	assert_int_equal(buf_append(&b, "again", 5), 0);
	buf_fini(&b);
}

/* A queue that is filled and drained unevenly keeps its order across every move and growth. */
static void keeps_order(void **state)
{
	struct buf b;
	unsigned put = 0, got = 0, seed = 1;

	(void)state;
	buf_init(&b, 3000);
	for (int turn = 0; turn < 20000; turn++) {
		uint8_t piece[400];
		size_t n;

		seed = seed * 1103515245 + 12345;
		n = seed >> 16 & 255;
		for (size_t i = 0; i < n; i++)
			piece[i] = (uint8_t)(put + i);
		if (buf_append(&b, piece, n) == 0)
			put += (unsigned)n;
		seed = seed * 1103515245 + 12345;
		n = seed >> 16 & 255;
		if (n > b.len)
			n = b.len;
		for (size_t i = 0; i < n; i++)
			assert_int_equal(buf_bytes(&b)[i], (uint8_t)(got + i));
		buf_consume(&b, n);
		got += (unsigned)n;
		assert_int_equal(b.len, put - got);
		assert_true(b.len <= 3000);
	}
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(starts_without_memory),
	        cmocka_unit_test(holds_its_bound),
	        cmocka_unit_test(refuses_sizes_that_wrap),
	        cmocka_unit_test(prints_exactly),
	        cmocka_unit_test(reserves_and_commits),
	        cmocka_unit_test(keeps_order),
	        cmocka_unit_test(wipes_secrets),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
