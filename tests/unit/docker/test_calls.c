/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of dockerd, wrong, damaged, twice and out of order, with interfaces of a namespace of
 * the test's own. No daemon listens: what needs one is refused. With a real dockerd and a real
 * daemon: tests/integration/attach/test_docker_network.py. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privileges.h"
#include "vethguard/base/log.h"
#include "docker/docker.h"

#define NETWORK "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ENDPOINT "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define OUTER "vgdbbbbbbbbbbbb"
#define INNER "vgcbbbbbbbbbbbb"
#define WHO "\"NetworkID\":\"" NETWORK "\",\"EndpointID\":\"" ENDPOINT "\""
#define POOL                                                                                    \
	"\"IPv4Data\":[{\"AddressSpace\":\"\",\"Pool\":\"10.5.0.0/16\",\"Gateway\":\"10.5.0.1/" \
	"16\"}]"
#define OPTIONS(o)                                                                                 \
	"\"Options\":{\"com.docker.network.enable_ipv6\":false,\"com.docker.network.generic\":{" o \
	"}}"
#define CREATE(o) "{\"NetworkID\":\"" NETWORK "\"," POOL ",\"IPv6Data\":[]," OPTIONS(o) "}"
#define DNS "\"com.docker.network.endpoint.dnsservers\":[\"192.0.2.53\"]"
#define JOINER(address, options)                         \
	"{" WHO ",\"Interface\":{\"Address\":\"" address \
	"\",\"AddressIPv6\":\"\",\"MacAddress\":\"\"},\"Options\":{" options "}}"

static struct docker docker;
static char top[64], policies[128], state[128];
static json_t *answer;

