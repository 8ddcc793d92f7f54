/* SPDX-License-Identifier: Apache-2.0 */
/* Two configurations have the same egress, or differ in one part of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/config/settings.h"

static struct ip address(const char *text)
{
	struct ip ip;

	assert_true(ip_parse(slice_from_string(text), &ip));
	return ip;
}

/* With something of everything. */
static struct settings *settings_new(void)
{
	struct settings *s = calloc(1, sizeof(*s));
	struct config_egress *egress;

	assert_non_null(s);
	s->server_count = 2;
	s->servers[0] = (struct config_server){address("192.0.2.53"), 53};
	s->servers[1] = (struct config_server){address("2001:db8::53"), 5353};
	s->host_count = 2;
	s->hosts = calloc(s->host_count, sizeof(*s->hosts));
	assert_non_null(s->hosts);
	snprintf(s->hosts[0].name, sizeof(s->hosts[0].name), "a.example");
	s->hosts[0].address = address("192.0.2.1");
	snprintf(s->hosts[1].name, sizeof(s->hosts[1].name), "b.example");
	s->hosts[1].address = address("2001:db8::1");
	s->config.permit_count = 2;
	s->config.permit[0] = (struct ip_prefix){address("10.20.0.0"), 16};
	s->config.permit[1] = (struct ip_prefix){address("fd00::"), 8};
	egress = &s->config.egress;
	egress->proxy_port = 3128;
	snprintf(egress->proxy_host, sizeof(egress->proxy_host), "proxy.example");
	snprintf(egress->interface, sizeof(egress->interface), "eth0");
	egress->address4 = address("192.0.2.7");
	egress->address6 = address("2001:db8::7");
	assert_int_equal(secret_copy(&s->egress_pair, "user:password", 13), 0);
	return s;
}

static void settings_end(struct settings *s)
{
	secret_free(&s->egress_pair);
	free(s->hosts);
	free(s);
}

static void the_same(void **state)
{
	struct settings *a = settings_new(), *b = settings_new();

	(void)state;
	assert_true(settings_same_egress(a, a));
	assert_true(settings_same_egress(a, b));
	memset(b->hosts[0].name + sizeof("a.example"), 'x', 8); /* behind its end */
	b->config.timeouts.idle_ms++;                           /* not of the way out */
	b->config.limits.connections++;
	assert_true(settings_same_egress(a, b));
	settings_end(a);
	settings_end(b);
}

static void fewer_servers(struct settings *s)
{
	s->server_count--;
}

static void server(struct settings *s)
{
	s->servers[1].address = address("2001:db8::54");
}

static void server_port(struct settings *s)
{
	s->servers[0].port = 54;
}

static void fewer_hosts(struct settings *s)
{
	s->host_count--;
}

static void host_name(struct settings *s)
{
	s->hosts[1].name[0] = 'c';
}

static void host_address(struct settings *s)
{
	s->hosts[0].address = address("192.0.2.2");
}

static void nothing_permitted(struct settings *s)
{
	s->config.permit_count = 0;
}

static void permit_narrower(struct settings *s)
{
	s->config.permit[0].bits = 24;
}

static void permit_another(struct settings *s)
{
	s->config.permit[1].base = address("fe00::");
}

static void no_proxy(struct settings *s)
{
	s->config.egress.proxy_port = 0;
}

static void proxy_host(struct settings *s)
{
	s->config.egress.proxy_host[0] = 'q';
}

static void proxy_address(struct settings *s)
{
	s->config.egress.proxy_address = address("192.0.2.8");
}

static void resolve(struct settings *s)
{
	s->config.egress.resolve_local = !s->config.egress.resolve_local;
}

static void interface(struct settings *s)
{
	s->config.egress.interface[0] = 0;
}

static void source4(struct settings *s)
{
	s->config.egress.address4 = (struct ip){0};
}

static void source6(struct settings *s)
{
	s->config.egress.address6 = address("2001:db8::8");
}

static void password(struct settings *s)
{
	secret_free(&s->egress_pair);
	assert_int_equal(secret_copy(&s->egress_pair, "user:passwort", 13), 0);
}

static void no_password(struct settings *s)
{
	secret_free(&s->egress_pair);
}

static void one_thing_is_another(void **state)
{
	static void (*const changes[])(struct settings * s) = {fewer_servers, server, server_port,
	        fewer_hosts, host_name, host_address, nothing_permitted, permit_narrower,
	        permit_another, no_proxy, proxy_host, proxy_address, resolve, interface, source4,
	        source6, password, no_password};
	struct settings *a = settings_new();

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct settings *b = settings_new();

		changes[i](b);
		if (settings_same_egress(a, b) || settings_same_egress(b, a))
			fail_msg("change %zu is not seen", i);
		settings_end(b);
	}
	settings_end(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_same),
	        cmocka_unit_test(one_thing_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
