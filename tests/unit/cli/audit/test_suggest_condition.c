/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard audit suggest: rules with conditions allow the names that the log has and no others;
 * what would open more than was asked for stays a person's to write. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/audit/audit.h"
#include "cli/audit/suggest.h"
#include "cli/policy/policy.h"

#define TEXT_MAX 65536

static char path[64], printed[TEXT_MAX];
static json_t *printed_json;
static unsigned id;

/* A denial; request: unmapped.request as JSON, in which a ' stands for a ". */
static json_t *denial(const char *method, const char *where, const char *code, const char *request)
{
	char uid[SUGGEST_ID_SIZE], *text = strdup(request);
	json_t *event, *asked;

	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	asked = json_loads(text, JSON_ALLOW_NUL, NULL);
	assert_non_null(asked);
	free(text);
	snprintf(uid, sizeof(uid), "%016x", ++id);
	event = json_pack("{s:I, s:i, s:i, s:i, s:s, s:{s:s}, s:{s:s}, s:{s:s, s:s}, s:{s:s, "
	                  "s:{s:s, s:s, s:i, s:s}}, s:{s:o}}",
	        "time", (json_int_t)1732120000000 + id, "class_uid", CLASS_HTTP, "action_id",
	        ACTION_DENIED, "disposition_id", 2, "status_code", code, "metadata", "uid", uid,
	        "policy", "name", "lab", "device", "name", "box", "uid", "1", "http_request",
	        "http_method", method, "url", "scheme", "https", "hostname", "a.example", "port",
	        443, "path", where, "unmapped", "request", asked);
	assert_non_null(event);
	return event;
}

static json_t *ruled(json_t *event, const char *rule)
{
	json_object_set_new(event, "firewall_rule", json_pack("{s:s}", "name", rule));
	return event;
}

/* Reads events (ended by NULL, consumed). Leaves the text in printed and the object in
 * printed_json. Returns how many rules there are. */
static size_t suggest_by(const struct policy *today, json_t *first, va_list more)
{
	struct suggest_rules rules;
	struct suggest s;
	char *text = NULL;
	size_t n, bytes;
	FILE *out;

	assert_int_equal(suggest_init(&s), 0);
	for (json_t *event = first; event; event = va_arg(more, json_t *)) {
		assert_int_equal(suggest_read(&s, event, true), 0);
		json_decref(event);
	}
	assert_int_equal(suggest_make(&s, today, &rules), 0);
	out = fmemopen(printed, sizeof(printed), "w");
	assert_non_null(out);
	suggest_print(&s, &rules, out);
	fclose(out);
	out = open_memstream(&text, &bytes);
	assert_int_equal(suggest_print_json(&s, &rules, out), 0);
	fclose(out);
	json_decref(printed_json);
	printed_json = json_loads(text, 0, NULL);
	assert_non_null(printed_json);
	free(text);
	n = rules.count;
	suggest_rules_free(&rules);
	suggest_fini(&s);
	return n;
}

static size_t suggest_of(json_t *first, ...)
{
	va_list more;
	size_t n;

	va_start(more, first);
	n = suggest_by(NULL, first, more);
	va_end(more);
	return n;
}

static size_t suggest_under(const struct policy *today, json_t *first, ...)
{
	va_list more;
	size_t n;

	va_start(more, first);
	n = suggest_by(today, first, more);
	va_end(more);
	return n;
}

static void load(const char *text, struct policy_loaded *loaded)
{
	static const struct policy_options options = {.quiet = true};
	struct diag_list diags = {.count = 0};
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	if (policy_load_file(path, &options, loaded, &diags) != 0) {
		diag_print(&diags, stderr);
		fail_msg("not a policy: %s", text);
	}
}

