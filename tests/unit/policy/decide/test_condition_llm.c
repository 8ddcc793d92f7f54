/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on requests to APIs of language models: where each API has the model and the bound of
 * the output, and what another reader could take for these. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"

static const char policy[] =
        ALLOW("llm: {models: [small, \"mini-*\", \"vendor.small-v1:0\"], max_output_tokens: 1000}");

struct row {
	const char *path, *text;
};

static void check_rows(const char *rules, const struct row *rows, size_t count, bool allowed)
{
	for (size_t i = 0; i < count; i++)
		body_test_check(&(struct body_test){.policy = rules,
		                        .path = rows[i].path,
		                        .lines = JSON_TYPE,
		                        .text = rows[i].text},
		        allowed);
}
#define CHECK(rules, rows, allowed) check_rows(rules, rows, sizeof(rows) / sizeof(*rows), allowed)

#define CHAT "/v1/chat/completions"
#define MESSAGES "/v1/messages"
#define GEMINI "/v1beta/models/small:generateContent"
#define CONVERSE "/model/vendor.small-v1%3A0/converse"

static void test_allowed(void **state)
{
	static const struct row rows[] = {
	        {CHAT, "{'model':'small','max_completion_tokens':1000,'messages':[]}"},
	        {"/openai" CHAT, "{'model':'mini-7','max_tokens':1,'stream':true}"},
	        {CHAT, "{'model':'small','max_tokens':500,'n':2}"},
	        {"/v1/completions", "{'model':'small','max_tokens':1}"},
	        {"/v1/responses", "{'model':'small','max_output_tokens':1000}"},
	        {MESSAGES, "{'model':'small','max_tokens':1000,'thinking':{'budget_tokens':900}}"},
	        {"/v1/messages/count_tokens", "{'model':'small'}"},
	        {"/v1/embeddings", "{'model':'mini-e','input':'x'}"},
	        {GEMINI, "{'contents':[],'generationConfig':{'maxOutputTokens':1000}}"},
	        {"/v1beta/models/mini-1:streamGenerateContent",
	                "{'generationConfig':{'maxOutputTokens':300,'candidateCount':3}}"},
	        {"/v1/projects/p/locations/l/publishers/google/models/small:generateContent",
	                "{'generationConfig':{'maxOutputTokens':1}}"},
	        {"/v1beta/models/small:countTokens", "{'contents':[]}"},
	        {CONVERSE, "{'messages':[],'inferenceConfig':{'maxTokens':1000}}"},
	        {"/model/vendor.small-v1:0/converse-stream", "{'inferenceConfig':{'maxTokens':1}}"},
	        {"/model/small/invoke", "{'anthropic_version':'x','max_tokens':10}"},
	        {"/model/small/invoke-with-response-stream", "{'max_tokens':10}"},
	};

	(void)state;
	CHECK(policy, rows, true);
}

static void test_models(void **state)
{
	static const struct row rows[] = {
	        {CHAT, "{'model':'large','max_tokens':1}"},
	        {CHAT, "{'model':'SMALL','max_tokens':1}"},
	        {CHAT, "{'max_tokens':1}"},
	        {CHAT, "{'model':['small'],'max_tokens':1}"},
	        {CHAT, "{'model':'small','Model':'large','max_tokens':1}"},
	        {CHAT, "{'model':'small','model':'large','max_tokens':1}"},
	        {CHAT, "{'model':'small','models':['large'],'max_tokens':1}"},
	        {CHAT, "{'model':'small','fallbacks':[{'model':'large'}],'max_tokens':1}"},
	        {CHAT, "[{'model':'small','max_tokens':1}]"},
	        {CHAT, "x"},
	        {"/v1/chat", "{'model':'small','max_tokens':1}"},
	        {CHAT "/", "{'model':'small','max_tokens':1}"},
	        {"/v1/messages/batches", "{'model':'small','max_tokens':1}"},
	        {"/v1beta/models/large:generateContent",
	                "{'generationConfig':{'maxOutputTokens':1}}"},
	        {"/v1beta/models/:generateContent", "{'generationConfig':{'maxOutputTokens':1}}"},
	        {"/v1beta/models/small/x:generateContent",
	                "{'generationConfig':{'maxOutputTokens':1}}"},
	        {"/v1beta/tunedModels/small:generateContent",
	                "{'generationConfig':{'maxOutputTokens':1}}"},
	        {GEMINI, "{'model':'large','generationConfig':{'maxOutputTokens':1}}"},
	        {"/model/vendor.small-v1%253A0/converse", "{'inferenceConfig':{'maxTokens':1}}"},
	        {"/model/mini-+/converse", "{'inferenceConfig':{'maxTokens':1}}"},
	        {"/model/large/invoke", "{'max_tokens':1}"},
	};

	(void)state;
	CHECK(policy, rows, false);
	body_test_check(&(struct body_test){.policy = policy, .path = GEMINI}, false);
	body_test_check(
	        &(struct body_test){.policy = policy, .path = "/v1/models", .method = "GET"},
	        false);
	body_test_check(&(struct body_test){.policy = policy,
	                        .path = CHAT,
	                        .method = "PUT",
	                        .lines = JSON_TYPE,
	                        .text = "{'model':'small','max_tokens':1}"},
	        false);
	body_test_check(&(struct body_test){.policy = policy,
	                        .path = CHAT,
	                        .lines = "Content-Type: text/plain\n",
	                        .text = "{'model':'small','max_tokens':1}"},
	        false);
}

