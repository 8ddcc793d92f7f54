/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in annotations and environment, and the changes of a configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/edit.h"
#include "runtime/request.h"

static json_t *parse(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static void assert_json(const json_t *json, const char *text)
{
	char *found = json_dumps(json, JSON_COMPACT);

	assert_string_equal(found, text);
	free(found);
}

static bool read_request(struct request *r, const char *text, bool environment, struct fault *fault)
{
	json_t *config = parse(text);
	bool good;

	fault->text[0] = '\0';
	good = request_read(r, config, environment, fault);
	json_decref(config);
	return good;
}

static void test_request(void **state)
{
	struct fault fault;
	struct request r;

	(void)state;
	assert_true(read_request(&r,
	        "{\"process\":{\"env\":[\"A=1\",\"VETHGUARD_POLICY=p\",\"VETHGUARD_NAME=n\","
	        "\"VETHGUARD_TTL=2h\","
	        "\"VETHGUARD_LABEL_team=blue\",\"VETHGUARD_VAR_repo=a=b\",\"VETHGUARD_VAR_empty=\"]"
	        "}}",
	        true, &fault));
	assert_string_equal(r.policy, "p");
	assert_string_equal(r.name, "n");
	assert_int_equal(r.ttl_s, 7200);
	assert_json(r.labels, "{\"team\":\"blue\"}");
	assert_json(r.vars, "{\"repo\":\"a=b\",\"empty\":\"\"}");
	request_free(&r);
}

/* Variables may come from an image; an annotation comes from the engine's user. The last of two
 * variables counts. */
static void test_which_counts(void **state)
{
	static const char both[] =
	        "{\"process\":{\"env\":[\"VETHGUARD_POLICY=a\",\"VETHGUARD_POLICY=b\"]},"
	        "\"annotations\":{\"org.vethguard.policy\":\"c\",\"other\":\"x\"}}";
	struct fault fault;
	struct request r;

	(void)state;
	assert_true(read_request(&r, both, true, &fault));
	assert_string_equal(r.policy, "c");
	request_free(&r);
	assert_true(read_request(&r,
	        "{\"process\":{\"env\":[\"VETHGUARD_POLICY=a\",\"VETHGUARD_POLICY=b\"]}}", true,
	        &fault));
	assert_string_equal(r.policy, "b");
	request_free(&r);
	assert_true(read_request(
	        &r, "{\"process\":{\"env\":[\"VETHGUARD_POLICY=a\"]}}", false, &fault));
	assert_null(r.policy);
	request_free(&r);
	assert_true(read_request(&r, "{}", true, &fault));
	assert_null(r.policy);
	request_free(&r);
}

static void test_refused_requests(void **state)
{
	static const char *const texts[] = {
	        "{\"process\":{\"env\":7}}",
	        "{\"process\":{\"env\":[7]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_POLCY=a\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_POLICY\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_=a\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_LABEL_=a\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_VAR_=a\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_TTL=\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_TTL=0\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_TTL=2x\"]}}",
	        "{\"process\":{\"env\":[\"VETHGUARD_TTL=367d\"]}}",
	        "{\"annotations\":[]}",
	        "{\"annotations\":{\"org.vethguard.policy\":7}}",
	        "{\"annotations\":{\"org.vethguard.polcy\":\"a\"}}",
	        "{\"annotations\":{\"org.vethguard.label.\":\"a\"}}",
	};
	struct fault fault;
	struct request r;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_false(read_request(&r, texts[i], true, &fault));
		assert_string_not_equal(fault.text, "");
		request_free(&r);
	}
}

static void test_long_name(void **state)
{
	json_t *config = json_pack("{s:{s:[]}}", "process", "env");
	struct fault fault = {""};
	struct request r;
	char text[512];

	(void)state;
	memset(text, 'A', sizeof(text));
	memcpy(text, "VETHGUARD_VAR_", 14);
	memcpy(text + sizeof(text) - 3, "=b", 3);
	json_array_append_new(
	        json_object_get(json_object_get(config, "process"), "env"), json_string(text));
	assert_false(request_read(&r, config, true, &fault));
	request_free(&r);
	json_decref(config);
}

