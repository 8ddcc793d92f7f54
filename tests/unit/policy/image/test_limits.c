/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: which limits count for a rule, how their text reads, which counter a limit keeps when the
 * policy changes, and what a policy's diff says of them. Bad limits are in bad/limits.yaml. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../diff_test.h"
#include "policy/image/image.h"
#include "vethguard/policy/limits.h"

#define HEAD "vethguard: 1\nname: t\n"
#define RULES                                                                                 \
	"allow:\n"                                                                            \
	"  - {name: a, to: a.example, limits: {upload: 10MB/1h, body: 64KiB}}\n"              \
	"  - {to: b.example}\n"                                                               \
	"  - {name: c, to: c.example, limits: {streams: 3}, budget: {requests: 7/d, shared: " \
	"team}}\n"

static void test_of(void **state)
{
	static const struct {
		uint32_t rule, count;
		const char *texts[3];
	} rows[] = {{POLICY_NONE, 2, {"requests 600/1m", "connections 16"}},
	        {0, 2, {"upload 10MB/1h", "body 64KiB"}}, {1, 0, {NULL}},
	        {2, 2, {"streams 3", "requests 7/1d"}}, {3, 0, {NULL}}};
	char text[POLICY_LIMIT_TEXT_MAX];
	uint32_t first, count;
	struct policy_limit l;
	struct test_policy t;

	(void)state;
	test_load(&t, HEAD "limits: {requests: 600/1m, connections: 16}\n" RULES, false);
	assert_int_equal(policy_limit_count(&t.policy), 6);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		policy_limits_of(&t.policy, rows[i].rule, &first, &count);
		assert_int_equal(count, rows[i].count);
		for (uint32_t k = 0; k < count; k++) {
			policy_limit(&t.policy, first + k, &l);
			assert_int_equal(l.rule, rows[i].rule);
			assert_string_equal(policy_limit_text(&l, text), rows[i].texts[k]);
		}
	}
	assert_true(l.rule == POLICY_NONE || slice_equals(l.shared, SLICE("team")));
	test_unload(&t);
	test_load(&t, HEAD, false);
	policy_limits_of(&t.policy, POLICY_NONE, &first, &count);
	assert_int_equal(count, 0);
	test_unload(&t);
}

static void test_words(void **state)
{
	static const char *const rows[][2] = {{"upload: 1/1s", "upload 1B/1s"},
	        {"upload: 1000/60s", "upload 1KB/1m"}, {"upload: 1024B/90s", "upload 1KiB/90s"},
	        {"upload: 3GiB/min", "upload 3GiB/1m"}, {"upload: 5GB/31d", "upload 5GB/31d"},
	        {"download: 10MiB/2h", "download 10MiB/2h"}, {"requests: 60/m", "requests 60/1m"},
	        {"requests: 1099511627775/h", "requests 1099511627775/1h"},
	        {"body: 1500", "body 1500B"}, {"streams: 4", "streams 4"},
	        {"tokens: 250k/1h", "tokens 250000/1h"}, {"tokens: 1M/24h", "tokens 1000000/1d"},
	        {"cost: 5/24h", "cost 5/1d"}, {"cost: 0.500000/1h", "cost 0.5/1h"},
	        {"cost: 0.000001/1s", "cost 0.000001/1s"}, {"cost: 12.25/2d", "cost 12.25/2d"}};
	char policy[256], text[POLICY_LIMIT_TEXT_MAX];
	struct test_policy t;
	struct policy_limit l;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(policy, sizeof(policy),
		        HEAD
		        "limits: {%s}\nallow: [{name: a, to: a.example, prices: {input: 1}}]\n",
		        rows[i][0]);
		test_load(&t, policy, false);
		policy_limit(&t.policy, 0, &l);
		assert_string_equal(policy_limit_text(&l, text), rows[i][1]);
		test_unload(&t);
	}
}

