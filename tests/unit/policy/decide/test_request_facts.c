/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says of a request: the names in it, never a value, within bounds; and nothing where
 * two readers could find different names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"
#include "vethguard/policy/request_facts.h"

#define RPC "'jsonrpc':'2.0','id':1"
#define TEXT_MAX 8192

static uint8_t facts[REQUEST_FACTS_BYTES_MAX];

/* Writes "name=text name=text ..." of a request's facts. */
static const char *facts_of(const struct body_test *b)
{
	static char out[TEXT_MAX];
	const struct policy_fields fields = {b->lines ? b->lines : JSON_TYPE, body_test_line};
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {
	        .method = slice_from_string(b->method ? b->method : "POST"),
	        .path = slice_from_string(b->path ? b->path : "/x"),
	        .query = slice_from_string(b->query),
	        .fields = &fields};
	char *text = b->text ? body_test_text(b->text) : NULL;
	struct slice rest, name;
	unsigned fact;

	if (text) {
		policy_body_read(&body, &fields, slice_from_string(text));
		request.body = &body;
	}
	rest = slice_of(facts, policy_request_facts(&request, facts));
	assert_true(rest.n <= REQUEST_FACTS_BYTES_MAX);
	out[0] = '\0';
	while (request_fact_next(&rest, &fact, &name)) {
		size_t n = strlen(out);

		assert_non_null(request_fact_name(fact));
		assert_true(name.n <= REQUEST_FACT_MAX);
		snprintf(out + n, TEXT_MAX - n, "%s%s%s%.*s", n ? " " : "", request_fact_name(fact),
		        name.n ? "=" : "", SLICE_ARG(name));
	}
	assert_int_equal(rest.n, 0);
	policy_body_fini(&body);
	free(text);
	return out;
}

static void check(struct body_test b, const char *expected)
{
	assert_string_equal(facts_of(&b), expected);
}

static void check_body(const char *text, const char *expected)
{
	check((struct body_test){.text = text}, expected);
}

static void test_mcp(void **state)
{
	(void)state;
	check_body("{" RPC ",'method':'tools/call','params':{'name':'search','arguments':{'q':"
	           "'secret words'}}}",
	        "mcp_methods=tools/call mcp_tools=search");
	check_body("{" RPC ",'method':'resources/read','params':{'uri':'file:///etc/passwd'}}",
	        "mcp_methods=resources/read");
	check_body("{" RPC ",'method':'initialize','params':{'protocolVersion':'2025-06-18'}}",
	        "mcp_methods=initialize");
	check_body("[{" RPC ",'method':'tools/call','params':{'name':'a'}},{" RPC
	           ",'method':'tools/call','params':{'name':'b'}},{" RPC ",'method':'tools/list'}]",
	        "mcp_methods=tools/call mcp_tools=a mcp_tools=b mcp_methods=tools/list");
	check((struct body_test){.text = "{" RPC ",'method':'ping'}",
	              .lines = JSON_TYPE "MCP-Protocol-Version: 2025-06-18\n"},
	        "mcp_methods=ping");
	/* An answer to the server's request asks for nothing. */
	check_body("{" RPC ",'result':{'roots':[]}}", "");
}

static void test_jsonrpc(void **state)
{
	(void)state;
	check_body("{" RPC ",'method':'getStatus','params':{'key':'value'}}",
	        "jsonrpc_methods=getStatus");
	check_body("{" RPC ",'method':'initialize'}", "jsonrpc_methods=initialize");
}

/* Two readers could find different names: the facts say so. */
static void test_doubts_are_marked(void **state)
{
	static const char *const texts[] = {
	        "{" RPC ",'method':'tools/call','params':{'name':'a','Name':'b'}}",
	        "{" RPC ",'method':'tools/call','params':{'name':7}}",
	        "{" RPC ",'method':'tools/call'}",
	        "{" RPC ",'method':'tools/call','params':{'name':'a'},'Params':{'name':'b'}}",
	        "{" RPC ",'method':['tools/call']}",
	        "{'extensions':{'persistedQuery':{'sha256Hash':7}}}", NULL};

	(void)state;
	for (size_t i = 0; texts[i]; i++) {
		const char *said = facts_of(&(struct body_test){.text = texts[i]});

		if (!strstr(said, "cut"))
			fail_msg("%s: %s", texts[i], said);
	}
}