static void test_ttl(void **state)
{
	uint64_t ttl;

	(void)state;
	assert_true(request_read_ttl("90", &ttl) && ttl == 90);
	assert_true(request_read_ttl("366d", &ttl) && ttl == 31622400);
	assert_false(request_read_ttl("18446744073709551616", &ttl));
	assert_false(request_read_ttl("s", &ttl));
	assert_false(request_read_ttl("-1s", &ttl));
}

static void test_strip(void **state)
{
	json_t *process = parse("{\"env\":[\"VETHGUARD_POLICY=a\",\"A=1\",7,\"VETHGUARD_NAME=x\","
	                        "\"VETHGUARDIAN=1\"]}");

	(void)state;
	request_strip(process);
	assert_json(process, "{\"env\":[\"A=1\",7,\"VETHGUARDIAN=1\"]}");
	request_strip(NULL);
	json_decref(process);
}

static void test_netns(void **state)
{
	static const struct {
		const char *namespaces, *path; /* NULL: refused */
	} cases[] = {{"[{\"type\":\"mount\"},{\"type\":\"network\"}]", ""},
	        {"[{\"type\":\"network\",\"path\":\"\"}]", ""},
	        {"[{\"type\":\"network\",\"path\":\"/run/netns/a\"}]", "/run/netns/a"},
	        {"[{\"type\":\"user\"},{\"type\":\"network\",\"path\":\"/run/netns/a\"}]",
	                "/run/netns/a"},
	        {"[{\"type\":\"user\"},{\"type\":\"network\"}]", NULL},
	        {"[{\"type\":\"mount\"}]", NULL}, {"[]", NULL}, {"7", NULL}, {"[7]", NULL},
	        {"[{\"type\":7}]", NULL}, {"[{\"type\":\"network\"},{\"type\":\"network\"}]", NULL},
	        {"[{\"type\":\"network\",\"path\":7}]", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault fault = {""};
		char text[256];
		json_t *config;
		const char *path;

		snprintf(
		        text, sizeof(text), "{\"linux\":{\"namespaces\":%s}}", cases[i].namespaces);
		config = parse(text);
		path = edit_find_netns(config, &fault);
		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
		else
			assert_null(path);
		assert_int_equal(fault.text[0] == '\0', cases[i].path != NULL);
		json_decref(config);
	}
}

static void test_set_netns(void **state)
{
	json_t *config =
	        parse("{\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"}]}}");
	struct fault fault = {""};

	(void)state;
	assert_true(edit_set_netns(config, "/run/netns/x", &fault));
	assert_json(config, "{\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\","
	                    "\"path\":\"/run/netns/x\"}]}}");
	json_decref(config);
}

