/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on MCP messages: what a client of each revision sends passes. A message that another
 * reader could take for another call does not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"
#include "policy/load/model.h"

#define RPC "'jsonrpc':'2.0'"
#define CALL(name, arguments)                                           \
	"{" RPC ",'id':1,'method':'tools/call','params':{'name':'" name \
	"','arguments':{" arguments "}}}"

static const char tools[] = ALLOW("mcp: {tools: [search, \"fs_*\"], methods: [\"resources/*\"]}");

static void test_sessions(void **state)
{
	static const char *const good[] = {
	        "{" RPC ",'id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25'}}",
	        "{" RPC ",'method':'notifications/initialized'}",
	        "{" RPC ",'id':1,'method':'server/discover','params':{}}",
	        "{" RPC ",'id':'a','method':'ping'}",
	        "{" RPC ",'id':2,'method':'tools/list','params':{'cursor':'x'}}",
	        "{" RPC ",'id':2,'method':'resources/read','params':{'uri':'file:///x'}}",
	        "{" RPC ",'id':3,'result':{'roots':[]}}", "{" RPC ",'id':3,'error':{'code':-1}}",
	        CALL("search", "'q':'x'"), CALL("fs_read", "'path':'/etc'"),
	        "{" RPC ",'id':1,'method':'tools/call','params':{'name':'search','_meta':{}}}",
	        NULL};
	static const char *const bad[] = {CALL("delete", ""), CALL("Search", ""),
	        CALL("searchx", ""), CALL("xfs_read", ""), "{" RPC ",'id':1,'method':'tools/call'}",
	        "{" RPC ",'id':1,'method':'tools/call','params':{}}",
	        "{" RPC ",'id':1,'method':'tools/call','params':['search']}",
	        "{" RPC ",'id':1,'method':'tools/call','params':{'name':['search']}}",
	        "{" RPC ",'id':1,'method':'tools/call','params':{'name':'search','arguments':[]}}",
	        "{" RPC ",'id':1,'method':'tools/call','params':{'name':'search','Name':'x'}}",
	        "{" RPC ",'id':1,'method':'tools/call','params':{'name':'search','name':'x'}}",
	        "{" RPC ",'id':1,'method':'tools/call','Params':{'name':'x'},'params':{'name':"
	        "'search'}}",
	        "{" RPC ",'id':1,'method':'Tools/Call','params':{'name':'search'}}",
	        "{" RPC ",'id':1,'method':'tools/call ','params':{'name':'search'}}",
	        "{" RPC ",'id':1,'method':'prompts/get','params':{'name':'search'}}",
	        "{" RPC ",'id':1,'method':'tasks/result','params':{'taskId':'x'}}",
	        "{" RPC ",'id':1,'method':'ping','result':{}}",
	        "{" RPC ",'id':1,'method':'ping','Method':'tools/call'}",
	        "{" RPC ",'id':1,'method':['ping']}", "{" RPC ",'id':{},'method':'ping'}",
	        "{" RPC ",'id':1,'method':'ping','params':[]}", "{'id':1,'method':'ping'}",
	        "{'jsonrpc':2.0,'id':1,'method':'ping'}",
	        "{'jsonrpc':'1.0','id':1,'method':'ping'}", "{" RPC ",'id':1}",
	        "{" RPC ",'id':1,'result':{},'error':{}}", "{" RPC ",'result':{}}",
	        "{" RPC ",'id':1,'result':{},'params':{}}", "{}", "x", "", "'ping'", NULL};

	(void)state;
	body_test_all((struct body_test){.policy = tools, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = tools, .lines = JSON_TYPE}, bad, false);
	body_test_all((struct body_test){.policy = tools, .lines = "Content-Type: text/plain\n"},
	        good, false);
	body_test_all((struct body_test){.policy = tools, .lines = JSON_TYPE, .method = "PUT"},
	        good, false);
}

/* Without a body, only GET (opens a stream of events) and DELETE (ends a session) pass. */
static void test_without_a_body(void **state)
{
	static const char *const bad[] = {"POST", "PUT", "HEAD", "OPTIONS", "PATCH", "get", NULL};

	(void)state;
	body_test_check(&(struct body_test){.policy = tools, .method = "GET"}, true);
	body_test_check(&(struct body_test){.policy = tools, .method = "DELETE"}, true);
	body_test_check(&(struct body_test){.policy = tools,
	                        .method = "GET",
	                        .lines = JSON_TYPE,
	                        .text = CALL("search", "")},
	        false);
	for (size_t i = 0; bad[i]; i++)
		body_test_check(&(struct body_test){.policy = tools, .method = bad[i]}, false);
}