static void make_file(const char *directory, const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int set_up(void **unused)
{
	(void)unused;
	snprintf(top, sizeof(top), "/tmp/vethguard-unit-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(policies, sizeof(policies), "%s/policies", top);
	snprintf(state, sizeof(state), "%s/state", top);
	assert_int_equal(mkdir(policies, 0700), 0);
	assert_int_equal(mkdir(state, 0700), 0);
	make_file(policies, "agent.yaml", "vethguard: 1\n");
	docker = (struct docker){
	        .control = "/nowhere/control.sock", .policies = policies, .state = state};
	docker.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(netlink_open(&docker.nl), 0);
	return 0;
}

static int tear_down(void **unused)
{
	char command[128];

	(void)unused;
	json_decref(answer);
	answer = NULL;
	netlink_link_delete(docker.nl, OUTER);
	netlink_close(docker.nl);
	close(docker.netns);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command); /* NOLINT(cert-env33-c): a test's own folder */
}

static unsigned call(const char *name, const char *text)
{
	char target[128];
	json_t *body = text ? json_loads(text, 0, NULL) : NULL;
	unsigned status;

	assert_true(!text || body);
	json_decref(answer);
	snprintf(target, sizeof(target), "/%s%s",
	        strcmp(name, "Plugin.Activate") ? "NetworkDriver." : "", name);
	status = docker_call(&docker, slice_from_string(target), body, "no body", &answer);
	json_decref(body);
	return status;
}

static const char *error(void)
{
	return json_string_value(json_object_get(answer, "Err"));
}

static void done(const char *name, const char *text)
{
	if (call(name, text) != 200)
		fail_msg("%s %s: %s", name, text, error());
	assert_null(error());
}

static void refused(const char *words, const char *name, const char *text)
{
	unsigned status = call(name, text);

	if (status < 400 || !error() || !strstr(error(), words))
		fail_msg("%s %.120s: %u, not refused with \"%s\" but %s", name, text ? text : "",
		        status, words, error() ? error() : "done");
	assert_int_equal(json_object_size(answer), 1);
}

static bool exists(const char *interface)
{
	struct netlink_link link;

	return netlink_link_get(docker.nl, interface, 0, &link) == 0;
}

/* --- the driver --- */

static void what_it_is(void **unused)
{
	(void)unused;
	done("Plugin.Activate", NULL);
	assert_string_equal(
	        json_string_value(json_array_get(json_object_get(answer, "Implements"), 0)),
	        "NetworkDriver");
	done("GetCapabilities", NULL);
	assert_string_equal(json_string_value(json_object_get(answer, "Scope")), "local");
	refused("swarm", "AllocateNetwork", "{\"NetworkID\":\"" NETWORK "\"}");
	refused("swarm", "FreeNetwork", "{}");
	done("DiscoverNew", "{\"DiscoveryType\":1,\"DiscoveryData\":null}");
	done("DiscoverDelete", "{}");
	done("ProgramExternalConnectivity", "{" WHO "}");
	done("RevokeExternalConnectivity", "{" WHO "}");
	assert_int_equal(call("Nothing", "{}"), 404);
	assert_int_equal(call("Join/../x", "{}"), 404);
	assert_int_equal(call("join", "{}"), 404);
	refused("no body", "Join", NULL);
	refused("no body", "CreateNetwork", NULL);
}

/* --- networks --- */

/* A full disk, or a service killed while it writes, leaves nothing behind for good. */
static void no_room_for_a_network(void **unused)
{
	struct rlimit limit, none;

	(void)unused;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	refused("the file of the network", "CreateNetwork", CREATE("\"policy\":\"agent\""));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(rmdir(state), 0); /* nothing is left */
	assert_int_equal(mkdir(state, 0700), 0);
	make_file(state, NETWORK ".part", "{");
	done("DeleteNetwork", "{\"NetworkID\":\"" NETWORK "\"}");
	assert_int_equal(rmdir(state), 0);
}

static void a_network(void **unused)
{
	struct docker_network n;

	(void)unused;
	for (int i = 0; i < 2; i++)
		done("CreateNetwork", CREATE("\"policy\":\"agent\",\"ttl\":\"2h\",\"observe\":"
		                             "\"true\",\"label.team\":\"bl\\u00fce\","
		                             "\"var.repo\":\"a/b\",\"label.x.y\":\"\""));
	assert_int_equal(docker_network_load(state, NETWORK, &n), 0);
	assert_string_equal(n.policy, "agent");
	assert_string_equal(n.prefix, "agent");
	assert_string_equal(n.gateway4.text, "10.5.0.1/16");
	assert_string_equal(n.gateway6.text, "");
	assert_int_equal(n.ttl_s, 7200);
	assert_true(n.observe);
	assert_string_equal(json_string_value(json_object_get(n.labels, "team")), "bl\xc3\xbc"
	                                                                          "e");
	assert_int_equal(json_object_size(n.labels), 2);
	assert_string_equal(json_string_value(json_object_get(n.vars, "repo")), "a/b");
	docker_network_fini(&n);
	for (int i = 0; i < 2; i++)
		done("DeleteNetwork", "{\"NetworkID\":\"" NETWORK "\"}");
	assert_int_equal(docker_network_load(state, NETWORK, &n), -ENOENT);
	done("DeleteNetwork", "{\"NetworkID\":\"" OTHER "\"}");
	refused("hexadecimal", "DeleteNetwork", "{\"NetworkID\":\"../../etc/passwd\"}");
}

static void wrong_networks(void **unused)
{
	static const char *const options[][2] = {{"which policy?", ""},
	        {"is not a path", "\"policy\":\"../agent\""},
	        {"is not a path", "\"policy\":\"/etc/agent\""},
	        {"is not a path", "\"policy\":\"\""},
	        {"there is no policy other", "\"policy\":\"other\""},
	        {"has to be a string", "\"policy\":7"}, {"has to be a string", "\"policy\":null"},
	        {"did you mean", "\"polcy\":\"agent\""},
	        {"no such option", "\"policy\":\"agent\",\"\":\"x\""},
	        {"-o ttl=", "\"policy\":\"agent\",\"ttl\":\"0\""},
	        {"-o ttl=", "\"policy\":\"agent\",\"ttl\":\"367d\""},
	        {"-o ttl=", "\"policy\":\"agent\",\"ttl\":\"h\""},
	        {"-o ttl=", "\"policy\":\"agent\",\"ttl\":\"-1s\""},
	        {"-o ttl=", "\"policy\":\"agent\",\"ttl\":\"99999999999999999999d\""},
	        {"true or false", "\"policy\":\"agent\",\"observe\":\"yes\""},
	        {"-o name=", "\"policy\":\"agent\",\"name\":\"a b\""},
	        {"-o name=", "\"policy\":\"agent\",\"name\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\""},
	        {"a key has to follow", "\"policy\":\"agent\",\"label.\":\"x\""},
	        {"a key has to follow", "\"policy\":\"agent\",\"var.\":\"x\""}};
	char text[8192], name[128];

	(void)unused;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		snprintf(text, sizeof(text), CREATE("%s"), options[i][1]);
		refused(options[i][0], "CreateNetwork", text);
	}
	snprintf(name, sizeof(name), "\"policy\":\"%0*d\"", POLICY_FILE_NAME_MAX + 1, 0);
	snprintf(text, sizeof(text), CREATE("%s"), name);
	refused("is not a path", "CreateNetwork", text);
	snprintf(text, sizeof(text), CREATE("\"policy\":\"agent\",\"label.x\":\"%0*d\""),
	        DOCKER_OPTION_VALUE_MAX + 1, 0);
	refused("longer than", "CreateNetwork", text);
	snprintf(text, sizeof(text), CREATE("\"policy\":\"agent\",\"label.%0*d\":\"\""),
	        DOCKER_OPTION_KEY_MAX, 0);
	refused("longer than", "CreateNetwork", text);
	assert_int_equal(access(state, F_OK), 0);
	assert_int_equal(rmdir(state), 0); /* nothing was written */
	refused("the file of the network", "CreateNetwork", CREATE("\"policy\":\"agent\""));
	assert_int_equal(mkdir(state, 0700), 0);
}

