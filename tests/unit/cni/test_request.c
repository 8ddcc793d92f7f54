/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's input from a runtime: environment, CNI_ARGS and network configuration, whole,
 * damaged and hostile. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/request.h"

#define GOOD                                                                                  \
	"\"cniVersion\":\"1.0.0\",\"name\":\"agents\",\"type\":\"vethguard-cni\",\"policy\":" \
	"\"agent\""
#define ANNOTATED(json) "\"runtimeConfig\":{\"" CNI_ANNOTATIONS "\":" json "}"

static struct cni_request request;
static struct cni_fault fault;
static struct cni_environment environment;

static int fresh(void **state)
{
	(void)state;
	environment = (struct cni_environment){.command = "ADD",
	        .container = "c0ffee",
	        .netns = "/run/netns/one",
	        .interface = "eth0",
	        .arguments = NULL};
	request = (struct cni_request){.version = ""};
	return 0;
}

static int done(void **state)
{
	(void)state;
	cni_request_free(&request);
	return 0;
}

static bool reads(const char *input)
{
	cni_request_free(&request);
	memset(&fault, 0, sizeof(fault));
	return cni_request_read(&request, &environment, slice_from_string(input), &fault);
}

static void refuses(const char *input, enum cni_code code, const char *words)
{
	assert_false(reads(input));
	assert_int_equal(fault.code, code);
	assert_true(strlen(fault.message) > 0);
	if (!strstr(fault.details, words))
		fail_msg("\"%s\" is not in \"%s\"", words, fault.details);
}

static void takes(const char *input)
{
	if (!reads(input))
		fail_msg("%s: %s", fault.message, fault.details);
}

static void a_whole_request(void **state)
{
	(void)state;
	environment.arguments = "IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=agent-0;"
	                        "K8S_POD_INFRA_CONTAINER_ID=c0ffee;K8S_POD_UID=1-2-3;OTHER=x";
	takes("{" GOOD ",\"labels\":{\"team\":\"a\"},\"capabilities\":{\"" CNI_ANNOTATIONS
	      "\":true},"
	      "\"ipam\":{},\"dns\":{},\"ipMasq\":false,\"args\":{\"cni\":{}},\"cni.dev/x\":1}");
	assert_int_equal(request.command, CNI_ADD);
	assert_string_equal(request.version, "1.0.0");
	assert_string_equal(request.network, "agents");
	assert_string_equal(request.policy, "agent");
	assert_string_equal(request.socket, CONTROL_SOCKET_DEFAULT);
	assert_string_equal(request.policy_directory, POLICY_DIRECTORY_DEFAULT);
	assert_string_equal(request.pod.namespace, "team");
	assert_string_equal(request.pod.name, "agent-0");
	assert_string_equal(request.pod.uid, "1-2-3");
	assert_null(request.previous);
	assert_int_equal(json_object_size(request.labels), 1);
}

static void every_version(void **state)
{
	static const char *const good[] = {"0.4.0", "1.0.0", "1.1.0"};
	static const char *const bad[] = {
	        "0.3.1", "1.2.0", "2.0.0", "", "1.0", "1.0.0 ", "\\u001b[2J"};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text),
		        "{\"cniVersion\":\"%s\",\"name\":\"n\",\"policy\":\"p\"}", good[i]);
		takes(text);
		assert_string_equal(request.version, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text),
		        "{\"cniVersion\":\"%s\",\"name\":\"n\",\"policy\":\"p\"}", bad[i]);
		refuses(text, CNI_INCOMPATIBLE_VERSION, "use 0.4.0, 1.0.0 or 1.1.0");
		assert_string_equal(request.version, CNI_VERSION_NEWEST);
		assert_null(strchr(fault.details, '\033'));
	}
	refuses("{\"name\":\"n\",\"policy\":\"p\"}", CNI_INCOMPATIBLE_VERSION, "missing");
	refuses("{\"cniVersion\":1,\"name\":\"n\",\"policy\":\"p\"}", CNI_INCOMPATIBLE_VERSION,
	        "missing, or not a string");
}

static void version_needs_nothing(void **state)
{
	(void)state;
	environment = (struct cni_environment){.command = "VERSION"};
	takes("");
	takes("{\"cniVersion\":\"0.4.0\"}");
	assert_string_equal(request.version, "0.4.0");
	takes("{\"cniVersion\":\"9.9.9\"}");
	assert_string_equal(request.version, CNI_VERSION_NEWEST);
	refuses("{", CNI_DECODING_FAILURE, "line 1");
}

