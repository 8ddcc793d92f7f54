/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, every key, and the messages for what is wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/policy/config.h"

static int read_memory(void *context, const char *path, char **text, size_t *n)
{
	(void)path;
	if (!context)
		return -ENOENT;
	*text = strdup(context);
	*n = strlen(context);
	return *text ? 0 : -ENOMEM;
}

static int load(const char *text, struct config *config, struct diag_list *diags)
{
	struct policy_reader reader = {(void *)(uintptr_t)text, read_memory, NULL};

	memset(diags, 0, sizeof(*diags));
	config_init(config);
	return config_load(&reader, "/etc/vethguard/config.yaml", config, diags);
}

static void test_defaults(void **state)
{
	struct diag_list diags;
	struct config config;

	(void)state;
	assert_int_equal(load("{}\n", &config, &diags), 0);
	assert_int_equal(config.server_count, 0);
	assert_int_equal(config.pool4.base.family, 4);
	assert_true(config.pool4.bits <= 24);
	assert_int_equal(config.pool6.base.family, 6);
	assert_int_equal(config.pool6.bits, 64);
	assert_int_equal(config.proxy_port, 3128);
	assert_true(config.limits.connections > 0 && config.limits.header_bytes >= 4096);
	assert_int_equal(config.limits.connections_per_s, 1000);
	assert_int_equal(config.limits.packet_copies_per_s, 1000);
	assert_int_equal(config.limits.udp_datagrams_per_s, 20000);
	assert_int_equal(config.limits.refusals_per_s, 1000);
	assert_true(config.timeouts.connect_ms > 0);
	assert_int_equal(config.timeouts.request_ms, 0);
	assert_string_equal(config.audit_file, "");
	assert_string_equal(config.ca.root, "");
	assert_int_equal(config.ca.overlap_s, 30 * 24 * 3600);
	config_fini(&config);
	config_fini(&config);
}

static void test_every_key(void **state)
{
	static const char text[] =
	        "vethguard: 1\n"
	        "resolver:\n"
	        "  servers: [9.9.9.9, \"1.1.1.1:5353\", \"2620:fe::fe\", \"[2620:fe::9]:54\"]\n"
	        "  hosts:\n"
	        "    Git.Example.: 192.0.2.7\n"
	        "    two.example: [192.0.2.8, \"2001:db8::8\"]\n"
	        "ca_files: [/a.pem, b.pem, ../c.pem]\n"
	        "ca: {root: r.pem, certificate: /n.pem, key: \"file:n.key\", overlap: 48h}\n"
	        "permit: [10.20.0.0/16, \"fd00::/8\", 192.168.1.1]\n"
	        "pools: {ipv4: 10.200.0.0/16, ipv6: \"fd12::/64\"}\n"
	        "proxy_port: 8080\n"
	        "egress: {proxy: \"http://Proxy.Example:3128/\", user: me, password_file: pw,\n"
	        "  resolve: local, interface: eth0, address: [\"2001:db8::7\", 10.9.8.7]}\n"
	        "audit_file: log/audit.jsonl\n"
	        "limits: {connections: 1, udp_flows: 0, blocked_mints_per_min: 7}\n"
	        "timeouts: {idle: 5m, request: 1h, connect: 500ms}\n";
	struct diag_list diags;
	struct config config;

	(void)state;
	assert_int_equal(load(text, &config, &diags), 0);
	assert_int_equal(config.server_count, 4);
	assert_int_equal(config.servers[0].port, 53);
	assert_int_equal(config.servers[1].port, 5353);
	assert_int_equal(config.servers[2].address.family, 6);
	assert_int_equal(config.servers[3].port, 54);
	assert_int_equal(config.host_count, 3);
	assert_string_equal(config.hosts[0].name, "git.example");
	assert_string_equal(config.hosts[2].name, "two.example");
	assert_int_equal(config.hosts[2].address.family, 6);
	assert_int_equal(config.ca_file_count, 3);
	assert_string_equal(config.ca_files[0], "/a.pem");
	assert_string_equal(config.ca_files[1], "/etc/vethguard/b.pem");
	assert_string_equal(config.ca_files[2], "/etc/c.pem");
	assert_string_equal(config.ca.root, "/etc/vethguard/r.pem");
	assert_string_equal(config.ca.certificate, "/n.pem");
	assert_string_equal(config.ca.key, "/etc/vethguard/n.key");
	assert_int_equal(config.ca.overlap_s, 48 * 3600);
	assert_int_equal(config.permit_count, 3);
	assert_int_equal(config.permit[2].bits, 32);
	assert_int_equal(config.pool4.bits, 16);
	assert_int_equal(config.proxy_port, 8080);
	assert_string_equal(config.egress.proxy_host, "proxy.example");
	assert_int_equal(config.egress.proxy_port, 3128);
	assert_true(config.egress.resolve_local);
	assert_string_equal(config.egress.interface, "eth0");
	assert_int_equal(config.egress.address4.family, 4);
	assert_int_equal(config.egress.address4.bytes[3], 7);
	assert_int_equal(config.egress.address6.family, 6);
	assert_int_equal(config.egress_place4.line, 13);
	assert_int_equal(config.egress_place4.column, 61);
	assert_int_equal(config.egress_place6.column, 46);
	assert_string_equal(config.egress_user, "me");
	assert_string_equal(config.egress_password_file, "/etc/vethguard/pw");
	assert_string_equal(config.audit_file, "/etc/vethguard/log/audit.jsonl");
	assert_int_equal(config.limits.connections, 1);
	assert_int_equal(config.limits.udp_flows, 0);
	assert_int_equal(config.limits.blocked_mints_per_min, 7);
	assert_int_equal(config.timeouts.idle_ms, 300000);
	assert_int_equal(config.timeouts.request_ms, 3600000);
	assert_int_equal(config.timeouts.connect_ms, 500);
	config_fini(&config);
}

