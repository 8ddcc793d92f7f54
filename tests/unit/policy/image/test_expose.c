/* SPDX-License-Identifier: Apache-2.0 */
/* Which sources may reach an exposed port, and what of a port makes a difference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../policy_test.h"
#include "vethguard/policy/expose.h"

static const char text[] =
        "vethguard: 1\n"
        "expose:\n"
        "  - {name: page, port: 8080, from: [host, 10.1.0.0/16, 192.0.2.7], at: \"10.1.0.1:80\"}\n"
        "  - {port: 9000, from: [\"sandbox:planner\", \"label:team=a=b\"], connections: 7}\n"
        "  - {name: six, port: 9001, from: [\"fd00::/8\"], at: \"[fd00::1]:81\"}\n";

static struct test_policy t;

static int load(void **state)
{
	(void)state;
	test_load(&t, text, false);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	test_unload(&t);
	return 0;
}

static bool admits_address(uint16_t port, const char *address, bool own)
{
	struct policy_peer peer = {.own = own};

	assert_true(ip_parse(slice_from_string(address), &peer.address));
	return policy_expose_admits(&t.policy, policy_expose_find(&t.policy, port), &peer);
}

static bool admits_sandbox(uint16_t port, const char *name, const char *label)
{
	const struct slice labels[] = {SLICE("x=y"), slice_from_string(label)};
	const struct policy_peer peer = {
	        .sandbox = slice_from_string(name), .labels = labels, .label_count = label ? 2 : 0};

	return policy_expose_admits(&t.policy, policy_expose_find(&t.policy, port), &peer);
}

static void test_addresses(void **state)
{
	(void)state;
	assert_true(admits_address(8080, "10.1.255.255", false));
	assert_true(admits_address(8080, "192.0.2.7", false));
	assert_true(admits_address(8080, "203.0.113.1", true));
	assert_true(admits_address(9001, "fd12::1", false));
	assert_false(admits_address(8080, "203.0.113.1", false));
	assert_false(admits_address(8080, "10.2.0.0", false));
	assert_false(admits_address(8080, "192.0.2.8", false));
	assert_false(admits_address(8080, "::ffff:192.0.2.7", false));
	assert_false(admits_address(
	        8080, "127.0.0.1", false)); /* only a caller that knows it may say so */
	assert_false(admits_address(9000, "10.1.0.1", true));
	assert_false(admits_address(9001, "10.1.0.1", true));
	assert_false(admits_address(8081, "10.1.0.1", true));
}

/* A sandbox is not the machine that it runs on, and has no address. */
static void test_sandboxes(void **state)
{
	struct policy_peer both = {.sandbox = SLICE("other"), .own = true, .address = {4, {10, 1}}};

	(void)state;
	assert_true(admits_sandbox(9000, "planner", NULL));
	assert_true(admits_sandbox(9000, "any", "team=a=b"));
	assert_false(admits_sandbox(9000, "Planner", NULL));
	assert_false(admits_sandbox(9000, "planner2", NULL));
	assert_false(admits_sandbox(9000, "plan", NULL));
	assert_false(admits_sandbox(9000, "any", "team=a"));
	assert_false(admits_sandbox(9000, "any", "team=a=bc"));
	assert_false(admits_sandbox(9000, "team=a=b", "other=1"));
	assert_false(admits_sandbox(8080, "planner", "team=a=b"));
	assert_false(policy_expose_admits(&t.policy, 0, &both));
	assert_false(policy_expose_admits(&t.policy, 3, &both));
	assert_false(policy_expose_admits(&t.policy, POLICY_NONE, &both));
}

static void test_reading(void **state)
{
	struct policy_expose e;
	struct policy_from from;
	char out[POLICY_EXPOSE_TEXT_MAX], small[12];

	(void)state;
	assert_int_equal(policy_expose_count(&t.policy), 3);
	policy_expose(&t.policy, 1, &e);
	assert_true(slice_equals(e.name, SLICE("expose[1]")));
	assert_int_equal(e.at.family, 0);
	assert_int_equal(e.connections, 7);
	policy_expose(&t.policy, 0, &e);
	assert_int_equal(e.connections, POLICY_EXPOSE_CONNECTIONS);
	assert_string_equal(policy_expose_text(&t.policy, 0, out, sizeof(out)),
	        "8080 at 10.1.0.1:80 from host, 10.1.0.0/16, 192.0.2.7");
	assert_string_equal(policy_expose_text(&t.policy, 1, out, sizeof(out)),
	        "9000 from sandbox:planner, label:team=a=b");
	assert_string_equal(policy_expose_text(&t.policy, 2, out, sizeof(out)),
	        "9001 at [fd00::1]:81 from fd00::/8");
	assert_string_equal(policy_expose_text(&t.policy, 2, small, sizeof(small)), "9001 at [fd");
	policy_expose(&t.policy, 3, &e);
	assert_int_equal(e.port + e.at_port + e.connections + e.from_count, 0);
	policy_expose_from(&t.policy, 0, 3, &from);
	assert_int_equal(from.kind, POLICY_FROM_COUNT);
	policy_expose_from(&t.policy, 3, 0, &from);
	assert_int_equal(from.kind, POLICY_FROM_COUNT);
}

static bool same(const char *entry)
{
	char other[512];
	struct test_policy o;
	bool equals;

	snprintf(other, sizeof(other), "vethguard: 1\nexpose:\n  - {%s}\n", entry);
	test_load(&o, other, false);
	equals = policy_expose_equals(&t.policy, 0, &o.policy, 0);
	assert_int_equal(policy_expose_equals(&o.policy, 0, &t.policy, 0), equals);
	test_unload(&o);
	return equals;
}

static void test_equals(void **state)
{
	(void)state;
	assert_true(same("port: 8080, from: [192.0.2.7, 10.1.0.0/16, host], at: \"10.1.0.1:80\""));
	assert_false(same("port: 8080, from: [10.1.0.0/16, host], at: \"10.1.0.1:80\""));
	assert_false(same("port: 8080, from: [192.0.2.8, 10.1.0.0/16, host], at: \"10.1.0.1:80\""));
	assert_false(same("port: 8081, from: [192.0.2.7, 10.1.0.0/16, host], at: \"10.1.0.1:80\""));
	assert_false(same("port: 8080, from: [192.0.2.7, 10.1.0.0/16, host], at: \"10.1.0.2:80\""));
	assert_false(same("port: 8080, from: [192.0.2.7, 10.1.0.0/16, host], at: \"10.1.0.1:81\""));
	assert_false(same("port: 8080, from: [192.0.2.7, 10.1.0.0/16, host], at: \"10.1.0.1:80\", "
	                  "connections: 1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, load, unload)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_addresses),
	        TEST(test_sandboxes),
	        TEST(test_reading),
	        TEST(test_equals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
