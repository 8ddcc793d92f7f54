/* SPDX-License-Identifier: Apache-2.0 */
/* Setting, changing and checking a fence; nft looks at and damages the rules from outside. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "world.h"

static int set(void *spec)
{
	return fence_set(spec);
}

static int check(void *spec)
{
	return fence_check(spec);
}

static int check_in_gate(struct world *w)
{
	return netns_run(w->gate, check, &w->spec);
}

/* The ruleset as nft lists it; the listing is the caller's to free. */
static char *listing(struct world *w)
{
	char name[] = "/tmp/vethguard-listing-XXXXXX", command[128];
	char *text = calloc(1, 65536);
	int fd = mkstemp(name);
	ssize_t n;

	assert_true(fd >= 0 && text);
	snprintf(command, sizeof(command), "nft list ruleset > %s", name);
	assert_int_equal(world_shell(w, command), 0);
	n = read(fd, text, 65535);
	assert_true(n >= 0 && n < 65535);
	close(fd);
	unlink(name);
	return text;
}

static void set_again_changes_nothing(void **state)
{
	struct world *w = *state;
	char *before = listing(w), *after;

	assert_non_null(strstr(before, "tproxy"));
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(check_in_gate(w), 0);
	after = listing(w);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void set_replaces_what_differs(void **state)
{
	struct world *w = *state;
	struct fence_spec old = w->spec;

	w->spec.sandbox4 = world_ip("10.77.0.6");
	w->spec.tcp_port ^= 1;
	assert_int_equal(check_in_gate(w), -ESTALE);
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(netns_run(w->gate, check, &old), -ESTALE);
}

static void each_part_of_the_spec_is_checked(void **state)
{
	struct world *w = *state;
	struct fence_spec s[13];

	for (size_t i = 0; i < 13; i++)
		s[i] = w->spec;
	s[0].sandbox4 = world_ip("10.77.0.3");
	s[1].sandbox6 = world_ip("fd77::3");
	s[2].gate6 = world_ip("fd77::9");
	s[3].tcp_port++;
	s[4].dns_port++;
	s[5].udp_ports[0]++;
	s[6].udp_port_count = 0;
	s[7].nflog_group++;
	s[8].whole_namespace = false;
	s[9].bounds.connections_per_s++;
	s[10].bounds.queries_per_s++;
	s[11].bounds.copies_per_s++;
	s[12].bounds.datagrams_per_s++;
	for (size_t i = 0; i < 13; i++)
		assert_int_equal(netns_run(w->gate, check, &s[i]), -ESTALE);
}

static void udp_ports_alone_can_change(void **state)
{
	struct world *w = *state;
	struct fence_spec old = w->spec;

	w->spec.udp_port_count = FENCE_UDP_PORTS_MAX;
	for (size_t i = 0; i < FENCE_UDP_PORTS_MAX; i++)
		w->spec.udp_ports[i] = (uint16_t)(65535 - i);
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(netns_run(w->gate, check, &old), -ESTALE);
	w->spec.udp_port_count = 0;
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(check_in_gate(w), 0);
	w->spec.udp_port_count = 3; /* one of them named twice */
	w->spec.udp_ports[2] = w->spec.udp_ports[0];
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(check_in_gate(w), 0);
}

static void damage_is_detected_and_mended(void **state)
{
	struct world *w = *state;
	static const char *const damages[] = {
	        "nft delete rule inet vethguard link-vg0 handle "
	        "$(nft -a list chain inet vethguard link-vg0 | sed -n 's/.*reject.* handle //p')",
	        "nft flush chain inet vethguard link-vg0",
	        "nft insert rule inet vethguard link-vg0 accept",
	        "nft add rule inet vethguard link-vg0 counter",
	        "nft add rule inet vethguard forward accept",
	        "nft flush chain inet vethguard prerouting",
	        "nft flush chain inet vethguard over-vg0",
	        "nft insert rule inet vethguard over-vg0 accept",
	        "nft flush chain netdev vethguard in-vg0",
	        "nft insert rule netdev vethguard in-vg0 accept",
	        "nft flush chain netdev vethguard wire-vg0",
	        "nft insert rule netdev vethguard wire-vg0 accept",
	        "nft 'delete element inet vethguard links { vg0 }'",
	        "nft 'delete element inet vethguard sandboxes { vg0 }'",
	        "nft 'delete element netdev vethguard extensions { 43 }'",
	        "nft 'add element netdev vethguard extensions { 6 }'",
	        "nft 'add element inet vethguard udp-vg0 { 9999 }'",
	        "nft 'delete element inet vethguard udp-vg0 { 123 }'",
	        "nft 'chain inet vethguard forward { policy accept; }'",
	        "nft 'chain inet vethguard input { policy accept; }'",
	        "nft 'chain netdev vethguard in-vg0 { policy accept; }'",
	        "nft 'add table inet vethguard { flags dormant; }'",
	        "nft delete table netdev vethguard",
	        "nft delete table inet vethguard",
	        "nft flush ruleset",
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		if (world_shell(w, damages[i]) != 0)
			fail_msg("nft refused: %s", damages[i]);
		if (check_in_gate(w) != -ESTALE)
			fail_msg("not detected: %s", damages[i]);
		assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
		if (check_in_gate(w) != 0)
			fail_msg("not mended: %s", damages[i]);
	}
}

static void rules_beside_ours_are_detected(void **state)
{
	struct world *w = *state;
	static const char *const additions[] = {
	        "nft 'add chain inet vethguard evil { type filter hook prerouting priority -500; "
	        "}'",
	        "nft 'add chain netdev vethguard evil { type filter hook ingress device vg0 "
	        "priority -500; }'",
	        "nft 'add table ip other'",
	        "nft 'add table ip vethguard'",
	        "nft 'add chain inet vethguard x; add element inet vethguard sandboxes "
	        "{ eth9 : goto x }'",
	        "nft 'add element inet vethguard sandboxes { eth9 : accept }'",
	};

	for (size_t i = 0; i < sizeof(additions) / sizeof(additions[0]); i++) {
		if (world_shell(w, additions[i]) != 0)
			fail_msg("nft refused: %s", additions[i]);
		if (check_in_gate(w) != -ESTALE)
			fail_msg("not detected: %s", additions[i]);
		assert_int_equal(world_shell(w, "nft flush ruleset"), 0);
		assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
		assert_int_equal(check_in_gate(w), 0);
	}
}

static void a_host_may_have_tables_of_its_own(void **state)
{
	struct world *w = *state;

	assert_int_equal(world_shell(w, "nft flush ruleset"), 0);
	w->spec.whole_namespace = false;
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(world_shell(w, "nft 'add table ip other'"), 0);
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(world_shell(w, "nft list tables | grep -qx 'table ip other'"), 0);
}

static int add_second_link(void *context)
{
	struct world *w = context;
	static const uint8_t mac[6] = {2, 0, 0, 0, 1, 1}, peer[6] = {2, 0, 0, 0, 1, 2};
	struct netlink *nl;

	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(netlink_veth_add(nl, "vg1", mac, "eth1", peer, w->sandbox), 0);
	assert_int_equal(netlink_link_up(nl, "vg1"), 0);
	netlink_close(nl);
	return 0;
}

static void two_fences_do_not_meet(void **state)
{
	struct world *w = *state;
	struct fence_spec second = w->spec;

	snprintf(second.interface, sizeof(second.interface), "vg1");
	second.sandbox4 = world_ip("10.77.1.2");
	assert_int_equal(netns_run(w->gate, check, &second), -ESTALE);
	assert_int_equal(netns_run(w->gate, add_second_link, w), 0);
	assert_int_equal(netns_run(w->gate, set, &second), 0);
	assert_int_equal(netns_run(w->gate, check, &second), 0);
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(world_shell(w, "nft flush chain inet vethguard link-vg1"), 0);
	assert_int_equal(netns_run(w->gate, check, &second), -ESTALE);
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(netns_run(w->gate, check, &second), -ESTALE);
	assert_int_equal(netns_run(w->gate, set, &second), 0);
	assert_int_equal(netns_run(w->gate, check, &second), 0);
	assert_int_equal(check_in_gate(w), 0);
}

static void a_failed_set_leaves_all_as_it_was(void **state)
{
	struct world *w = *state;
	struct fence_spec absent = w->spec;
	char *before = listing(w), *after;

	snprintf(absent.interface, sizeof(absent.interface), "nosuch0");
	assert_int_equal(netns_run(w->gate, set, &absent), -ENODEV);
	after = listing(w);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void bad_specs_are_refused(void **state)
{
	struct world *w = *state;
	struct fence_spec s[16];

	for (size_t i = 0; i < 16; i++)
		s[i] = w->spec;
	s[0].interface[0] = 0;
	memset(s[1].interface, 'x', sizeof(s[1].interface));
	snprintf(s[2].interface, sizeof(s[2].interface), "lo");
	s[3].sandbox4 = w->spec.sandbox6;
	s[4].sandbox6 = w->spec.sandbox4;
	s[5].sandbox4.family = s[5].sandbox6.family = 0;
	s[6].tcp_port = 0;
	s[7].dns_port = 0;
	s[8].udp_port_count = FENCE_UDP_PORTS_MAX + 1;
	s[9].udp_ports[0] = 0;
	s[10].gate4 = w->spec.gate6;
	s[11].gate6 = w->spec.gate4;
	s[12].bounds.connections_per_s = FENCE_PER_S_MAX + 1;
	s[13].bounds.queries_per_s = FENCE_PER_S_MAX + 1;
	s[14].bounds.copies_per_s = FENCE_PER_S_MAX + 1;
	s[15].bounds.datagrams_per_s = FENCE_PER_S_MAX + 1;
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(netns_run(w->gate, set, &s[i]), -EINVAL);
		assert_int_equal(netns_run(w->gate, check, &s[i]), -EINVAL);
	}
	assert_int_equal(check_in_gate(w), 0);
}

static void any_bounds_fit(void **state)
{
	struct world *w = *state;
	static const uint32_t some[] = {0, 1, 1000, FENCE_PER_S_MAX};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		w->spec.bounds = (struct fence_bounds){some[i], some[i], some[i], some[i]};
		assert_int_equal(check_in_gate(w), -ESTALE);
		assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
		assert_int_equal(check_in_gate(w), 0);
	}
}

