/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is wiped before it is freed. A wrapper of free(3) looks at what is left in it. */
/* The linker wraps: free */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "no_memory.h"
#include "vethguard/base/wiped.h"

void __real_free(void *p);
void __wrap_free(void *p);

static unsigned freed, dirty; /* blocks, and those that were not zero */

void __wrap_free(void *p)
{
	const unsigned char *bytes = p;
	size_t n = p ? malloc_usable_size(p) : 0;

	freed += p != NULL;
	for (size_t i = 0; i < n; i++)
		if (bytes[i]) {
			dirty++;
			break;
		}
	__real_free(p);
}

static void *filled(size_t n)
{
	void *p = malloc(n);

	assert_non_null(p);
	memset(p, 'x', malloc_usable_size(p));
	return p;
}

static void test_freed(void **state)
{
	(void)state;
	freed = dirty = 0;
	wiped_free(NULL);
	assert_int_equal(freed, 0);
	wiped_free(filled(1));
	wiped_free(filled(100000));
	assert_int_equal(freed, 2);
	assert_int_equal(dirty, 0);
}

static void test_resized(void **state)
{
	char *p = filled(24), *other;

	(void)state;
	freed = dirty = 0;
	assert_ptr_equal(wiped_realloc(p, 1), p);
	other = wiped_realloc(p, 5000);
	assert_non_null(other);
	assert_int_equal(freed, 1);
	for (size_t i = 0; i < 24; i++)
		assert_int_equal(other[i], 'x');
	assert_null(wiped_realloc(other, 0));
	assert_int_equal(freed, 2);
	p = wiped_realloc(NULL, 8);
	assert_non_null(p);
	wiped_free(p);
	assert_null(wiped_realloc(NULL, 0));
	assert_int_equal(freed, 3);
	assert_int_equal(dirty, 0);
}

/* Without memory the block stays as it is. */
static void test_no_memory(void **state)
{
	char *p = filled(24);

	(void)state;
	freed = 0;
	no_memory_at(1);
	assert_null(wiped_realloc(p, 5000));
	assert_true(no_memory_met());
	assert_int_equal(freed, 0);
	assert_int_equal(p[23], 'x');
	wiped_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_freed),
	        cmocka_unit_test(test_resized),
	        cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