/* Asks the policy in `printed` whether it allows what this event asked for. */
static bool allows(json_t *event)
{
	char kept[TEXT_MAX];
	struct policy_loaded loaded;
	size_t rules;

	memcpy(kept, printed, sizeof(kept));
	load(printed, &loaded);
	rules = suggest_under(&loaded.policy, event, NULL);
	policy_unload(&loaded);
	memcpy(printed, kept, sizeof(kept));
	return rules == 0 && json_integer_value(json_object_get(printed_json, "allowed")) == 1;
}

static json_t *tool(const char *name)
{
	char request[256];

	snprintf(request, sizeof(request), "{'mcp_methods':['tools/call'],'mcp_tools':['%s']}",
	        name);
	return denial("POST", "/mcp", "condition", request);
}

static void test_tools(void **state)
{
	(void)state;
	assert_int_equal(
	        suggest_of(tool("search"), tool("fetch"), tool("search"),
	                denial("POST", "/mcp", "default", "{'mcp_methods':['initialize']}"),
	                denial("POST", "/mcp", "condition", "{'mcp_methods':['resources/read']}"),
	                NULL),
	        1);
	assert_non_null(strstr(printed, "    mcp:\n      tools: [\"fetch\", \"search\"]\n"
	                                "      methods: [\"resources/read\"]\n"));
	assert_non_null(strstr(printed, "# 5 x"));
	assert_non_null(strstr(printed, "with any arguments"));
	assert_true(allows(tool("search")) && allows(tool("fetch")));
	assert_false(allows(tool("delete")));
	assert_false(allows(denial("POST", "/mcp", "default", "{'mcp_methods':['prompts/get']}")));
	assert_true(allows(denial("POST", "/mcp", "default", "{'mcp_methods':['ping']}")));
}

/* A session that was only opened needs a rule that names something. */
static void test_what_each_session_needs(void **state)
{
	(void)state;
	assert_int_equal(
	        suggest_of(
	                denial("POST", "/mcp", "default", "{'mcp_methods':['initialize']}"), NULL),
	        1);
	assert_non_null(strstr(printed, "mcp:\n      methods: [\"ping\"]\n"));
	assert_false(allows(tool("search")));
}

static void test_other_kinds(void **state)
{
	static const struct {
		const char *method, *path, *request, *condition, *other;
	} rows[] = {
	        {"POST", "/rpc", "{'jsonrpc_methods':['getStatus']}",
	                "jsonrpc:\n      methods: [\"getStatus\"]", "{'jsonrpc_methods':['drop']}"},
	        {"POST", "/graphql",
	                "{'graphql_operations':['query'],'graphql_fields':['viewer','repository']}",
	                "graphql:\n      operations: [\"query\"]\n      fields: [\"repository\", "
	                "\"viewer\"]",
	                "{'graphql_operations':['mutation'],'graphql_fields':['viewer']}"},
	        {"POST", "/graphql", "{'graphql_persisted':['4d5fb2']}",
	                "graphql:\n      persisted: [\"4d5fb2\"]", "{'graphql_persisted':['aa']}"},
	        {"POST", "/lab.Lab/Say", "{'grpc_services':['lab.Lab'],'grpc_methods':['Say']}",
	                "grpc:\n      services: [\"lab.Lab\"]\n      methods: [\"Say\"]", NULL},
	        {"POST", "/v1/chat/completions", "{'llm_models':['gpt-4o-mini']}",
	                "llm:\n      models: [\"gpt-4o-mini\"]", "{'llm_models':['o3']}"},
	        {"POST", "/v1beta/models/gemini-2.0-flash:generateContent",
	                "{'llm_models':['gemini-2.0-flash']}",
	                "llm:\n      models: [\"gemini-2.0-flash\"]", NULL},
	        {"GET", "/acme/site.git/info/refs",
	                "{'git_repositories':['acme/site'],'git_services':['fetch']}",
	                "git:\n      repositories: [\"acme/site\"]\n",
	                "{'git_repositories':['acme/other'],'git_services':['fetch']}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(
		        suggest_of(denial(rows[i].method, rows[i].path, "default", rows[i].request),
		                NULL),
		        1);
		if (!strstr(printed, rows[i].condition))
			fail_msg("%s", printed);
		assert_true(
		        allows(denial(rows[i].method, rows[i].path, "default", rows[i].request)));
		assert_false(rows[i].other && allows(denial(rows[i].method, rows[i].path, "default",
		                                      rows[i].other)));
	}
}