/* Which rules' tokens count, and as how much. */
static void test_tokens(void **state)
{
	const uint64_t some[TOKEN_KINDS] = {40, 60, 20};
	const uint64_t most[TOKEN_KINDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct test_policy t;

	(void)state;
	test_load(&t,
	        HEAD
	        "limits: {tokens: 5/1h}\nallow:\n- {name: a, to: a.example, weights: "
	        "{input: 2, cached: 0.1, output: 0.25}, prices: {input: 3, output: 15}}\n"
	        "- {name: b, to: b.example, llm: {models: x}}\n- {name: c, to: c.example}\n"
	        "- {name: d, to: d.example, prices: {input: 1000, cached: 1000, output: 1000}, "
	        "weights: {output: 1000}}\n",
	        false);
	assert_true(policy_counts_tokens(&t.policy, 0));
	assert_true(policy_counts_tokens(&t.policy, 1));
	assert_false(policy_counts_tokens(&t.policy, 2));
	assert_true(policy_counts_tokens(&t.policy, 3));
	assert_false(policy_counts_tokens(&t.policy, 4));
	assert_false(policy_counts_tokens(&t.policy, POLICY_NONE));
	assert_int_equal(policy_tokens_amount(&t.policy, 0, POLICY_LIMIT_TOKENS, some), 91);
	assert_int_equal(policy_tokens_amount(&t.policy, 0, POLICY_LIMIT_COST, some), 420);
	assert_int_equal(policy_tokens_amount(&t.policy, 1, POLICY_LIMIT_TOKENS, some), 120);
	assert_int_equal(policy_tokens_amount(&t.policy, 1, POLICY_LIMIT_COST, some), 0);
	assert_int_equal(policy_tokens_amount(&t.policy, 3, POLICY_LIMIT_COST, most),
	        POLICY_LIMIT_AMOUNT_MAX);
	test_unload(&t);
	test_load(&t, HEAD "allow: [{name: a, to: a.example, llm: {models: x}}]\n", false);
	assert_false(policy_counts_tokens(&t.policy, 0)); /* nothing limits them */
	test_unload(&t);
	test_load(&t, HEAD "allow: [{name: a, to: a.example, limits: {tokens: 1/1h}}]\n", false);
	assert_true(policy_counts_tokens(&t.policy, 0));
	test_unload(&t);
}

static void key_of(const char *text, uint32_t index, uint8_t key[POLICY_LIMIT_KEY])
{
	struct test_policy t;
	struct policy_limit l;

	test_load(&t, text, false);
	policy_limit(&t.policy, index, &l);
	policy_limit_key(&t.policy, &l, key);
	test_unload(&t);
}

/* A counter's key depends on the rule's name and the limit's kind, not on the rule's position or
 * the rest of it. A budget has a counter of its own. */
static void test_keys(void **state)
{
	static const char *const same[] = {
	        HEAD "allow: [{name: a, to: x.example, limits: {upload: 1MB/1m}}]\n", HEAD
	        "allow: [{to: b.example}, {name: a, to: y.example, limits: {upload: 2MB/9h}}]\n"};
	static const char *const others[] = {HEAD "limits: {upload: 10MB/1h}\n",
	        HEAD "allow: [{name: b, to: a.example, limits: {upload: 10MB/1h}}]\n",
	        HEAD "allow: [{name: a, to: a.example, limits: {download: 10MB/1h}}]\n",
	        HEAD "allow: [{name: a, to: a.example, budget: {upload: 10MB/1h}}]\n"};
	uint8_t key[POLICY_LIMIT_KEY], other[POLICY_LIMIT_KEY];

	(void)state;
	key_of(HEAD RULES, 0, key);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		key_of(same[i], 0, other);
		assert_memory_equal(key, other, sizeof(key));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		key_of(others[i], 0, other);
		assert_memory_not_equal(key, other, sizeof(key));
	}
}

#define WITH(limits) HEAD "allow: [{name: a, to: a.example, " limits "}]\n"

static void test_diff(void **state)
{
	(void)state;
	test_compare(WITH("limits: {upload: 1MB/1h}"), WITH("limits: {upload: 1000KB/60m}"), false,
	        false, NULL);
	test_compare(WITH("limits: {upload: 1MB/1h}"), WITH("limits: {upload: 2MB/1h}"), true,
	        false, "+ limit of rule a: upload 2MB/1h (so far limit of rule a: upload 1MB/1h)");
	test_compare(WITH("limits: {upload: 1MB/1h}"), WITH("limits: {upload: 1MB/1d}"), false,
	        true, "- limit of rule a: upload 1MB/1d (so far limit of rule a: upload 1MB/1h)");
	test_compare(WITH("limits: {upload: 1MB/1h}"), WITH("limits: {upload: 9MB/1d}"), true, true,
	        "+ limit of rule a: upload 9MB/1d (so far limit of rule a: upload 1MB/1h)");
	test_compare(WITH("limits: {body: 1MB}"), WITH("ports: [443]"), true, false,
	        "+ no more limit of rule a: body 1MB");
	test_compare(WITH("ports: [443]"), WITH("budget: {download: 1MB/1h}"), false, true,
	        "- new budget of rule a: download 1MB/1h");
	test_compare(WITH("budget: {requests: 1/1h, shared: team}"),
	        WITH("budget: {requests: 1/1h}"), true, false,
	        "+ budget of rule a: requests 1/1h (so far budget of rule a: requests 1/1h, "
	        "shared by label team)");
	test_compare(WITH("budget: {requests: 1/1h}"),
	        WITH("budget: {requests: 1/1h, shared: team}"), false, true,
	        "- budget of rule a: requests 1/1h, shared by label team (so far budget of rule "
	        "a: requests 1/1h)");
	test_compare(WITH("budget: {requests: 1/1h, shared: team}"),
	        WITH("budget: {requests: 1/1h, shared: team, hosts: local}"), false, true,
	        "- budget of rule a: requests 1/1h, shared by label team over hosts (a host's "
	        "share "
	        "without their server) (so far budget of rule a: requests 1/1h, shared by label "
	        "team)");
	test_compare(WITH("budget: {requests: 1/1h, shared: team, hosts: closed}"),
	        WITH("budget: {requests: 1/1h, shared: team, hosts: local}"), true, false,
	        "+ budget of rule a: requests 1/1h, shared by label team over hosts (a host's "
	        "share "
	        "without their server) (so far budget of rule a: requests 1/1h, shared by label "
	        "team "
	        "over hosts (closed without their server))");
	test_compare(WITH("budget: {requests: 1/1h, shared: team, hosts: closed}"),
	        WITH("budget: {requests: 1/1h, shared: team}"), true, false,
	        "+ budget of rule a: requests 1/1h, shared by label team (so far budget of rule a: "
	        "requests 1/1h, shared by label team over hosts (closed without their server))");
	test_compare(WITH("limits: {tokens: 9/1h}"),
	        WITH("limits: {tokens: 9/1h}, weights: {cached: 0.1}"), true, false,
	        "+ weights of rule a: input 1, cached 0.1, output 1 (so far input 1, cached 1, "
	        "output 1)");
	test_compare(WITH("limits: {cost: 9/1h}, prices: {input: 1}"),
	        WITH("limits: {cost: 9/1h}, prices: {input: 1, output: 2.5}"), false, true,
	        "- prices of rule a: input 1, cached 0, output 2.5 (so far input 1, cached 0, "
	        "output 0)");
	test_compare(WITH("prices: {input: 1}"), WITH("prices: {input: 2}"), false, false, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_of),
	        cmocka_unit_test(test_words),
	        cmocka_unit_test(test_tokens),
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