static void test_covered(void **state)
{
	static const struct {
		const char *destination;
		bool covered, above;
	} cases[] = {{"/etc/ssl/certs", true, true}, {"/etc", true, true},
	        {"/etc/ssl/certs/a.pem", true, false}, {"//etc/./ssl/", true, true},
	        {"etc/ssl", true, true}, {"/", false, false}, {"/etc/ssl/cert", false, false},
	        {"/etc/ssl/certs/b.pem", false, false}, {"/x/../etc", false, false},
	        {"", false, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *config =
		        json_pack("{s:[{s:s}]}", "mounts", "destination", cases[i].destination);

		assert_int_equal(
		        edit_is_covered(config, "/etc/ssl/certs/a.pem", false), cases[i].covered);
		assert_int_equal(
		        edit_is_covered(config, "/etc/ssl/certs/a.pem", true), cases[i].above);
		json_decref(config);
	}
}

static void test_mount(void **state)
{
	json_t *config = parse("{\"mounts\":[{\"destination\":\"/etc//resolv.conf\",\"source\":\"/"
	                       "x\"},{\"destination\":\"/proc\"}]}");
	json_t *bad = parse("{\"mounts\":7}"), *none = json_object();
	struct fault fault = {""};

	(void)state;
	assert_true(edit_add_mount(config, "/etc/resolv.conf", "/ours", &fault));
	assert_json(config, "{\"mounts\":[{\"destination\":\"/proc\"},{\"destination\":\"/etc/"
	                    "resolv.conf\",\"type\":\"bind\","
	                    "\"source\":\"/"
	                    "ours\",\"options\":[\"rbind\",\"rprivate\",\"ro\",\"nosuid\","
	                    "\"nodev\",\"noexec\"]}]}");
	assert_true(edit_add_mount(none, "/a", "/b", &fault));
	assert_int_equal(json_array_size(json_object_get(none, "mounts")), 1);
	assert_false(edit_add_mount(bad, "/a", "/b", &fault));
	json_decref(config);
	json_decref(bad);
	json_decref(none);
}

static void test_variables(void **state)
{
	json_t *process = parse("{\"env\":[\"A=1\",\"HTTP_PROXY=http://"
	                        "x\",\"KEY=real\",\"KEY=again\",\"KEYS=1\"]}");
	json_t *without = json_object(), *bad = parse("{\"env\":{}}");
	struct fault fault = {""};
	struct environment env;

	(void)state;
	environment_init(&env);
	environment_set(&env, SLICE("KEY"), SLICE("placeholder"));
	assert_true(edit_set_variables(process, &env, &fault));
	assert_json(process, "{\"env\":[\"A=1\",\"KEYS=1\",\"KEY=placeholder\"]}");
	assert_true(edit_set_variables(without, &env, &fault));
	assert_json(without, "{\"env\":[\"KEY=placeholder\"]}");
	assert_false(edit_set_variables(bad, &env, &fault));
	assert_false(edit_set_variables(NULL, &env, &fault));
	environment_fini(&env);
	json_decref(process);
	json_decref(without);
	json_decref(bad);
}

static void test_docker_hook(void **state)
{
	json_t *config =
	        parse("{\"hooks\":{\"prestart\":[{\"path\":\"/proc/1/"
	              "exe\",\"args\":[\"libnetwork-setkey\",\"a\"]},"
	              "{\"path\":\"/usr/bin/gpu\",\"args\":[\"gpu\"]},{\"path\":\"/x\"}]}}");
	json_t *none = json_object();

	(void)state;
	edit_drop_docker_hook(config);
	assert_json(config, "{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/"
	                    "gpu\",\"args\":[\"gpu\"]},{\"path\":\"/x\"}]}}");
	edit_drop_docker_hook(none);
	assert_json(none, "{}");
	json_decref(config);
	json_decref(none);
}

static void test_net_admin(void **state)
{
	static const struct {
		const char *process;
		bool has;
	} cases[] = {{"{}", true}, {"{\"capabilities\":{}}", false},
	        {"{\"capabilities\":{\"bounding\":[\"CAP_CHOWN\"],\"ambient\":[]}}", false},
	        {"{\"capabilities\":{\"bounding\":[\"CAP_CHOWN\",\"CAP_NET_ADMIN\"]}}", true},
	        {"{\"capabilities\":{\"bounding\":[7]}}", true}, {"{\"capabilities\":[]}", true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *config = json_pack("{s:o}", "process", parse(cases[i].process));

		assert_int_equal(edit_has_net_admin(config), cases[i].has);
		json_decref(config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_request),
	        cmocka_unit_test(test_which_counts),
	        cmocka_unit_test(test_refused_requests),
	        cmocka_unit_test(test_long_name),
	        cmocka_unit_test(test_ttl),
	        cmocka_unit_test(test_strip),
	        cmocka_unit_test(test_netns),
	        cmocka_unit_test(test_set_netns),
	        cmocka_unit_test(test_covered),
	        cmocka_unit_test(test_mount),
	        cmocka_unit_test(test_variables),
	        cmocka_unit_test(test_docker_hook),
	        cmocka_unit_test(test_net_admin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