static void one_family_is_enough(void **state)
{
	struct world *w = *state;
	struct fence_spec s = w->spec;

	s.sandbox6.family = s.gate6.family = 0;
	assert_int_equal(netns_run(w->gate, set, &s), 0);
	assert_int_equal(netns_run(w->gate, check, &s), 0);
	s = w->spec;
	s.sandbox4.family = s.gate4.family = 0;
	assert_int_equal(netns_run(w->gate, set, &s), 0);
	assert_int_equal(netns_run(w->gate, check, &s), 0);
}

static void the_longest_interface_name_fits(void **state)
{
	struct world *w = *state;
	struct fence_spec s = w->spec;

	snprintf(s.interface, sizeof(s.interface), "vg-fifteen-char");
	assert_int_equal(check_in_gate(w), 0);
	assert_int_equal(
	        world_shell(w, "ip link set vg0 down && ip link set vg0 name vg-fifteen-char "
	                       "&& ip link set vg-fifteen-char up"),
	        0);
	assert_int_equal(check_in_gate(w), -ESTALE);
	/* On Linux 6.12 the hook of the old name follows the interface. */
	assert_int_equal(world_shell(w, "nft delete table netdev vethguard"), 0);
	assert_int_equal(netns_run(w->gate, set, &s), 0);
	assert_int_equal(netns_run(w->gate, check, &s), 0);
}