static void what_is_no_json(void **state)
{
	(void)state;
	refuses("", CNI_DECODING_FAILURE, "line");
	refuses("not JSON", CNI_DECODING_FAILURE, "line 1");
	refuses("{" GOOD, CNI_DECODING_FAILURE, "line");
	refuses("{" GOOD "} more", CNI_DECODING_FAILURE, "line");
	refuses("[]", CNI_DECODING_FAILURE, "another type");
	refuses("{" GOOD ",\"policy\":\"other\"}", CNI_DECODING_FAILURE, "uplicate");
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"a\\u0000b\"}", CNI_DECODING_FAILURE, "line");
	refuses("\xff\xfe{}", CNI_DECODING_FAILURE, "line");
}

/* 1 MiB, one byte more, ten times as much, and very deep. */
static void what_is_long(void **state)
{
	const size_t n = 10u << 20;
	char *text = malloc(n + 1);

	(void)state;
	assert_non_null(text);
	memset(text, ' ', n);
	memcpy(text, "{" GOOD, sizeof("{" GOOD) - 1);
	text[CNI_STDIN_MAX - 1] = '}';
	text[CNI_STDIN_MAX] = '\0';
	takes(text);
	text[CNI_STDIN_MAX] = ' ';
	text[CNI_STDIN_MAX + 1] = '\0';
	refuses(text, CNI_DECODING_FAILURE, "more than 1048576 bytes");
	text[CNI_STDIN_MAX + 1] = ' ';
	text[n] = '\0';
	refuses(text, CNI_DECODING_FAILURE, "more than 1048576 bytes");
	memset(text, '[', 500000);
	text[500000] = '\0';
	refuses(text, CNI_DECODING_FAILURE, "depth");
	free(text);
}

static void the_environment(void **state)
{
	char id[CNI_NAME_MAX + 2], path[CNI_PATH_MAX + 2];
	static const char *const interfaces[] = {
	        "", ".", "..", "a/b", "a:b", "a b", "sixteen-letters-", "a\tb", "\x80"};
	static const char *const ids[] = {"", "-a", ".a", "a/b", "a b", "../a", "a\n"};

	(void)state;
	environment.command = NULL;
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_COMMAND is not set");
	environment.command = "UPDATE";
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_COMMAND=\"UPDATE\"");
	environment.command = "ADD";
	memset(id, 'a', sizeof(id));
	id[CNI_NAME_MAX] = '\0';
	environment.container = id;
	takes("{" GOOD "}");
	id[CNI_NAME_MAX] = 'a';
	id[CNI_NAME_MAX + 1] = '\0';
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_CONTAINERID");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		environment.container = ids[i];
		refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_CONTAINERID");
	}
	environment.container = "c";
	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
		environment.interface = interfaces[i];
		refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_IFNAME");
	}
	environment.interface = "fifteen-letters";
	takes("{" GOOD "}");
	memset(path, '/', sizeof(path));
	path[CNI_PATH_MAX + 1] = '\0';
	environment.netns = path;
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_NETNS");
	environment.netns = "run/netns/one";
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_NETNS");
	environment.netns = NULL;
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "CNI_NETNS is not set");
}

static void arguments(void **state)
{
	static const char *const bad[] = {"K8S_POD_NAME", "=x", "A=1", "IgnoreUnknown=0;A=1",
	        "IP=10.0.0.1", "K8S_POD_NAME=a/b", "K8S_POD_NAME=-a", "K8S_POD_NAMESPACE=a b",
	        "K8S_POD_UID=\x1b", "k8s_pod_name=x"};
	char text[CNI_ARGUMENTS_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		environment.arguments = bad[i];
		refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "");
		assert_non_null(strstr(fault.message, "CNI_ARGS"));
	}
	environment.arguments = ";;K8S_POD_NAME=a;;K8S_POD_NAMESPACE=;";
	takes("{" GOOD "}");
	assert_string_equal(request.pod.name, "a");
	assert_string_equal(request.pod.namespace, "");
	environment.arguments = "A=b=c;IgnoreUnknown=true";
	takes("{" GOOD "}");
	snprintf(text, sizeof(text), "K8S_POD_NAME=%0254d", 1);
	environment.arguments = text;
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "too long");
	snprintf(text, sizeof(text), "K8S_POD_NAME=%0253d", 1);
	takes("{" GOOD "}");
	memset(text, ';', sizeof(text));
	text[CNI_ARGUMENTS_MAX + 1] = '\0';
	refuses("{" GOOD "}", CNI_INVALID_ENVIRONMENT, "more than 4096 bytes");
}