static void too_many_options(void **unused)
{
	char text[65536];
	size_t n = (size_t)snprintf(text, sizeof(text),
	        "{\"NetworkID\":\"" NETWORK "\"," POOL
	        ",\"Options\":{\"com.docker.network.generic\":{\"policy\":\"agent\"");

	(void)unused;
	for (int i = 0; i <= DOCKER_LABELS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",\"label.l%d\":\"x\"", i);
	snprintf(text + n, sizeof(text) - n, "}}}");
	refused("more than 30", "CreateNetwork", text);
	n = (size_t)snprintf(text, sizeof(text),
	        "{\"NetworkID\":\"" NETWORK "\"," POOL
	        ",\"Options\":{\"com.docker.network.generic\":{\"policy\":\"agent\"");
	for (int i = 0; i <= DOCKER_VARS_MAX; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ",\"var.v%d\":\"x\"", i);
	snprintf(text + n, sizeof(text) - n, "}}}");
	refused("more than 64", "CreateNetwork", text);
}

#define HEAD "{\"NetworkID\":\"" NETWORK "\"," OPTIONS("\"policy\":\"agent\"") ","

static void wrong_subnets(void **unused)
{
	(void)unused;
	refused("without a subnet", "CreateNetwork", HEAD "\"IPv4Data\":[]}");
	refused("without a subnet", "CreateNetwork", HEAD "\"IPv4Data\":null,\"IPv6Data\":null}");
	refused("has to be an array", "CreateNetwork", HEAD "\"IPv4Data\":{}}");
	refused("more than one subnet", "CreateNetwork", HEAD "\"IPv4Data\":[{},{}]}");
	refused("has to be a string", "CreateNetwork", HEAD "\"IPv4Data\":[{\"Gateway\":1}]}");
	refused("not an address with a prefix length", "CreateNetwork", HEAD "\"IPv4Data\":[{}]}");
	refused("not an address with a prefix length", "CreateNetwork", HEAD "\"IPv4Data\":[7]}");
	refused("not an address with a prefix length", "CreateNetwork",
	        HEAD "\"IPv4Data\":[{\"Gateway\":\"10.5.0.1\"}]}");
	refused("not an address with a prefix length", "CreateNetwork",
	        HEAD "\"IPv4Data\":[{\"Gateway\":\"10.5.0.1/33\"}]}");
	refused("not an address with a prefix length", "CreateNetwork",
	        HEAD "\"IPv4Data\":[{\"Gateway\":\"fd00::1/64\"}]}");
	refused("not an address with a prefix length", "CreateNetwork",
	        HEAD "\"IPv6Data\":[{\"Gateway\":\"10.5.0.1/16\"}]}");
	refused("too small or too large", "CreateNetwork",
	        HEAD "\"IPv4Data\":[{\"Gateway\":\"10.5.0.1/31\"}]}");
	refused("too small or too large", "CreateNetwork",
	        HEAD "\"IPv4Data\":[{\"Gateway\":\"10.5.0.1/0\"}]}");
	refused("first address", "CreateNetwork",
	        HEAD "\"IPv4Data\":[{\"Gateway\":\"10.5.0.254/24\"}]}");
	refused("first address", "CreateNetwork",
	        HEAD "\"IPv6Data\":[{\"Gateway\":\"fd00::2/64\"}]}");
	refused("--internal", "CreateNetwork",
	        "{\"NetworkID\":\"" NETWORK "\"," POOL
	        ",\"Options\":{\"com.docker.network.internal\":true,"
	        "\"com.docker.network.generic\":{\"policy\":\"agent\"}}}");
	refused("Options", "CreateNetwork",
	        "{\"NetworkID\":\"" NETWORK "\"," POOL ",\"Options\":[]}");
	refused("have to be an object", "CreateNetwork",
	        "{\"NetworkID\":\"" NETWORK "\"," POOL
	        ",\"Options\":{\"com.docker.network.generic\":[]}}");
	refused("NetworkID", "CreateNetwork", "{}");
	refused("NetworkID", "CreateNetwork", "{\"NetworkID\":7}");
	refused("hexadecimal", "CreateNetwork", "{\"NetworkID\":\"aaaaaaaaaaa\"}");
	refused("hexadecimal", "CreateNetwork", "{\"NetworkID\":\"a" NETWORK "\"}");
	refused("hexadecimal", "CreateNetwork", "{\"NetworkID\":\"AAAAAAAAAAAA\"}");
	done("CreateNetwork",
	        HEAD "\"IPv4Data\":[],\"IPv6Data\":[{\"Gateway\":\"fd00:0::1/64\"}]}");
}