static int counters_of_nothing(void *context)
{
	(void)context;
	struct fence_counters c = {1, 1, 1, 1, 1};
	int result = fence_counters_get("nosuch0", &c);

	assert_int_equal(c.packets, 0);
	assert_int_equal(c.connections, 0);
	assert_int_equal(c.datagrams, 0);
	assert_int_equal(fence_counters_get("sixteen-letters-", &c), -EINVAL);
	return result;
}

static void counters_of_no_fence_are_an_error(void **state)
{
	struct world *w = *state;

	assert_int_equal(netns_run(w->gate, counters_of_nothing, NULL), -ENOENT);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_WORLD(set_again_changes_nothing),
	        IN_WORLD(set_replaces_what_differs),
	        IN_WORLD(each_part_of_the_spec_is_checked),
	        IN_WORLD(udp_ports_alone_can_change),
	        IN_WORLD(damage_is_detected_and_mended),
	        IN_WORLD(rules_beside_ours_are_detected),
	        IN_WORLD(a_host_may_have_tables_of_its_own),
	        IN_WORLD(two_fences_do_not_meet),
	        IN_WORLD(a_failed_set_leaves_all_as_it_was),
	        IN_WORLD(bad_specs_are_refused),
	        IN_WORLD(any_bounds_fit),
	        IN_WORLD(one_family_is_enough),
	        IN_WORLD(the_longest_interface_name_fits),
	        IN_WORLD(counters_of_no_fence_are_an_error),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