static void test_methods_only(void **state)
{
	static const char policy[] = ALLOW("mcp: {methods: \"*\"}");
	static const char *const good[] = {"{" RPC ",'id':1,'method':'prompts/get'}",
	        "{" RPC ",'id':1,'method':'tools/list'}", "{" RPC ",'id':1,'method':'x'}", NULL};
	static const char *const bad[] = {CALL("x", ""), CALL("*", ""), NULL};

	(void)state;
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, bad, false);
}

static void test_batches(void **state)
{
	static const char *const good[] = {"[" CALL("search", "") "]",
	        "[" CALL("search", "") ",{" RPC ",'method':'notifications/x'},{" RPC
	                               ",'id':1,'result':{}}]",
	        NULL};
	static const char *const bad[] = {"[]", "[1]",
	        "[" CALL("search", "") "," CALL("delete", "") "]", "[[" CALL("search", "") "]]",
	        "[" CALL("search", "") ",{}]", "[{" RPC ",'id':0,'method':'initialize'}]", NULL};
	static const char *const later[] = {"2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28",
	        "x", "2025-03-26, 2025-06-18", NULL};
	char lines[256];

	(void)state;
	body_test_all((struct body_test){.policy = tools, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = tools, .lines = JSON_TYPE}, bad, false);
	body_test_all((struct body_test){.policy = tools,
	                      .lines = JSON_TYPE "mcp-protocol-version: 2025-03-26\n"},
	        good, true);
	body_test_all((struct body_test){.policy = tools, .lines = JSON_TYPE "Mcp-Name: search\n"},
	        good, false);
	body_test_all(
	        (struct body_test){.policy = tools, .lines = JSON_TYPE "Mcp-Method: tools/call\n"},
	        good, false);
	for (size_t i = 0; later[i]; i++) {
		snprintf(lines, sizeof(lines), JSON_TYPE "MCP-Protocol-Version: %s\n", later[i]);
		body_test_all((struct body_test){.policy = tools, .lines = lines}, good, false);
	}
}

/* Since revision 2026-07-28 of MCP header fields repeat the method and the name. */
static void test_fields(void **state)
{
	static const char *const good[] = {"", "Mcp-Method: tools/call\n", "Mcp-Name: search\n",
	        "mcp-method: tools/call\nmcp-name: search\nMCP-Protocol-Version: 2026-07-28\n",
	        "Mcp-Name: =?base64?c2VhcmNo?=\n", NULL};
	static const char *const bad[] = {"Mcp-Method: tools/list\n", "Mcp-Method: Tools/Call\n",
	        "Mcp-Name: delete\n", "Mcp-Name: search\nMcp-Name: search\n", "Mcp_Name: delete\n",
	        "Mcp-Method: tools/call\nMcp_Method: tools/call\n", "Mcp-Name:\n",
	        "Mcp-Name: =?base64?ZGVsZXRl?=\n", "Mcp-Name: =?base64?c2VhcmNo!?=\n",
	        "Mcp-Name: =?Base64?c2VhcmNo?=\n", "Mcp-Name: =?base64?=\n", NULL};
	struct body_test b = {.policy = tools, .text = CALL("search", "")};
	char lines[2048];

	(void)state;
	b.lines = lines;
	for (size_t i = 0; good[i]; i++) {
		snprintf(lines, sizeof(lines), JSON_TYPE "%s", good[i]);
		body_test_check(&b, true);
	}
	for (size_t i = 0; bad[i]; i++) {
		snprintf(lines, sizeof(lines), JSON_TYPE "%s", bad[i]);
		body_test_check(&b, false);
	}
	b.lines = JSON_TYPE "Mcp-Method: x\n";
	b.text = "{" RPC ",'id':1,'result':{}}"; /* a response has no method */
	body_test_check(&b, false);
	snprintf(lines, sizeof(lines), JSON_TYPE "Mcp-Name: =?base64?%0*d?=\n",
	        POLICY_VALUE_MAX * 2, 0); /* longer than a name can be */
	b.lines = lines;
	b.text = CALL("search", "");
	body_test_check(&b, false);
}

