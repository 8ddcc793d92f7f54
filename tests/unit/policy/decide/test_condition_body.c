/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on bodies: JSON texts and forms, what an attacker writes in them for another reader
 * than vethguard, and the verdict before the body is known. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/load/model.h"
#include "vethguard/policy/body.h"
#include "../policy_test.h"
#include "condition_test.h"

#define JSON_TYPE "Content-Type: application/json\n"
#define FORM_TYPE "Content-Type: application/x-www-form-urlencoded\n"

/* text NULL: no body. */
static struct policy_decision decide_text(
        const struct policy *policy, const char *lines, struct slice text)
{
	const struct policy_fields fields = {lines, next_line};
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = SLICE("POST"),
	        .path = SLICE("/x"),
	        .fields = &fields,
	        .body = text.p ? &body : NULL};
	struct policy_decision d;

	if (text.p)
		policy_body_read(&body, &fields, text);
	policy_decide(policy, &request, &d);
	assert_false(d.needs_body);
	policy_body_fini(&body);
	return d;
}

static struct policy_decision decide(const char *policy, const char *lines, const char *text)
{
	struct policy_decision d;
	struct test_policy t;

	test_load(&t, policy, false);
	d = decide_text(&t.policy, lines, slice_from_string(text));
	test_unload(&t);
	return d;
}

static void check(const char *policy, const char *lines, const char *text, bool allowed)
{
	struct policy_decision d = decide(policy, lines, text);

	if ((d.verdict == POLICY_ALLOW) != allowed)
		fail_msg("%s\n%s%s: verdict %d, reason %d", policy, lines, text ? text : "",
		        (int)d.verdict, (int)d.reason);
}

static void check_all(
        const char *policy, const char *lines, const char *const texts[], bool allowed)
{
	for (size_t i = 0; texts[i]; i++)
		check(policy, lines, texts[i], allowed);
}

static const char model_policy[] =
        ALLOW("json: {model: [\"gpt-4*\", o3], max_tokens: {min: 1, max: 4096}, stream: false, "
              "user: ~}");

static void test_allowed_json(void **state)
{
	static const char *const good[] = {
	        "{\"model\":\"gpt-4o\",\"max_tokens\":100,\"stream\":false}",
	        "{\"stream\":false,\"max_tokens\":4096,\"model\":\"o3\",\"other\":{\"user\":1}}",
	        "{\"m\\u006fdel\":\"\\u006f3\",\"max_tokens\":1.0,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":4e3,\"stream\":false,\"x\":[{\"model\":\"y\"}]}",
	        NULL};
	static const char *const bad[] = {"{}", "[]", "\"o3\"", "null", "1",
	        "{\"model\":\"o4\",\"max_tokens\":1,\"stream\":false}",
	        "{\"model\":\"O3\",\"max_tokens\":1,\"stream\":false}",
	        "{\"model\":[\"o3\"],\"max_tokens\":1,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":4097,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":0,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":4096.0000000000000001,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":\"1\",\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":null,\"stream\":false}",
	        "{\"model\":\"o3\",\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":true}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":\"false\"}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":0}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":null}",
	        "{\"model\":\"o3\",\"model\":\"o3\",\"max_tokens\":1,\"stream\":false}",
	        "{\"model\":\"o3\",\"Model\":\"o3\",\"max_tokens\":1,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"maxTokens\":1,\"stream\":false}",
	        "{\"Model\":\"o3\",\"max_tokens\":1,\"stream\":false}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false,\"user\":null}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false,\"User\":1}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false,\"u\xc5\xbf"
	        "er\":1}",
	        "[{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false}]",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false} x",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false}{}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false,}",
	        "{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false,\"x\":{\"y\":1,\"y\":1}}",
	        "\xef\xbb\xbf{\"model\":\"o3\",\"max_tokens\":1,\"stream\":false}", "", "model=o3",
	        NULL};

	(void)state;
	check_all(model_policy, JSON_TYPE, good, true);
	check_all(model_policy, JSON_TYPE, bad, false);
	check(model_policy, "", NULL, false);
	assert_int_equal(decide(model_policy, JSON_TYPE, "{}").reason, POLICY_REASON_CONDITION);
}