static void damaged_files(void **unused)
{
	static const char *const damaged[] = {"", "{", "[]", "{}", "{\"policy\":\"agent\"}",
	        "{\"policy\":\"../x\",\"name\":\"n\",\"gateway4\":\"10.5.0.1/"
	        "16\",\"gateway6\":\"\",\"ttl_s\":0,\"observe\":false,\"labels\":{},"
	        "\"vars\":{}}",
	        "{\"policy\":\"x\",\"name\":\"n\",\"gateway4\":\"\",\"gateway6\":\"\",\"ttl_s\":0,"
	        "\"observe\":false,\"labels\":{},\"vars\":{}}",
	        "{\"policy\":\"x\",\"name\":\"n\",\"gateway4\":\"10.5.0.1/"
	        "16\",\"gateway6\":\"\",\"ttl_s\":-1,\"observe\":false,\"labels\":{},"
	        "\"vars\":{}}",
	        "{\"policy\":\"x\",\"name\":\"n\",\"gateway4\":\"10.5.0.1/"
	        "16\",\"gateway6\":\"\",\"ttl_s\":0,\"observe\":false,\"labels\":[],"
	        "\"vars\":{}}",
	        "{\"policy\":\"x\",\"name\":\"n\",\"gateway4\":\"10.5.0.1/"
	        "16\",\"gateway6\":\"\",\"ttl_s\":0,\"observe\":false,\"labels\":{\"a\":1},"
	        "\"vars\":{}}"};

	(void)unused;
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		make_file(state, NETWORK ".json", damaged[i]);
		refused("is damaged", "CreateEndpoint", JOINER("10.5.0.2/16", DNS));
	}
	done("DeleteNetwork", "{\"NetworkID\":\"" NETWORK "\"}");
	refused("is not known here", "CreateEndpoint", JOINER("10.5.0.2/16", DNS));
}

/* --- endpoints --- */

