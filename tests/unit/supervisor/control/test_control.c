/* SPDX-License-Identifier: Apache-2.0 */
/* The control API: sandboxes and operations on them, with the answers to each. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "control_fixture.h"

static struct attach_env env;
static struct attach_stats stats;
static struct message_worker_stats worker_stats;
static struct message_summary summary;

static void test_attach(void **state)
{
	char expected[4096];

	(void)state;
	assert_int_equal(call("POST", "/v1/sandboxes",
	                         "{\"name\":\"n\",\"pid\":9,\"start_time\":8,\"addresses\":[\"10."
	                         "0.0.2\",\"fd00::2\"],\"policy\":\"/p\",\"observe\":true,"
	                         "\"labels\":{\"a\":\"b\"},\"vars\":{\"c\":\"d\"},\"ttl_s\":60,"
	                         "\"container\":{\"engine\":\"docker\",\"id\":\"i\",\"name\":null"
	                         "},\"interface\":null}"),
	        201);
	snprintf(expected, sizeof(expected),
	        "attach n 2 - - 9/8 10.0.0.2 fd00::2 /p 1 60 1:a=b 1:c=d docker/i/ %u/%u/%d",
	        getuid(), getgid(), getpid());
	assert_string_equal(all.asked, expected);
	assert_int_equal(f.told, 1);
	assert_string_equal(f.operation, "sandboxes.attach");
	assert_string_equal(f.sandbox, "one");
	assert_int_equal(f.status, 201);
	/* A namespace, and the process with which its sandbox ends. */
	assert_int_equal(call("POST", "/v1/sandboxes",
	                         "{\"netns\":\"/n\",\"pid\":9,\"start_time\":8,\"policy\":\"/p\"}"),
	        201);
	snprintf(expected, sizeof(expected), "attach - 1 - /n 9/8 - - /p 0 0 0:= 0:= // %u/%u/%d",
	        getuid(), getgid(), getpid());
	assert_string_equal(all.asked, expected);
}

static void test_sandbox_object(void **state)
{
	json_t *s, *part;

	(void)state;
	assert_int_equal(call("GET", "/v1/sandboxes/one", ""), 200);
	s = json_answer();
	assert_string_equal(json_string_value(json_object_get(s, "id")), "000000000000001f");
	assert_string_equal(json_string_value(json_object_get(s, "state")), "paused");
	assert_true(json_is_true(json_object_get(s, "paused")));
	assert_string_equal(
	        json_string_value(json_object_get(s, "created")), "2025-11-21T21:59:05.678Z");
	assert_true(json_is_null(json_object_get(s, "expires")));
	part = json_object_get(json_object_get(s, "attachment"), "container");
	assert_string_equal(json_string_value(json_object_get(part, "name")), "web \"x\"");
	part = json_object_get(s, "labels");
	assert_string_equal(json_string_value(json_object_get(part, "team")), "r\xc3\xa4t");
	part = json_object_get(s, "addresses");
	assert_string_equal(json_string_value(json_object_get(part, "gate4")), "10.1.2.1");
	assert_true(json_is_null(json_object_get(part, "sandbox6")));
	json_decref(s);
	assert_string_equal(f.operation, "sandboxes.get");
	assert_string_equal(f.sandbox, "one");
	assert_true(f.looks);
	assert_int_equal(call("GET", "/v1/sandboxes/two", ""), 404);
	json_decref(json_answer());
	assert_int_equal(f.told, 2); /* a refusal, too */
	assert_int_equal(f.status, 404);
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	s = json_answer();
	assert_int_equal(json_array_size(json_object_get(s, "sandboxes")), 2);
	json_decref(s);
}

/* A list that is too long for an answer leaves out labels, and no sandbox. */
static void test_a_long_list(void **state)
{
	json_t *list, *s;

	(void)state;
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	list = json_answer();
	assert_true(json_is_false(json_object_get(list, "brief")));
	json_decref(list);
	all.many = CONTROL_ANSWER_MAX / LABEL_BYTES + 10;
	assert_int_equal(call("GET", "/v1/sandboxes", ""), 200);
	list = json_answer();
	assert_true(json_is_true(json_object_get(list, "brief")));
	assert_int_equal(json_array_size(json_object_get(list, "sandboxes")), all.many);
	s = json_array_get(json_object_get(list, "sandboxes"), 0);
	assert_string_equal(json_string_value(json_object_get(s, "name")), "one");
	assert_true(json_is_null(json_object_get(s, "labels")));
	assert_true(json_is_null(json_object_get(json_object_get(s, "policy"), "path")));
	json_decref(list);
}

/* The process' own, not those that a database knows. */
static void test_groups(void **state)
{
	gid_t own[64];
	int count = getgroups(64, own);

	(void)state;
	assert_int_equal(call("POST", "/v1/sandboxes", "{\"pid\":9,\"policy\":\"/p\"}"), 201);
	assert_int_equal(all.group_count, count);
	for (int i = 0; i < count && i < 8; i++)
		assert_int_equal(all.groups[i], own[i]);
}

