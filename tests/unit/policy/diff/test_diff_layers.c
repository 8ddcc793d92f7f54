/* SPDX-License-Identifier: Apache-2.0 */
/* What policy_diff() says when the floor of a policy changes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../layer_test.h"
#include "vethguard/policy/diff.h"

#define V "vethguard: 1\n"
#define POLICY V "allow: [{to: [a.example, b.example]}]\n"

static void test_lines(void **state)
{
	static const struct {
		const char *from, *to; /* floors */
		bool widens, narrows;
		const char *line; /* is among the lines; NULL: there is none */
	} rows[] = {
	        {NULL, V, false, false, NULL},
	        {V "allow: [{to: a.example}]\n", V "allow: [{name: other, to: a.example}]\n", false,
	                false, NULL},
	        {NULL, V "allow: [{to: a.example}]\n", false, true,
	                "- the floor takes away: any method https://b.example"},
	        {V "allow: [{to: a.example}]\n", NULL, true, false,
	                "+ the floor no longer takes away: any method https://b.example"},
	        {V "allow: [{to: a.example}]\n", V "allow: [{to: '*.example'}]\n", true, false,
	                "+ the floor no longer takes away: any method https://b.example"},
	        {V "allow: [{to: a.example, paths: [/x]}]\n",
	                V "allow: [{to: a.example, paths: [/x, /y]}]\n", true, false,
	                "+ the floor's allow rules let other requests pass"},
	        {NULL, V "allow: [{to: '*.example'}]\ninfrastructure: [{to: c.other}]\n", true,
	                false,
	                "+ whatever the policy denies, infrastructure may be reached: c.other"},
	        {NULL, V "deny: [{to: a.example}]\n", false, true,
	                "- may no longer: any method https://a.example"},
	        {V "deny: [{to: a.example}]\n", NULL, true, false,
	                "+ may: any method https://a.example"},
	        {NULL, V "infrastructure: [{to: a.example}]\n", true, false,
	                "+ whatever the policy denies, infrastructure may be reached: a.example"},
	        {V "infrastructure: [{to: 'https://a.example'}]\n", NULL, false, true,
	                "- a policy may deny infrastructure again: https://a.example"},
	        {V "infrastructure: [{to: c.other}]\n",
	                V "infrastructure: [{to: c.other}]\ndeny: [{to: d.other}]\n", false, false,
	                NULL},
	        {V "infrastructure: [{to: c.other}]\ndeny: [{to: d.other}]\n",
	                V "infrastructure: [{to: c.other}]\ndeny: [{to: e.other}]\n", false, false,
	                NULL},
	        {V "infrastructure: [{to: c.other}]\n",
	                V "infrastructure: [{to: c.other}]\ndeny: [{to: a.example}]\n", false, true,
	                "- may no longer: any method https://a.example"},
	        {V "infrastructure: [{to: 'https://c.other', methods: [GET]}]\n",
	                V "infrastructure: [{to: 'https://c.other', methods: [GET, POST]}]\n", true,
	                false,
	                "+ infrastructure lets other requests pass, whatever the policy denies"},
	        {V "infrastructure: [{to: 'https://c.other', methods: [GET, POST]}]\n",
	                V "infrastructure: [{to: 'https://c.other', methods: [GET]}]\n", false,
	                true, "- infrastructure lets fewer requests pass"},
	        {NULL, V "limits: {requests: 5/1m}\n", false, true,
	                "- new limit of the floor: requests 5/1m"},
	        {V "limits: {requests: 5/1m}\n", V "limits: {requests: 6/1m}\n", true, false,
	                "+ limit of the floor: requests 6/1m (so far limit of the floor: requests "
	                "5/1m)"},
	        {V "limits: {requests: 5/1m}\n", NULL, true, false,
	                "+ no more limit of the floor: requests 5/1m"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct test_policy from, to;
		struct policy_diff d;
		bool found = rows[i].line == NULL;

		layer_load(&from, POLICY, rows[i].from, false);
		layer_load(&to, POLICY, rows[i].to, false);
		assert_int_equal(policy_diff(&from.policy, &to.policy, &d), 0);
		for (size_t k = 0; k < d.count; k++)
			found |= rows[i].line && strcmp(d.lines[k].text, rows[i].line) == 0;
		if (!found || d.widens != rows[i].widens || d.narrows != rows[i].narrows ||
		        d.differs != (rows[i].line != NULL))
			fail_msg("row %zu: %s", i, d.count ? d.lines[0].text : "no line");
		policy_diff_fini(&d);
		test_unload(&from);
		test_unload(&to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