static void test_graphql(void **state)
{
	(void)state;
	check_body(
	        "{'query':'query Q($id: ID!) { a: viewer { login } repository(id: $id) { id } }',"
	        "'variables':{'id':'secret'}}",
	        "graphql_operations=query graphql_fields=viewer graphql_fields=repository");
	check_body("{'query':'mutation { __typename addStar(input: {id: 7}) { id } }'}",
	        "graphql_operations=mutation graphql_fields=addStar");
	check_body("[{'query':'{ a }'},{'query':'{ b ...F } fragment F on T { c }'}]",
	        "graphql_operations=query graphql_fields=a graphql_fields=b graphql_fields=c");
	check_body("{'extensions':{'persistedQuery':{'version':1,'sha256Hash':'4d5f'}}}",
	        "graphql_persisted=4d5f");
	/* Texts that are no documents are the values of other APIs. */
	check_body("{'query':'how do I open a lock'}", "");
	check_body("{'query':'{ a'}", "");
	check_body("{'query':'query { a } type T { b: Int }'}", "");
}

static void test_models(void **state)
{
	(void)state;
	check((struct body_test){.path = "/v1/chat/completions",
	              .text = "{'model':'gpt-4o-mini','messages':[{'content':'secret'}]}"},
	        "llm_models=gpt-4o-mini");
	check((struct body_test){.path = "/v1beta/models/gemini-2.0-flash:generateContent",
	              .text = "{'contents':[]}"},
	        "llm_models=gemini-2.0-flash");
	check((struct body_test){.path = "/model/anthropic.claude%3A0/converse", .text = "{}"},
	        "llm_models=anthropic.claude:0");
	check((struct body_test){.path = "/v1/chat/completions", .text = "{'model':['a']}"}, "");
	check((struct body_test){.path = "/v1/chat/completions",
	              .text = "{'model':'a','Model':'b'}"},
	        "");
	check((struct body_test){.path = "/other", .text = "{'model':'gpt-4o-mini'}"}, "");
}

static void test_heads(void **state)
{
	static const char grpc[] = "Content-Type: application/grpc\n";

	(void)state;
	check((struct body_test){.path = "/lab.Lab/Say", .lines = grpc},
	        "grpc_services=lab.Lab grpc_methods=Say");
	check((struct body_test){.path = "/lab.Lab/Say", .lines = JSON_TYPE}, "");
	check((struct body_test){.path = "/lab.Lab/Say", .lines = grpc, .method = "GET"}, "");
	check((struct body_test){.path = "/acme/site.git/info/refs",
	              .method = "GET",
	              .query = "service=git-upload-pack"},
	        "git_repositories=acme/site git_services=fetch");
	check((struct body_test){.path = "/acme/site/info/refs",
	              .method = "GET",
	              .query = "service=git-receive-pack"},
	        "git_repositories=acme/site git_services=push");
	check((struct body_test){.path = "/acme/site/git-upload-pack"},
	        "git_repositories=acme/site git_services=fetch");
	check((struct body_test){.path = "/acme/site/info/refs", .method = "GET"}, "");
	check((struct body_test){.path = "/acme/../site/info/refs",
	              .method = "GET",
	              .query = "service=git-upload-pack&x"},
	        "");
}

