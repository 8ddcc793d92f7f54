/* SPDX-License-Identifier: Apache-2.0 */
/* Tests token_meter: the published shapes, cut at every byte, and what is not a number of tokens.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/wire/token_meter.h"

struct expected {
	uint64_t input, cached, output;
};

static void reads(const char *answer, struct expected want)
{
	const size_t n = strlen(answer);

	for (size_t cut = 0; cut <= n; cut++) {
		struct token_meter m = {0};
		uint64_t got[TOKEN_KINDS];

		token_meter_take(&m, (const uint8_t *)answer, cut);
		token_meter_take(&m, (const uint8_t *)answer + cut, n - cut);
		assert_true(token_meter_read(&m, got));
		assert_int_equal(got[TOKEN_INPUT], want.input);
		assert_int_equal(got[TOKEN_CACHED], want.cached);
		assert_int_equal(got[TOKEN_OUTPUT], want.output);
	}
}

static void reads_nothing(const char *answer)
{
	struct token_meter m = {0};
	uint64_t got[TOKEN_KINDS];

	token_meter_take(&m, (const uint8_t *)answer, strlen(answer));
	assert_false(token_meter_read(&m, got));
	for (int k = 0; k < TOKEN_KINDS; k++)
		assert_int_equal(got[k], 0);
}

static void test_shapes(void **state)
{
	(void)state;
	/* Chat Completions */
	reads("{\"choices\":[{\"message\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":100,"
	      "\"completion_tokens\":20,\"total_tokens\":120,\"prompt_tokens_details\":"
	      "{\"cached_tokens\":60},\"completion_tokens_details\":{\"reasoning_tokens\":5}}}",
	        (struct expected){40, 60, 20});
	/* Responses */
	reads("{\"usage\":{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":0},"
	      "\"output_tokens\":7,\"total_tokens\":17}}",
	        (struct expected){10, 0, 7});
	/* Messages: what was cached is not in the input */
	reads("{\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":5,"
	      "\"cache_read_input_tokens\":90,\"output_tokens\":3}}",
	        (struct expected){15, 90, 3});
	reads("event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":25,"
	      "\"output_tokens\":1}}}\n\ndata: {\"delta\":{\"text\":\"x\"}}\n\n"
	      "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n",
	        (struct expected){25, 0, 15});
	/* Gemini, a stream as a list: sums so far */
	reads("[{\"usageMetadata\":{\"promptTokenCount\":8,\"candidatesTokenCount\":2}},\n"
	      "{\"usageMetadata\": {\"promptTokenCount\": 8, \"candidatesTokenCount\": 11,\n"
	      "\"cachedContentTokenCount\": 3, \"thoughtsTokenCount\" : 40}}]",
	        (struct expected){5, 3, 51});
	/* Converse */
	reads("{\"usage\":{\"inputTokens\":30,\"outputTokens\":628,\"totalTokens\":658,"
	      "\"cacheReadInputTokens\":4,\"cacheWriteInputTokens\":2}}",
	        (struct expected){32, 4, 628});
	/* An answer that ends in the number */
	reads("{\"output_tokens\":12", (struct expected){0, 0, 12});
}

static void test_text_is_no_number(void **state)
{
	(void)state;
	reads_nothing("");
	reads_nothing("{\"content\":\"the \\\"output_tokens\\\": 5 and \\\"input_tokens\\\":6\"}");
	reads_nothing("{\"content\":\"output_tokens\",\"x\":\"input_tokens: 7\"}");
	reads_nothing("{\"output_tokens\":\"5\"}");
	reads_nothing("{\"output_tokens\":null,\"input_tokens\":[1],\"prompt_tokens\":{}}");
	reads_nothing("{\"output_tokens\":-5}");
	reads_nothing("{\"max_output_tokens\":5,\"output_tokens_details\":6,\"total_tokens\":7}");
	reads_nothing("{\"output_tokensoutput_tokensoutput_tokens\":5}");
	reads_nothing("output_tokens:5 'output_tokens':5");
	reads_nothing("{\"output_tokens\" 5}");
}

/* What stands before a name does not hide it. */
static void test_hidden(void **state)
{
	static const char *const before[] = {"{\"a\":\"b c\",", "{\"a\":\"\",", "{\"a\":\"\\\\\",",
	        "{\"a\":\"\\\"\",", "{\"a\":\"output_tokens\",", "{\"output_tokens\":\"x\",",
	        "{\"a\":\":\",", "{\"output_tokens\":", "{\"input_tokens\"", "\"", "\"\"", "\\\"",
	        "{\"a\": 1, "};

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		char text[128];

		strcpy(text, before[i]);
		strcat(text, " \"output_tokens\" :\n\t 9 }");
		if (strcmp(before[i], "\"") != 0) /* a string that never ends is no JSON */
			reads(text, (struct expected){0, 0, 9});
	}
}

static void test_bounds(void **state)
{
	(void)state;
	reads("{\"output_tokens\":99999999999999999999999999999999}",
	        (struct expected){0, 0, TOKEN_METER_MOST});
	reads("{\"output_tokens\":100000001}", (struct expected){0, 0, TOKEN_METER_MOST});
	reads("{\"output_tokens\":100000000}", (struct expected){0, 0, TOKEN_METER_MOST});
	reads("{\"output_tokens\":5,\"output_tokens\":4}", (struct expected){0, 0, 5});
	reads("{\"prompt_tokens\":5,\"cached_tokens\":9}", (struct expected){0, 5, 0});
	reads("{\"output_tokens\":1.9e3}", (struct expected){0, 0, 1});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_shapes),
	        cmocka_unit_test(test_text_is_no_number),
	        cmocka_unit_test(test_hidden),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