static void an_endpoint(void **unused)
{
	struct docker_endpoint found;
	struct netlink_link link;
	char mac[32];

	(void)unused;
	done("CreateNetwork", CREATE("\"policy\":\"agent\",\"name\":\"crew\""));
	refused("no such endpoint", "Join", "{" WHO ",\"SandboxKey\":\"/x\",\"Options\":{}}");
	done("CreateEndpoint", JOINER("10.5.0.2/16", DNS));
	snprintf(mac, sizeof(mac), "%s",
	        json_string_value(
	                json_object_get(json_object_get(answer, "Interface"), "MacAddress")));
	done("CreateEndpoint", JOINER("10.5.0.2/16", DNS)); /* again: the same pair */
	assert_string_equal(json_string_value(json_object_get(
	                            json_object_get(answer, "Interface"), "MacAddress")),
	        mac);
	refused("exists already", "CreateEndpoint", JOINER("10.5.0.3/16", DNS));
	assert_int_equal(docker_endpoint_find(&docker, ENDPOINT, &found), 0);
	assert_string_equal(found.name, "crew-bbbbbbbbbbbb");
	assert_string_equal(found.network, NETWORK);
	assert_string_equal(found.address4.text, "10.5.0.2/16");
	assert_int_equal(netlink_link_get(docker.nl, OUTER, 0, &link), 0);
	assert_false(link.up);
	/* Without a guard the outer end stays shut. */
	refused("vethguardd does not run", "Join",
	        "{" WHO ",\"SandboxKey\":\"/x\",\"Options\":{}}");
	assert_int_equal(netlink_link_get(docker.nl, OUTER, 0, &link), 0);
	assert_false(link.up);
	done("EndpointOperInfo", "{" WHO "}");
	assert_true(json_is_object(json_object_get(answer, "Value")));
	refused("of another network", "DeleteEndpoint",
	        "{\"NetworkID\":\"" OTHER "\",\"EndpointID\":\"" ENDPOINT "\"}");
	for (int i = 0; i < 2; i++)
		done("Leave", "{" WHO "}");
	assert_true(exists(OUTER) && exists(INNER));
	for (int i = 0; i < 2; i++)
		done("DeleteEndpoint", "{" WHO "}");
	assert_false(exists(OUTER) || exists(INNER));
	done("Leave", "{" WHO "}");
}

static void a_mac_that_was_asked_for(void **unused)
{
	static const uint8_t wanted[6] = {0x02, 0x42, 0, 0, 0, 0xfe};
	struct netlink_link link;

	(void)unused;
	done("CreateNetwork", CREATE("\"policy\":\"agent\""));
#define WITH_MAC(mac)                                                             \
	"{" WHO ",\"Interface\":{\"Address\":\"10.5.0.2/16\",\"MacAddress\":" mac \
	"},\"Options\":{" DNS "}}"
	refused("MacAddress", "CreateEndpoint", WITH_MAC("7"));
	refused("not an interface's address", "CreateEndpoint", WITH_MAC("\"02:42:00:00:00\""));
	refused("not an interface's address", "CreateEndpoint", WITH_MAC("\"03:42:00:00:00:01\""));
	refused("not an interface's address", "CreateEndpoint", WITH_MAC("\"02:42:00:00:00:0g\""));
	refused("not an interface's address", "CreateEndpoint",
	        WITH_MAC("\"02:42:00:00:00:01:02\""));
	assert_false(exists(OUTER));
	done("CreateEndpoint", WITH_MAC("\"02:42:00:00:00:fe\""));
	assert_null(
	        json_object_get(answer, "Interface")); /* dockerd refuses an answer with an
	                                                  interface if it named the MAC itself */
	assert_int_equal(netlink_link_get(docker.nl, INNER, 0, &link), 0);
	assert_memory_equal(link.mac, wanted, 6);
}

static void warnings_of_endpoints_that_are_gone(void **unused)
{
	(void)unused;
	docker.warned = json_pack("{sb}", ENDPOINT, 1);
	done("CreateNetwork", CREATE("\"policy\":\"agent\""));
	done("CreateEndpoint", JOINER("10.5.0.2/16", DNS));
	docker_other_ways_tidy(&docker);
	assert_int_equal(json_object_size(docker.warned), 1);
	done("DeleteEndpoint", "{" WHO "}");
	docker_other_ways_tidy(&docker);
	assert_int_equal(json_object_size(docker.warned), 0);
	json_decref(docker.warned);
}

