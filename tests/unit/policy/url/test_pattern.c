/* SPDX-License-Identifier: Apache-2.0 */
/* Path patterns: what they match, which of two is more specific, and whether two can match one
 * path. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/url/pattern.h"

static const struct {
	const char *pattern, *path;
	bool matches;
} matches[] = {
        {"/", "/", true},
        {"/a", "/a", true},
        {"/**", "/", true},
        {"/**", "/a/b/c", true},
        {"/a/**", "/a", true},
        {"/a/**", "/a/", true},
        {"/a/**", "/a/b/c", true},
        {"/a/*", "/a/b", true},
        {"/*/b", "/a/b", true},
        {"/a*", "/a", true},
        {"/a*", "/abc", true},
        {"/*.json", "/x.json", true},
        {"/a*b*c", "/a1b2b3c", true},
        {"/**/b", "/b", true},
        {"/**/b", "/a/a/b", true},
        {"/a/**/b", "/a/b", true},
        {"/a/**/b/**", "/a/x/b/y", true},
        {"/**/a/*/b", "/a/a/x/b", true},
        {"/**/a/**/b", "/x/a/b/a/c/b", true},
        {"/a//b", "/a//b", true},
        {"/@*%2F*", "/@scope%2Fname", true},
        {"/a%2Fb/**", "/a%2Fb/c", true},
        {"/", "/a", false},
        {"/a", "/", false},
        {"/a", "/A", false},
        {"/a", "/a/", false},
        {"/a/", "/a", false},
        {"/a", "/ab", false},
        {"/a/**", "/ab", false},
        {"/a/**", "/", false},
        {"/*", "/", false},
        {"/*", "/a/b", false},
        {"/a/*", "/a", false},
        {"/a/*", "/a/", false},
        {"/a/*", "/a/b/", false},
        {"/a/*/c", "/a//c", false},
        {"/*.json", "/x.json5", false},
        {"/*.json", "/a/x.json", false},
        {"/a*b*c", "/a1c2b", false},
        {"/**/b", "/a/bb", false},
        {"/a/**/b", "/a/b/c", false},
        {"/a//b", "/a/b", false},
        {"/*", "/a%2Fb", false},
        {"/**", "/a%2Fb", false},
        {"/a/**", "/a/x/b%2Fc", false},
        {"/a/**/d", "/a/b%2Fc/d", false},
        {"/a*", "/ab%2Fc", false},
        {"/*b", "/a%2Fb", false},
        {"/@*%2F*", "/@a%2Fb%2Fc", false},
};

static void test_matches(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++)
		if (pattern_matches(slice_from_string(matches[i].pattern),
		            slice_from_string(matches[i].path)) != matches[i].matches)
			fail_msg("%s and %s", matches[i].pattern, matches[i].path);
}

/* Each pattern is more specific than the next one. */
static void test_rank(void **state)
{
	static const char *const falling[] = {"/repos/acme/x", "/repos/acme/*", "/repos/acme",
	        "/repos/acme/**", "/repos/*/pulls", "/repos/*", "/repos/**", "/r*", "/*/a", "/*",
	        "/**"};

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(falling) / sizeof(falling[0]); i++)
		if (pattern_rank(slice_from_string(falling[i])) <=
		        pattern_rank(slice_from_string(falling[i + 1])))
			fail_msg("%s and %s", falling[i], falling[i + 1]);
}

static void test_overlaps(void **state)
{
	static const struct {
		const char *a, *b;
		bool overlaps;
	} table[] = {
	        {"/a", "/a", true},
	        {"/a/*", "/a/b", true},
	        {"/a/*", "/*/b", true},
	        {"/a/**", "/**/b", true},
	        {"/a*", "/*b", true},
	        {"/a/**", "/a", true},
	        {"/**/x/**", "/a/**/b", true},
	        {"/x/*/a*", "/x/*/*b", true},
	        {"/a", "/b", false},
	        {"/a/*", "/b/*", false},
	        {"/a/*", "/a", false},
	        {"/a*", "/b*", false},
	        {"/*a", "/*b", false},
	        {"/a/**/c", "/a/**/d", false},
	        {"/a/*/c", "/a/b", false},
	        {"/x/*/ay", "/x/*/bz", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct slice a = slice_from_string(table[i].a), b = slice_from_string(table[i].b);

		if (pattern_overlaps(a, b) != table[i].overlaps ||
		        pattern_overlaps(b, a) != table[i].overlaps)
			fail_msg("%s and %s", table[i].a, table[i].b);
	}
}

static void test_literal_start(void **state)
{
	static const struct {
		const char *pattern, *start;
		unsigned depth;
	} table[] = {{"/", "/", 1}, {"/a/b", "/a/b", 2}, {"/a/*", "/a", 1}, {"/**", "", 0},
	        {"/a*/b", "", 0}, {"/a/", "/a/", 2}, {"/a/b/c/d/e", "/a/b/c/d", 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned depth;
		struct slice start =
		        pattern_literal_start(slice_from_string(table[i].pattern), 4, &depth);

		assert_true(slice_equals(start, slice_from_string(table[i].start)));
		assert_int_equal(depth, table[i].depth);
	}
}

/* Patterns that make a naive matcher slow end at once. */
static void test_no_explosion(void **state)
{
	static char path[8000], pattern[2000];

	(void)state;
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 2 ? 'a' : '/';
	for (size_t i = 0; i + 5 <= sizeof(pattern); i += 5)
		memcpy(pattern + i, "/**/a", 5);
	pattern[sizeof(pattern) - 1] = 'b';
	assert_false(
	        pattern_matches(slice_of(pattern, sizeof(pattern)), slice_of(path, sizeof(path))));
	memset(path + 1, 'a', sizeof(path) - 1);
	for (size_t i = 1; i + 2 <= sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 2);
	pattern[sizeof(pattern) - 1] = 'b';
	assert_false(
	        pattern_matches(slice_of(pattern, sizeof(pattern)), slice_of(path, sizeof(path))));
	for (size_t i = 0; i + 5 <= sizeof(pattern); i += 5)
		memcpy(pattern + i, "/**/a", 5);
	assert_true(pattern_overlaps(
	        slice_of(pattern, sizeof(pattern)), slice_of(pattern, sizeof(pattern))));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_matches),
	        cmocka_unit_test(test_rank),
	        cmocka_unit_test(test_overlaps),
	        cmocka_unit_test(test_literal_start),
	        cmocka_unit_test(test_no_explosion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