static void members(void **state)
{
	(void)state;
	refuses("{" GOOD ",\"polcy\":\"x\"}", CNI_UNSUPPORTED_FIELD, "\"polcy\": \"x\"");
	refuses("{" GOOD ",\"ipam\":{\"type\":\"host-local\"}}", CNI_UNSUPPORTED_FIELD, "\"ipam\"");
	refuses("{" GOOD ",\"ipMasq\":true}", CNI_UNSUPPORTED_FIELD, "\"ipMasq\": true");
	refuses("{" GOOD ",\"dns\":{\"nameservers\":[\"1.1.1.1\"]}}", CNI_UNSUPPORTED_FIELD,
	        "\"dns\"");
	refuses("{" GOOD ",\"\\u001b[31m\":\"\\u001b\"}", CNI_UNSUPPORTED_FIELD, "\\x1b");
	refuses("{" GOOD ",\"capabilities\":{\"portMappings\":true}}", CNI_UNSUPPORTED_FIELD,
	        "portMappings");
	refuses("{" GOOD ",\"capabilities\":[]}", CNI_INVALID_CONFIG, "capabilities");
	refuses("{" GOOD ",\"labels\":[]}", CNI_INVALID_CONFIG, "labels");
	refuses("{" GOOD ",\"labels\":{\"a\":1}}", CNI_INVALID_CONFIG, "has to be a string");
	refuses("{" GOOD ",\"labels\":{\"cni.network\":\"x\"}}", CNI_INVALID_CONFIG, "own");
	refuses("{" GOOD ",\"prevResult\":\"x\"}", CNI_INVALID_CONFIG, "prevResult");
	refuses("{" GOOD ",\"socket\":1}", CNI_INVALID_CONFIG, "socket");
	refuses("{" GOOD ",\"socket\":\"control.sock\"}", CNI_INVALID_CONFIG, "absolute");
	refuses("{" GOOD ",\"policyDirectory\":\"policies\"}", CNI_INVALID_CONFIG, "absolute");
	refuses("{\"cniVersion\":\"1.0.0\",\"policy\":\"p\"}", CNI_INVALID_CONFIG, "needs a name");
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"../x\",\"policy\":\"p\"}", CNI_INVALID_CONFIG,
	        "needs a name");
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"n\"}", CNI_INVALID_CONFIG,
	        "no policy is named");
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"policy\":\"/etc/p.yaml\"}",
	        CNI_INVALID_CONFIG, "no path");
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"policy\":7}", CNI_INVALID_CONFIG,
	        "policy");
}

static void too_many(void **state)
{
	char text[8192];
	size_t n;

	(void)state;
	for (int count = CNI_LABELS_MAX; count <= CNI_LABELS_MAX + 1; count++) {
		n = (size_t)snprintf(text, sizeof(text), "{" GOOD ",\"labels\":{");
		for (int i = 0; i < count; i++)
			n += (size_t)snprintf(
			        text + n, sizeof(text) - n, "%s\"k%d\":\"v\"", i ? "," : "", i);
		snprintf(text + n, sizeof(text) - n, "}}");
		if (count == CNI_LABELS_MAX)
			takes(text);
		else
			refuses(text, CNI_INVALID_CONFIG, "more than 24");
	}
	n = (size_t)snprintf(text, sizeof(text), "{" GOOD ",\"podMayChoose\":[\"p\"");
	for (int i = 0; i < CNI_CHOICES_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",\"p\"");
	snprintf(text + n, sizeof(text) - n, "]}");
	refuses(text, CNI_INVALID_CONFIG, "more than 64");
}