/* Files inside could not be written: the sandbox is guarded all the same, and the answer is 201. */
static void test_attached_without_files(void **state)
{
	json_t *s;

	(void)state;
	all.no_env = true;
	assert_int_equal(
	        call("POST", "/v1/sandboxes", "{\"pid\":9,\"policy\":\"/p\",\"files\":true}"), 201);
	s = json_answer();
	assert_int_equal(json_array_size(json_object_get(s, "files")), 0);
	assert_string_equal(json_string_value(json_array_get(json_object_get(s, "warnings"), 0)),
	        "credential \"key\": /none: No such file or directory");
	assert_string_equal(json_string_value(json_array_get(json_object_get(s, "warnings"), 1)),
	        "nothing was written into the sandbox: not just now");
	json_decref(s);
	assert_int_equal(f.status, 201);
}

static void test_operations(void **state)
{
	char reload[64];

	(void)state;
	all.answer.diff = "+ one\n- two\n";
	all.answer.env = &env;
	all.answer.stats = &stats;
	all.answer.summary = &summary;
	asks("DELETE", "/v1/sandboxes/one", "", "detach one");
	assert_string_equal(f.operation, "sandboxes.detach");
	assert_string_equal(f.target, "DELETE /v1/sandboxes/one");
	asks("GET", "/v1/sandboxes/one/env", "", "env one");
	asks("GET", "/v1/sandboxes/one/stats", "", "stats one");
	stats.worker = &worker_stats;
	asks("GET", "/v1/sandboxes/one/stats", "", "stats one");
	snprintf(reload, sizeof(reload), "reload one - %u", getuid());
	asks("POST", "/v1/sandboxes/one/reload", "", reload);
	assert_non_null(strstr(answer, "\"diff\":[\"+ one\",\"- two\"]"));
	snprintf(reload, sizeof(reload), "reload one /q %u", getuid());
	asks("POST", "/v1/sandboxes/one/reload", "{\"policy\":\"/q\"}", reload);
	asks("POST", "/v1/sandboxes/one/follow", "{\"pid\":7}", "follow one 7/0");
	asks("POST", "/v1/sandboxes/one/follow", "{\"pid\":7,\"start_time\":9}", "follow one 7/9");
	asks("POST", "/v1/sandboxes/one/pause", "{}", "pause one -");
	asks("POST", "/v1/sandboxes/one/pause", "{\"reason\":\"why\"}", "pause one why");
	asks("POST", "/v1/sandboxes/one/resume", "", "resume one");
	asks("POST", "/v1/reload", "", "reload all");
	assert_string_equal(f.operation, "reload");
	assert_string_equal(f.target, "POST /v1/reload");
	assert_false(f.looks);
	assert_int_equal(f.told, 12);
	all.asked[0] = '\0';
	asks("GET", "/v1/status", "", "");
}

static void test_failures(void **state)
{
	static const struct {
		enum attach_status status;
		unsigned expected;
	} cases[] = {{ATTACH_INVALID, 422}, {ATTACH_NOT_FOUND, 404}, {ATTACH_CONFLICT, 409},
	        {ATTACH_BUSY, 503}, {ATTACH_FAILED, 500}};
	json_t *json;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		all.answer = (struct attach_result){.status = cases[i].status,
		        .text = "because",
		        .diagnostics = "p:1:2: error: x\np:3:4: error: y\n"};
		assert_int_equal(call("POST", "/v1/sandboxes/one/resume", ""), cases[i].expected);
		json = json_answer();
		assert_string_equal(json_string_value(json_object_get(json, "detail")), "because");
		assert_int_equal(json_array_size(json_object_get(json, "diagnostics")), 2);
		json_decref(json);
		assert_string_equal(f.detail, "because");
	}
}

/* The client or the server ends before the operation has its result. */
static void test_late_answers(void **state)
{
	int fd = dial();

	(void)state;
	all.later = true;
	say(fd, "POST", "/v1/sandboxes/one/resume", "", "");
	while (!all.done)
		turn();
	close(fd);
	turn();
	all.done(all.context, &all.answer);
	turn();
	assert_int_equal(f.told, 1); /* told all the same: it was done */
	all.done = NULL;
	fd = dial();
	say(fd, "POST", "/v1/sandboxes/one/resume", "", "");
	while (!all.done)
		turn();
	control_free(f.control);
	f.control = NULL;
	all.done(all.context, &all.answer);
	close(fd);
	assert_int_equal(f.told, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(test_attach),
	        CASE(test_sandbox_object),
	        CASE(test_a_long_list),
	        CASE(test_groups),
	        CASE(test_attached_without_files),
	        CASE(test_operations),
	        CASE(test_failures),
	        CASE(test_late_answers),
	};

	log_open("test_control", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
