/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of another plugin, and of vethguard-cni; the names and labels of
 * sandboxes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cni/result.h"
#include "cni/sandbox.h"

#define NETNS "/proc/self/ns/net"
#define POD "{\"name\":\"eth0\",\"mac\":\"02:00:00:00:00:01\",\"sandbox\":\"" NETNS "\"}"
#define HOST "{\"name\":\"veth1\",\"mac\":\"02:00:00:00:00:02\"}"
#define FOREIGN "{\"name\":\"eth0\",\"sandbox\":\"/run/netns/another\"}"
#define BRIDGE "{\"name\":\"cni0\",\"sandbox\":\"\"}"

static struct cni_fault fault;
static struct cni_addresses told;

static struct cni_request about(const char *previous)
{
	struct cni_request request = {.version = "1.0.0",
	        .container = "c0ffee0123456789",
	        .netns = NETNS,
	        .interface = "eth0",
	        .network = "agents"};

	if (previous) {
		request.config = json_loads(previous, 0, NULL);
		assert_non_null(request.config);
		request.previous = request.config;
	}
	return request;
}

static bool reads(const char *previous)
{
	struct cni_request request = about(previous);
	const bool good = cni_result_addresses(&request, &told, &fault);

	cni_request_free(&request);
	return good;
}

static void is(const struct ip *ip, const char *text)
{
	char shown[IP_TEXT_MAX];

	assert_string_equal(ip->family ? ip_format(ip, shown) : "", text);
}

static void addresses_of_a_bridge(void **state)
{
	(void)state;
	assert_true(reads("{\"interfaces\":[" BRIDGE "," HOST "," POD "],\"ips\":["
	                  "{\"address\":\"10.1.2.3/16\",\"gateway\":\"10.1.0.1\",\"interface\":2},"
	                  "{\"address\":\"fd00::3/64\",\"interface\":2},"
	                  "{\"address\":\"10.1.0.1/16\",\"interface\":0}]}"));
	is(&told.four, "10.1.2.3");
	is(&told.six, "fd00::3");
}

static void addresses_without_an_interface(void **state)
{
	(void)state;
	assert_true(reads("{\"interfaces\":[" HOST "],\"ips\":[{\"address\":\"10.1.2.3/32\"}]}"));
	is(&told.four, "10.1.2.3");
	is(&told.six, "");
}

static void foreign_sandboxes_do_not_count(void **state)
{
	(void)state;
	assert_true(reads("{\"interfaces\":[" FOREIGN "," POD
	                  "],\"ips\":[{\"address\":\"10.1.2.4/16\",\"interface\":0},"
	                  "{\"address\":\"10.1.2.3/16\",\"interface\":1}]}"));
	is(&told.four, "10.1.2.3");
	assert_false(reads("{\"interfaces\":[" FOREIGN
	                   "],\"ips\":[{\"address\":\"10.1.2.4/16\",\"interface\":0}]}"));
	assert_int_equal(fault.code, CNI_INVALID_CONFIG);
	assert_non_null(strstr(fault.details, "gives no address"));
}

static void malformed_results(void **state)
{
	static const char *const bad[] = {"{}", "{\"ips\":[]}", "{\"ips\":{}}", "{\"ips\":\"x\"}",
	        "{\"interfaces\":1}", "{\"ips\":[{}]}", "{\"ips\":[1]}",
	        "{\"ips\":[{\"address\":\"10.1.2.3\"}]}",
	        "{\"ips\":[{\"address\":\"10.1.2.3/33\"}]}",
	        "{\"ips\":[{\"address\":\"10.1.2/24\"}]}", "{\"ips\":[{\"address\":\"/24\"}]}",
	        "{\"ips\":[{\"address\":\"10.1.2.3/\"}]}",
	        "{\"ips\":[{\"address\":\"fd00::1/129\"}]}", "{\"ips\":[{\"address\":7}]}",
	        "{\"ips\":[{\"address\":\"10.1.2.3/24\",\"interface\":0}]}",
	        "{\"interfaces\":[" POD
	        "],\"ips\":[{\"address\":\"10.1.2.3/24\",\"interface\":1}]}",
	        "{\"interfaces\":[" POD
	        "],\"ips\":[{\"address\":\"10.1.2.3/24\",\"interface\":-1}]}",
	        "{\"interfaces\":[" POD
	        "],\"ips\":[{\"address\":\"10.1.2.3/24\",\"interface\":\"0\"}]}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (reads(bad[i]))
			fail_msg("%s is taken", bad[i]);
		assert_int_equal(fault.code, CNI_INVALID_CONFIG);
	}
	assert_false(reads("{\"ips\":[{\"address\":\"\\u001b[2J/24\"}]}"));
	assert_null(strchr(fault.details, '\033'));
}