static void wrong_endpoints(void **unused)
{
	char text[1024];

	(void)unused;
	refused("is not known here", "CreateEndpoint", JOINER("10.5.0.2/16", DNS));
	done("CreateNetwork", CREATE("\"policy\":\"agent\""));
	refused("--dns", "CreateEndpoint", JOINER("10.5.0.2/16", ""));
	refused("--dns", "CreateEndpoint",
	        JOINER("10.5.0.2/16", "\"com.docker.network.endpoint.dnsservers\":[]"));
	refused("--dns", "CreateEndpoint",
	        JOINER("10.5.0.2/16", "\"com.docker.network.endpoint.dnsservers\":\"x\""));
	refused("ports cannot be published", "CreateEndpoint",
	        JOINER("10.5.0.2/16", DNS ",\"com.docker.network.portmap\":[{\"Port\":80}]"));
	refused("not an address for a container", "CreateEndpoint",
	        JOINER("10.5.0.1/16", DNS)); /* the guard's */
	refused("not an address for a container", "CreateEndpoint", JOINER("10.6.0.2/16", DNS));
	refused("not an address for a container", "CreateEndpoint", JOINER("10.5.0.2/24", DNS));
	refused("not an address with a prefix length", "CreateEndpoint", JOINER("10.5.0.2", DNS));
	refused("not an address with a prefix length", "CreateEndpoint", JOINER("x", DNS));
	refused("an address is needed", "CreateEndpoint", JOINER("", DNS));
	refused("not an address for a container", "CreateEndpoint",
	        "{" WHO ",\"Interface\":{\"Address\":\"10.5.0.2/16\",\"AddressIPv6\":\"fd00::2/"
	        "64\"},\"Options\":{" DNS "}}");
	refused("Interface: has to be an object", "CreateEndpoint",
	        "{" WHO ",\"Interface\":null,\"Options\":{" DNS "}}");
	refused("has to be a string", "CreateEndpoint",
	        "{" WHO ",\"Interface\":{\"Address\":[]},\"Options\":{" DNS "}}");
	refused("Options", "CreateEndpoint",
	        "{" WHO ",\"Interface\":{\"Address\":\"10.5.0.2/16\"},\"Options\":[]}");
	refused("vethguard.name", "CreateEndpoint",
	        JOINER("10.5.0.2/16", DNS ",\"vethguard.name\":7"));
	refused("vethguard.name", "CreateEndpoint",
	        JOINER("10.5.0.2/16", DNS ",\"vethguard.name\":\"-x\""));
	snprintf(text, sizeof(text), JOINER("10.5.0.2/16", DNS ",\"vethguard.name\":\"%0*d\""),
	        DOCKER_NAME_MAX + 1, 0);
	refused("vethguard.name", "CreateEndpoint", text);
	refused("EndpointID", "CreateEndpoint", "{\"NetworkID\":\"" NETWORK "\"}");
	refused("hexadecimal", "CreateEndpoint",
	        "{\"NetworkID\":\"" NETWORK "\",\"EndpointID\":\"x y\"}");
	refused("EndpointID", "Leave", "{\"NetworkID\":\"" NETWORK "\",\"EndpointID\":null}");
	refused("NetworkID", "Join", "{\"EndpointID\":\"" ENDPOINT "\"}");
	assert_false(exists(OUTER));
}

/* An interface of that name that is somebody else's is left alone. */
static void a_foreign_interface(void **unused)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9}, other[6] = {2, 0, 0, 0, 0, 8};
	struct docker_endpoint found;

	(void)unused;
	done("CreateNetwork", CREATE("\"policy\":\"agent\""));
	assert_int_equal(netlink_veth_add(docker.nl, OUTER, mac, "peer", other, docker.netns), 0);
	assert_false(docker_endpoint_at(&docker, OUTER, &found));
	refused("File exists", "CreateEndpoint", JOINER("10.5.0.2/16", DNS));
	refused("File exists", "DeleteEndpoint", "{" WHO "}");
	assert_true(exists(OUTER));
	assert_int_equal(netlink_link_set_alias(docker.nl, OUTER,
	                         "vethguard-docker " OTHER " " NETWORK " 10.5.0.2/16 - x"),
	        0);
	assert_false(
	        docker_endpoint_at(&docker, OUTER, &found)); /* the alias is of another interface */
	refused("File exists", "Leave", "{" WHO "}");
}

