/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on GraphQL requests: by POST, in batches, by GET and by hash. Requests that a server
 * could take for another document than vethguard does are denied. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "body_test.h"
#include "policy/load/model.h"

#define HASH "ab12"

static const char queries[] =
        ALLOW("graphql: {operations: [query], fields: [viewer, \"repo*\"], persisted: " HASH "}");

static void test_documents(void **state)
{
	static const char *const good[] = {"{'query':'{viewer{login}}'}",
	        "{'query':'query Q($a:Int){x:repository(id:$a){y} __typename}','variables':{'a':1},"
	        "'operationName':'Q'}",
	        "{'query':'{...F} fragment F on Query {repos}','extensions':{}}",
	        "[{'query':'{viewer}'},{'query':'{repos}'}]",
	        "{'extensions':{'persistedQuery':{'version':1,'sha256Hash':'" HASH "'}}}",
	        "{'query':'{viewer}','extensions':{'persistedQuery':{'sha256Hash':'" HASH "'}}}",
	        "{'query':null,'documentId':'" HASH "'}", "{'query':'{viewer}','extensions':null}",
	        NULL};
	static const char *const bad[] = {"{'query':'mutation{viewer}'}", "{'query':'{users}'}",
	        "{'query':'{viewer users}'}", "{'query':'{viewer:users}'}",
	        "{'query':'{...F} fragment F on Query {users}'}", "{'query':'{...{users}}'}",
	        "{'query':'query A {viewer} mutation B {viewer}','operationName':'A'}",
	        "{'query':'subscription{viewer}'}", "{'query':'{__schema{types{name}}}'}",
	        "{'query':'{Viewer}'}", "{'query':''}", "{'query':'{'}", "{'query':1}", "{}", "[]",
	        "[{'query':'{viewer}'},{'query':'{users}'}]", "[{'query':'{viewer}'},{}]",
	        "[['query']]", "[1]", "{'query':'{viewer}','Query':'{users}'}",
	        "{'query':'{viewer}','query':'{users}'}", "{'query':['{viewer}']}",
	        "{'documentId':'other'}", "{'query':'{viewer}','documentId':'other'}",
	        "{'query':'{viewer}','id':7}", "{'query':'{viewer}','doc_id':'x'}",
	        "{'query':'{viewer}','extensions':{'persistedQuery':{'sha256Hash':'x'}}}",
	        "{'query':'{viewer}','extensions':{'persistedQuery':{}}}",
	        "{'query':'{viewer}','extensions':{'persistedQuery':1}}",
	        "{'query':'{viewer}','extensions':[]}",
	        "{'query':'{viewer}','Extensions':{'persistedQuery':{'sha256Hash':'x'}}}", "x", "",
	        NULL};

	(void)state;
	body_test_all((struct body_test){.policy = queries, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = queries, .lines = JSON_TYPE}, bad, false);
	body_test_all((struct body_test){.policy = queries, .lines = JSON_TYPE, .method = "PUT"},
	        good, false);
	body_test_all((struct body_test){.policy = queries,
	                      .lines = "Content-Type: application/graphql\n"},
	        good, false);
	body_test_all(
	        (struct body_test){
	                .policy = queries, .lines = JSON_TYPE, .query = "x=1&operationName=Q"},
	        good, true);
}

/* Some servers read parameters of the URL in addition to the body. */
static void test_parameters_of_a_post(void **state)
{
	static const char *const bad[] = {"query=%7Bviewer%7D", "QUERY=x", "query[]=x",
	        "x=1;query=y", "id=5", "extensions=%7B%7D", "documentId=" HASH, "qu%65ry=x",
	        "x=%zz", NULL};

	(void)state;
	for (size_t i = 0; bad[i]; i++)
		body_test_check(&(struct body_test){.policy = queries,
		                        .lines = JSON_TYPE,
		                        .query = bad[i],
		                        .text = "{'query':'{viewer}'}"},
		        false);
}

static void test_urls(void **state)
{
	static const char *const good[] = {"query=%7Bviewer%7D", "query={viewer}&variables=%7B%7D",
	        "query=query+A+{viewer}&operationName=A&x=y", "documentId=" HASH,
	        "extensions={\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"" HASH "\"}}",
	        "extensions={\"persistedQuery\":+{\"sha256Hash\":\"" HASH "\",\"version\":1}+}",
	        NULL};
	static const char *const bad[] = {"", "x=y", "query=", "query=mutation{viewer}",
	        "query={users}", "query={viewer}&query={viewer}", "Query={viewer}",
	        "query={viewer}&query[]={users}", "query={viewer}&id=x", "query={viewer};x=1",
	        "query=%7Bviewer%7", "query={viewer}%00", "documentId=x", "documentid=" HASH,
	        "extensions={\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"x\"}}",
	        "extensions={\"persistedQuery\":{\"sha256Hash\":\"" HASH
	        "\",\"sha256Hash\":\"x\"}}",
	        "extensions={\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"" HASH
	        "\"},\"persistedQuery\":{}}",
	        "extensions={}", "query={viewer}&extensions={}", "extensions=" HASH, NULL};
	char large[POLICY_QUERY_MAX + 64];

	(void)state;
	for (size_t i = 0; good[i]; i++)
		body_test_check(
		        &(struct body_test){.policy = queries, .method = "GET", .query = good[i]},
		        true);
	for (size_t i = 0; good[i]; i++)
		body_test_check(
		        &(struct body_test){.policy = queries, .method = "POST", .query = good[i]},
		        false);
	for (size_t i = 0; bad[i]; i++)
		body_test_check(
		        &(struct body_test){.policy = queries, .method = "GET", .query = bad[i]},
		        false);
	memset(large, 'x', sizeof(large));
	memcpy(large, "query={viewer}&x=", 17);
	large[POLICY_QUERY_MAX] = '\0';
	body_test_check(
	        &(struct body_test){.policy = queries, .method = "GET", .query = large}, true);
	large[POLICY_QUERY_MAX] = 'x';
	large[POLICY_QUERY_MAX + 1] = '\0';
	body_test_check(
	        &(struct body_test){.policy = queries, .method = "GET", .query = large}, false);
}

