/* SPDX-License-Identifier: Apache-2.0 */
/* /etc/resolv.conf and /etc/hosts as people and tools write them, wrong lines included. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "vethguard/policy/host_files.h"

static struct config_server servers[CONFIG_SERVERS_MAX];
static struct config_host hosts[8];

static size_t resolv(const char *text)
{
	memset(servers, 0, sizeof(servers));
	return host_files_parse_resolv(slice_from_string(text), servers, CONFIG_SERVERS_MAX);
}

static void nameservers(void **state)
{
	char text[IP_TEXT_MAX];

	(void)state;
	assert_int_equal(resolv("# made by a tool\nsearch example\nnameserver 192.0.2.53\n"
	                        "nameserver\t2001:db8::53 # second\r\noptions edns0"),
	        2);
	assert_string_equal(ip_format(&servers[0].address, text), "192.0.2.53");
	assert_string_equal(ip_format(&servers[1].address, text), "2001:db8::53");
	assert_int_equal(servers[1].port, 53);
}

static void lines_that_name_no_server(void **state)
{
	(void)state;
	assert_int_equal(resolv(""), 0);
	assert_int_equal(resolv("\n\n\n"), 0);
	assert_int_equal(resolv("nameserver"), 0);
	assert_int_equal(resolv("nameserver \n"), 0);
	assert_int_equal(resolv("nameserver 300.1.1.1\n"), 0);
	assert_int_equal(resolv("nameserver fe80::1%eth0\n"), 0);
	assert_int_equal(resolv("nameserver dns.example\n"), 0);
	assert_int_equal(resolv("nameservers 192.0.2.1\n"), 0);
	assert_int_equal(resolv("#nameserver 192.0.2.1\n; nameserver 192.0.2.2\n"), 0);
	assert_int_equal(resolv("# nameserver 192.0.2.1"), 0);
}

static void more_servers_than_room(void **state)
{
	char text[1024];
	size_t n = 0;

	(void)state;
	for (int i = 0; i < CONFIG_SERVERS_MAX + 3; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "nameserver 192.0.2.%d\n", i + 1);
	assert_int_equal(resolv(text), CONFIG_SERVERS_MAX);
}

static size_t parse(const char *text, size_t own, size_t max, bool *fits)
{
	size_t count = own;

	*fits = host_files_parse_hosts(slice_from_string(text), hosts, own, &count, max);
	return count;
}

static void names_of_one_address(void **state)
{
	bool fits;

	(void)state;
	assert_int_equal(parse("192.0.2.1\tAPI.Example api # comment\n\n::1 localhost\n2001:db8::1 "
	                       "api.example",
	                         0, 8, &fits),
	        4);
	assert_true(fits);
	assert_string_equal(hosts[0].name, "api.example");
	assert_string_equal(hosts[1].name, "api");
	assert_string_equal(hosts[2].name, "localhost");
	assert_string_equal(hosts[3].name, "api.example");
	assert_int_equal(hosts[3].address.family, 6);
}

static void lines_that_name_no_host(void **state)
{
	bool fits;

	(void)state;
	assert_int_equal(parse("192.0.2.1\n", 0, 8, &fits), 0);
	assert_int_equal(parse("192.0.2.1   # only a comment\n", 0, 8, &fits), 0);
	assert_int_equal(parse("# 192.0.2.1 commented\n", 0, 8, &fits), 0);
	assert_int_equal(parse("not-an-address name\n", 0, 8, &fits), 0);
	assert_int_equal(parse("192.0.2.1 bad!name 10.0.0.1 a..b\n", 0, 8, &fits), 0);
	assert_int_equal(parse("fe80::1%lo0 name\n", 0, 8, &fits), 0);
	assert_true(fits);
}

static void the_configuration_wins(void **state)
{
	bool fits;

	(void)state;
	hosts[0] = (struct config_host){"api.example", {4, {192, 0, 2, 99}}};
	assert_int_equal(parse("192.0.2.1 api.example other.example\n", 1, 8, &fits), 2);
	assert_int_equal(hosts[0].address.bytes[3], 99);
	assert_string_equal(hosts[1].name, "other.example");
}

static void more_names_than_room(void **state)
{
	bool fits;

	(void)state;
	assert_int_equal(parse("192.0.2.1 a b c\n192.0.2.2 d e\n", 0, 4, &fits), 4);
	assert_false(fits);
	assert_int_equal(parse("192.0.2.1 a b c\n192.0.2.2 d\n", 0, 4, &fits), 4);
	assert_true(fits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(nameservers),
	        cmocka_unit_test(lines_that_name_no_server),
	        cmocka_unit_test(more_servers_than_room),
	        cmocka_unit_test(names_of_one_address),
	        cmocka_unit_test(lines_that_name_no_host),
	        cmocka_unit_test(the_configuration_wins),
	        cmocka_unit_test(more_names_than_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
