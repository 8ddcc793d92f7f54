/* SPDX-License-Identifier: Apache-2.0 */
/* diff_test: what two policies from texts in memory do differently. */
#ifndef VETHGUARD_TESTS_UNIT_POLICY_DIFF_TEST_H
#define VETHGUARD_TESTS_UNIT_POLICY_DIFF_TEST_H

#include "policy_test.h"
#include "vethguard/policy/diff.h"

static inline void test_diff_of(const char *from, const char *to, struct policy_diff *out)
{
	struct test_policy a, b;

	test_load(&a, from, false);
	test_load(&b, to, false);
	assert_int_equal(policy_diff(&a.policy, &b.policy, out), 0);
	test_unload(&a);
	test_unload(&b);
}

/* Checks a difference of one line. line: NULL if there is none. */
static inline void test_compare(
        const char *from, const char *to, bool widens, bool narrows, const char *line)
{
	struct policy_diff diff;

	test_diff_of(from, to, &diff);
	assert_int_equal(diff.widens, widens);
	assert_int_equal(diff.narrows, narrows);
	assert_int_equal(diff.count, line ? 1 : 0);
	if (line)
		assert_string_equal(diff.lines[0].text, line);
	policy_diff_fini(&diff);
}

#endif