static void test_arguments(void **state)
{
	static const char policy[] = ALLOW(
	        "mcp: {tools: \"fs_*\", arguments: {path: [\"/data/**\", \"/tmp/*.txt\"], mode: "
	        "[r, 1], \"/more/deep\": ~}}");
	static const char *const good[] = {CALL("fs_x", "'path':'/data/a/b','mode':'r'"),
	        CALL("fs_x", "'path':'/data','mode':1"), CALL("fs_x", "'path':'/data/','mode':1"),
	        CALL("fs_x", "'mode':'r','path':'\\/data\\/a b','other':'/etc','more':{}"),
	        CALL("fs_x", "'path':'/tmp/a.txt','mode':'r'"),
	        "{" RPC ",'id':1,'method':'tools/list'}", NULL};
	static const char *const bad[] = {CALL("fs_x", "'path':'/etc/passwd','mode':'r'"),
	        CALL("fs_x", "'path':'/data/../etc','mode':'r'"),
	        CALL("fs_x", "'path':'/data/./x','mode':'r'"),
	        CALL("fs_x", "'path':'/data//x','mode':'r'"),
	        CALL("fs_x", "'path':'/data/..','mode':'r'"),
	        CALL("fs_x", "'path':'/data/%2e%2e/etc','mode':'r'"),
	        CALL("fs_x", "'path':'/data/..\\\\etc','mode':'r'"),
	        CALL("fs_x", "'path':'/data/\\u0001','mode':'r'"),
	        CALL("fs_x", "'path':'/database','mode':'r'"),
	        CALL("fs_x", "'path':'/DATA/x','mode':'r'"),
	        CALL("fs_x", "'path':'data/x','mode':'r'"),
	        CALL("fs_x", "'path':' /data/x','mode':'r'"),
	        CALL("fs_x", "'path':['/data/x'],'mode':'r'"),
	        CALL("fs_x", "'path':'/tmp/a/b.txt','mode':'r'"),
	        CALL("fs_x", "'path':'/data/x','Path':'/etc','mode':'r'"),
	        CALL("fs_x", "'path':'/data/x'"), CALL("fs_x", "'mode':'r'"), CALL("fs_x", ""),
	        CALL("fs_x", "'path':'/data/x','mode':'r','more':{'deep':1}"),
	        CALL("fs_x", "'path':'/data/x','mode':'w'"),
	        CALL("search", "'path':'/data/x','mode':'r'"),
	        "{" RPC ",'id':1,'method':'tools/call','params':{'name':'fs_x'}}", NULL};

	(void)state;
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, bad, false);
}

static void test_denied(void **state)
{
	static const char policy[] = DENY("mcp: {tools: \"delete_*\", methods: [\"sampling/*\"]}");
	static const char *const bad[] = {CALL("delete_x", ""), CALL("DELETE_x", ""),
	        "[" CALL("a", "") "," CALL("delete_", "") "]",
	        "{'Method':'TOOLS/call','PARAMS':{'Name':' delete_x'}}",
	        "{'method':'ping','method_':'tools/call','params':{'name':'delete_x'}}",
	        "{'method':'tools/call','params':{'name':'a','n_ame':'delete_x'}}",
	        "{'method':'tools/call','params':['delete_x']}", "{'method':'tools/call'}",
	        "{'method':'tools/call','params':{'name':1}}", "{'method':'sampling/x'}", "x",
	        "{'a':1,'a':2}", NULL};
	static const char *const good[] = {CALL("a", "'name':'delete_x'"), "{}", "[]",
	        "{" RPC ",'id':1,'method':'tools/list'}", "{'params':{'name':'delete_x'}}", NULL};
	static const char two[] = DENY("mcp: {tools: fs_read, arguments: {path: \"/etc/**\"}}");
	static const char *const paths[] = {CALL("fs_read", "'path':'/etc/passwd'"),
	        CALL("fs_read", "'path':'/etc'"), CALL("fs_read", "'path':'/ETC/x'"),
	        CALL("fs_read", "'path':'/a/../etc'"), CALL("fs_read", "'path':'//etc'"),
	        CALL("fs_read", "'path':'..'"), CALL("fs_read", "'path':'/%65tc'"),
	        CALL("fs_read", "'path':['/etc/x']"), CALL("fs_read", "'PATH':'/etc/x'"), NULL};
	static const char *const others[] = {CALL("fs_read", "'path':'/data'"), CALL("fs_read", ""),
	        CALL("fs_read", "'path':1"), CALL("a", "'path':'/etc'"), NULL};

	(void)state;
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, bad, false);
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = two, .lines = JSON_TYPE}, paths, false);
	body_test_all((struct body_test){.policy = two, .lines = JSON_TYPE}, others, true);
	body_test_check(&(struct body_test){.policy = policy}, true);
	body_test_check(
	        &(struct body_test){.policy = policy, .lines = "Mcp-Name: Delete_x\n"}, false);
	body_test_check(
	        &(struct body_test){.policy = policy, .lines = "mcp_method: sampling/x\n"}, false);
}

/* --- which tools may be called --- */

static bool may_call(const char *text, const char *method, const char *path, const char *tool)
{
	const struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = slice_from_string(method),
	        .path = slice_from_string(path)};
	struct test_policy t;
	bool may;

	test_load(&t, text, false);
	may = policy_may_call(&t.policy, &request, slice_from_string(tool));
	test_unload(&t);
	return may;
}

