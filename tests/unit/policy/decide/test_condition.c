/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the query and on header fields: what meets them, what only some servers would
 * accept as meeting them, and what an attacker adds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/decide/condition.h"
#include "policy/load/model.h"
#include "../policy_test.h"
#include "condition_test.h"

static struct policy_decision decide(const char *policy, const char *query, const char *lines)
{
	const struct policy_fields fields = {lines, next_line};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = SLICE("GET"),
	        .path = SLICE("/x"),
	        .query = slice_from_string(query),
	        .fields = lines ? &fields : NULL};
	struct policy_decision d;
	struct test_policy t;

	test_load(&t, policy, false);
	policy_decide(&t.policy, &request, &d);
	test_unload(&t);
	return d;
}

static void check(const char *policy, const char *query, const char *lines, bool allowed)
{
	struct policy_decision d = decide(policy, query, lines);

	if ((d.verdict == POLICY_ALLOW) != allowed)
		fail_msg("%s?%s\n%s: verdict %d, reason %d", policy, query, lines ? lines : "",
		        (int)d.verdict, (int)d.reason);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool plain, folded;
	} cases[] = {{"", "", true, true}, {"*", "", true, true}, {"*", "abc", true, true},
	        {"a", "a", true, true}, {"a", "A", false, true}, {"a", "", false, false},
	        {"", "a", false, false}, {"a*c", "abc", true, true}, {"a*c", "ac", true, true},
	        {"a*c", "abcb", false, false}, {"*a*b", "xaxbab", true, true},
	        {"*aab", "aaaab", true, true}, {"a**b", "ab", true, true},
	        {"a*", "ba", false, false}, {"?", "x", false, false}, {"[a]", "a", false, false},
	        {".", "x", false, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slice pattern = slice_from_string(cases[i].pattern);
		struct slice text = slice_from_string(cases[i].text);

		if (condition_matches(pattern, text, false) != cases[i].plain ||
		        condition_matches(pattern, text, true) != cases[i].folded)
			fail_msg("%s and %s", cases[i].pattern, cases[i].text);
	}
}

