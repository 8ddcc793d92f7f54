/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration's gateway: defaults, every key, and the messages for what is wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/policy/config.h"

#define FILES ", certificate: g.pem, key: /k/g.key"

static struct diag_list diags;

static int read_memory(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

static int load(const char *gateway, struct config *config)
{
	char text[4096];
	struct policy_reader reader = {text, read_memory, NULL};

	snprintf(text, sizeof(text), "gateway: {%s}\n", gateway);
	memset(&diags, 0, sizeof(diags));
	config_init(config);
	return config_load(&reader, "/etc/vethguard/config.yaml", config, &diags);
}

static void test_defaults(void **state)
{
	struct config config;

	(void)state;
	config_init(&config);
	assert_int_equal(config.gateway.listener_count, 0);
	config_fini(&config);
	assert_int_equal(load("listen_plain: '127.0.0.1:8080'", &config), 0);
	assert_int_equal(config.gateway.listener_count, 1);
	assert_int_equal(config.gateway.unauthenticated, 1024);
	assert_int_equal(config.gateway.unauthenticated_per_address, 64);
	assert_int_equal(config.gateway.handshake_ms, 10000);
	assert_int_equal(config.gateway.keep_worker_ms, 60000);
	assert_false(config.gateway.client_certificates);
	assert_int_equal(config.gateway.udp_first, 0);
	assert_string_equal(config.gateway.certificate, "");
	assert_string_equal(config.gateway.name, "");
	config_fini(&config);
	assert_int_equal(
	        load("listen_plain: '127.0.0.1:1', balancers: [10.0.0.1/32, '2001:db8::/64']",
	                &config),
	        0);
	assert_int_equal(config.gateway.balancer_count, 2);
	assert_int_equal(config.gateway.balancers[1].bits, 64);
	config_fini(&config);
	assert_int_equal(load("listen_transparent: '0.0.0.0:443'", &config), 0);
	assert_int_equal(config.gateway.listeners[0].kind, CONFIG_GATEWAY_TRANSPARENT);
	config_fini(&config);
}

static void test_every_key(void **state)
{
	struct config config;
	const struct config_gateway *g = &config.gateway;

	(void)state;
	assert_int_equal(load("listen: ['0.0.0.0:8443', '[::]:8443'], listen_plain: "
	                      "['10.0.0.1:80', '[::1]:8080'], plain_anywhere: true, name: "
	                      "Gateway.Example., unauthenticated: 16, "
	                      "unauthenticated_per_address: 1, client_certificates: true, "
	                      "handshake: 100ms, keep_worker: 100ms, udp_ports: 1024-65535, "
	                      "udp_address: [203.0.113.7, '2001:db8::7']" FILES,
	                         &config),
	        0);
	assert_int_equal(g->listener_count, 4);
	assert_true(g->listeners[0].kind == CONFIG_GATEWAY_TLS &&
	            g->listeners[1].kind == CONFIG_GATEWAY_TLS);
	assert_true(g->listeners[2].kind == CONFIG_GATEWAY_PLAIN &&
	            g->listeners[3].kind == CONFIG_GATEWAY_PLAIN);
	assert_int_equal(g->listeners[1].address.family, 6);
	assert_int_equal(g->listeners[1].port, 8443);
	assert_int_equal(g->listeners[2].port, 80);
	assert_string_equal(g->certificate, "/etc/vethguard/g.pem");
	assert_string_equal(g->key, "/k/g.key");
	assert_string_equal(g->name, "gateway.example");
	assert_int_equal(g->unauthenticated, 16);
	assert_int_equal(g->unauthenticated_per_address, 1);
	assert_int_equal(g->handshake_ms, 100);
	assert_int_equal(g->keep_worker_ms, 100);
	assert_int_equal(g->udp_first, 1024);
	assert_int_equal(g->udp_last, 65535);
	assert_int_equal(g->udp_address4.bytes[3], 7);
	assert_int_equal(g->udp_address6.bytes[15], 7);
	assert_true(g->client_certificates);
	config_fini(&config);
}

static void refuses(const char *gateway, const char *why)
{
	struct config config;
	char *text = NULL;
	size_t n;
	FILE *out;

	if (load(gateway, &config) != -EINVAL)
		fail_msg("%s is taken", gateway);
	out = open_memstream(&text, &n);
	diag_print(&diags, out);
	fclose(out);
	if (!strstr(text, why))
		fail_msg("%s: %s", gateway, text);
	free(text);
	config_fini(&config);
}

static void test_base_urls(void **state)
{
	struct config config;
	const struct config_gateway *g = &config.gateway;

	(void)state;
	assert_int_equal(load("listen_plain: '127.0.0.1:1', base_urls: {One.Example.: "
	                      "'https://API.example', two.example: 'http://b.example:80/', three: "
	                      "'https://c.example:8443'}",
	                         &config),
	        0);
	assert_int_equal(g->base_count, 3);
	assert_string_equal(g->bases[0].name, "one.example");
	assert_string_equal(g->bases[0].authority, "api.example");
	assert_true(g->bases[0].https && !g->bases[1].https && g->bases[2].https);
	assert_string_equal(g->bases[1].authority, "b.example");
	assert_string_equal(g->bases[2].authority, "c.example:8443");
	config_fini(&config);
}

#define BASES "listen_plain: '127.0.0.1:1', base_urls: "

static void test_base_urls_that_are_refused(void **state)
{
	char many[2048] = BASES "{", one[64];

	(void)state;
	refuses(BASES "[a]", "base_urls");
	refuses(BASES "{'a b': 'https://a.example'}", "is not a host name");
	refuses(BASES "{10.0.0.1: 'https://a.example'}", "is not a host name");
	refuses(BASES "{a.example: 'https://b.example', A.example: 'https://b.example'}",
	        "is given twice");
	refuses("name: a.example, " BASES "{a.example: 'https://b.example'}", "is given twice");
	refuses(BASES "{a.example: ''}", "base_urls");
	refuses(BASES "{a.example: b.example}", "must be a scheme");
	refuses(BASES "{a.example: 'ftp://b.example'}", "must be a scheme");
	refuses(BASES "{a.example: 'tcp://b.example:1'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://u@b.example'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://192.0.2.1'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://[::1]'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://b.example/v1'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://b.example?'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://b.example/#'}", "must be a scheme");
	refuses(BASES "{a.example: 'https://b.example:0'}", "must be a scheme");
	for (unsigned i = 0; i <= CONFIG_GATEWAY_BASES_MAX; i++) {
		snprintf(one, sizeof(one), "n%u.example: 'https://b.example', ", i);
		strcat(many, one);
	}
	refuses(strcat(many, "}"), "more than 16 names");
}

static void test_what_is_refused(void **state)
{
	(void)state;
	refuses("", "listen is missing");
	refuses("certificate: a, key: b", "listen is missing");
	refuses("listen: '0.0.0.0:8443'", "certificate is missing");
	refuses("listen: '0.0.0.0:8443', certificate: a", "key is missing");
	refuses("listen: '0.0.0.0:8443', key: a", "certificate is missing");
	refuses("listen_plain: '127.0.0.1:1'" FILES, "are for listen");
	refuses("listen_transparent: '0.0.0.0:443'" FILES, "are for listen");
	refuses("listen_transparent: '127.0.0.1:1', listen_plain: '127.0.0.1:1'", "already");
	refuses("listen_transparent: '0.0.0.0'", "a port");
	refuses("listen_plain: '127.0.0.1:1', balancers: [10.0.0.1/8]", "must be a network");
	refuses("listen_plain: '127.0.0.1:1', balancers: [lb.example]", "must be a network");
	refuses("listen_plain: '0.0.0.0:1'", "not a loopback address");
	refuses("listen_plain: '10.0.0.1:1', plain_anywhere: false", "not a loopback address");
	refuses("listen_plain: '[::]:1'", "not a loopback address");
	refuses("listen: '8443'" FILES, "must be an address");
	refuses("listen: '0.0.0.0'" FILES, "must be an address");
	refuses("listen: '0.0.0.0:0'" FILES, "must be an address");
	refuses("listen: '0.0.0.0:65536'" FILES, "must be an address");
	refuses("listen: 'gateway.example:443'" FILES, "must be an address");
	refuses("listen: '::1:443'" FILES, "must be an address");
	refuses("listen: 'u@0.0.0.0:1'" FILES, "must be an address");
	refuses("listen: []" FILES, "listen");
	refuses("listen: {a: b}" FILES, "listen");
	refuses("listen: ['0.0.0.0:1', '0.0.0.0:1']" FILES, "already");
	refuses("listen: '127.0.0.1:1', listen_plain: '127.0.0.1:1'" FILES, "already");
	refuses("listen: ['0.0.0.0:1', '0.0.0.0:2', '0.0.0.0:3', '0.0.0.0:4', '0.0.0.0:5', "
	        "'0.0.0.0:6', '0.0.0.0:7', '0.0.0.0:8', '0.0.0.0:9']" FILES,
	        "more than 8");
	refuses("listen: '0.0.0.0:1', plain_anywhere: 1" FILES, "plain_anywhere");
	refuses("listen: '0.0.0.0:1', name: 'a b'" FILES, "not a host name");
	refuses("listen: '0.0.0.0:1', name: 10.0.0.1" FILES, "not a host name");
	refuses("listen: '0.0.0.0:1', unauthenticated: 15" FILES, "unauthenticated");
	refuses("listen: '0.0.0.0:1', unauthenticated: 16385" FILES, "unauthenticated");
	refuses("listen: '0.0.0.0:1', unauthenticated_per_address: 0" FILES, "per_address");
	refuses("listen: '0.0.0.0:1', handshake: 99ms" FILES, "handshake");
	refuses("listen: '0.0.0.0:1', handshake: 61s" FILES, "handshake");
	refuses("listen: '0.0.0.0:1', keep_worker: 99ms" FILES, "keep_worker");
	refuses("listen: '0.0.0.0:1', keep_worker: 25h" FILES, "keep_worker");
	refuses("listen: '0.0.0.0:1', keep_worker: 0" FILES, "keep_worker");
	refuses("listen: '0.0.0.0:1', keep_worker: [1m]" FILES, "keep_worker");
	refuses("listen: '0.0.0.0:1', udp_ports: 40000" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: 1023-2000" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: 2000-1999" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: 2000-65536" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: '2000-'" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: '-2000'" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: 2000-2001-" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: ' 2000-2001'" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: 2000-99999999999" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_ports: {}" FILES, "udp_ports");
	refuses("listen: '0.0.0.0:1', udp_address: gateway.example" FILES, "udp_address");
	refuses("listen: '0.0.0.0:1', udp_address: 0.0.0.0" FILES, "udp_address");
	refuses("listen: '0.0.0.0:1', udp_address: '203.0.113.7:1'" FILES, "udp_address");
	refuses("listen: '0.0.0.0:1', udp_address: [10.0.0.1, 10.0.0.2]" FILES, "one per family");
	refuses("listen: '0.0.0.0:1', tokens: x" FILES, "tokens");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_every_key), cmocka_unit_test(test_what_is_refused),
	        cmocka_unit_test(test_base_urls),
	        cmocka_unit_test(test_base_urls_that_are_refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