/* A content type that does not say, or says something else. */
static void test_types(void **state)
{
	static const char body[] = "{\"a\":\"b\"}", policy[] = ALLOW("json: {a: b}");
	static const char *const good[] = {JSON_TYPE,
	        "content-type:application/JSON; charset=UTF-8\n",
	        "Content-Type: application/json;charset=\"utf-8\"\n",
	        "Content-Type: application/vnd.api+json\n",
	        "Content-Type: application/json; odata.metadata=minimal\n",
	        JSON_TYPE "Content-Encoding: identity\n", NULL};
	static const char *const bad[] = {"", "X: y\n", "Content-Type: text/plain\n", FORM_TYPE,
	        "Content-Type:\n", "Content-Type: application/json, text/plain\n",
	        JSON_TYPE JSON_TYPE, JSON_TYPE "Content_Type: text/plain\n",
	        "Content-Type: application/json; charset=utf-16\n",
	        "Content-Type: application/json; charset=utf-8; charset=utf-7\n",
	        "Content-Type: application/json; charset=utf-8; charset=utf-8\n",
	        "Content-Type: application/json; x=\"; charset=utf-7\"\n",
	        "Content-Type: application/json; charset = utf-7\n",
	        "Content-Type: application/jsonp\n", "Content-Type: text/json\n",
	        "Content-Type: application/+json\n",
	        "Content-Type: multipart/form-data; boundary=x\n",
	        JSON_TYPE "Content-Encoding: gzip\n", JSON_TYPE "Content_Encoding: br\n",
	        JSON_TYPE "Content-Encoding: identity, gzip\n",
	        JSON_TYPE "Content-Encoding: identity\nContent-Encoding: gzip\n",
	        JSON_TYPE "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n", NULL};

	(void)state;
	for (size_t i = 0; good[i]; i++)
		check(policy, good[i], body, true);
	for (size_t i = 0; bad[i]; i++) {
		check(policy, bad[i], body, false);
		check(DENY("json: {a: never}"), bad[i], body, false);
	}
	check(DENY("json: {a: never}"), JSON_TYPE, body, true);
}

static void test_paths(void **state)
{
	static const char policy[] =
	        ALLOW("json: {/messages/*/role: [user, assistant], /o/admin: ~, \"/a~1b\": \"*\"}");
	static const char *const good[] = {
	        "{\"messages\":[{\"role\":\"user\"},{\"role\":\"assistant\",\"x\":1}],\"a/b\":0}",
	        "{\"messages\":[{\"role\":\"user\"}],\"o\":{},\"a/b\":false}",
	        "{\"messages\":[{\"role\":\"user\"}],\"o\":{\"x\":{\"admin\":1}},\"a/b\":\"\"}",
	        "{\"messages\":[{\"role\":\"user\"}],\"o\":null,\"a/b\":\"\"}", NULL};
	static const char *const bad[] = {"{\"messages\":[],\"a/b\":1}",
	        "{\"messages\":{\"role\":\"user\"},\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"},{\"role\":\"system\"}],\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"},{}],\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"},\"x\"],\"a/b\":1}",
	        "{\"messages\":[[{\"role\":\"user\"}]],\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\",\"Role\":\"user\"}],\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"}],\"o\":{\"admin\":null},\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"}],\"o\":{\"ADMIN\":0},\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"}],\"O\":{\"admin\":0},\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"}],\"o\":[{\"admin\":0}],\"a/b\":1}",
	        "{\"messages\":[{\"role\":\"user\"}]}",
	        "{\"messages\":[{\"role\":\"user\"}],\"a/b\":null}",
	        "{\"messages\":[{\"role\":\"user\"}],\"a/b\":[1]}", NULL};

	(void)state;
	check_all(policy, JSON_TYPE, good, true);
	check_all(policy, JSON_TYPE, bad, false);
	check(ALLOW("json: {a: \"*\", \"*\": ~}"), JSON_TYPE, "{\"a\":1}", true);
	check(ALLOW("json: {a: \"*\", \"*\": ~}"), JSON_TYPE, "{\"a\":1,\"b\":1}", false);
	check(ALLOW("json: {a: \"*\", \"*\": ~}"), JSON_TYPE, "[]", false);
	check(ALLOW("json: {\"*\": ~}"), JSON_TYPE, "{\"b\":1}", false);
	check(ALLOW("json: {\"*\": ~}"), JSON_TYPE, "{}", true);
}