static void test_faults(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *message; /* a part of it */
	} table[] = {
	        {"", 1, 1, "the file is empty"},
	        {"- a\n", 1, 1, "must be a mapping"},
	        {"limit: {}\n", 1, 1, "did you mean \"limits\"?"},
	        {"vethguard: 2\n", 1, 12, "from 1 to 1, not \"2\""},
	        {"allow: []\n", 1, 1, "\"allow\" belongs in a policy (--policy), not into"},
	        {"limits: {conections: 1}\n", 1, 10, "did you mean \"connections\"?"},
	        {"limits: {connections: 0}\n", 1, 23, "from 1 to 8000, not \"0\""},
	        {"limits: {connections: 8001}\n", 1, 23, "not \"8001\""},
	        {"limits: {connections: -1}\n", 1, 23, "not \"-1\""},
	        {"limits: {connections: 99999999999999999999}\n", 1, 23, "from 1 to 8000"},
	        {"limits: {connections: [1]}\n", 1, 23, "not a list"},
	        {"limits: 5\n", 1, 9, "must be a mapping"},
	        {"limits: {connections_per_s: 0}\n", 1, 29, "from 1 to 100000, not \"0\""},
	        {"limits: {connections_per_s: 100001}\n", 1, 29, "not \"100001\""},
	        {"limits: {packet_copies_per_s: 0}\n", 1, 31, "from 1 to 100000, not \"0\""},
	        {"limits: {packet_copies_per_s: 100001}\n", 1, 31, "not \"100001\""},
	        {"limits: {udp_datagrams_per_s: 0}\n", 1, 31, "from 1 to 1000000, not \"0\""},
	        {"limits: {udp_datagrams_per_s: 1000001}\n", 1, 31, "not \"1000001\""},
	        {"limits: {refusals_per_s: 0}\n", 1, 26, "from 1 to 100000, not \"0\""},
	        {"limits: {refusals_per_s: 100001}\n", 1, 26, "not \"100001\""},
	        {"limits: {dns_queries_per_s: 100001}\n", 1, 29, "not \"100001\""},
	        {"egress: 5\n", 1, 9, "must be a mapping"},
	        {"egress: {prox: \"http://p:1\"}\n", 1, 10, "did you mean \"proxy\"?"},
	        {"egress: {proxy: \"http://p\"}\n", 1, 17, "http://host:port"},
	        {"egress: {proxy: \"p:3128\"}\n", 1, 17, "http://host:port"},
	        {"egress: {proxy: \"https://p:3128\"}\n", 1, 17, "http://host:port"},
	        {"egress: {proxy: \"http://p:3128/x\"}\n", 1, 17, "http://host:port"},
	        {"egress: {proxy: \"http://p:0\"}\n", 1, 17, "http://host:port"},
	        {"egress: {proxy: \"http://p:70000\"}\n", 1, 17, "http://host:port"},
	        {"egress: {proxy: \"http://u:secret@p:3128\"}\n", 1, 17,
	                "but this file is not private"},
	        {"egress: {user: u, password_file: /p}\n", 1, 16, "belong to egress.proxy"},
	        {"egress: {resolve: local}\n", 1, 19, "belong to egress.proxy"},
	        {"egress: {proxy: \"http://p:1\", user: u}\n", 1, 37, "belong together"},
	        {"egress: {proxy: \"http://p:1\", password_file: /p}\n", 1, 46, "belong together"},
	        {"egress: {proxy: \"http://p:1\", user: \"a:b\", password_file: /p}\n", 1, 37,
	                "must not hold a colon"},
	        {"egress: {proxy: \"http://p:1\", resolve: there}\n", 1, 40, "there"},
	        {"egress: {interface: sixteen-letters0}\n", 1, 21,
	                "not the name of a network interface"},
	        {"egress: {interface: a/b}\n", 1, 21, "not the name of a network interface"},
	        {"egress: {address: []}\n", 1, 19, "empty list"},
	        {"egress: {address: {}}\n", 1, 19, "not a mapping"},
	        {"egress: {address: eth0}\n", 1, 19, "must be an IPv4 or IPv6 address"},
	        {"egress: {address: 10.0.0.256}\n", 1, 19, "not \"10.0.0.256\""},
	        {"egress: {address: \"10.0.0.1:80\"}\n", 1, 19, "without a port"},
	        {"egress: {address: 10.0.0.0/8}\n", 1, 19, "must be an IPv4 or IPv6 address"},
	        {"egress: {address: \"fe80::1%eth0\"}\n", 1, 19, "must be an IPv4 or IPv6 address"},
	        {"egress: {address: \"fe80::1\"}\n", 1, 19, "link-local: connections cannot"},
	        {"egress: {address: 0.0.0.0}\n", 1, 19, "connections cannot be made from it"},
	        {"egress: {address: \"::\"}\n", 1, 19, "connections cannot be made from it"},
	        {"egress: {address: 127.0.0.1}\n", 1, 19, "loopback: connections cannot"},
	        {"egress: {address: 224.0.0.1}\n", 1, 19, "multicast: connections cannot"},
	        {"egress: {address: \"::ffff:10.0.0.1\"}\n", 1, 19,
	                "connections cannot be made from it"},
	        {"egress: {address: [10.0.0.1, 10.0.0.2]}\n", 1, 30, "a second one of IPv4"},
	        {"egress: {address: [\"fd00::1\", \"fd00::1\"]}\n", 1, 31, "a second one of IPv6"},
	        {"timeouts: {idle: 5}\n", 1, 18, "a duration such as 500ms"},
	        {"timeouts: {idle: 5 m}\n", 1, 18, "a duration such as 500ms"},
	        {"timeouts: {idle: 0s}\n", 1, 18, "must be from 100ms"},
	        {"timeouts: {idle: 25h}\n", 1, 18, "must be from 100ms to 86400s"},
	        {"timeouts: {connections: 5s}\n", 1, 12, "unknown key \"connections\""},
	        {"resolver: {servers: []}\n", 1, 21, "empty list"},
	        {"resolver: {servers: [dns.example]}\n", 1, 22, "must be an address"},
	        {"resolver: {servers: [\"9.9.9.9:0\"]}\n", 1, 22, "must be an address"},
	        {"resolver: {servers: "
	         "[1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,2.2.2.2]}\n",
	                1, 86, "more than 8 servers"},
	        {"resolver: {hosts: {\"a b\": 1.1.1.1}}\n", 1, 20, "is not a host name"},
	        {"resolver: {hosts: {a: b}}\n", 1, 23, "not an IPv4 or IPv6 address"},
	        {"resolver: {hosts: {a: {}}}\n", 1, 23, "not a mapping"},
	        {"permit: [10.0.0.1/8]\n", 1, 10, "must be a network"},
	        {"permit: [all]\n", 1, 10, "must be a network"},
	        {"pools: {ipv4: 10.0.0.0/25}\n", 1, 15, "must have 8 to 24 bits, not 25"},
	        {"pools: {ipv4: 0.0.0.0/0}\n", 1, 15, "must have 8 to 24 bits, not 0"},
	        {"pools: {ipv4: \"fd00::/64\"}\n", 1, 15, "must be an IPv4 network"},
	        {"pools: {ipv6: \"fd00::/65\"}\n", 1, 15, "must have 8 to 64 bits, not 65"},
	        {"workers: 0\n", 1, 10, "from 1 to 16, not \"0\""},
	        {"workers: 17\n", 1, 10, "from 1 to 16, not \"17\""},
	        {"workers: two\n", 1, 10, "from 1 to 16"},
	        {"workers: [2]\n", 1, 10, "not a list"},
	        {"workers: 3\nlimits: {connections: 2}\n", 1, 10,
	                "more than limits: connections: 2, of which each worker gets a part"},
	        {"limits: {blocked_mints_per_min: 3}\nworkers: 4\n", 2, 10,
	                "more than limits: blocked_mints_per_min: 3"},
	        {"worker: 2\n", 1, 1, "did you mean \"workers\"?"},
	        {"watch: yes\n", 1, 8, "watch must be false or true"},
	        {"proxy_port: 0\n", 1, 13, "from 1 to 65535"},
	        {"proxy_port: 65536\n", 1, 13, "from 1 to 65535"},
	        {"audit_file: \"a\\nb\"\n", 1, 13, "control character"},
	        {"audit_file: [a]\n", 1, 13, "must be a single value"},
	        {"ca_files:\n", 1, 10, "has no value"},
	        {"ca: a\n", 1, 5, "mapping"},
	        {"ca: {key: 'file:/k'}\n", 1, 5, "root is missing"},
	        {"ca: {certificate: /c}\n", 1, 5, "root is missing"},
	        {"ca: {root: /r, certificate: /c}\n", 1, 5, "key is missing"},
	        {"ca: {root: /r, key: /k}\n", 1, 21, "must be \"file:\""},
	        {"ca: {root: /r, key: 'file:'}\n", 1, 21, "must be \"file:\""},
	        {"ca: {root: /r, key: 'pkcs11:token=x'}\n", 1, 21, "which key"},
	        {"ca: {root: /r, key: 'pkcs11:object=x'}\n", 1, 21, "which token"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y?pin-value=1'}\n", 1, 21,
	                "does not belong in the URI"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y'}\n", 1, 21, "token is missing"},
	        {"ca: {root: /r, key: 'file:/k', token: {module: /m.so, pin: 'file:/p'}}\n", 1, 39,
	                "needs a key that is a pkcs11"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: a}\n", 1, 55, "mapping"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {pin: 'file:/p'}}\n", 1, 55,
	                "module is missing"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m.so}}\n", 1, 55,
	                "pin is missing"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'1234'}}\n",
	                1, 73, "source must say"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'env:PIN'}}\n",
	                1, 73, "pin has to be file"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'file:/p', user: root}}\n",
	                1, 90, "never runs as root"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'file:/p', writable: [/]}}\n",
	                1, 95, "not /"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'file:/p', environment: {LD_PRELOAD: /x}}}\n",
	                1, 98, "of the loader"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'file:/p', environment: {a-b: c}}}\n",
	                1, 98, "not a variable's name"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'file:/p', timeout: 61s}}\n",
	                1, 93, "timeout must be from"},
	        {"ca: {root: /r, key: 'pkcs11:token=x;object=y', token: {module: /m, pin: "
	         "'file:/p', pni: 1}}\n",
	                1, 84, "pin"},
	        {"ca: {root: /r, kye: 'file:/k'}\n", 1, 16, "key"},
	        {"tokens: a\n", 1, 9, "mapping"},
	        {"tokens: [a]\n", 1, 9, "mapping"},
	        {"tokens: {a: b}\n", 1, 13, "mapping"},
	        {"tokens: {a: {pin: 'file:/p'}}\n", 1, 13, "module is missing"},
	        {"tokens: {a: {module: /m.so}}\n", 1, 13, "pin is missing"},
	        {"tokens: {a: {module: /m.so, pin: '1234'}}\n", 1, 34, "source must say"},
	        {"tokens: {a: {module: /m.so, pin: 'env:PIN'}}\n", 1, 34, "pin has to be file"},
	        {"tokens: {a: {module: /m.so, pin: 'file:/p', key: x}}\n", 1, 45, "key"},
	        {"tokens: {a: {module: /m.so, pin: 'file:/p', user: root}}\n", 1, 51,
	                "never runs as root"},
	        {"tokens: {'123456789012345678901234567890123': {}}\n", 1, 10, "32"},
	        {"tokens: {'': {}}\n", 1, 10, "label"},
	        {"tokens: {a: {module: /m, pin: 'file:/p'}, a: {module: /m, pin: 'file:/p'}}\n", 1,
	                43, "appears twice"},
	        {"tokens: {a: {module: /m, pin: 'file:/p'}, b: {module: /m, pin: 'file:/p'}, c: "
	         "{module: /m, pin: 'file:/p'}, d: {module: /m, pin: 'file:/p'}, e: {}}\n",
	                1, 142, "at most 4"},
	        {"ca: {root: /r, overlap: 59m}\n", 1, 25, "overlap must be from"},
	        {"ca: {root: /r, overlap: 87601h}\n", 1, 25, "overlap must be from"},
	        {"proxy_port: 1\nproxy_port: 2\n", 2, 1, "appears twice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct diag_list diags;
		struct config config;
		const struct diag *d = &diags.items[0];

		assert_int_equal(load(table[i].text, &config, &diags), -EINVAL);
		assert_true(diags.count >= 1);
		if (d->line != table[i].line || d->column != table[i].column ||
		        !strstr(d->message, table[i].message))
			fail_msg("%s: %u:%u: %s", table[i].text, d->line, d->column, d->message);
		config_fini(&config);
	}
}

