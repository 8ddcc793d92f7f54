/* SPDX-License-Identifier: Apache-2.0 */
/* The words of refusals: what was refused, by which rule, and what that rule allows. Whatever a
 * request says is escaped and bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"
#include "vethguard/policy/refusal.h"

static const char rules[] =
        "vethguard: 1\nallow:\n"
        "  - {name: search, to: a.example, paths: [/mcp], mcp: {tools: [search, \"docs_*\"]}}\n"
        "  - {name: read, to: a.example, paths: [/mcp], mcp: {tools: read_file, arguments: {path: "
        "\"/data/**\"}}}\n"
        "  - {name: graph, to: a.example, paths: [/graphql], graphql: {operations: query, fields: "
        "[viewer]}}\n"
        "  - {name: models, to: a.example, paths: [/v1/**], llm: {models: \"small-*\", "
        "max_output_tokens: 100}}\n"
        "  - {name: body, to: a.example, paths: [/json], json: {\"/a/b\": [x, y], \"*\": ~}}\n"
        "  - {name: form, to: a.example, paths: [/form], form: {grant: one}}\n"
        "  - {name: query, to: a.example, paths: [/query], query: {page: \"1\"}, headers: {X-A: "
        "b}}\n"
        "  - {name: plain, to: a.example, paths: [/plain], methods: [GET]}\n"
        "deny:\n  - {name: never, to: a.example, paths: [/denied], json: {a: b}}\n";

/* Returns whether there are words; they go into out. */
static bool explain(const struct body_test *b, char out[POLICY_REFUSAL_MAX])
{
	const struct policy_fields fields = {b->lines ? b->lines : "", body_test_line};
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = slice_from_string(b->method ? b->method : "POST"),
	        .path = slice_from_string(b->path),
	        .query = slice_from_string(b->query),
	        .fields = &fields};
	char *text = b->text ? body_test_text(b->text) : NULL;
	struct policy_refusal refusal;
	struct test_policy t;
	bool any;

	test_load(&t, rules, false);
	if (text) {
		policy_body_read(&body, &fields, slice_from_string(text));
		request.body = &body;
	}
	any = policy_explain_refusal(&t.policy, &request, &refusal);
	if (any)
		strcpy(out, refusal.text);
	policy_body_fini(&body);
	free(text);
	test_unload(&t);
	return any;
}

#define FORM_TYPE "Content-Type: application/x-www-form-urlencoded\n"
#define CALL(name, more) \
	"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'" name "'" more "}}"
#define SEARCH "; rule \"search\" allows mcp tool \"search\" or \"docs_*\""
#define GRAPH "; rule \"graph\" allows graphql operation \"query\"; field \"viewer\""
#define MODELS "; rule \"models\" allows llm model \"small-*\"; most tokens \"100\""