static void test_denied_json(void **state)
{
	static const char policy[] =
	        DENY("json: {method: \"tools/*\", n: [7, {min: 100}], flag: true}");
	static const char *const fine[] = {"{}", "{\"method\":\"tools/call\"}",
	        "{\"method\":\"tools/call\",\"n\":7,\"flag\":false}",
	        "{\"method\":\"x\",\"n\":7,\"flag\":true}",
	        "{\"method\":\"tools/call\",\"n\":8,\"flag\":true}", NULL};
	static const char *const denied[] = {"{\"method\":\"tools/call\",\"n\":7,\"flag\":true}",
	        "{\"METHOD\":\"TOOLS/CALL\",\"N\":\"7\",\"Flag\":1}",
	        "{\"me-thod\":[\"tools/x\"],\"n\":[1,[7.0]],\"flag\":\"yes\"}",
	        "[{\"method\":\" tools/x\",\"n\":1e2,\"flag\":\"True\"}]",
	        "{\"method\":\"tools/x\",\"n\":99999999999999999999,\"flag\":true}",
	        "{\"method\":\"tools/x\",\"n\":7,\"flag\":true,\"flag\":false}",
	        "{\"method\":\"x\",\"n\":1,\"flag\":false", "x", "", NULL};

	(void)state;
	check_all(policy, JSON_TYPE, fine, true);
	check_all(policy, JSON_TYPE, denied, false);
	check(policy, "", NULL, true);
	check(DENY("json: {token: ~}"), JSON_TYPE, "{}", false);
	check(DENY("json: {token: ~}"), JSON_TYPE, "{\"Token\":1}", false);
	check(DENY("json: {token: ~}"), JSON_TYPE, "{\"token\":1}", true);
	check(DENY("json: {token: ~}"), JSON_TYPE, "\"token\"", false);
	check(DENY("json: {token: ~}"), "", NULL, false);
	check(DENY("json: {x: \"*\"}"), JSON_TYPE, "{\"x\":{}}", false);
	check(DENY("json: {flag: false}"), JSON_TYPE, "{\"flag\":\"\"}", false);
	check(DENY("json: {flag: false}"), JSON_TYPE, "{\"flag\":null}", false);
	check(DENY("json: {flag: false}"), JSON_TYPE, "{\"flag\":\"x\"}", true);
}

#define CALL(name, path)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" name \
	"\",\"arguments\":{\"path\":\"" path "\"}}}"

static void test_jsonrpc(void **state)
{
	static const char policy[] =
	        ALLOW("jsonrpc: {methods: [tools/call, \"n/*\"], params: {name: "
	              "[search, \"fs_*\"], /arguments/path: \"/data/*\", x: ~}}");
	static const char *const good[] = {CALL("search", "/data/x"), CALL("fs_read", "/data/"),
	        "[" CALL("search", "/data/x") "]",
	        "[" CALL("search", "/data/x") "," CALL("fs_", "/data/y") "]", NULL};
	static const char *const bad[] = {CALL("delete", "/data/x"), CALL("search", "/etc/x"),
	        CALL("Search", "/data/x"), "[]", "{}", "[[" CALL("search", "/data/x") "]]",
	        "[" CALL("search", "/data/x") "," CALL("delete", "/data/x") "]",
	        "[" CALL("search", "/data/x") ",{}]", "[" CALL("search", "/data/x") ",1]",
	        "[" CALL("search", "/data/x") ",{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]",
	        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":[\"search\"]}",
	        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\"}",
	        "{\"jsonrpc\":\"1.0\",\"method\":\"n/"
	        "x\",\"params\":{\"name\":\"search\",\"arguments\":{\"path\":\"/data/\"}}}",
	        "{\"method\":\"n/x\",\"params\":{\"name\":\"search\",\"arguments\":{\"path\":\"/"
	        "data/\"}}}",
	        "{\"jsonrpc\":\"2.0\",\"Method\":\"x\",\"method\":\"n/"
	        "x\",\"params\":{\"name\":\"search\",\"arguments\":{\"path\":\"/data/\"}}}",
	        "{\"jsonrpc\":\"2.0\",\"method\":\"n/"
	        "x\",\"params\":{\"name\":\"search\",\"Name\":\"x\",\"arguments\":{\"path\":\"/"
	        "data/\"}}}",
	        "{\"jsonrpc\":\"2.0\",\"method\":\"n/"
	        "x\",\"params\":{\"name\":\"search\",\"x\":1,\"arguments\":{\"path\":\"/data/\"}}}",
	        "{\"jsonrpc\":\"2.0\",\"method\":\"n/"
	        "x\",\"params\":{\"name\":\"search\",\"arguments\":[{\"path\":\"/data/\"}]}}",
	        CALL("search", "/data/x") CALL("search", "/data/x"), NULL};
	static const char deny[] =
	        DENY("jsonrpc: {methods: tools/call, params: {name: \"delete*\"}}");
	static const char *const denied[] = {CALL("delete", "x"),
	        "[" CALL("a", "x") "," CALL("Delete_all", "x") "]",
	        "{\"method\":\"tools/call\",\"params\":{\"name\":\"delete\"}}",
	        "{\"METHOD\":\"TOOLS/CALL\",\"Params\":[{\"name\":\"delete\"}]}",
	        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/"
	        "call\",\"params\":{\"name\":\"x\",\"name\":\"y\"}}",
	        "x", NULL};

	(void)state;
	check_all(policy, JSON_TYPE, good, true);
	check_all(policy, JSON_TYPE, bad, false);
	check(policy, "", NULL, false);
	check(policy, "Content-Type: text/plain\n", CALL("search", "/data/x"), false);
	check_all(deny, JSON_TYPE, denied, false);
	check(deny, JSON_TYPE, CALL("search", "delete"), true);
	check(deny, JSON_TYPE, "{\"method\":\"tools/list\",\"params\":{\"name\":\"delete\"}}",
	        true);
	check(deny, "", NULL, true);
}