/* All workers together stay within the limits; those that only one of them counts stay whole. */
static void test_workers(void **state)
{
	struct config_limits before, part;
	struct diag_list diags;
	struct config config;

	(void)state;
	assert_int_equal(load("{}\n", &config, &diags), 0);
	assert_int_equal(config.workers, 1);
	before = part = config.limits;
	config_limits_divide(&part, 1);
	assert_memory_equal(&part, &before, sizeof(part));
	config_fini(&config);
	assert_int_equal(load("workers: 16\nlimits: {connections: 17, upstream_idle: 0, "
	                      "blocked_mints_per_min: 0, refusals_per_s: 16}\n",
	                         &config, &diags),
	        0);
	assert_int_equal(config.workers, 16);
	part = config.limits;
	config_limits_divide(&part, config.workers);
	assert_int_equal(part.connections, 1);
	assert_int_equal(part.upstream_idle, 0);
	assert_int_equal(part.blocked_mints_per_min, 0);
	assert_int_equal(part.refusals_per_s, 1);
	assert_int_equal(part.streams, before.streams / 16);
	assert_int_equal(part.upstream_connections, before.upstream_connections / 16);
	assert_int_equal(part.leaf_certificates, before.leaf_certificates / 16);
	assert_int_equal(part.dns_names, before.dns_names);
	assert_int_equal(part.dns_queries_per_s, before.dns_queries_per_s);
	assert_int_equal(part.connections_per_s, before.connections_per_s);
	assert_int_equal(part.udp_flows, before.udp_flows);
	assert_int_equal(part.udp_datagrams_per_s, before.udp_datagrams_per_s);
	assert_int_equal(part.header_bytes, before.header_bytes);
	config_fini(&config);
}

