/* SPDX-License-Identifier: Apache-2.0 */
/* The control API: namespaces that are prepared, claimed and released. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "control_fixture.h"

static struct message_summary summary;

static void test_prepared(void **state)
{
	const struct attach_traces clean = {false, false, false, false};
	struct attach_traces left = clean;
	json_t *list;

	(void)state;
	assert_int_equal(call("POST", "/v1/prepared",
	                         "{\"name\":\"r-1\",\"netns\":\"/n\",\"addresses\":\"same\"}"),
	        201);
	assert_string_equal(all.asked, "prepare r-1 1 /n - like - 1 0 0 0 0");
	assert_string_equal(f.operation, "prepared.add");
	assert_non_null(strstr(answer, "\"addresses\":\"own\",\"gate4\":\"10.1.2.1\""));
	assert_int_equal(
	        call("POST", "/v1/prepared", "{\"netns\":\"/n\",\"addresses\":\"own\"}"), 201);
	assert_string_equal(all.asked, "prepare - 1 /n - like - 0 0 0 0 0");
	assert_int_equal(
	        call("POST", "/v1/claim",
	                "{\"name\":\"a\",\"policy\":\"/p\",\"netns\":\"/n\",\"like\":\"b\","
	                "\"wait\":true,\"ttl_s\":9,\"labels\":{\"k\":\"v\"},"
	                "\"vars\":{\"x\":\"y\"}}"),
	        201);
	assert_string_equal(all.asked, "claim a 1 /n /p like b 0 1 9 1 1");
	assert_string_equal(f.operation, "sandboxes.claim");
	assert_int_equal(call("POST", "/v1/claim", "{\"policy\":\"/p\"}"), 201);
	assert_string_equal(all.asked, "claim - 1 - /p like - 0 0 0 0 0");
	all.answer.summary = &summary;
	all.answer.traces = &clean;
	asks("POST", "/v1/sandboxes/one/release", "{}", "release one");
	assert_non_null(strstr(answer, "\"summary\":{"));
	left.names = true;
	all.answer.traces = &left;
	assert_int_equal(call("POST", "/v1/sandboxes/one/release", ""), 500);
	assert_non_null(strstr(answer, "this is left of it: its synthetic names; do not"));
	/* Prepared namespaces are in a list of their own. */
	assert_int_equal(call("GET", "/v1/prepared", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "prepared")), 0);
	json_decref(list);
	all.prepared = true;
	assert_int_equal(call("GET", "/v1/prepared", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "prepared")), 2);
	json_decref(list);
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	list = json_answer();
	assert_int_equal(json_array_size(json_object_get(list, "sandboxes")), 0);
	json_decref(list);
}

static void test_wrong_members_of_claims(void **state)
{
	(void)state;
	refused(422, "POST", "/v1/prepared", "", "no body");
	refused(422, "POST", "/v1/prepared", "{}", "netns: ");
	refused(422, "POST", "/v1/prepared", "{\"netns\":\"n\"}", "absolute");
	refused(422, "POST", "/v1/prepared", "{\"netns\":\"/n\",\"addresses\":\"x\"}",
	        "addresses: ");
	refused(422, "POST", "/v1/prepared", "{\"netns\":\"/n\",\"policy\":\"/p\"}",
	        "no such member");
	refused(422, "POST", "/v1/claim", "", "no body");
	refused(422, "POST", "/v1/claim", "{}", "policy: ");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"p\"}", "absolute");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"netns\":\"n\"}", "absolute");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"name\":\"\"}", "name: is empty");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"wait\":1}", "true or false");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"ttl_s\":31622401}", "out of range");
	refused(422, "POST", "/v1/claim", "{\"policy\":\"/p\",\"pid\":1}", "no such member");
	refused(422, "POST", "/v1/sandboxes/one/release", "{\"x\":1}", "no members");
	refused(405, "GET", "/v1/claim", "", "POST");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_prepared),
	        CASE(test_wrong_members_of_claims),
	};

	log_open("test_control_prepared", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