static void test_tokens(void **state)
{
	static const struct row rows[] = {
	        {CHAT, "{'model':'small'}"},
	        {CHAT, "{'model':'small','max_tokens':1001}"},
	        {CHAT, "{'model':'small','max_tokens':0}"},
	        {CHAT, "{'model':'small','max_tokens':-1}"},
	        {CHAT, "{'model':'small','max_tokens':1e2}"},
	        {CHAT, "{'model':'small','max_tokens':1.0}"},
	        {CHAT, "{'model':'small','max_tokens':'1'}"},
	        {CHAT, "{'model':'small','max_tokens':null}"},
	        {CHAT, "{'model':'small','max_tokens':99999999999999999999}"},
	        {CHAT, "{'model':'small','max_tokens':1,'max_completion_tokens':1}"},
	        {CHAT, "{'model':'small','max_tokens':1,'maxTokens':9999}"},
	        {CHAT, "{'model':'small','max_tokens':1,'max_output_tokens':9999}"},
	        {CHAT, "{'model':'small','max_tokens':501,'n':2}"},
	        {CHAT, "{'model':'small','max_tokens':1,'n':1001}"},
	        {CHAT, "{'model':'small','max_tokens':1,'n':0}"},
	        {CHAT, "{'model':'small','max_tokens':1,'n':'2'}"},
	        {CHAT, "{'model':'small','max_tokens':1,'N':5}"},
	        {CHAT, "{'model':'small','max_tokens':1,'best_of':9}"},
	        {"/v1/responses", "{'model':'small','max_tokens':1}"},
	        {MESSAGES, "{'model':'small','max_completion_tokens':1}"},
	        {GEMINI, "{}"},
	        {GEMINI, "{'generationConfig':{}}"},
	        {GEMINI, "{'generationConfig':{'maxOutputTokens':1001}}"},
	        {GEMINI, "{'generationConfig':{'maxOutputTokens':1},'generation_config':{}}"},
	        {GEMINI, "{'generation_config':{'max_output_tokens':1}}"},
	        {GEMINI, "{'generationConfig':{'maxOutputTokens':1,'max_output_tokens':9999}}"},
	        {GEMINI, "{'generationConfig':{'maxOutputTokens':501,'candidateCount':2}}"},
	        {GEMINI, "{'generationConfig':{'maxOutputTokens':1},'maxOutputTokens':9999}"},
	        {GEMINI, "{'generationConfig':[{'maxOutputTokens':1}]}"},
	        {CONVERSE, "{'inferenceConfig':{'maxTokens':1001}}"},
	        {CONVERSE, "{'inferenceConfig':{'maxTokens':1},'additionalModelRequestFields':{}}"},
	        {"/model/small/invoke", "{'textGenerationConfig':{'maxTokenCount':1}}"},
	        {"/model/small/invoke", "{'max_tokens':1,'max_gen_len':9999}"},
	        {"/model/small/invoke", "{'max_gen_len':1}"},
	};
	static const char any[] = ALLOW("llm: {max_output_tokens: 10}");
	static const char free_of_bounds[] = ALLOW("llm: {models: small}");

	(void)state;
	CHECK(policy, rows, false);
	body_test_check(&(struct body_test){.policy = any,
	                        .path = CHAT,
	                        .lines = JSON_TYPE,
	                        .text = "{'model':'large','max_tokens':10}"},
	        true);
	body_test_check(&(struct body_test){.policy = any,
	                        .path = CHAT,
	                        .lines = JSON_TYPE,
	                        .text = "{'max_tokens':10}"},
	        false);
	body_test_check(&(struct body_test){.policy = free_of_bounds,
	                        .path = CHAT,
	                        .lines = JSON_TYPE,
	                        .text = "{'model':'small'}"},
	        true);
}

static void test_denied(void **state)
{
	static const char deny[] = DENY("llm: {models: [\"large*\"]}");
	static const struct row bad[] = {{CHAT, "{'model':'large-1'}"},
	        {"/any", "{'MODEL':'LARGE'}"}, {CHAT, "{'model':'small','models':['large']}"},
	        {CHAT, "{'model':'small','fallbacks':[{'model':' large'}]}"},
	        {"/v1beta/models/large-2:generateContent", "{}"}, {"/model/l%61rge/converse", "{}"},
	        {CHAT, "x"}, {CHAT, "{'a':1,'a':2}"}};
	static const struct row good[] = {{CHAT, "{'model':'small'}"}, {CHAT, "{'x':'large'}"},
	        {CHAT, "[]"}, {"/enlarge", "{}"}};

	(void)state;
	CHECK(deny, bad, false);
	CHECK(deny, good, true);
	body_test_check(&(struct body_test){.policy = deny, .method = "GET"}, true);
	body_test_check(
	        &(struct body_test){.policy = deny, .method = "GET", .path = "/v1/models/large-1"},
	        false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_allowed),
	        cmocka_unit_test(test_models),
	        cmocka_unit_test(test_tokens),
	        cmocka_unit_test(test_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
