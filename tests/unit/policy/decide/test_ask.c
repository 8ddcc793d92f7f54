/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that ask: an ask rule beats every allow rule and no deny rule. A request that a server
 * could read as one that the rule asks about is denied. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/diff.h"
#include "vethguard/policy/explain.h"

#define TEXT                                                                                       \
	"vethguard: 1\nname: t\n"                                                                  \
	"credentials: {k: {source: env:K, inject: bearer}, l: {source: env:L, inject: bearer}}\n"  \
	"allow:\n"                                                                                 \
	"  - {name: all, to: [a.example, '*.b.example'], credential: k}\n"                         \
	"ask:\n"                                                                                   \
	"  - {name: pulls, to: a.example, methods: [POST], paths: ['/repos/*/pulls'], wait: 10m, " \
	"credential: l}\n"                                                                         \
	"  - {name: wide, to: '*.example', paths: [/x]}\n"                                         \
	"  - {name: body, to: a.example, paths: [/rpc], json: {method: 'tools/*'}}\n"              \
	"deny:\n"                                                                                  \
	"  - {name: never, to: a.example, paths: ['/repos/secret/**']}\n"

enum outcome { DENIES, ALLOWS, ASKS, READS };

static void test_decisions(void **state)
{
	static const struct {
		const char *method, *url;
		enum outcome outcome;
		const char *rule;
	} rows[] = {
	        {"POST", "https://a.example/repos/x/pulls", ASKS, "pulls"},
	        {"GET", "https://a.example/repos/x/pulls", ALLOWS, "all"},
	        {"POST", "https://a.example/repos/x/issues", ALLOWS, "all"},
	        {"POST", "https://a.example/repos/secret/pulls", DENIES, "never"},
	        {"GET", "https://a.example/x", ASKS, "wide"},
	        {"GET", "https://q.b.example/x", ASKS, "wide"},
	        {"GET", "https://q.b.example/y", ALLOWS, "all"},
	        {"GET", "https://other.example/x", ASKS, "wide"},
	        {"GET", "https://other.example/y", DENIES, NULL},
	        /* a server could read these as a path that a rule asks about */
	        {"POST", "https://a.example/Repos/x/pulls", DENIES, NULL},
	        {"POST", "https://a.example/repos/x/pulls/", DENIES, NULL},
	        {"POST", "https://a.example/repos//x/pulls", DENIES, NULL},
	        {"POST", "https://a.example/repos/x%2Fpulls", DENIES, NULL},
	        {"post", "https://a.example/repos/x/pulls", DENIES, NULL},
	        {"GET", "https://q.b.example/X", DENIES, NULL},
	        {"GET", "https://q.b.example/x;y", DENIES, NULL},
	        {"CONNECT", "https://a.example/", ALLOWS, NULL},
	        {"CONNECT", "https://other.example/", ALLOWS, NULL},
	};
	struct policy_decision d;
	struct test_question q;
	struct test_policy t;

	(void)state;
	test_load(&t, TEXT, false);
	assert_int_equal(policy_rule_count(&t.policy), 5);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		policy_decide(&t.policy, test_question(&q, rows[i].method, rows[i].url), &d);
		if ((d.verdict == POLICY_ALLOW) != (rows[i].outcome != DENIES) ||
		        d.asks != (rows[i].outcome == ASKS))
			fail_msg("%s %s: verdict %d, asks %d", rows[i].method, rows[i].url,
			        d.verdict, d.asks);
		if (rows[i].rule && !slice_equals(policy_rule_name(&t.policy, d.rule),
		                            slice_from_string(rows[i].rule)))
			fail_msg("%s %s: another rule", rows[i].method, rows[i].url);
	}
	policy_decide(&t.policy, test_question(&q, "POST", "https://a.example/repos/x/pulls"), &d);
	assert_int_equal(policy_rule_wait_s(&t.policy, d.rule), 600);
	assert_int_equal(d.credential, 1);
	assert_int_equal(policy_rule_wait_s(&t.policy, 0), 0);
	assert_int_equal(policy_rule_wait_s(&t.policy, 99), 0);
	test_unload(&t);
}

/* Whether a rule with a condition on the body asks is known only with the body. */
static void test_body(void **state)
{
	static const struct policy_body unread = {.state = POLICY_BODY_UNREAD};
	struct policy_request request;
	struct policy_decision d;
	struct test_question q;
	struct test_policy t;

	(void)state;
	test_load(&t, TEXT, false);
	request = *test_question(&q, "POST", "https://a.example/rpc");
	request.body = &unread;
	policy_decide(&t.policy, &request, &d);
	assert_true(d.needs_body);
	test_unload(&t);
}

static void count_shadows(void *context, const struct policy_rule_report *report)
{
	(void)report;
	++*(int *)context;
}

static void test_explain(void **state)
{
	struct test_question q;
	struct test_policy t;
	int count = 0;

	(void)state;
	test_load(&t, TEXT, false);
	policy_explain(
	        &t.policy, test_question(&q, "GET", "https://a.example/x"), count_shadows, &count);
	assert_int_equal(count, 5);
	test_unload(&t);
}

static void test_diff(void **state)
{
	static const char *const texts[] = {"vethguard: 1\nname: t\nallow: [{to: a.example}]\n",
	        "vethguard: 1\nname: t\nallow: [{to: a.example}]\nask: [{to: a.example, paths: "
	        "[/x]}]\n"};
	struct test_policy t[2];
	struct policy_diff diff;

	(void)state;
	for (int i = 0; i < 2; i++)
		test_load(&t[i], texts[i], false);
	assert_int_equal(policy_diff(&t[0].policy, &t[1].policy, &diff), 0);
	assert_true(diff.narrows);
	assert_string_equal(
	        diff.lines[diff.count - 1].text, "- a person is asked about: a.example /x");
	policy_diff_fini(&diff);
	assert_int_equal(policy_diff(&t[1].policy, &t[0].policy, &diff), 0);
	assert_true(diff.widens);
	assert_string_equal(
	        diff.lines[0].text, "+ no person is asked any more about: a.example /x");
	policy_diff_fini(&diff);
	for (int i = 0; i < 2; i++)
		test_unload(&t[i]);
}

/* Rules that ask about the same place under other conditions are other rules. */
static void test_diff_of_conditions(void **state)
{
	static const char *const texts[] = {
	        "vethguard: 1\nname: t\nask: [{to: a.example, paths: [/x], mcp: {tools: a}}]\n",
	        "vethguard: 1\nname: t\nask: [{to: a.example, paths: [/x], mcp: {tools: b}}]\n"};
	struct test_policy t[2];
	struct policy_diff diff;

	(void)state;
	for (int i = 0; i < 2; i++)
		test_load(&t[i], texts[i], false);
	assert_int_equal(policy_diff(&t[0].policy, &t[1].policy, &diff), 0);
	assert_true(diff.widens && diff.narrows);
	assert_string_equal(diff.lines[0].text,
	        "+ no person is asked any more about: a.example where mcp tool \"a\" /x");
	assert_string_equal(
	        diff.lines[2].text, "- a person is asked about: a.example where mcp tool \"b\" /x");
	policy_diff_fini(&diff);
	assert_int_equal(policy_diff(&t[0].policy, &t[0].policy, &diff), 0);
	assert_false(diff.differs);
	policy_diff_fini(&diff);
	for (int i = 0; i < 2; i++)
		test_unload(&t[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_decisions),
	        cmocka_unit_test(test_body),
	        cmocka_unit_test(test_diff_of_conditions),
	        cmocka_unit_test(test_explain),
	        cmocka_unit_test(test_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