/* Many stars and a long text that almost matches: the work stays a product of the lengths. */
static void test_patterns_of_an_attacker(void **state)
{
	char pattern[POLICY_VALUE_MAX], text[POLICY_QUERY_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[sizeof(pattern) - 1] = 'b';
	memset(text, 'a', sizeof(text));
	assert_false(condition_matches(
	        slice_of(pattern, sizeof(pattern)), slice_of(text, sizeof(text)), true));
	text[sizeof(text) - 1] = 'b';
	assert_true(condition_matches(
	        slice_of(pattern, sizeof(pattern)), slice_of(text, sizeof(text)), true));
}

static void test_allowed_queries(void **state)
{
	static const char policy[] = ALLOW("query: {page: [\"1\", \"2*\"], mode: a b, debug: ~}");
	static const char *const good[] = {"page=1&mode=a+b", "mode=a%20b&page=2",
	        "page=2000&mode=a+b", "page=%31&mode=a+b", "p%61ge=1&mode=a+b",
	        "&&page=1&mode=a%20b&&", "other=1&page=1&mode=a+b", "page=1&mode=a+b&debugger=1"};
	static const char *const bad[] = {"", "page=1", "mode=a+b", "page=3&mode=a+b",
	        "page=&mode=a+b", "page&mode=a+b", "Page=1&mode=a+b", "page=1&page=1&mode=a+b",
	        "page=1&page=3&mode=a+b", "page=1&PAGE=3&mode=a+b", "page=1&page[]=3&mode=a+b",
	        "page[]=1&mode=a+b", "page=1&%50age=3&mode=a+b", "page=1&mode=a+b&page%5b0%5d=9",
	        "page=1&mode=A+B", "page=1&mode=a%2Bb",
	        "page=1&mode=a+b&debug=", "page=1&mode=a+b&debug", "page=1&mode=a+b&DEBUG[x]=1",
	        "page=1&mode=a+b;debug=1", "page=1&mode=a+b&x=%", "page=1&mode=a+b&x=%zz",
	        "page=1&mode=a+b&x=%00", "page=1%00&mode=a+b", "page=%2531&mode=a+b",
	        "page=1&mode=a+b&+page=2", "?page=1&mode=a+b", "page=1;mode=a+b",
	        "page=1&mode=a+b&x=1;y"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check(policy, good[i], NULL, true);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(policy, bad[i], NULL, false);
	assert_int_equal(decide(policy, "page=3&mode=a+b", NULL).reason, POLICY_REASON_CONDITION);
}

static void test_no_others(void **state)
{
	static const char policy[] = ALLOW("query: {page: \"*\", \"*\": ~}");
	static const char *const bad[] = {
	        "", "page=1&x=1", "x", "page=1;x", "page=1&x=", "page=1&=x"};

	(void)state;
	check(policy, "page=1", NULL, true);
	check(policy, "&page=&", NULL, true);
	check(policy, "&page=;&", NULL, false);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(policy, bad[i], NULL, false);
	check(ALLOW("query: {\"*\": ~}"), "", NULL, true);
	check(ALLOW("query: {\"*\": ~}"), "a", NULL, false);
}

static void test_denied_queries(void **state)
{
	static const char policy[] = DENY("query: {debug: [\"on*\", \"1\"]}");
	static const char *const denied[] = {"debug=1", "debug=on", "debug=ONLY", "DEBUG=On",
	        "debug[]=1", "a=b;debug=1", "debug=0&debug=1", "%64ebug=%31", "debug=%2531",
	        "debug=%6fn", "debug=1&x=%zz"};
	static const char *const fine[] = {
	        "", "debug", "debug=0", "debugger=1", "x=debug=1", "debug=11"};
	char large[POLICY_QUERY_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		check(policy, denied[i], NULL, false);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		check(policy, fine[i], NULL, true);
	check(DENY("query: {token: ~}"), "", NULL, false);
	check(DENY("query: {token: ~}"), "Token=1", NULL, false);
	check(DENY("query: {token: ~}"), "token=1", NULL, true);
	memset(large, 'x', sizeof(large));
	large[POLICY_QUERY_MAX] = '\0';
	check(policy, large, NULL, true);
	check(ALLOW("query: {a: ~}"), large, NULL, true);
	large[POLICY_QUERY_MAX] = 'x';
	large[POLICY_QUERY_MAX + 1] = '\0';
	check(policy, large, NULL, false);
	check(ALLOW("query: {a: ~}"), large, NULL, false);
}

static void test_fields(void **state)
{
	static const char policy[] = ALLOW("headers: {X-Mode: [safe, \"v*\"], x-debug: ~}");
	static const char *const good[] = {
	        "x-mode: safe\n", "X-MODE:v2\nother: x\n", "X-Mode: safe \n"};
	static const char *const bad[] = {"", "x-mode: Safe\n", "x-mode:\n", "x_mode: safe\n",
	        "x-mode: safe\nx-mode: safe\n", "x-mode: safe\nX_Mode: evil\n",
	        "x-mode: safe, evil\n", "x-mode: safe\nx-debug: 0\n", "x-mode: safe\nX_DEBUG:\n",
	        "x-modes: safe\n"};
	static const char deny[] = DENY("headers: {x-mode: evil}");
	static const char *const denied[] = {"X-Mode: evil\n", "x_mode: EVIL\n",
	        "x-mode: safe , Evil\n", "x-mode: a\nx-mode: evil\n", "x-mode: ,evil,\n"};

	(void)state;
	check(policy, "", NULL, false);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check(policy, "", good[i], true);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check(policy, "", bad[i], false);
	for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++)
		check(deny, "", denied[i], false);
	check(deny, "", "x-mode: devil\ny-mode: evil\n", true);
	check(deny, "", NULL, true);
	check(DENY("headers: {x-mode: ~}"), "", "x_mode: x\n", false);
	check(DENY("headers: {x-mode: ~}"), "", "x-mode: x\n", true);
}

/* A rule with so many conditions on a query or on fields, each with so many values: whether it
 * loads, and then what it decides. */
static bool loads(const char *key, size_t conditions, size_t values, struct test_policy *t)
{
	char *text = malloc(100000), *p = text;
	struct policy_reader reader = {text, test_read, NULL};
	bool good;

	memset(t, 0, sizeof(*t));
	p += sprintf(p, "vethguard: 1\nallow:\n  - to: a.example\n    %s:\n", key);
	for (size_t i = 0; i < conditions; i++) {
		p += sprintf(p, "      key%zu: [", i);
		for (size_t k = 0; k < values; k++)
			p += sprintf(p, "%sv%zu", k ? ", " : "", k);
		p += sprintf(p, "]\n");
	}
	good = policy_load(&reader, "/test.yaml", NULL, &t->image, &t->size, &t->diags) == 0;
	free(text);
	return good;
}

static void test_bounds(void **state)
{
	static const char *const keys[] = {"query", "headers", "form"};
	char query[512], *p = query;
	struct test_policy t;

	(void)state;
	for (size_t i = 0; i < MODEL_CONDITIONS_MAX; i++)
		p += sprintf(p, "%skey%zu=v%d", i ? "&" : "", i, MODEL_VALUES_MAX - 1);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_false(loads(keys[i], MODEL_CONDITIONS_MAX + 1, 1, &t));
		assert_non_null(strstr(t.diags.items[0].message, "more than 16 conditions"));
		assert_false(loads(keys[i], 1, MODEL_VALUES_MAX + 1, &t));
		assert_non_null(strstr(t.diags.items[0].message, "more than 64 values"));
		assert_true(loads(keys[i], MODEL_CONDITIONS_MAX, MODEL_VALUES_MAX, &t));
		assert_int_equal(policy_open(&t.policy, t.image, t.size), 0);
		test_unload(&t);
	}
	for (int good = 1; good >= 0; good--) {
		struct policy_request request = {.scheme = POLICY_HTTPS,
		        .host = SLICE("a.example"),
		        .port = 443,
		        .method = SLICE("GET"),
		        .path = SLICE("/"),
		        .query = slice_from_string(query)};
		struct policy_decision d;

		assert_true(loads("query", MODEL_CONDITIONS_MAX, MODEL_VALUES_MAX, &t));
		assert_int_equal(policy_open(&t.policy, t.image, t.size), 0);
		policy_decide(&t.policy, &request, &d);
		assert_int_equal(d.verdict, good ? POLICY_ALLOW : POLICY_DENY);
		test_unload(&t);
		p[-1] = 'x'; /* the last value of the last condition */
	}
}

#define TWO                                                                                     \
	"vethguard: 1\ncredentials:\n"                                                          \
	"  one: {source: \"env:A\", inject: bearer}\n"                                          \
	"  two: {source: \"env:B\", inject: bearer}\n"                                          \
	"allow:\n"                                                                              \
	"  - {to: a.example}\n"                                                                 \
	"  - {name: first, to: a.example, headers: {x-account: \"1\"}, credential: one}\n"      \
	"  - {name: second, to: a.example, headers: {x-account: [\"2\", \"3*\"]}, credential: " \
	"two}\n"

/* Several accounts at one host, and a rule for requests that name none. */
static void test_the_rule_with_conditions_decides(void **state)
{
	(void)state;
	assert_int_equal(decide(TWO, "", "x-account: 1\n").credential, 0);
	assert_int_equal(decide(TWO, "", "x-account: 2\n").credential, 1);
	assert_int_equal(decide(TWO, "", "x-account: 33\n").credential, 1);
	assert_int_equal(decide(TWO, "", "x-account: 1\nx-account: 2\n").credential, POLICY_NONE);
	assert_int_equal(decide(TWO, "", NULL).credential, POLICY_NONE);
}

/* Conditions are unknown before the request: the connection is allowed, and opened. */
static void test_connections(void **state)
{
	struct policy_request request = {
	        .scheme = POLICY_HTTPS, .host = SLICE("a.example"), .port = 443};
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	test_load(&t, ALLOW("query: {a: b}"), false);
	assert_int_equal(policy_decide_tls(&t.policy, &request, &d), POLICY_TLS_INTERCEPT);
	assert_true(policy_names_field(&t.policy, SLICE("x")) == false);
	test_unload(&t);
	test_load(&t,
	        "vethguard: 1\nallow: [{to: a.example, tls: passthrough}]\n"
	        "deny: [{to: a.example, headers: {x-m: b}}]\n",
	        false);
	assert_int_equal(policy_decide_tls(&t.policy, &request, &d), POLICY_TLS_INTERCEPT);
	assert_true(policy_names_field(&t.policy, SLICE("X_M")));
	assert_false(policy_names_field(&t.policy, SLICE("x-mm")));
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_patterns),
	        cmocka_unit_test(test_patterns_of_an_attacker),
	        cmocka_unit_test(test_allowed_queries),
	        cmocka_unit_test(test_no_others),
	        cmocka_unit_test(test_denied_queries),
	        cmocka_unit_test(test_fields),
	        cmocka_unit_test(test_the_rule_with_conditions_decides),
	        cmocka_unit_test(test_connections),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