static void test_tokens(void **state)
{
	struct diag_list diags;
	struct config config;

	(void)state;
	assert_int_equal(load("tokens:\n"
	                      "  clients: {module: /m.so, pin: 'file:/p', user: hsm}\n"
	                      "  Node 7: {module: /n.so, pin: 'exec:[/bin/pin, a]', writable: "
	                      "[/w], environment: {A: b}}\n",
	                         &config, &diags),
	        0);
	assert_int_equal(config.token_count, 2);
	assert_string_equal(config.tokens[0].label, "clients");
	assert_string_equal(config.tokens[0].uri, "pkcs11:token=clients");
	assert_string_equal(config.tokens[0].module, "/m.so");
	assert_string_equal(config.tokens[0].pin_file, "/p");
	assert_string_equal(config.tokens[0].user, "hsm");
	assert_string_equal(config.tokens[1].label, "Node 7");
	assert_string_equal(config.tokens[1].uri, "pkcs11:token=Node%207");
	assert_int_equal(config.tokens[1].pin_program.count, 2);
	assert_string_equal(config_token_text(&config.tokens[1].environment, 0), "A=b");
	assert_int_equal(config.ca.token.uri[0], 0);
	config_fini(&config);
	assert_int_equal(load("tokens: {}\n", &config, &diags), 0);
	assert_int_equal(config.token_count, 0);
	config_fini(&config);
}