/* --- aliases --- */

static void aliases(void **unused)
{
	static const char *const wrong[] = {"", "vethguard-docker",
	        "x " ENDPOINT " " NETWORK " 10.5.0.2/16 - n",
	        "vethguard-docker " ENDPOINT " " NETWORK " 10.5.0.2/16 -",
	        "vethguard-docker " ENDPOINT " " NETWORK " 10.5.0.2/16 - n x",
	        "vethguard-docker " ENDPOINT " " NETWORK " - - n",
	        "vethguard-docker " ENDPOINT " " NETWORK " fd00::1/64 - n",
	        "vethguard-docker " ENDPOINT " " NETWORK " - 10.5.0.2/16 n",
	        "vethguard-docker " ENDPOINT " " NETWORK " 10.5.0.2 - n",
	        "vethguard-docker ../x " NETWORK " 10.5.0.2/16 - n",
	        "vethguard-docker " ENDPOINT " short 10.5.0.2/16 - n",
	        "vethguard-docker " ENDPOINT "b " NETWORK " 10.5.0.2/16 - n",
	        "vethguard-docker " ENDPOINT " " NETWORK " 10.5.0.2/16 - .n"};
	struct docker_endpoint e = {.network = NETWORK, .id = ENDPOINT}, back;
	char alias[NETLINK_ALIAS_MAX + 1], long_one[NETLINK_ALIAS_MAX * 2];

	(void)unused;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (docker_endpoint_parse(wrong[i], &back))
			fail_msg("\"%s\" was taken", wrong[i]);
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	assert_false(docker_endpoint_parse(long_one, &back));
	assert_true(docker_cidr_parse("255.255.255.254/30", &e.address4));
	assert_true(docker_cidr_parse("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/126", &e.address6));
	memset(e.name, 'n', DOCKER_NAME_MAX);
	docker_endpoint_describe(&e, alias);
	assert_true(docker_endpoint_parse(alias, &back));
	assert_string_equal(back.name, e.name);
	assert_string_equal(back.address6.text, e.address6.text);
	assert_string_equal(back.outer, OUTER);
	assert_string_equal(back.inner, INNER);
	assert_true(docker_endpoint_is_outer(OUTER));
	assert_false(docker_endpoint_is_outer(INNER));
	assert_false(docker_endpoint_is_outer("vgdbbbbbbbbbbb"));
	assert_false(docker_endpoint_is_outer("vgdbbbbbbbbbbbg"));
}

static void subnets(void **unused)
{
	struct docker_cidr a, b;

	(void)unused;
	assert_true(docker_cidr_parse("10.5.3.4/22", &a) && docker_cidr_parse("10.5.0.1/22", &b));
	assert_true(docker_cidr_match(&a, &b));
	assert_true(docker_cidr_parse("10.5.4.1/22", &b));
	assert_false(docker_cidr_match(&a, &b));
	assert_true(docker_cidr_parse("fd00::1/22", &b));
	assert_false(docker_cidr_match(&a, &b));
	assert_false(docker_cidr_parse("", &a) || docker_cidr_parse("/", &a) ||
	             docker_cidr_parse("10.5.0.1/", &a) || docker_cidr_parse("10.5.0.1/1x", &a) ||
	             docker_cidr_parse("10.5.0.1/16/16", &a) || docker_cidr_parse("::/129", &a));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {T(what_it_is), T(a_network), T(no_room_for_a_network),
	        T(wrong_networks), T(too_many_options), T(wrong_subnets), T(damaged_files),
	        T(an_endpoint), T(warnings_of_endpoints_that_are_gone), T(a_mac_that_was_asked_for),
	        T(wrong_endpoints), T(a_foreign_interface), T(aliases), T(subnets)};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	log_open("test_calls", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