static const struct {
	const char *path, *lines, *text, *says;
} rows[] = {
        {"/mcp", JSON_TYPE, CALL("drop", ""), "the tool \"drop\" may not be called" SEARCH},
        {"/mcp", JSON_TYPE, CALL("a\\u000a\\u001bb\xc3\xa9", ""),
                "the tool \"a\\x0a\\x1bb\\xc3\\xa9\" may not be called" SEARCH},
        {"/mcp", JSON_TYPE, CALL("read_file", ",'arguments':{'path':'/etc/passwd'}"),
                "the argument \"/path\" of the call is missing, repeated, or not what the rule "
                "asks for; rule "
                "\"read\" allows mcp tool \"read_file\", mcp argument /path = path \"/data/**\""},
        {"/mcp", JSON_TYPE, "{'jsonrpc':'2.0','id':1,'method':'resources/read'}",
                "the method \"resources/read\" may not be called" SEARCH},
        {"/mcp", JSON_TYPE, "{'jsonrpc':'1.0'}",
                "the message is not one of MCP, or programs could read it in different "
                "ways" SEARCH},
        {"/mcp", JSON_TYPE "Mcp-Name: other\n", CALL("search", ""),
                "the field \"Mcp-Name\" or Mcp-Method names another call than the message" SEARCH},
        {"/graphql", JSON_TYPE, "{'query':'mutation { x }'}",
                "the operation \"mutation\" may not be used" GRAPH},
        {"/graphql", JSON_TYPE, "{'query':'{ users }'}",
                "the field \"users\" may not be used" GRAPH},
        {"/graphql", JSON_TYPE, "{'query':'mutation { viewer }'}",
                "the operation \"mutation\" may not be used" GRAPH},
        {"/graphql", JSON_TYPE, "{'query':'{'}",
                "the document is not valid GraphQL, or servers could read it in different "
                "ways" GRAPH},
        {"/graphql", JSON_TYPE, "{'documentId':'7'}",
                "the kept document \"7\" may not be used" GRAPH},
        {"/graphql", JSON_TYPE, "{}",
                "the request is not one of GraphQL, or servers could read it in different "
                "ways" GRAPH},
        {"/v1/chat/completions", JSON_TYPE, "{'model':'large','max_tokens':1}",
                "the model \"large\" may not be used" MODELS},
        {"/v1/chat/completions", JSON_TYPE, "{'model':'small-1','max_tokens':101}",
                "the request asks for more tokens than the rule allows, or sets no limit for "
                "them" MODELS},
        {"/v1/chat/completions", JSON_TYPE, "{'model':'small-1','models':['x'],'max_tokens':1}",
                "the request names further models or settings, which the rule does not "
                "judge" MODELS},
        {"/v1/chat/completions", JSON_TYPE, "{'max_tokens':1}",
                "the request does not name exactly one model where this API expects it" MODELS},
        {"/v1/other", JSON_TYPE, "{'model':'small-1'}",
                "the request does not go to an API of models that vethguard knows" MODELS},
        {"/json", JSON_TYPE, "{'a':{'b':'z'}}",
                "the body's value \"/a/b\" is not what the rule asks for; rule \"body\" allows "
                "json "
                "/a/b = \"x\" or \"y\", no other json"},
        {"/json", JSON_TYPE, "{'a':{'b':'x'},'c':1}",
                "the body has a member that the rule does not name; rule \"body\" allows json /a/b "
                "= \"x\" or \"y\", no other json"},
        {"/form", FORM_TYPE, "grant=two",
                "the form's parameter \"grant\" is missing, repeated, or not what the rule asks "
                "for; "
                "rule \"form\" allows form grant = \"one\""},
        {"/query", "X-A: b\n", NULL,
                "the query's parameter \"page\" is missing, repeated, or not what the rule asks "
                "for; "
                "rule \"query\" allows query page = \"1\", header X-A = \"b\""},
};

static void test_words(void **state)
{
	char out[POLICY_REFUSAL_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct body_test b = {
		        .path = rows[i].path, .lines = rows[i].lines, .text = rows[i].text};

		assert_true(explain(&b, out));
		assert_string_equal(out, rows[i].says);
	}
}

/* Other denials, and requests that are allowed, have no such words. */
static void test_no_words(void **state)
{
	static const struct body_test others[] = {
	        {.path = "/none", .lines = JSON_TYPE, .text = "{}"},
	        {.path = "/plain", .method = "POST"},
	        {.path = "/denied", .lines = JSON_TYPE, .text = "{'a':'b'}"},
	        {.path = "/plain", .method = "GET"},
	        {.path = "/mcp", .lines = JSON_TYPE, .text = CALL("search", "")}};
	char out[POLICY_REFUSAL_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(explain(&others[i], out));
}

static void test_bounds(void **state)
{
	char name[3000], text[4000], out[POLICY_REFUSAL_MAX];

	(void)state;
	for (int c = 0; c < 2; c++) {
		memset(name, c ? 0x7f : 'x', sizeof(name) - 1);
		name[sizeof(name) - 1] = '\0';
		snprintf(text, sizeof(text),
		        "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s'}}",
		        name);
		assert_true(explain(
		        &(struct body_test){.path = "/mcp", .lines = JSON_TYPE, .text = text},
		        out));
		assert_non_null(strstr(out, "...\" may not be called" SEARCH));
		assert_true(strlen(out) < POLICY_REFUSAL_NAME_MAX + 100);
		for (const char *p = out; *p; p++)
			assert_true(*p >= ' ' && *p < 0x7f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_words),
	        cmocka_unit_test(test_no_words),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