static void test_too_many_hosts(void **state)
{
	struct diag_list diags;
	struct config config;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	fputs("resolver:\n  hosts:\n", f);
	for (int i = 0; i < CONFIG_HOSTS_MAX; i++)
		fprintf(f, "    h%d.example: 192.0.2.1\n", i);
	fflush(f);
	assert_int_equal(load(text, &config, &diags), 0);
	assert_int_equal(config.host_count, CONFIG_HOSTS_MAX);
	config_fini(&config);
	fputs("    more.example: [192.0.2.1, 192.0.2.2]\n", f);
	fclose(f);
	assert_int_equal(load(text, &config, &diags), -EINVAL);
	assert_int_equal(config.host_count, CONFIG_HOSTS_MAX);
	config_fini(&config);
	free(text);
}

static void test_unreadable(void **state)
{
	struct diag_list diags;
	struct config config;

	(void)state;
	assert_int_equal(load(NULL, &config, &diags), -EINVAL);
	assert_int_equal(diags.count, 1);
	assert_int_equal(diags.items[0].line, 0);
	config_fini(&config);
}

static bool yes(void *context)
{
	(void)context;
	return true;
}

/* {proxy: "URL"MORE} of a private file; the first message, or empty. */
static const char *load_proxy(const char *url, const char *more, struct config *config)
{
	static struct diag_list diags;
	char text[4096];
	struct policy_reader reader = {text, read_memory, NULL, yes};
	int rc;

	snprintf(text, sizeof(text), "egress: {proxy: \"%s\"%s}\n", url, more);
	memset(&diags, 0, sizeof(diags));
	config_init(config);
	rc = config_load(&reader, "/etc/vethguard/config.yaml", config, &diags);
	assert_int_equal(rc, diags.count ? -EINVAL : 0);
	for (size_t i = 0; i < diags.count; i++) /* no fault shows it */
		assert_null(strstr(diags.items[i].message, "s3cret"));
	return diags.count ? diags.items[0].message : "";
}