static void test_forms(void **state)
{
	static const char policy[] = ALLOW("form: {page: [\"1\", \"2*\"], debug: ~, \"*\": ~}");
	static const char *const good[] = {"page=1", "page=22", "&page=%31&", "p%61ge=2+x", NULL};
	static const char *const bad[] = {"", "page=3", "page=1&page=1", "page=1&x=1", "PAGE=1",
	        "page=1&debug", "page[]=1", "page=1;x=1", "page=1\r\n", "page=1 ", " page=1",
	        "page=1&x=%", "page=%00", "page=1%zz", "page=1\n&", "{\"page\":\"1\"}",
	        "page=1&\xc3\xa9=1", NULL};
	static const char deny[] = DENY("form: {grant: \"pass*\"}");
	static const char *const denied[] = {"grant=password", "a=1&GRANT=Password", "grant[]=pass",
	        "grant=1&grant=pass", "grant=%2570ass", "x=%", "x=1;y=2", "x=a b", "\xff", NULL};
	char *large = malloc(POLICY_QUERY_MAX + 16);

	(void)state;
	check_all(policy, FORM_TYPE, good, true);
	check_all(policy, FORM_TYPE, bad, false);
	check(policy, "", NULL, false);
	check(policy, JSON_TYPE, "{}", false);
	check(ALLOW("form: {debug: ~}"), "", NULL, true);
	check_all(deny, FORM_TYPE, denied, false);
	check(deny, FORM_TYPE, "grant=code&x=1", true);
	check(deny, "", NULL, true);
	check(deny, JSON_TYPE, "{}", false);
	memset(large, 'x', POLICY_QUERY_MAX + 1);
	memcpy(large + POLICY_QUERY_MAX + 1, "&page=1", 8);
	check(ALLOW("form: {page: \"1\"}"), FORM_TYPE, large, false);
	check(ALLOW("form: {page: \"1\"}"), FORM_TYPE, large + 1, true);
	check(deny, FORM_TYPE, large, false);
	check(deny, FORM_TYPE, large + 1, true);
	free(large);
}

static bool needs_body(const char *rules, const char *method, const char *path)
{
	struct policy_body body = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = slice_from_string(method),
	        .path = slice_from_string(path),
	        .body = &body};
	struct policy_decision d;
	struct test_policy t;

	test_load(&t, rules, false);
	policy_decide(&t.policy, &request, &d);
	if (d.needs_body)
		assert_int_equal(d.verdict, POLICY_DENY);
	test_unload(&t);
	test_load(&t, rules, true); /* what would be refused has to be known there too */
	request.body = &body;
	policy_decide(&t.policy, &request, &d);
	test_unload(&t);
	return d.needs_body;
}

#define RULES(allow, deny) "vethguard: 1\nallow: [" allow "]\ndeny: [" deny "]\n"