static void two_addresses_of_a_family(void **state)
{
	(void)state;
	assert_false(
	        reads("{\"ips\":[{\"address\":\"10.1.2.3/24\"},{\"address\":\"10.1.2.4/24\"}]}"));
	assert_int_equal(fault.code, CNI_CANNOT_GUARD);
	assert_non_null(strstr(fault.details, "more than one IPv4 address"));
}

static void long_lists(void **state)
{
	char text[8192];
	size_t n = (size_t)snprintf(text, sizeof(text), "{\"interfaces\":[" POD);

	(void)state;
	for (int i = 0; i < CNI_RESULT_ITEMS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "," POD);
	snprintf(text + n, sizeof(text) - n, "],\"ips\":[{\"address\":\"10.1.2.3/24\"}]}");
	assert_false(reads(text));
	assert_non_null(strstr(fault.details, "at most 64"));
}

static void the_hosts_end(void **state)
{
	struct cni_request request = about("{\"interfaces\":[" BRIDGE "," HOST "," POD "]}");

	(void)state;
	assert_true(cni_result_names_host_end(&request, "veth1"));
	assert_false(cni_result_names_host_end(&request, "veth2"));
	assert_false(cni_result_names_host_end(&request, "eth0"));
	cni_request_free(&request);
}

static json_t *sandbox(void)
{
	return json_loads(
	        "{\"name\":\"n\",\"addresses\":{\"gate4\":\"198.18.0.1\",\"gate6\":\"fd76::1\","
	        "\"sandbox4\":\"198.18.0.2\",\"sandbox6\":\"fd76::2\"}}",
	        0, NULL);
}

static void says(json_t *got, const char *wanted)
{
	json_t *json = json_loads(wanted, 0, NULL);
	char *text = json_dumps(got, JSON_COMPACT);

	assert_non_null(json);
	if (!json_equal(got, json))
		fail_msg("%s", text);
	free(text);
	json_decref(json);
	json_decref(got);
}

static void the_answer_about_a_link(void **state)
{
	struct cni_request request = about(NULL);
	struct cni_place place = {
	        .bits4 = 30, .bits6 = 126, .link = {.mac = {2, 0, 0, 0xab, 0, 9}}};
	json_t *daemon = sandbox();

	(void)state;
	assert_true(ip_parse(SLICE("198.18.0.2"), &place.four) &&
	            ip_parse(SLICE("fd76::2"), &place.six));
	says(cni_result_of_link(&request, &place, daemon),
	        "{\"cniVersion\":\"1.0.0\",\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:00:"
	        "ab:00:09\",\"sandbox\":\"" NETNS "\"}],\"ips\":[{\"address\":\"198.18.0.2/"
	        "30\",\"gateway\":\"198.18.0.1\",\"interface\":0},"
	        "{\"address\":\"fd76::2/126\",\"gateway\":\"fd76::1\",\"interface\":0}],"
	        "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"198.18.0.1\"},{\"dst\":\"::/"
	        "0\",\"gw\":\"fd76::1\"}],"
	        "\"dns\":{\"nameservers\":[\"198.18.0.1\",\"fd76::1\"]}}");
	request.version = "0.4.0";
	place.six.family = 0; /* a kernel without IPv6 */
	says(cni_result_of_link(&request, &place, daemon),
	        "{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"eth0\",\"mac\":\"02:00:00:"
	        "ab:00:09\",\"sandbox\":\"" NETNS
	        "\"}],\"ips\":[{\"version\":\"4\",\"address\":\"198.18.0.2/"
	        "30\",\"gateway\":\"198.18.0.1\",\"interface\":0}],"
	        "\"routes\":[{\"dst\":\"0.0.0.0/0\",\"gw\":\"198.18.0.1\"}],"
	        "\"dns\":{\"nameservers\":[\"198.18.0.1\",\"fd76::1\"]}}");
	json_decref(daemon);
}

