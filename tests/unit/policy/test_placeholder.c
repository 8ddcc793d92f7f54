/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholders: recognizable, stable for one seed, different for others, bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "vethguard/policy/placeholder.h"

static const uint8_t seed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static size_t make(struct slice name, const char *env, const uint8_t by[16], char *out)
{
	const struct policy_credential c = {.name = name, .env = slice_from_string(env)};

	return placeholder_make(&c, by, out);
}

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
		size_t n = make(SLICE("name"), table[i].env, seed, out);

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
	make(SLICE("name"), "GITHUB_TOKEN", seed, a);
	make(SLICE("name"), "GITHUB_TOKEN", seed, b);
	assert_string_equal(a, b);
	make(SLICE("nam"), "GITHUB_TOKEN", seed, b);
	assert_string_not_equal(a, b);
	for (size_t i = 0; i < sizeof(other); i++) {
		memcpy(other, seed, sizeof(other));
		other[i] ^= 1;
		make(SLICE("name"), "GITHUB_TOKEN", other, b);
		assert_string_not_equal(a, b);
	}
}

static void test_bounds(void **state)
{
	char name[POLICY_NAME_MAX + 10], out[PLACEHOLDER_MAX + 1];
	size_t n;

	(void)state;
	memset(name, 'n', sizeof(name));
	n = make(slice_of(name, sizeof(name)), "X", seed, out);
	assert_true(n <= PLACEHOLDER_MAX);
	assert_int_equal(n, strlen(out));
	assert_int_equal(strspn(out + n - 32, "0123456789abcdef"), 32);
	n = make(SLICE(""), "", seed, out);
	assert_true(n > 32 && strstr(out, "vethguard"));
}

/* These texts are in sandboxes that outlive an upgrade. */
static void test_stays_what_it_was(void **state)
{
	char out[PLACEHOLDER_MAX + 1];

	(void)state;
	make(SLICE("name"), "GITHUB_TOKEN", seed, out);
	assert_string_equal(out, "ghp_vethguard4361befdcdad3e5124d4b8b0a6c48015");
}

/* --- shapes of the policy --- */

static size_t make_shape(const char *shape, size_t n, const uint8_t by[16], char *out)
{
	const struct policy_credential c = {.name = SLICE("name"),
	        .env = SLICE("GITHUB_TOKEN"),
	        .placeholder = slice_from_string(shape),
	        .placeholder_n = (uint32_t)n};

	assert_null(placeholder_check_shape(c.placeholder));
	return placeholder_make(&c, by, out);
}

static void test_of_a_shape(void **state)
{
	static const struct {
		const char *shape, *start, *end;
	} table[] = {{"github_pat_...", "github_pat_vethguard", ""}, {"x...", "xvethguard", ""},
	        {"eyJ0.e30....", NULL, NULL},
	        {"a:b/c+d=.~_-...-end", "a:b/c+d=.~_-vethguard", "-end"},
	        {"sk-vethguard...vethguard", "sk-vethguardvethguard", "vethguard"}};
	const uint8_t other[16] = {9};
	char out[PLACEHOLDER_MAX + 1], more[PLACEHOLDER_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct slice shape = slice_from_string(table[i].shape);
		size_t end = table[i].end ? strlen(table[i].end) : 0;

		if (!table[i].start) {
			assert_non_null(placeholder_check_shape(shape));
			continue;
		}
		for (size_t n = placeholder_shape_min(shape); n <= PLACEHOLDER_MAX; n++) {
			size_t start = strlen(table[i].start);

			assert_int_equal(make_shape(table[i].shape, n, seed, out), n);
			assert_int_equal(strlen(out), n);
			assert_memory_equal(out, table[i].start, start);
			assert_string_equal(out + n - end, table[i].end);
			assert_true(n - start - end >= PLACEHOLDER_DIGITS_MIN);
			assert_int_equal(strspn(out + start, "0123456789abcdef"), n - start - end);
			make_shape(table[i].shape, n, other, more);
			assert_string_not_equal(out, more);
		}
	}
	/* no part of the digits says the same twice */
	make_shape("x...", PLACEHOLDER_MAX, seed, out);
	for (size_t i = 10; i + 32 <= PLACEHOLDER_MAX; i++)
		assert_null(memmem(out + i + 16, PLACEHOLDER_MAX - i - 16, out + i, 16));
}

static void test_what_is_no_shape(void **state)
{
	static const char *const shapes[] = {"", "ghp_0123456789", "...", "...x", "a..b", "a....",
	        "a.....b", "a...b...", "a......", "a ...", "a\"...", "a%41...", "a$...", "a\\...",
	        "a\n...", "\xc3\xa9...", "a,..."};
	char longest[PLACEHOLDER_SHAPE_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (!placeholder_check_shape(slice_from_string(shapes[i])))
			fail_msg("is a shape: %s", shapes[i]);
	assert_non_null(placeholder_check_shape(slice_of("a\0...", 5)));
	memset(longest, 'a', sizeof(longest));
	memcpy(longest + sizeof(longest) - 3, "...", 3);
	assert_non_null(placeholder_check_shape(slice_of(longest, sizeof(longest))));
	assert_null(placeholder_check_shape(slice_of(longest + 1, sizeof(longest) - 1)));
	assert_int_equal(
	        placeholder_shape_min(slice_of(longest + 1, sizeof(longest) - 1)), PLACEHOLDER_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_shapes),
	        cmocka_unit_test(test_differs),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_stays_what_it_was),
	        cmocka_unit_test(test_of_a_shape),
	        cmocka_unit_test(test_what_is_no_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
