/* SPDX-License-Identifier: Apache-2.0 */
/* What allow rules name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy_test.h"

static bool names(const char *rules, const char *what)
{
	struct policy_named n;
	struct test_policy t;
	char text[128], ip[IP_TEXT_MAX];
	bool found = false;
	uint32_t at = 0;

	test_load(&t, rules, false);
	while (policy_named_next(&t.policy, &at, &n)) {
		if (n.host.n)
			snprintf(text, sizeof(text), "%s%.*s", n.below ? "*." : "",
			        SLICE_ARG(n.host));
		else
			snprintf(text, sizeof(text), "%s/%u", ip_format(&n.network.base, ip),
			        (unsigned)n.network.bits);
		found = found || strcmp(text, what) == 0;
	}
	assert_false(policy_named_next(&t.policy, &at, &n));
	test_unload(&t);
	return found;
}

#define RULES                                                                           \
	"vethguard: 1\n"                                                                \
	"allow:\n"                                                                      \
	"  - {to: https://api.lab.test, paths: [/a]}\n"                                 \
	"  - {to: ['https://*.cdn.test', 'http://10.2.0.0/16', 'https://[fd00::7]']}\n" \
	"deny:\n"                                                                       \
	"  - {to: https://closed.lab.test}\n"                                           \
	"  - {to: https://api.lab.test, paths: [/b]}\n"

static void what_is_allowed_is_named(void **state)
{
	(void)state;
	assert_true(names(RULES, "api.lab.test"));
	assert_true(names(RULES, "*.cdn.test"));
	assert_true(names(RULES, "10.2.0.0/16"));
	assert_true(names(RULES, "fd00::7/128"));
}

static void nothing_else_is(void **state)
{
	(void)state;
	assert_false(names(RULES, "closed.lab.test"));
	assert_false(names(RULES, "cdn.test"));
	assert_false(names(RULES, "10.2.0.0/32"));
	assert_false(names("vethguard: 1\n", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_is_allowed_is_named), cmocka_unit_test(nothing_else_is)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