/* A rule is never wider than the requests: other paths, operations and repositories are others. */
static void test_rules_do_not_multiply(void **state)
{
	(void)state;
	assert_int_equal(
	        suggest_of(denial("POST", "/a", "default", "{'jsonrpc_methods':['one']}"),
	                denial("POST", "/b", "default", "{'jsonrpc_methods':['two']}"), NULL),
	        2);
	assert_int_equal(
	        suggest_of(denial("POST", "/g", "default",
	                           "{'graphql_operations':['query'],'graphql_fields':['a']}"),
	                denial("POST", "/g", "default",
	                        "{'graphql_operations':['mutation'],'graphql_fields':['b']}"),
	                NULL),
	        2);
	assert_false(allows(denial("POST", "/g", "default",
	        "{'graphql_operations':['mutation'],'graphql_fields':['a']}")));
	assert_int_equal(suggest_of(denial("POST", "/s.A/X", "default",
	                                    "{'grpc_services':['s.A'],'grpc_methods':['X']}"),
	                         denial("POST", "/s.B/Y", "default",
	                                 "{'grpc_services':['s.B'],'grpc_methods':['Y']}"),
	                         NULL),
	        2);
}

static json_t *refs(const char *service)
{
	char request[128];

	snprintf(request, sizeof(request),
	        "{'git_repositories':['acme/site'],'git_services':['%s']}", service);
	return denial("GET", "/acme/site/info/refs", "default", request);
}

static json_t *push(const char *lists)
{
	char request[256];

	snprintf(request, sizeof(request),
	        "{'git_repositories':['acme/site'],'git_services':['push'],%s}", lists);
	return denial("POST", "/acme/site/git-receive-pack", "condition", request);
}

static void test_pushes(void **state)
{
	(void)state;
	assert_int_equal(
	        suggest_of(refs("push"), push("'git_pushes':['refs/heads/agent/a']"), NULL), 1);
	assert_non_null(strstr(printed, "push: [\"refs/heads/agent/a\"]"));
	assert_true(allows(push("'git_pushes':['refs/heads/agent/a']")));
	assert_false(allows(push("'git_pushes':['refs/heads/main']")));
	/* The refs are not known: reading alone would not help. */
	assert_int_equal(suggest_of(refs("push"), NULL), 0);
	assert_non_null(strstr(printed, "refs that the log does not have"));
	assert_int_equal(suggest_of(push("'git_forced':['refs/heads/main']"), NULL), 0);
	assert_non_null(strstr(printed, "may lose commits"));
	assert_int_equal(suggest_of(push("'git_deleted':['refs/heads/old']"), NULL), 0);
	assert_int_equal(
	        suggest_of(push("'git_pushes':['refs/heads/a'],'git_forced':['refs/heads/main']"),
	                NULL),
	        0);
}

