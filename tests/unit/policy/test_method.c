/* SPDX-License-Identifier: Apache-2.0 */
/* Which words may be methods: any token, but for those that servers could take for another. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "vethguard/policy/method.h"
#include "vethguard/policy/policy.h"

static void test_kinds(void **state)
{
	static const struct {
		enum policy_method kind;
		const char *method;
	} rows[] = {
	        {POLICY_METHOD_FINE, "GET"},
	        {POLICY_METHOD_FINE, "HEAD"},
	        {POLICY_METHOD_FINE, "CONNECT"},
	        {POLICY_METHOD_FINE, "LIST"},
	        {POLICY_METHOD_FINE, "M-SEARCH"},
	        {POLICY_METHOD_FINE, "get"},
	        {POLICY_METHOD_FINE, "!#$%&'*+-.^_`|~09azAZ"},
	        {POLICY_METHOD_FINE, "PRIO"},
	        {POLICY_METHOD_FINE, "TRACK"},
	        {POLICY_METHOD_FINE, "*"},
	        {POLICY_METHOD_TRACE, "TRACE"},
	        {POLICY_METHOD_TRACE, "trace"},
	        {POLICY_METHOD_TRACE, "tRACE"},
	        {POLICY_METHOD_RESERVED, "PRI"},
	        {POLICY_METHOD_RESERVED, "pri"},
	        {POLICY_METHOD_RESERVED, "head"},
	        {POLICY_METHOD_RESERVED, "Head"},
	        {POLICY_METHOD_RESERVED, "connect"},
	        {POLICY_METHOD_RESERVED, "CONNECt"},
	        {POLICY_METHOD_MALFORMED, ""},
	        {POLICY_METHOD_MALFORMED, "G T"},
	        {POLICY_METHOD_MALFORMED, "GET "},
	        {POLICY_METHOD_MALFORMED, "GET:"},
	        {POLICY_METHOD_MALFORMED, "GE(T"},
	        {POLICY_METHOD_MALFORMED, "GET\x7f"},
	        {POLICY_METHOD_MALFORMED, "GET\x80"},
	        {POLICY_METHOD_MALFORMED, "GET\r"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum policy_method kind = policy_method_of(slice_from_string(rows[i].method));

		if (kind != rows[i].kind)
			fail_msg("%s: %d", rows[i].method, kind);
		assert_int_equal(policy_method_fault(kind) != NULL, kind != POLICY_METHOD_FINE);
	}
	assert_int_equal(policy_method_of(SLICE("GET\0")), POLICY_METHOD_MALFORMED);
}

static void test_length(void **state)
{
	char method[POLICY_METHOD_MAX + 2];

	(void)state;
	memset(method, 'A', sizeof(method));
	assert_int_equal(policy_method_of(slice_of(method, POLICY_METHOD_MAX)), POLICY_METHOD_FINE);
	assert_int_equal(
	        policy_method_of(slice_of(method, POLICY_METHOD_MAX + 1)), POLICY_METHOD_TOO_LONG);
	method[POLICY_METHOD_MAX] = ' ';
	assert_int_equal(
	        policy_method_of(slice_of(method, POLICY_METHOD_MAX + 1)), POLICY_METHOD_MALFORMED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_kinds),
	        cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