/* The body is asked for only if it can change the verdict. */
static void test_what_needs_the_body(void **state)
{
	static const char two[] = RULES("{name: a, to: a.example, methods: [POST], json: {x: y}}, "
	                                "{name: b, to: a.example, paths: [/up/**]}",
	        "");
	static const char deny[] = RULES("{name: a, to: a.example, paths: [/a]}",
	        "{name: d, to: a.example, json: {x: y}}, {name: e, to: a.example, paths: [/a/b]}");

	(void)state;
	assert_true(needs_body(two, "POST", "/x"));
	assert_false(needs_body(two, "PUT", "/x"));
	assert_false(needs_body(two, "POST", "/up/x"));
	assert_true(needs_body(deny, "POST", "/a"));
	assert_false(needs_body(deny, "POST", "/other"));
	assert_false(needs_body(deny, "POST", "/a/b"));
	assert_false(needs_body(
	        RULES("{to: a.example, headers: {x: y}, json: {x: y}}", ""), "POST", "/a"));
	assert_false(needs_body(RULES("{to: a.example, headers: {x: y}}", ""), "POST", "/a"));
	assert_true(needs_body(
	        RULES("{name: w, to: \"*.example\"}, {name: n, to: a.example, json: {x: y}}", ""),
	        "POST", "/a"));
	assert_false(needs_body(
	        RULES("{name: w, to: \"*.example\", json: {x: y}}, {name: n, to: a.example}", ""),
	        "POST", "/a"));
}

/* 16 conditions of a rule and 64 values of one are read and judged; one more is refused. */
static bool loads(size_t conditions, size_t values, const char *body, bool *allowed)
{
	struct test_policy t = {.image = NULL};
	char *text = malloc(100000),
	     *p = text + sprintf(text, "vethguard: 1\nallow:\n  - to: a.example\n    json:\n");
	struct policy_reader reader = {text, test_read, NULL};
	bool good;

	for (size_t i = 0; i < conditions; i++) {
		p += sprintf(p, "      key%zu: [", i);
		for (size_t k = 0; k < values; k++)
			p += sprintf(p, "%sv%zu", k ? ", " : "", k);
		p += sprintf(p, "]\n");
	}
	good = policy_load(&reader, "/test.yaml", NULL, &t.image, &t.size, &t.diags) == 0;
	if (good && body) {
		assert_int_equal(policy_open(&t.policy, t.image, t.size), 0);
		*allowed = decide_text(&t.policy, JSON_TYPE, slice_from_string(body)).verdict ==
		           POLICY_ALLOW;
	}
	free(t.image);
	free(text);
	return good;
}

static void test_bounds(void **state)
{
	char body[1024], *p = body + sprintf(body, "{\"x\":1");
	bool allowed = false;

	(void)state;
	for (size_t i = 0; i < MODEL_CONDITIONS_MAX; i++)
		p += sprintf(p, ",\"key%zu\":\"v%d\"", i, MODEL_VALUES_MAX - 1);
	sprintf(p, "}");
	assert_true(loads(MODEL_CONDITIONS_MAX, MODEL_VALUES_MAX, body, &allowed));
	assert_true(allowed);
	p[-2] = 'x';
	assert_true(loads(MODEL_CONDITIONS_MAX, MODEL_VALUES_MAX, body, &allowed));
	assert_false(allowed);
	assert_false(loads(MODEL_CONDITIONS_MAX + 1, 1, NULL, NULL));
	assert_false(loads(1, MODEL_VALUES_MAX + 1, NULL, NULL));
}

static void test_inspect(void **state)
{
	struct test_policy t;

	(void)state;
	test_load(&t, ALLOW("json: {x: y}"), false);
	assert_int_equal(policy_inspect(&t.policy), POLICY_INSPECT_DEFAULT);
	test_unload(&t);
	test_load(&t, "vethguard: 1\ninspect: 64KiB\n", false);
	assert_int_equal(policy_inspect(&t.policy), 65536);
	test_unload(&t);
	test_load(&t, "vethguard: 1\ninspect: 16MiB\n", false);
	assert_int_equal(policy_inspect(&t.policy), POLICY_INSPECT_MAX);
	test_unload(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_allowed_json),
	        cmocka_unit_test(test_types),
	        cmocka_unit_test(test_paths),
	        cmocka_unit_test(test_denied_json),
	        cmocka_unit_test(test_jsonrpc),
	        cmocka_unit_test(test_forms),
	        cmocka_unit_test(test_what_needs_the_body),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_inspect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