static void test_password(void **state)
{
	struct config config;

	(void)state;
	assert_string_equal(load_proxy("http://me:s3cret@P.example:3128/", "", &config), "");
	assert_string_equal(config.egress_user, "me");
	assert_string_equal(config.egress.proxy_host, "p.example");
	assert_int_equal(config.egress.proxy_port, 3128);
	assert_true(slice_equals(secret_slice(&config.egress_password), SLICE("s3cret")));
	config_fini(&config);
	assert_null(config.egress_password.p);
	assert_string_equal(
	        load_proxy("http://a%40b:s3cret%3a%2F:%c3%a9@[fd00::1]:1", "", &config), "");
	assert_string_equal(config.egress_user, "a@b");
	assert_true(
	        slice_equals(secret_slice(&config.egress_password), SLICE("s3cret:/:\xc3\xa9")));
	config_fini(&config);
}

static void test_bad_password(void **state)
{
	static const struct {
		const char *url, *more, *message;
	} table[] = {
	        {"http://me@p:1", "", "but not both"},
	        {"http://me:@p:1", "", "but not both"},
	        {"http://:s3cret@p:1", "", "its user is empty"},
	        {"http://s3cret@p:1", "", "but not both"},
	        {"http://me:s3cret%@p:1", "", "malformed escape or a control"},
	        {"http://me:s3cret%0a@p:1", "", "malformed escape or a control"},
	        {"http://me:s3cret%00@p:1", "", "malformed escape or a control"},
	        {"http://m%3ae:s3cret@p:1", "", "a colon (RFC 7617)"},
	        {"http://m%00e:s3cret@p:1", "", "a colon (RFC 7617)"},
	        {"http://me:s3cret@x@p:1", "", "as plain text"},
	        {"http://me:\\x73s3cret@p:1", "", "as plain text"},
	        {"http://me:s3cret/@p:1", "", "as plain text"},
	        {"https://me:s3cret@p:1", "", "form http://user:password@host:port"},
	        {"me:s3cret@p:1", "", "form http://user:password@host:port"},
	        {"http://me:s3cret@p", "", "with the port"},
	        {"http://me:s3cret@p:1/x", "", "with the port"},
	        {"http://me:s3cret@p:1", ", user: u, password_file: f", "write them once"},
	        {"http://me:s3cret@p:1\", other: \"http://me:s3cret2@q:1", "", "unknown key"},
	};
	struct config config;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *message = load_proxy(table[i].url, table[i].more, &config);

		if (!strstr(message, table[i].message))
			fail_msg("%s: %s", table[i].url, message);
		config_fini(&config);
	}
}

/* Of real files: whose they are, and who else may read them. */
static void test_private_files(void **state)
{
	static const mode_t modes[] = {0400, 0600, 0700, 0640, 0620, 0610, 0604, 0602, 0601, 0666};
	char path[] = "/tmp/vethguard-config-XXXXXX";
	struct policy_file_facts facts = {0};
	struct policy_reader reader = policy_reader_files(NULL);
	int fd = mkstemp(path);
	char *text;
	size_t n;

	(void)state;
	reader.context = &facts;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(fchmod(fd, modes[i]), 0);
		assert_int_equal(reader.read(reader.context, path, &text, &n), 0);
		assert_int_equal(facts.closed, (modes[i] & 077) == 0);
		assert_int_equal(facts.owner, geteuid());
		free(text);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_password),
	        cmocka_unit_test(test_bad_password),
	        cmocka_unit_test(test_private_files),
	        cmocka_unit_test(test_defaults),
	        cmocka_unit_test(test_every_key),
	        cmocka_unit_test(test_faults),
	        cmocka_unit_test(test_tokens),
	        cmocka_unit_test(test_workers),
	        cmocka_unit_test(test_too_many_hosts),
	        cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
