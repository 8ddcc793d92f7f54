/* SPDX-License-Identifier: Apache-2.0 */
/* What an external decider answers: what counts as a decision, and that all else is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vethguard/policy/decision.h"

static void test_decisions(void **state)
{
	static const struct {
		const char *json;
		enum hook_verdict verdict;
		uint32_t for_s;
		const char *reason;
	} rows[] = {
	        {"{\"decision\": \"approve\"}", HOOK_APPROVE, 0, ""},
	        {"{\"decision\": \"approve\", \"for_s\": 60, \"reason\": \"ok\"}", HOOK_APPROVE, 60,
	                "ok"},
	        {"{\"reason\": \"\\u001b[2J\", \"decision\": \"refuse\"}", HOOK_REFUSE, 0,
	                "\\x1b[2J"},
	        {"{\"decision\": \"ask\"}", HOOK_NONE, 0, ""},
	};
	struct hook_answer a, again;
	char text[HOOK_ANSWER_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_null(policy_decision_read(slice_from_string(rows[i].json), &a));
		assert_int_equal(a.verdict, rows[i].verdict);
		assert_int_equal(a.for_s, rows[i].for_s);
		assert_string_equal(a.reason, rows[i].reason);
		assert_true(hook_answer_read(slice_of(text, hook_answer_write(&a, text)), &again));
		assert_memory_equal(&a, &again, sizeof(a));
	}
}

static void test_no_decisions(void **state)
{
	static const char *const rows[] = {"", "x", "null", "true", "[]", "{}", "\"approve\"",
	        "{\"decision\": true}", "{\"decision\": \"Approve\"}",
	        "{\"decision\": \"approved\"}", "{\"decision\": \"\"}",
	        "{\"decision\": [\"approve\"]}", "{\"Decision\": \"approve\"}",
	        "{\"decision\": \"refuse\", \"decision\": \"approve\"}",
	        "{\"decision\": \"approve\"} x", "{\"decision\": \"approve\"}{}",
	        "\xef\xbb\xbf{\"decision\": \"approve\"}",
	        "{\"decision\": \"approve\", \"more\": 1}",
	        "{\"decision\": \"approve\", \"reason\": 1}",
	        "{\"decision\": \"approve\", \"for_s\": 0}",
	        "{\"decision\": \"approve\", \"for_s\": -1}",
	        "{\"decision\": \"approve\", \"for_s\": 1.5}",
	        "{\"decision\": \"approve\", \"for_s\": \"60\"}",
	        "{\"decision\": \"approve\", \"for_s\": 2678401}",
	        "{\"decision\": \"refuse\", \"for_s\": 60}",
	        "{\"decision\": \"ask\", \"for_s\": 60}", "{\"decision\": \"approve\"",
	        "{decision: \"approve\"}", "<html>approve</html>"};
	static char large[POLICY_DECISION_BYTES_MAX + 2];
	struct hook_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!policy_decision_read(slice_from_string(rows[i]), &a))
			fail_msg("a decision: %s", rows[i]);
		assert_int_equal(a.verdict, HOOK_NONE);
	}
	memset(large, ' ', sizeof(large));
	memcpy(large, "{\"decision\": \"approve\"}", 23);
	large[22] = ' ';
	large[POLICY_DECISION_BYTES_MAX - 1] = '}';
	assert_null(policy_decision_read(slice_of(large, POLICY_DECISION_BYTES_MAX), &a));
	assert_non_null(policy_decision_read(slice_of(large, POLICY_DECISION_BYTES_MAX + 1), &a));
}

/* A long reason is cut, and still an answer. */
static void test_a_long_reason(void **state)
{
	char json[2048] = "{\"decision\": \"refuse\", \"reason\": \"", text[HOOK_ANSWER_MAX + 1];
	struct hook_answer a;

	(void)state;
	memset(json + strlen(json), 'x', 1000);
	strcat(json, "\"}");
	assert_null(policy_decision_read(slice_from_string(json), &a));
	assert_int_equal(strlen(a.reason), HOOK_REASON_MAX);
	assert_true(hook_answer_read(slice_of(text, hook_answer_write(&a, text)), &a));
}

/* What the supervisor takes from the process. */
static void test_texts_of_the_process(void **state)
{
	static const char *const rows[] = {"", "a", "a000000000", "x0000000000", "A0000000000",
	        "a000000000x", "a9999999999", "a0002678401", "r0000000001", "n0000000001",
	        "r0000000000\n", "r0000000000\x7f", "r0000000000\xc3\xa4", " a0000000000"};
	struct hook_answer a;
	char text[HOOK_ANSWER_MAX + 2];

	(void)state;
	assert_true(hook_answer_read(SLICE("a0002678400"), &a));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(hook_answer_read(slice_from_string(rows[i]), &a));
	memset(text, 'x', sizeof(text));
	memcpy(text, "r0000000000", 11);
	assert_true(hook_answer_read(slice_of(text, HOOK_ANSWER_MAX), &a));
	assert_false(hook_answer_read(slice_of(text, HOOK_ANSWER_MAX + 1), &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_decisions),
	        cmocka_unit_test(test_no_decisions),
	        cmocka_unit_test(test_a_long_reason),
	        cmocka_unit_test(test_texts_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