#define TWO                                                                                       \
	"vethguard: 1\nallow:\n"                                                                  \
	"  - {to: a.example, paths: [/m], methods: [GET, POST], mcp: {tools: search}}\n"          \
	"  - {to: a.example, paths: [/m], mcp: {tools: fs, arguments: {path: \"/d/**\"}}}\n"      \
	"  - {to: a.example, paths: [/any]}\n"                                                    \
	"  - {to: a.example, paths: [/rpc], jsonrpc: {methods: tools/call, params: {name: x}}}\n" \
	"  - {to: a.example, paths: [/get], methods: [GET], mcp: {tools: get}}\n"                 \
	"deny:\n  - {to: a.example, mcp: {tools: \"no_*\"}}\n"                                    \
	"  - {to: a.example, mcp: {tools: fs, arguments: {path: \"/d/x\"}}}\n"

static void test_may_call(void **state)
{
	(void)state;
	assert_true(may_call(TWO, "POST", "/m", "search"));
	assert_true(may_call(TWO, "GET", "/m", "search"));
	assert_true(may_call(TWO, "POST", "/m", "fs"));
	assert_false(may_call(TWO, "POST", "/m", "Search"));
	assert_false(may_call(TWO, "POST", "/m", "other"));
	assert_false(may_call(TWO, "POST", "/m", ""));
	assert_true(may_call(TWO, "POST", "/any", "other"));
	assert_false(may_call(TWO, "POST", "/any", "no_x"));
	assert_false(may_call(TWO, "POST", "/any", "NO_x"));
	assert_true(may_call(TWO, "POST", "/rpc", "y")); /* only a call shows what it allows */
	assert_false(may_call(TWO, "POST", "/none", "search"));
	assert_false(may_call(TWO, "GET", "/get", "get"));
	assert_false(may_call(DENY("mcp: {methods: tools/call}"), "POST", "/", "x"));
	assert_true(may_call(DENY("json: {method: tools/call}"), "POST", "/", "x"));
}

static bool lists_tools(const char *policy, const char *method, const char *path)
{
	return body_test_decide(&(struct body_test){.policy = policy,
	                                .method = method,
	                                .path = path,
	                                .lines = JSON_TYPE,
	                                .text = strcmp(method, "POST") == 0
	                                                ? "{" RPC ",'id':1,'method':'tools/list'}"
	                                                : NULL})
	        .lists_tools;
}

static void test_lists(void **state)
{
	static const char split[] =
	        "vethguard: 1\nallow:\n"
	        "  - {to: a.example, paths: [/m], methods: [POST], mcp: {tools: a}}\n"
	        "  - {to: a.example, methods: [GET]}\n";

	(void)state;
	assert_true(lists_tools(tools, "POST", "/x"));
	assert_true(lists_tools(tools, "GET", "/x"));
	assert_true(lists_tools(split, "GET", "/m"));
	assert_false(lists_tools(split, "GET", "/other"));
	assert_true(lists_tools(DENY("mcp: {tools: x}"), "GET", "/"));
	assert_true(lists_tools(DENY("mcp: {tools: x}"), "POST", "/"));
	assert_false(lists_tools(ALLOW("jsonrpc: {methods: tools/list}"), "POST", "/"));
	assert_false(lists_tools(DENY("paths: [/a], mcp: {tools: x}"), "POST", "/b"));
	assert_false(lists_tools(DENY("headers: {x: y}"), "POST", "/"));
}

/* 64 names of each list are read; one more is refused. */
static bool loads(size_t tool_count, size_t method_count)
{
	struct test_policy t = {.image = NULL};
	char text[8192],
	        *p = text + sprintf(text, "vethguard: 1\nallow:\n  - {to: a.example, mcp: {");
	struct policy_reader reader = {text, test_read, NULL};
	bool good;

	p += sprintf(p, "tools: [");
	for (size_t i = 0; i < tool_count; i++)
		p += sprintf(p, "t%zu, ", i);
	p += sprintf(p, "], methods: [");
	for (size_t i = 0; i < method_count; i++)
		p += sprintf(p, "m%zu, ", i);
	sprintf(p, "]}}\n");
	good = policy_load(&reader, "/test.yaml", NULL, &t.image, &t.size, &t.diags) == 0;
	free(t.image);
	return good;
}

static void test_bounds(void **state)
{
	(void)state;
	assert_true(loads(MODEL_VALUES_MAX, MODEL_VALUES_MAX));
	assert_false(loads(MODEL_VALUES_MAX + 1, 1));
	assert_false(loads(1, MODEL_VALUES_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_sessions),
	        cmocka_unit_test(test_without_a_body),
	        cmocka_unit_test(test_methods_only),
	        cmocka_unit_test(test_batches),
	        cmocka_unit_test(test_fields),
	        cmocka_unit_test(test_arguments),
	        cmocka_unit_test(test_denied),
	        cmocka_unit_test(test_may_call),
	        cmocka_unit_test(test_lists),
	        cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
