/* SPDX-License-Identifier: Apache-2.0 */
/* The control API: every way to be refused before anything is done. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "control_fixture.h"

static void test_no_route(void **state)
{
	(void)state;
	refused(404, "GET", "/", "", "there is no /");
	refused(404, "GET", "/v1/sandboxes/", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/a/b", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/..", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/%6fne", "", "there is no");
	refused(404, "GET", "/v1/sandboxes/one/envs", "", "there is no");
	refused(404, "GET", "/v1/sandboxes//env", "", "there is no");
	refused(404, "GET", "/v1/sandboxes?all", "", "it takes no query");
	refused(405, "PUT", "/v1/sandboxes", "", "Allow: GET, POST\r\n");
	refused(405, "POST", "/v1/status", "", "Allow: GET\r\n");
	refused(405, "get", "/v1/status", "", "Allow: GET\r\n");
	refused(405, "GET", "/v1/sandboxes/one/pause", "", "Allow: POST\r\n");
	assert_int_equal(f.told, 12); /* told as well, with what was asked for */
	assert_int_equal(f.status, 405);
	assert_string_equal(f.operation, "");
	assert_string_equal(f.target, "GET /v1/sandboxes/one/pause");
}

static void test_no_json(void **state)
{
	int fd = dial();
	char deep[8192] = "{\"labels\":";

	(void)state;
	say(fd, "POST", "/v1/sandboxes", "application/x-www-form-urlencoded", "{}");
	assert_int_equal(hear(fd), 415);
	json_decref(json_answer());
	refused(400, "POST", "/v1/sandboxes", "{", "line 1, column 1");
	refused(400, "POST", "/v1/sandboxes", "[]", "has to be a JSON object");
	refused(400, "POST", "/v1/sandboxes", "{} {}", "not JSON");
	refused(400, "POST", "/v1/sandboxes", "{\"a\":1,\"a\":2}", "not JSON");
	refused(400, "POST", "/v1/sandboxes", "{\"name\":\"\\u0000\"}", "not JSON");
	refused(400, "POST", "/v1/sandboxes", "{\"name\":\"\xff\"}", "not JSON");
	memset(deep + 10, '[', sizeof(deep) - 11);
	refused(400, "POST", "/v1/sandboxes", deep, "not JSON");
	refused(400, "DELETE", "/v1/sandboxes/one", "{}", "takes no body");
}

#define WITH(members) "{\"policy\":\"/p\",\"pid\":1," members "}"

static void test_wrong_members(void **state)
{
	(void)state;
	refused(422, "POST", "/v1/sandboxes", "", "no body");
	refused(422, "POST", "/v1/sandboxes", WITH("\"obsrve\":true"),
	        "did you mean \\\"observe\\\"?");
	refused(422, "POST", "/v1/sandboxes", WITH("\"zzz\":1"), "zzz: there is no such member");
	refused(422, "POST", "/v1/sandboxes", WITH("\"a\\u001b[2J\":1"), "\\\\x1b");
	refused(422, "POST", "/v1/sandboxes", WITH("\"name\":1"), "name: has to be a string");
	refused(422, "POST", "/v1/sandboxes", WITH("\"observe\":\"yes\""), "true or false");
	refused(422, "POST", "/v1/sandboxes", WITH("\"ttl_s\":1.5"), "a whole number");
	refused(422, "POST", "/v1/sandboxes", WITH("\"ttl_s\":0"), "out of range");
	refused(422, "POST", "/v1/sandboxes", WITH("\"ttl_s\":31622401"), "out of range");
	refused(422, "POST", "/v1/sandboxes", WITH("\"labels\":[]"), "an object");
	refused(422, "POST", "/v1/sandboxes", WITH("\"labels\":{\"a\":1}"), "labels.a: ");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"x\"]"), "'x' is not an IP");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[1]"), "is not an IP");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1/33\"]"),
	        "not a possible prefix");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1/0\"]"),
	        "not a possible prefix");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1/\"]"),
	        "not a possible prefix");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"fd00::1/129\"]"),
	        "not a possible prefix");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"/16\"]"), "is not an IP");
	refused(422, "POST", "/v1/sandboxes", WITH("\"addresses\":[\"1.1.1.1\",\"1.1.1.2\"]"),
	        "at most one");
	refused(422, "POST", "/v1/sandboxes", WITH("\"container\":{\"nme\":\"x\"}"),
	        "container.nme");
	refused(422, "POST", "/v1/sandboxes", WITH("\"interface\":\"e\",\"netns\":\"/n\""),
	        "too many: one of");
	refused(422, "POST", "/v1/sandboxes", WITH("\"interface\":\"e\""), "too many: one of");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"/p\"}", "none given: one of");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"/p\",\"netns\":\"n\"}", "absolute");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"p\",\"pid\":1}", "policy: ");
	refused(422, "POST", "/v1/sandboxes", "{\"pid\":1}", "policy: ");
	refused(422, "POST", "/v1/sandboxes", "{\"policy\":\"/p\",\"pid\":0}", "out of range");
	refused(422, "POST", "/v1/sandboxes",
	        "{\"policy\":\"/p\",\"interface\":\"e\",\"files\":true}", "files: ");
	refused(422, "POST", "/v1/sandboxes",
	        "{\"policy\":\"/p\",\"interface\":\"e\",\"start_time\":1}", "need a pid");
	refused(422, "POST", "/v1/sandboxes/one/reload", "{\"policy\":\"p\"}", "absolute");
	refused(422, "POST", "/v1/sandboxes/one/pause", "{\"resaon\":\"x\"}", "did you mean");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{}", "is to end is needed");
	refused(422, "POST", "/v1/sandboxes/one/follow", "", "is to end is needed");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{\"pid\":0}", "out of range");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{\"pid\":\"7\"}", "a whole number");
	refused(422, "POST", "/v1/sandboxes/one/follow", "{\"pdi\":7}", "did you mean");
	refused(422, "POST", "/v1/sandboxes/one/resume", "{\"x\":1}", "takes no members");
	refused(422, "POST", "/v1/reload", "{\"x\":1}", "takes no members");
	assert_string_equal(f.operation, "reload"); /* refusals of changes are told too */
	assert_int_equal(f.status, 422);
	assert_string_equal(f.detail, "this request takes no members");
}

static void test_many_pairs(void **state)
{
	char body[8192], *at = body;

	(void)state;
	at += sprintf(at, "{\"policy\":\"/p\",\"pid\":1,\"labels\":{");
	for (int i = 0; i < ATTACH_LABELS_MAX; i++)
		at += sprintf(at, "%s\"k%d\":\"v\"", i ? "," : "", i);
	strcpy(at, "}}");
	assert_int_equal(call("POST", "/v1/sandboxes", body), 201);
	all.asked[0] = '\0';
	strcpy(at, ",\"one\":\"more\"}}");
	refused(422, "POST", "/v1/sandboxes", body, "labels: more than 32");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_no_route),
	        CASE(test_no_json),
	        CASE(test_wrong_members),
	        CASE(test_many_pairs),
	};

	log_open("test_control_bodies", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
