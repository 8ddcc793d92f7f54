/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard.internal: no rule counts for it, in either mode, and switched off it is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"
#include "vethguard/policy/diff.h"
#include "vethguard/policy/words.h"

#define URL "https://vethguard.internal"

static const char wide[] =
        "vethguard: 1\n"
        "credentials:\n"
        "  key: {source: \"env:A\", inject: bearer}\n"
        "allow:\n"
        "  - {name: named, to: vethguard.internal, credential: key}\n"
        "  - {name: glob, to: \"*.internal\", tls: passthrough}\n"
        "  - {name: raw, to: [\"tcp://vethguard.internal:443\", \"tcp://*.internal:22\"]}\n"
        "  - {name: udp, to: \"udp://*.internal:443\"}\n"
        "ask:\n"
        "  - {name: asked, to: vethguard.internal, methods: [POST]}\n"
        "deny:\n"
        "  - {name: no, to: \"*.internal\", paths: [/policy]}\n";

static void test_no_rule_counts(void **state)
{
	static const char *const urls[] = {URL "/", URL "/policy", "http://vethguard.internal/"};
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	for (int observe = 0; observe < 2; observe++) {
		test_load(&t, wide, observe);
		for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
			d = test_ask(&t.policy, "POST", urls[i]);
			assert_int_equal(d.verdict, POLICY_ALLOW);
			assert_true(d.inquires);
			assert_int_equal(d.rule, POLICY_NONE);
			assert_int_equal(d.credential, POLICY_NONE);
			assert_false(d.asks || d.observed || d.passthrough || d.names_address);
		}
		assert_int_equal(
		        test_ask_tls(&t.policy, "vethguard.internal", 443), POLICY_TLS_INTERCEPT);
		assert_true(policy_mentions_host(&t.policy, SLICE("vethguard.internal")));
		test_unload(&t);
	}
}

static void test_other_ports_and_protocols(void **state)
{
	static const char *const urls[] = {"https://vethguard.internal:8443/",
	        "http://vethguard.internal:443/", "https://vethguard.internal:80/",
	        "tcp://vethguard.internal:443", "tcp://vethguard.internal:22",
	        "udp://vethguard.internal:443"};
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	for (int observe = 0; observe < 2; observe++) {
		test_load(&t, wide, observe);
		for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
			bool web = urls[i][0] == 'h';

			d = test_ask(&t.policy, web ? "GET" : "CONNECT", urls[i]);
			assert_int_equal(d.verdict, POLICY_DENY);
			assert_false(d.inquires || d.observed);
		}
		test_unload(&t);
	}
}

static void test_names_beside_it(void **state)
{
	static const char *const urls[] = {"https://x.vethguard.internal/",
	        "https://vethguard.internal.example/", "https://vethguard/", "https://internal/"};
	struct test_policy t;

	(void)state;
	test_load(&t, "vethguard: 1\nallow: [{to: a.example}]\n", false);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		assert_int_equal(test_ask(&t.policy, "GET", urls[i]).verdict, POLICY_DENY);
	assert_int_equal(
	        test_ask(&t.policy, "GET", "https://VETHGUARD.Internal./").verdict, POLICY_ALLOW);
	test_unload(&t);
}

static void test_switched_off(void **state)
{
	struct policy_decision d;
	struct policy_diff diff;
	struct test_policy off, on;
	char text[sizeof(wide) + 32];

	(void)state;
	snprintf(text, sizeof(text), "%sinternal: off\n", wide);
	for (int observe = 0; observe < 2; observe++) {
		test_load(&off, text, observe);
		d = test_ask(&off.policy, "GET", URL "/");
		assert_int_equal(d.verdict, POLICY_DENY);
		assert_int_equal(d.reason, POLICY_REASON_DEFAULT);
		assert_int_equal(
		        test_ask_tls(&off.policy, "vethguard.internal", 443), POLICY_TLS_REFUSE);
		test_unload(&off);
	}
	test_load(&off, text, false);
	test_load(&on, wide, false);
	assert_false(slice_equals(policy_fingerprint(&off.policy), policy_fingerprint(&on.policy)));
	assert_int_equal(policy_diff(&off.policy, &on.policy, &diff), 0);
	assert_true(diff.widens && !diff.narrows);
	policy_diff_fini(&diff);
	assert_int_equal(policy_diff(&on.policy, &off.policy, &diff), 0);
	assert_true(diff.narrows && !diff.widens);
	policy_diff_fini(&diff);
	test_unload(&off);
	test_unload(&on);
}

static void test_words(void **state)
{
	struct policy_rule_words w;
	struct test_policy t;
	struct slice text;
	uint32_t at = 0;

	(void)state;
	test_load(&t, wide, false);
	assert_true(policy_rule_words(&t.policy, 0, &w));
	assert_true(w.kind == POLICY_RULE_ALLOW && w.credential && w.any_method && w.any_path);
	assert_false(policy_rule_method(&t.policy, 0, &at, &text));
	at = 0;
	assert_false(policy_rule_path(&t.policy, 0, &at, &text));
	assert_true(policy_rule_words(&t.policy, 4, &w));
	assert_true(w.kind == POLICY_RULE_ASK && w.wait_s == POLICY_ASK_WAIT_S);
	at = 0;
	assert_true(policy_rule_method(&t.policy, 4, &at, &text));
	assert_true(slice_equals(text, SLICE("POST")));
	assert_false(policy_rule_method(&t.policy, 4, &at, &text));
	assert_true(policy_rule_words(&t.policy, 5, &w));
	assert_true(w.kind == POLICY_RULE_DENY && !w.any_path);
	at = 0;
	assert_true(policy_rule_path(&t.policy, 5, &at, &text));
	assert_true(slice_equals(text, SLICE("/policy")));
	assert_false(policy_rule_words(&t.policy, policy_rule_count(&t.policy), &w));
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_no_rule_counts),
	        cmocka_unit_test(test_other_ports_and_protocols),
	        cmocka_unit_test(test_names_beside_it),
	        cmocka_unit_test(test_switched_off),
	        cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
