/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholders: recognisable, stable for one seed, different for others, bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/policy/placeholder.h"

static const uint8_t seed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static void test_shapes(void **state)
{
	static const struct {
		const char *env, *start;
	} table[] = {{"OPENAI_API_KEY", "sk-vethguard-"},
	        {"ANTHROPIC_API_KEY", "sk-ant-vethguard-"}, {"GITHUB_TOKEN", "ghp_vethguard"},
	        {"COPILOT_GITHUB_TOKEN", "github_pat_vethguard"}, {"MY_TOKEN", "vethguard-name-"},
	        {"", "vethguard-name-"}, {"OPENAI_API_KEY2", "vethguard-name-"},
	        {"openai_api_key", "vethguard-name-"}};
	char out[PLACEHOLDER_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t n =
		        placeholder_make(SLICE("name"), slice_from_string(table[i].env), seed, out);

		assert_int_equal(n, strlen(out));
		assert_int_equal(n, strlen(table[i].start) + 32);
		assert_memory_equal(out, table[i].start, strlen(table[i].start));
		assert_int_equal(strspn(out + n - 32, "0123456789abcdef"), 32);
	}
}

static void test_differs(void **state)
{
	char a[PLACEHOLDER_MAX + 1], b[PLACEHOLDER_MAX + 1];
	uint8_t other[16];

	(void)state;
	placeholder_make(SLICE("name"), SLICE("GITHUB_TOKEN"), seed, a);
	placeholder_make(SLICE("name"), SLICE("GITHUB_TOKEN"), seed, b);
	assert_string_equal(a, b);
	placeholder_make(SLICE("nam"), SLICE("GITHUB_TOKEN"), seed, b);
	assert_string_not_equal(a, b);
	for (size_t i = 0; i < sizeof(other); i++) {
		memcpy(other, seed, sizeof(other));
		other[i] ^= 1;
		placeholder_make(SLICE("name"), SLICE("GITHUB_TOKEN"), other, b);
		assert_string_not_equal(a, b);
	}
}

static void test_bounds(void **state)
{
	char name[POLICY_NAME_MAX + 10], out[PLACEHOLDER_MAX + 1];
	size_t n;

	(void)state;
	memset(name, 'n', sizeof(name));
	n = placeholder_make(slice_of(name, sizeof(name)), SLICE("X"), seed, out);
	assert_true(n <= PLACEHOLDER_MAX);
	assert_int_equal(n, strlen(out));
	assert_int_equal(strspn(out + n - 32, "0123456789abcdef"), 32);
	n = placeholder_make(SLICE(""), SLICE(""), seed, out);
	assert_true(n > 32 && strstr(out, "vethguard"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_shapes),
	        cmocka_unit_test(test_differs),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