/* What would open more than was asked for, or is not sure. */
static void test_never_suggested(void **state)
{
	static const char *const requests[] = {
	        "{'mcp_methods':['tools/call'],'mcp_tools':['fs_read'],'value_refused':true}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['a'],'cut':true}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['*']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['fs_*']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['a\\\"]']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['${X}']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['a b']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['a\\u0000b']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['\\u00e9']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['']}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':[7]}",
	        "{'mcp_methods':['tools/call'],'mcp_tools':['"
	        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	        "aaaaaa"
	        "aaaaaaaaaaaaaaaaaaaa']}",
	        "{'graphql_operations':['query','mutation'],'graphql_fields':['a']}",
	        "{'grpc_services':['a','b'],'grpc_methods':['c']}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		if (suggest_of(denial("POST", "/mcp", "condition", requests[i]), NULL) != 0)
			fail_msg("%s: %s", requests[i], printed);
	assert_int_equal(suggest_of(denial("PUT", "/mcp", "condition",
	                                    "{'mcp_methods':['tools/call'],'mcp_tools':['a']}"),
	                         NULL),
	        0);
	/* A refusal for another reason than the policy's rules. */
	assert_int_equal(suggest_of(denial("POST", "/mcp", "secret",
	                                    "{'mcp_methods':['tools/call'],'mcp_tools':['a']}"),
	                         NULL),
	        0);
}

/* No names are known: the request is what it was. */
static void test_without_names(void **state)
{
	static const char *const requests[] = {"{}", "{'mcp_methods':[]}", "{'unknown':['a']}",
	        "{'mcp_methods':'tools/call'}", "[]"};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		assert_int_equal(suggest_of(denial("POST", "/x", "default", requests[i]), NULL), 1);
		assert_null(strstr(printed, "mcp:"));
		assert_int_equal(
		        suggest_of(denial("POST", "/x", "condition", requests[i]), NULL), 0);
		assert_non_null(strstr(printed, "under conditions"));
	}
}

/* A list of a condition has a bound, beyond which another rule begins. */
static void test_many_tools(void **state)
{
	enum { TOOLS = SUGGEST_VALUES_MAX + 1 };
	struct suggest_rules rules;
	struct suggest s;
	char name[16];

	(void)state;
	assert_int_equal(suggest_init(&s), 0);
	for (unsigned i = 0; i < TOOLS; i++) {
		json_t *event;

		snprintf(name, sizeof(name), "tool%u", i);
		event = tool(name);
		assert_int_equal(suggest_read(&s, event, true), 0);
		json_decref(event);
	}
	assert_int_equal(suggest_make(&s, NULL, &rules), 0);
	assert_int_equal(rules.count, 2);
	assert_int_equal(rules.rules[0].count + rules.rules[1].count, TOOLS);
	suggest_rules_free(&rules);
	suggest_fini(&s);
}

static void test_exceptions(void **state)
{
	const json_t *first;

	(void)state;
	assert_int_equal(suggest_of(ruled(denial("GET", "/a", "rule", "{}"), "inner"),
	                         ruled(denial("GET", "/b", "rule", "{}"), "inner"), NULL),
	        0);
	assert_non_null(strstr(printed, "#   rule inner:  except: [\"https://a.example\"]\n"));
	assert_null(strstr(strstr(printed, "#   rule inner") + 1, "#   rule inner"));
	assert_int_equal(json_array_size(json_object_get(printed_json, "excepts")), 1);
	first = json_array_get(json_object_get(printed_json, "excepts"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "rule")), "inner");
	assert_string_equal(
	        json_string_value(json_object_get(first, "except")), "https://a.example");
	/* Rules of the floor are the organisation's, and a denial without a rule has none. */
	suggest_of(ruled(denial("GET", "/a", "rule", "{}"), "floor:no-releases"),
	        denial("GET", "/a", "rule", "{}"), NULL);
	assert_null(strstr(printed, "except: ["));
	assert_int_equal(json_array_size(json_object_get(printed_json, "excepts")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_tools),
	        cmocka_unit_test(test_what_each_session_needs),
	        cmocka_unit_test(test_other_kinds),
	        cmocka_unit_test(test_rules_do_not_multiply),
	        cmocka_unit_test(test_pushes),
	        cmocka_unit_test(test_never_suggested),
	        cmocka_unit_test(test_without_names),
	        cmocka_unit_test(test_many_tools),
	        cmocka_unit_test(test_exceptions),
	};
	int rc;

	snprintf(path, sizeof(path), "/tmp/suggest-condition-%d.yaml", (int)getpid());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(printed_json);
	unlink(path);
	return rc;
}
