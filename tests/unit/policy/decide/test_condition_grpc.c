/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on calls of gRPC and gRPC-Web: paths, content types, and what deny rules find. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"

#define TYPE "Content-Type: application/grpc\n"
#define CALL "/pkg.v1.Service/Get"

static const char rules[] =
        ALLOW("grpc: {services: [pkg.v1.Service, \"open.*\"], methods: [Get, \"List*\"]}");

static void check(const char *policy, const char *method, const char *path, const char *query,
        const char *lines, bool allowed)
{
	body_test_check(&(struct body_test){.policy = policy,
	                        .method = method,
	                        .path = path,
	                        .query = query,
	                        .lines = lines},
	        allowed);
}

static void test_paths(void **state)
{
	static const char *const good[] = {
	        CALL, "/pkg.v1.Service/ListAll", "/open.A/Get", "/open.a.B/List", NULL};
	static const char *const bad[] = {"/pkg.v1.Service/Delete", "/pkg.v1.Service/get",
	        "/pkg.v1.service/Get", "/pkg.v2.Service/Get", "/pkg.v1.Service/Get/",
	        "/pkg.v1.Service/", "/pkg.v1.Service", "/", "//Get", "/pkg.v1.Service//Get",
	        "/x/pkg.v1.Service/Get", "/open.a%2FB/Get", "/open.A;x/Get", "/open.A/List:x",
	        "/open.A/List%20", NULL};

	(void)state;
	for (size_t i = 0; good[i]; i++)
		check(rules, "POST", good[i], NULL, TYPE, true);
	for (size_t i = 0; bad[i]; i++)
		check(rules, "POST", bad[i], NULL, TYPE, false);
	check(rules, "GET", CALL, NULL, TYPE, false);
	check(rules, "PUT", CALL, NULL, TYPE, false);
	check(rules, "POST", CALL, "x", TYPE, false);
	check(ALLOW("grpc: {services: pkg.v1.Service}"), "POST", "/pkg.v1.Service/Delete", NULL,
	        TYPE, true);
}

static void test_types(void **state)
{
	static const char *const good[] = {"application/grpc", "application/grpc+proto",
	        "Application/gRPC", "application/grpc+json", "application/grpc-web",
	        "application/grpc-web+proto", "application/grpc-web-text",
	        "application/grpc-web-text+proto", NULL};
	static const char *const bad[] = {"application/json", "application/proto",
	        "application/connect+proto", "application/grpcx", "application/grpc-",
	        "application/grpc-web-", "application/grpc-webtext", "application/grpc+",
	        "application/grpc+a/b", "application/grpc, application/json",
	        "application/grpc; charset=utf-8", "text/application/grpc", "", NULL};
	char lines[256];

	(void)state;
	for (size_t i = 0; good[i]; i++) {
		snprintf(lines, sizeof(lines), "Content-Type: %s\n", good[i]);
		check(rules, "POST", CALL, NULL, lines, true);
	}
	for (size_t i = 0; bad[i]; i++) {
		snprintf(lines, sizeof(lines), "Content-Type: %s\n", bad[i]);
		check(rules, "POST", CALL, NULL, lines, false);
	}
	check(rules, "POST", CALL, NULL, "X: y\n", false);
	check(rules, "POST", CALL, NULL, TYPE TYPE, false);
	check(rules, "POST", CALL, NULL, TYPE "Content-Type: application/json\n", false);
	check(rules, "POST", CALL, NULL, TYPE "content_type: application/json\n", false);
}

/* A body that is not there yet makes no difference. */
static void test_no_body_is_read(void **state)
{
	const struct policy_fields fields = {TYPE, body_test_line};
	const struct policy_body unread = {.state = POLICY_BODY_UNREAD};
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.example"),
	        .port = 443,
	        .method = SLICE("POST"),
	        .path = SLICE(CALL),
	        .fields = &fields,
	        .body = &unread};
	struct policy_decision d;
	struct test_policy t;

	(void)state;
	test_load(&t, rules, false);
	policy_decide(&t.policy, &request, &d);
	assert_int_equal(d.verdict, POLICY_ALLOW);
	assert_false(d.needs_body);
	request.path = SLICE("/pkg.v1.Service/Delete");
	policy_decide(&t.policy, &request, &d);
	assert_int_equal(d.verdict, POLICY_DENY);
	assert_false(d.needs_body);
	test_unload(&t);
}

static void test_denied(void **state)
{
	static const char denies[] = DENY("grpc: {services: \"pkg.*\", methods: \"Delete*\"}");
	static const char *const denied[] = {"/pkg.v1.Service/Delete", "/pkg.v1.Service/DeleteAll",
	        "/PKG.v1.service/delete", "/x/pkg.v1.Service/Delete", "//pkg.v1.Service//Delete",
	        "/pkg.v1.Service/Delete/", "/pkg.v1.Service%2FDelete", "/pkg.v1.Service/Delete;x",
	        "/pkg.v1.Service/%2564elete", NULL};
	static const char *const others[] = {CALL, "/other.Service/Delete", "/Delete", "/", NULL};

	(void)state;
	for (size_t i = 0; denied[i]; i++) {
		check(denies, "POST", denied[i], NULL, TYPE, false);
		check(denies, "POST", denied[i], NULL, "Content-Type: application/json\n", false);
		check(denies, "GET", denied[i], "x", "X: y\n", false);
	}
	for (size_t i = 0; others[i]; i++)
		check(denies, "POST", others[i], NULL, TYPE, true);
	check(DENY("grpc: {methods: Delete}"), "POST", "/a.B/Delete", NULL, TYPE, false);
	check(DENY("grpc: {services: a.B}"), "POST", "/a.B/Get", NULL, TYPE, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_paths),
	        cmocka_unit_test(test_types),
	        cmocka_unit_test(test_no_body_is_read),
	        cmocka_unit_test(test_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