static void the_answer_behind_another(void **state)
{
	struct cni_request request =
	        about("{\"cniVersion\":\"0.4.0\",\"interfaces\":[" HOST "," POD "],"
	              "\"ips\":[{\"version\":\"4\",\"address\":\"10.1.2.3/24\",\"interface\":1}],"
	              "\"routes\":[{\"dst\":\"0.0.0.0/"
	              "0\"}],\"dns\":{\"nameservers\":[\"8.8.8.8\"],\"search\":[\"x\"]}}");
	json_t *daemon = sandbox();

	(void)state;
	says(cni_result_of_previous(&request, daemon),
	        "{\"cniVersion\":\"1.0.0\",\"interfaces\":[" HOST "," POD "],"
	        "\"ips\":[{\"address\":\"10.1.2.3/"
	        "24\",\"interface\":1}],\"routes\":[{\"dst\":\"0.0.0.0/0\"}],"
	        "\"dns\":{\"nameservers\":[\"198.18.0.1\",\"fd76::1\"],\"search\":[\"x\"]}}");
	cni_request_free(&request);
	request = about("{\"ips\":[{\"address\":\"fd00::3/64\"}]}");
	request.version = "0.4.0";
	says(cni_result_of_previous(&request, daemon),
	        "{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"6\",\"address\":\"fd00::3/"
	        "64\"}],"
	        "\"dns\":{\"nameservers\":[\"198.18.0.1\",\"fd76::1\"]}}");
	cni_request_free(&request);
	json_decref(daemon);
}

/* One name for one container, another for another network, container or interface, however long the
 * words are. */
static void names_of_sandboxes(void **state)
{
	struct cni_request request = about(NULL);
	char one[CNI_SANDBOX_NAME_MAX + 1], two[CNI_SANDBOX_NAME_MAX + 1];

	(void)state;
	cni_sandbox_name(&request, one);
	assert_int_equal(strlen(one), 29);
	assert_memory_equal(one, "c0ffee012345-", 13);
	request.interface = "eth1";
	cni_sandbox_name(&request, two);
	assert_string_not_equal(one, two);
	request.interface = "eth0";
	snprintf(request.pod.namespace, sizeof(request.pod.namespace), "%063d", 1);
	snprintf(request.pod.name, sizeof(request.pod.name), "%0253d", 1);
	cni_sandbox_name(&request, two);
	assert_int_equal(strlen(two), CNI_SANDBOX_NAME_MAX);
	assert_string_equal(
	        two + CNI_SANDBOX_NAME_MAX - 17, one + 12); /* the digest is the key's */
	snprintf(request.pod.namespace, sizeof(request.pod.namespace), "team");
	snprintf(request.pod.name, sizeof(request.pod.name), "agent");
	cni_sandbox_name(&request, two);
	assert_memory_equal(two, "team.agent-", 11);
}

static void labels_of_sandboxes(void **state)
{
	struct cni_request request = about(NULL);
	json_t *own = json_pack("{s:s}", "team", "a");

	(void)state;
	snprintf(request.pod.name, sizeof(request.pod.name), "agent");
	request.labels = own;
	says(cni_sandbox_labels(&request),
	        "{\"team\":\"a\",\"cni.network\":\"agents\",\"cni.container\":\"c0ffee0123456789\","
	        "\"cni.interface\":\"eth0\",\"pod.name\":\"agent\"}");
	assert_int_equal(json_object_size(own), 1);
	json_decref(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(addresses_of_a_bridge),
	        cmocka_unit_test(addresses_without_an_interface),
	        cmocka_unit_test(foreign_sandboxes_do_not_count),
	        cmocka_unit_test(malformed_results), cmocka_unit_test(two_addresses_of_a_family),
	        cmocka_unit_test(long_lists), cmocka_unit_test(the_hosts_end),
	        cmocka_unit_test(the_answer_about_a_link),
	        cmocka_unit_test(the_answer_behind_another), cmocka_unit_test(names_of_sandboxes),
	        cmocka_unit_test(labels_of_sandboxes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