static void pods_choose(void **state)
{
	(void)state;
	refuses("{" GOOD "," ANNOTATED("{\"vethguard.org/policy\":\"wide\"}") "}",
	        CNI_POLICY_REFUSED, "podMayChoose of network agents does not name");
	refuses("{" GOOD ",\"podMayChoose\":[\"narrow\"]," ANNOTATED(
	                "{\"vethguard.org/policy\":\"wide\"}") "}",
	        CNI_POLICY_REFUSED, "\"wide\"");
	refuses("{" GOOD ",\"podMayChoose\":[\"narrow\"]," ANNOTATED(
	                "{\"vethguard.org/policy\":\"../wide\"}") "}",
	        CNI_POLICY_REFUSED, "../wide");
	refuses("{" GOOD "," ANNOTATED("{\"vethguard.org/policy\":1}") "}", CNI_INVALID_CONFIG,
	        "strings");
	refuses("{" GOOD "," ANNOTATED("[]") "}", CNI_INVALID_CONFIG, "strings");
	refuses("{" GOOD ",\"podMayChoose\":[\"a/b\"]}", CNI_INVALID_CONFIG, "list of policies");
	refuses("{" GOOD ",\"podMayChoose\":[1]}", CNI_INVALID_CONFIG, "list of policies");
	refuses("{" GOOD ",\"podMayChoose\":\"narrow\"}", CNI_INVALID_CONFIG, "podMayChoose");
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"podMayChoose\":[\"p\"]}",
	        CNI_POLICY_REFUSED, "set the pod's annotation");
	takes("{" GOOD ",\"podMayChoose\":[\"narrow\",\"wide\"]," ANNOTATED(
	        "{\"vethguard.org/policy\":\"wide\",\"x\":\"y\"}") "}");
	assert_string_equal(request.policy, "wide");
	takes("{" GOOD ",\"podMayChoose\":[\"narrow\"]," ANNOTATED("null") "}");
	assert_string_equal(request.policy, "agent");
	takes("{" GOOD "," ANNOTATED("{\"other\":\"x\"}") "}");
	assert_string_equal(request.policy, "agent");
}

/* Whatever became of the configuration, the guard of a container that is gone has to end. */
static void deleting_needs_little(void **state)
{
	(void)state;
	environment.command = "DEL";
	environment.netns = NULL;
	environment.arguments = "nonsense";
	takes("{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"policy\":7,\"polcy\":1,\"prevResult\":"
	      "3}");
	assert_string_equal(request.netns, "");
	assert_string_equal(request.pod.name, "");
	environment.netns = "";
	takes("{\"cniVersion\":\"1.0.0\",\"name\":\"n\"}");
	environment.netns = "relative";
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"n\"}", CNI_INVALID_ENVIRONMENT, "CNI_NETNS");
	environment.netns = NULL;
	environment.container = NULL;
	refuses("{\"cniVersion\":\"1.0.0\",\"name\":\"n\"}", CNI_INVALID_ENVIRONMENT,
	        "CNI_CONTAINERID is not set");
}

static void checking_needs_a_result(void **state)
{
	(void)state;
	environment.command = "CHECK";
	refuses("{" GOOD "}", CNI_INVALID_CONFIG, "prevResult");
	takes("{" GOOD ",\"prevResult\":{}}");
}

static void collecting_needs_the_list(void **state)
{
	(void)state;
	environment = (struct cni_environment){.command = "GC"};
	refuses("{\"cniVersion\":\"1.1.0\",\"name\":\"n\"}", CNI_INVALID_CONFIG, "missing");
	refuses("{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"cni.dev/valid-attachments\":{}}",
	        CNI_INVALID_CONFIG, "missing");
	refuses("{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"cni.dev/"
	        "valid-attachments\":[{\"containerID\":\"a\"}]}",
	        CNI_INVALID_CONFIG, "ifname");
	refuses("{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"cni.dev/valid-attachments\":[1]}",
	        CNI_INVALID_CONFIG, "ifname");
	takes("{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"cni.dev/valid-attachments\":[]}");
	takes("{\"cniVersion\":\"1.1.0\",\"name\":\"n\",\"cni.dev/"
	      "attachments\":[{\"containerID\":\"a\",\"ifname\":\"b\"}]}");
	assert_int_equal(json_array_size(request.attachments), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fresh, done)
int main(void)
{
	const struct CMUnitTest tests[] = {CASE(a_whole_request), CASE(every_version),
	        CASE(version_needs_nothing), CASE(what_is_no_json), CASE(what_is_long),
	        CASE(the_environment), CASE(arguments), CASE(members), CASE(too_many),
	        CASE(pods_choose), CASE(deleting_needs_little), CASE(checking_needs_a_result),
	        CASE(collecting_needs_the_list)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