/* A push's body as module git reads it. */
static void test_pushes(void **state)
{
	struct policy_git_command commands[] = {
	        {.ref = SLICE("refs/heads/agent/a"), .change = POLICY_GIT_CREATES},
	        {.ref = SLICE("refs/heads/agent/b"), .change = POLICY_GIT_FORWARDS},
	        {.ref = SLICE("refs/heads/main"), .change = POLICY_GIT_UPDATES},
	        {.ref = SLICE("refs/heads/old"), .change = POLICY_GIT_DELETES},
	        {.ref = SLICE("refs/tags/v1"), .change = POLICY_GIT_FORWARDS},
	        {.ref = SLICE("refs/tags/v2"), .change = POLICY_GIT_CREATES}};
	struct policy_git git = {.commands = commands, .command_count = 6};
	struct policy_body body = {
	        .state = POLICY_BODY_READ, .kind = POLICY_BODY_GIT_PUSH, .git = &git};
	struct policy_request request = {.method = SLICE("POST"),
	        .path = SLICE("/acme/site.git/git-receive-pack"),
	        .body = &body};
	static const unsigned kinds[] = {REQUEST_FACT_GIT_REPOSITORY, REQUEST_FACT_GIT_SERVICE,
	        REQUEST_FACT_GIT_PUSH, REQUEST_FACT_GIT_PUSH, REQUEST_FACT_GIT_FORCE,
	        REQUEST_FACT_GIT_DELETE, REQUEST_FACT_GIT_FORCE, REQUEST_FACT_GIT_PUSH};
	struct slice rest = slice_of(facts, policy_request_facts(&request, facts)), text;
	unsigned fact;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		assert_true(request_fact_next(&rest, &fact, &text));
		assert_int_equal(fact, kinds[i]);
	}
	assert_false(request_fact_next(&rest, &fact, &text));
}

static void test_bounds(void **state)
{
	static char text[TEXT_MAX];
	size_t n;

	(void)state;
	/* One name as long as the bound, and one byte more. */
	snprintf(text, sizeof(text), "{" RPC ",'method':'%0*d'}", REQUEST_FACT_MAX, 7);
	assert_null(strstr(facts_of(&(struct body_test){.text = text}), "cut"));
	snprintf(text, sizeof(text), "{" RPC ",'method':'%0*d'}", REQUEST_FACT_MAX + 1, 7);
	check_body(text, "cut");
	/* As many names as the bound, and one more. */
	for (int more = 0; more < 2; more++) {
		n = (size_t)snprintf(text, sizeof(text), "{'query':'{");
		for (int i = 1; i < REQUEST_FACTS_MAX + more; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, " f%d", i);
		snprintf(text + n, sizeof(text) - n, "}'}");
		assert_int_equal(
		        strstr(facts_of(&(struct body_test){.text = text}), " cut") != NULL, more);
	}
	/* More bytes than the bound, in fewer names. */
	n = (size_t)snprintf(text, sizeof(text), "{'query':'{");
	for (int i = 0; i < 20; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, " f%0*d", 120, i);
	snprintf(text + n, sizeof(text) - n, "}'}");
	assert_non_null(strstr(facts_of(&(struct body_test){.text = text}), " cut"));
	assert_int_equal(request_facts_flag(facts, REQUEST_FACTS_BYTES_MAX, REQUEST_FACT_VALUE),
	        REQUEST_FACTS_BYTES_MAX);
}

/* An event may be cut to fit: the facts then end before the item that was cut. */
static void test_a_cut_item_ends_the_facts(void **state)
{
	static const char bytes[] = "\x05\x03"
	                            "abc\x05\x09zz";
	struct slice rest, text;
	unsigned fact, count;

	(void)state;
	for (size_t n = 0; n < sizeof(bytes); n++) {
		rest = slice_of(bytes, n);
		for (count = 0; request_fact_next(&rest, &fact, &text); count++)
			assert_true(slice_equals(text, SLICE("abc")));
		assert_int_equal(count, n >= 5);
	}
	assert_null(request_fact_name(0));
	assert_null(request_fact_name(REQUEST_FACT_COUNT));
	assert_null(request_fact_name(255));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_mcp),
	        cmocka_unit_test(test_jsonrpc),
	        cmocka_unit_test(test_doubts_are_marked),
	        cmocka_unit_test(test_graphql),
	        cmocka_unit_test(test_models),
	        cmocka_unit_test(test_heads),
	        cmocka_unit_test(test_pushes),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_a_cut_item_ends_the_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