static void test_parts(void **state)
{
	static const char hashes[] = ALLOW("graphql: {persisted: [\"ab*\"]}");
	static const char any[] = ALLOW("graphql: {operations: [query, mutation]}");
	static const char fields[] = ALLOW("graphql: {fields: addStar}");

	(void)state;
	body_test_check(
	        &(struct body_test){.policy = hashes, .lines = JSON_TYPE, .text = "{'id':'ab'}"},
	        true);
	body_test_check(
	        &(struct body_test){
	                .policy = hashes, .lines = JSON_TYPE, .text = "{'query':'{a}','id':'ab'}"},
	        false);
	body_test_check(
	        &(struct body_test){
	                .policy = any, .lines = JSON_TYPE, .text = "{'query':'mutation{x}'}"},
	        true);
	body_test_check(
	        &(struct body_test){
	                .policy = any, .lines = JSON_TYPE, .text = "{'query':'subscription{x}'}"},
	        false);
	body_test_check(
	        &(struct body_test){.policy = any, .method = "GET", .query = "query=mutation{x}"},
	        false);
	body_test_check(&(struct body_test){.policy = fields,
	                        .lines = JSON_TYPE,
	                        .text = "{'query':'mutation{addStar}'}"},
	        true);
	body_test_check(&(struct body_test){.policy = fields,
	                        .lines = JSON_TYPE,
	                        .text = "{'query':'mutation{removeStar}'}"},
	        false);
}

static void test_denied(void **state)
{
	static const char policy[] = DENY("graphql: {operations: mutation, fields: \"delete*\"}");
	static const char *const bad[] = {"{'query':'mutation{deleteRef}'}",
	        "{'query':'mutation{x:DELETERef}'}",
	        "{'query':'mutation A{a} mutation B{deleteRef}'}",
	        "[{'query':'{a}'},{'query':'mutation{...F} fragment F on M{deleteRef}'}]",
	        "{'query':'{'}", "{'query':1}", "{}", "{'id':'x'}", "{'query':'{a}','hash':'x'}",
	        "x", NULL};
	static const char *const good[] = {
	        "{'query':'{deleteRef}'}", "{'query':'mutation{addStar}'}", "[]", NULL};
	static const char all[] = DENY("graphql: {operations: [mutation, subscription]}");
	static const char kept[] = DENY("graphql: {persisted: \"ab*\"}");

	(void)state;
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, bad, false);
	body_test_all((struct body_test){.policy = policy, .lines = JSON_TYPE}, good, true);
	body_test_all((struct body_test){.policy = policy, .lines = "Content-Type: text/plain\n"},
	        good, false);
	body_test_check(&(struct body_test){.policy = policy}, true);
	body_test_check(&(struct body_test){.policy = policy,
	                        .lines = JSON_TYPE,
	                        .query = "query=mutation{deleteRef}",
	                        .text = "{'query':'{a}'}"},
	        false);
	body_test_check(
	        &(struct body_test){.policy = all, .method = "GET", .query = "query=mutation{a}"},
	        false);
	body_test_check(
	        &(struct body_test){.policy = all, .method = "GET", .query = "query={a}"}, true);
	body_test_check(
	        &(struct body_test){.policy = kept, .lines = JSON_TYPE, .text = "{'id':'ABc'}"},
	        false);
	body_test_check(
	        &(struct body_test){.policy = kept, .lines = JSON_TYPE, .text = "{'id':'c'}"},
	        true);
	body_test_check(
	        &(struct body_test){.policy = kept, .lines = JSON_TYPE, .text = "{'query':'{a}'}"},
	        true);
}

static void test_messages(void **state)
{
	struct policy_decision d;

	(void)state;
	d = body_test_decide(&(struct body_test){
	        .policy = DENY("graphql: {operations: mutation}"), .method = "GET"});
	assert_true(d.verdict == POLICY_ALLOW && d.needs_messages && !d.lists_tools);
	d = body_test_decide(
	        &(struct body_test){.policy = DENY("mcp: {tools: x}"), .method = "GET"});
	assert_true(d.needs_messages && d.lists_tools);
	d = body_test_decide(&(struct body_test){
	        .policy = DENY("paths: [/a], graphql: {operations: mutation}"), .method = "GET"});
	assert_false(d.needs_messages);
	d = body_test_decide(&(struct body_test){
	        .policy = DENY("methods: [POST], graphql: {operations: mutation}"),
	        .method = "GET"});
	assert_true(d.needs_messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_documents),
	        cmocka_unit_test(test_parameters_of_a_post),
	        cmocka_unit_test(test_urls),
	        cmocka_unit_test(test_parts),
	        cmocka_unit_test(test_denied),
	        cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
