/* SPDX-License-Identifier: Apache-2.0 */
/* A gate on an existing interface: what it refuses, what it learns, and who reaches nobody.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gate_world.h"

#define NEVER_MS 300 /* for what must not happen */

/* Two containers on one bridge of the host, as a container engine makes them. */
static int one, two;

static void make_bridge(void)
{
	assert_int_equal(shell(-1, "ip link set lo up; ip link add br7 type bridge; "
	                           "ip addr add 172.30.0.1/24 dev br7; "
	                           "ip -6 addr add fd30::1/64 dev br7 nodad; ip link set br7 up"),
	        0);
}

static int make_container(int number)
{
	int netns = netns_new();

	assert_true(netns >= 0);
	assert_int_equal(shell(-1,
	                         "ip link add p%d type veth peer name eth0 netns /proc/%d/fd/%d; "
	                         "ip link set p%d master br7 up",
	                         number, getpid(), netns, number),
	        0);
	assert_int_equal(
	        shell(netns,
	                "ip link set lo up; sysctl -qw net.ipv6.conf.eth0.accept_dad=0; "
	                "ip addr add 172.30.0.%d/24 dev eth0; ip -6 addr add fd30::%d/64 dev eth0 "
	                "nodad; ip link set eth0 up; ip route add default via 172.30.0.1; "
	                "ip -6 route add default via fd30::1",
	                number + 1, number + 1),
	        0);
	return netns;
}

static int set_up(void **state)
{
	open_host(state);
	make_bridge();
	one = make_container(1);
	two = make_container(2);
	return 0;
}

static int tear_down(void **state)
{
	close_host(state);
	close(one);
	close(two);
	shell(-1, "ip link del p1 2>/dev/null; ip link del p2 2>/dev/null; "
	          "ip link del x7 2>/dev/null; ip link del br7; "
	          "nft flush ruleset");
	return 0;
}

static int open_divert(struct gate *gate, const struct gate_divert *asked)
{
	int error = gate_open_divert(gate, host, asked);

	return error ? error : gate_connect(gate);
}

static int divert(struct gate *gate, const char *interface)
{
	struct gate_divert asked = {.interface = interface};

	assign(gate);
	return open_divert(gate, &asked);
}

static void in_order(struct gate *gate)
{
	int result = gate_repair(gate);

	if (result != 0)
		fail_msg("%d: %s", result, gate->why);
}

/* Nothing listens there: whichever host is reached refuses, which is an answer. */
static bool meets(int netns, const char *address, int wait_ms)
{
	struct dial d = {address, 9, wait_ms};

	return netns_run(netns, in_dial, &d) == ECONNREFUSED;
}

static void a_port_is_diverted_and_its_neighbor_is_not(void **state)
{
	struct gate gate;

	(void)state;
	assert_true(meets(one, "172.30.0.3", WAIT_MS));
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_true(ip_equals(&gate.gate4, &(struct ip){.family = 4, .bytes = {172, 30, 0, 1}}));
	assert_int_equal(gate.source4.bits, 24);
	assert_int_equal(gate.source6.bits, 64);
	in_order(&gate);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(dial(one, "2001:db8::1", 80), 0);
	assert_int_equal(dial(one, "172.30.0.1", 80), 0); /* the gate, not the host */
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	assert_false(meets(one, "172.30.0.3", NEVER_MS));
	assert_false(meets(two, "172.30.0.2", NEVER_MS));
	assert_true(meets(two, "172.30.0.1", WAIT_MS));
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
	assert_true(meets(one, "172.30.0.3", WAIT_MS));
}

static void two_guarded_containers_do_not_meet(void **state)
{
	struct gate gates[2];

	(void)state;
	assert_int_equal(divert(&gates[0], "p1"), 0);
	assert_int_equal(divert(&gates[1], "p2"), 0);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(dial(two, "8.8.8.8", 80), 0);
	assert_false(meets(one, "172.30.0.3", NEVER_MS));
	assert_false(meets(two, "fd30::2", NEVER_MS));
	/* One goes; the other stays guarded. */
	assert_int_equal(gate_remove(&gates[0], host, NULL, true), 0);
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	in_order(&gates[1]);
	assert_int_equal(dial(two, "8.8.8.8", 80), 0);
	assert_int_equal(gate_remove(&gates[0], host, NULL, false), 0);
	assert_true(meets(one, "172.30.0.1", WAIT_MS));
	assert_int_equal(gate_remove(&gates[1], host, NULL, false), 0);
}

/* From the second one on nothing has to be deleted in a gate of the store, whatever its addresses.
 */
static void gates_without_addresses_are_in_store(void **state)
{
	struct gate gates[2], like;

	(void)state;
	assign(&like);
	assert_int_equal(gate_host_prepare(host, &like, 2), 0);
	assert_int_equal(divert(&gates[0], "p1"), 0);
	assert_int_equal(gates[0].prepared, FENCE_OTHER);
	run_loop(300);
	assert_int_equal(divert(&gates[1], "p2"), 0);
	assert_int_equal(gates[1].prepared, FENCE_BARE);
	for (size_t i = 0; i < 2; i++) {
		gates[i].generation = 0; /* the rules are to be compared, not only their number */
		in_order(&gates[i]);
	}
	assert_int_equal(dial(two, "8.8.8.8", 80), 0);
	assert_int_equal(dial(two, "2001:db8::1", 80), 0);
	assert_false(meets(two, "172.30.0.2", NEVER_MS));
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(gate_remove(&gates[i], host, NULL, false), 0);
}

/* Whether the host has any of the tables. */
static bool has_tables(void)
{
	return shell(-1, "nft list tables | grep -q vethguard-divert") == 0;
}

static void the_tables_go_with_the_last_interface(void **state)
{
	struct gate gates[2];

	(void)state;
	assert_int_equal(divert(&gates[0], "p1"), 0);
	assert_int_equal(divert(&gates[1], "p2"), 0);
	assert_int_equal(gate_remove(&gates[0], host, NULL, false), 0);
	assert_true(has_tables());
	in_order(&gates[1]);
	assert_int_equal(gate_remove(&gates[1], host, NULL, true), 0);
	assert_true(has_tables()); /* shut */
	assert_false(meets(two, "172.30.0.1", NEVER_MS));
	assert_int_equal(gate_remove(&gates[1], host, NULL, false), 0);
	assert_false(has_tables());
	assert_true(meets(two, "172.30.0.1", WAIT_MS));
	/* They come again with the next one. */
	assert_int_equal(divert(&gates[0], "p1"), 0);
	in_order(&gates[0]);
	assert_int_equal(gate_remove(&gates[0], host, NULL, false), 0);
	assert_false(has_tables());
}

/* The second wall alone, where the host forwards: not from one sandbox to another either. */
static void two_guarded_interfaces_without_their_chains_do_not_meet(void **state)
{
	struct gate gates[2];

	(void)state;
	assert_int_equal(shell(-1, "ip link set p2 nomaster; ip addr add 172.31.0.1/24 dev p2; "
	                           "sysctl -qw net.ipv4.ip_forward=1"),
	        0);
	assert_int_equal(shell(two, "ip addr flush dev eth0 scope global; "
	                            "ip addr add 172.31.0.3/24 dev eth0; "
	                            "ip route add default via 172.31.0.1"),
	        0);
	assert_true(meets(one, "172.31.0.3", WAIT_MS));
	assert_int_equal(divert(&gates[0], "br7"), 0);
	assert_int_equal(divert(&gates[1], "p2"), 0);
	assert_int_equal(shell(-1, "nft delete table netdev vethguard-divert"), 0);
	shell(-1, "tc qdisc del dev br7 clsact; tc qdisc del dev p2 clsact");
	assert_false(meets(one, "172.31.0.3", NEVER_MS));
	assert_false(meets(two, "172.30.0.2", NEVER_MS));
	assert_false(meets(two, "172.31.0.1", NEVER_MS));
	assert_int_equal(gate_remove(&gates[0], host, NULL, false), 0);
	assert_int_equal(gate_remove(&gates[1], host, NULL, false), 0);
	assert_true(meets(one, "172.31.0.3", WAIT_MS));
}

static void a_whole_bridge_is_one_sandbox(void **state)
{
	struct gate gate;

	(void)state;
	assert_int_equal(divert(&gate, "br7"), 0);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(dial(two, "2001:db8::1", 80), 0);
	assert_true(meets(one, "172.30.0.3", WAIT_MS));
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
	assert_true(meets(one, "172.30.0.1", WAIT_MS));
}

/* Docker's resolver is in the containers of networks with a name, and may ask from the host's. */
static void a_network_of_dockers_is_known_by_its_bridge(void **state)
{
	static const struct {
		const char *bridge, *interface;
		bool has_resolver;
	} cases[] = {{"br-0123456789ab", "br-0123456789ab", true}, {"br-0123456789ab", "p1", true},
	        {"br7", "p1", false}, {"docker0", "p1", false}, {"br-0123456789az", "p1", false},
	        {"br-0123456789a", "p1", false}};
	struct gate gate;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(shell(-1, "ip link set br7 name %s; ip link set %s up",
		                         cases[i].bridge, cases[i].bridge),
		        0);
		assert_int_equal(divert(&gate, cases[i].interface), 0);
		assert_int_equal(gate.has_resolver, cases[i].has_resolver);
		assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
		shell(-1, "ip link set %s name br7", cases[i].bridge);
	}
}

static void an_address_that_is_given_is_the_only_one(void **state)
{
	struct gate_divert asked = {.interface = "p1"};
	struct gate gate;

	(void)state;
	asked.address4 = ip_of("172.30.0.2");
	assign(&gate);
	assert_int_equal(open_divert(&gate, &asked), 0);
	assert_int_equal(gate.source4.bits, 32);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(shell(one, "ip addr flush dev eth0 scope global; "
	                            "ip addr add 172.30.0.9/24 dev eth0; "
	                            "ip route add default via 172.30.0.1"),
	        0);
	assert_int_not_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
}

static void an_interface_without_addresses_has_the_pools(void **state)
{
	struct gate gate;

	(void)state;
	assert_int_equal(shell(-1, "ip link set p1 nomaster"), 0);
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_int_equal(shell(one, "ip addr flush dev eth0 scope global; "
	                            "ip addr add 100.64.0.2/30 dev eth0; ip route add default via "
	                            "100.64.0.1; ip -6 addr add fd00:7667::2/126 dev eth0 nodad; "
	                            "ip -6 route replace default via "
	                            "fd00:7667::1"),
	        0);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(dial(one, "2001:db8::1", 80), 0);
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
}

static void a_network_that_is_given_has_its_first_address_as_gate(void **state)
{
	struct gate_divert asked = {.interface = "p1"};
	struct gate gate;

	(void)state;
	assert_int_equal(shell(-1, "ip link set p1 nomaster"), 0);
	asked.address4 = ip_of("10.9.8.7");
	asked.bits4 = 24;
	assign(&gate);
	assert_int_equal(open_divert(&gate, &asked), 0);
	assert_true(ip_equals(&gate.gate4, &(struct ip){.family = 4, .bytes = {10, 9, 8, 1}}));
	assert_int_equal(gate.source4.bits, 32);
	assert_int_equal(gate.source6.base.family, 0);
	assert_int_equal(shell(one, "ip addr flush dev eth0 scope global; "
	                            "ip addr add 10.9.8.7/24 dev eth0; "
	                            "ip route add default via 10.9.8.1"),
	        0);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
}

static void refused(const char *interface, int error, const char *says)
{
	struct gate gate;
	int result = divert(&gate, interface);

	if (result != error || !strstr(gate.why, says))
		fail_msg("%s: %d, %s", interface, result, gate.why);
	assert_int_equal(gate_fault_of(&gate, result),
	        error == -EEXIST ? GATE_FAULT_TAKEN : GATE_FAULT_ASKED);
}

static void what_is_no_sandbox_is_refused_with_a_reason(void **state)
{
	struct gate gate;

	(void)state;
	refused("nothing7", -ENODEV, "no interface");
	refused("", -EINVAL, "not an interface's name");
	refused("a-name-too-long-for-one", -EINVAL, "not an interface's name");
	refused("lo", -EINVAL, "loopback");
	assert_int_equal(divert(&gate, "p1"), 0);
	refused("p1", -EEXIST, "already");
	refused(gate.host_link, -EINVAL, "own");
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
	assert_int_equal(shell(-1, "ip route add default via 172.30.0.2"), 0);
	refused("br7", -EBUSY, "default route");
	assert_int_equal(shell(-1, "ip route del default; ip link add x7 type veth peer name y7; "
	                           "ip link add mv7 link x7 type macvlan; "
	                           "ip link set mv7 master br7"),
	        0);
	refused("br7", -EBUSY, "mv7");
	refused("mv7", -EBUSY, "is a macvlan");
	assert_int_equal(shell(-1, "ip link del mv7; ip link del x7; "
	                           "ip tuntap add dev tun7 mode tun"),
	        0);
	refused("tun7", -EINVAL, "Ethernet");
	shell(-1, "ip link del tun7");
}

static int told, told_result;

static void on_change(struct gate *gate, int result)
{
	(void)gate;
	told++;
	told_result = result;
	loop_stop(loop);
}

static void an_interface_that_comes_back_is_guarded_again(void **state)
{
	struct gate gate;

	(void)state;
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_int_equal(gate_watch(&gate, host, on_change), 0);
	told = 0;
	run_loop(200);
	assert_int_equal(shell(-1, "ip link del p1"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, GATE_AWAY); /* no fault, but told: once */
	assert_true(gate.away);
	run_loop(300);
	assert_int_equal(told, 1);
	in_order(&gate);
	told = 0;
	close(one);
	one = make_container(1);
	/* Nobody has looked yet; the wall by name stands. */
	assert_false(meets(one, "172.30.0.3", NEVER_MS));
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	assert_non_null(strstr(gate.why, "there again"));
	assert_false(gate.away);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_false(meets(one, "172.30.0.3", NEVER_MS));
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
}

/* An ordinary user may not load programs. */
static bool divert_filters_are_missing(void)
{
	return shell(-1, "tc qdisc show | grep -q clsact") != 0;
}

/* A network with one host on it, and the way there as a port of the bridge. */
static int make_network(void)
{
	int outside = netns_new();

	assert_true(outside >= 0);
	assert_int_equal(shell(-1,
	                         "ip link add x7 type veth peer name y7 netns /proc/%d/fd/%d; "
	                         "ip link set x7 up; "
	                         "ip link add link x7 name v7 type macvlan mode passthru; "
	                         "ip link set v7 master br7 up",
	                         getpid(), outside),
	        0);
	assert_int_equal(shell(outside, "ip link set lo up; ip addr add 172.30.0.77/24 dev y7; "
	                                "ip link set y7 up; ip route add default via 172.30.0.1"),
	        0);
	assert_true(meets(one, "172.30.0.77", WAIT_MS));
	assert_true(meets(outside, "172.30.0.1", WAIT_MS));
	return outside;
}

static int in_time(int netns, const char *address, uint16_t port)
{
	struct dial d = {address, port, NEVER_MS};

	return netns_run(netns, in_dial, &d);
}

/* A port that joins a guarded bridge later is reached by those on it without the gate: another
 * container may be, a way to a network may not. */
static void a_bridge_gets_no_egress_later(void **state)
{
	int outside = make_network();
	struct gate gate;

	(void)state;
	assert_int_equal(shell(-1, "ip link set v7 nomaster"), 0);
	assert_int_equal(divert(&gate, "br7"), 0);
	assert_int_equal(shell(-1, "ip link set v7 master br7"), 0);
	/* Nobody looks yet. */
	if (!divert_filters_are_missing()) {
		assert_false(meets(one, "172.30.0.77", NEVER_MS));
		assert_false(meets(outside, "172.30.0.3", NEVER_MS));
		assert_false(meets(outside, "172.30.0.1", NEVER_MS));
		assert_int_not_equal(in_time(outside, "8.8.8.8", 80), 0); /* not by the gate */
		assert_true(meets(one, "172.30.0.3", WAIT_MS));
		assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	}
	assert_int_equal(gate_repair(&gate), 1);
	assert_non_null(strstr(gate.why, "v7, which leads to a network"));
	assert_int_equal(gate_repair(&gate), 0);
	assert_false(meets(one, "172.30.0.77", NEVER_MS));
	assert_true(meets(one, "172.30.0.3", WAIT_MS));
	/* The watcher is told without asking. */
	assert_int_equal(gate_watch(&gate, host, on_change), 0);
	run_loop(200);
	told = 0;
	assert_int_equal(shell(-1, "ip link set v7 master br7"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	assert_int_equal(told_result, 1);
	assert_int_not_equal(shell(-1, "ip link show v7 | grep -q 'master br7'"), 0);
	assert_false(meets(one, "172.30.0.77", NEVER_MS));
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	/* Another container. */
	told = 0;
	assert_int_equal(shell(-1, "ip link del x7; ip link set p2 nomaster; "
	                           "ip link set p2 master br7"),
	        0);
	run_loop(300);
	assert_int_equal(told, 0);
	assert_true(meets(one, "172.30.0.3", WAIT_MS));
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
	close(outside);
}

#define MORE_THAN_AT_ONCE 17 /* UPLINKS_MAX, and one */

static void more_ways_out_than_a_look_takes_are_taken_by_the_next(void **state)
{
	struct gate gate;

	(void)state;
	assert_int_equal(divert(&gate, "br7"), 0);
	assert_int_equal(shell(-1,
	                         "ip link add x7 type veth peer name y7; for i in $(seq %d); do "
	                         "ip link add link x7 name u$i type macvlan; "
	                         "ip link set u$i master br7; done",
	                         MORE_THAN_AT_ONCE),
	        0);
	assert_int_equal(gate_repair(&gate), -EAGAIN);
	assert_non_null(strstr(gate.why, "leads to a network"));
	assert_int_equal(
	        shell(-1, "test $(ip -o link show master br7 type macvlan | wc -l) = 1"), 0);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(gate_repair(&gate), 1);
	in_order(&gate);
	assert_int_equal(
	        shell(-1, "test $(ip -o link show master br7 type macvlan | wc -l) = 0"), 0);
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
}

static void foreign_changes_of_the_hosts_rules_are_mended(void **state)
{
	static const char *const commands[] = {"nft flush ruleset",
	        "nft delete table netdev vethguard-divert",
	        "nft flush chain netdev vethguard-divert in-p1",
	        "nft delete chain netdev vethguard-divert out-p1",
	        "nft delete element inet vethguard-divert guarded '{ \"p1\" }'",
	        "nft delete element inet vethguard-divert itself '{ \"p1\" . \"p1\" }'",
	        "nft flush chain arp vethguard-divert input",
	        "nft flush chain inet vethguard-divert forward; "
	        "nft delete table netdev vethguard-divert",
	        "nft delete table bridge vethguard-divert",
	        "nft insert rule netdev vethguard-divert in-p1 accept",
	        "tc qdisc del dev p1 clsact", "tc filter del dev p1 egress",
	        "tc qdisc del dev p1 clsact; nft flush ruleset"};
	struct gate gate;

	(void)state;
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_int_equal(gate_watch(&gate, host, on_change), 0);
	run_loop(200);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		told = 0;
		assert_int_equal(shell(-1, "%s", commands[i]), 0);
		run_loop(WAIT_MS);
		if (told != 1 || told_result != 1 || gate_repair(&gate) != 0)
			fail_msg("%s: told %d times, %d, %s", commands[i], told, told_result,
			        gate.why);
		assert_int_equal(dial(one, "8.8.8.8", 80), 0);
		assert_false(meets(one, "172.30.0.1", NEVER_MS));
	}
	/* A table of another program is left alone. */
	told = 0;
	assert_int_equal(shell(-1, "nft add table inet somebody"), 0);
	run_loop(300);
	assert_int_equal(told, 0);
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
}

/* While the rules are away nobody meets anybody but the gate, which still answers. */
static void a_flush_of_the_rules_opens_nothing(void **state)
{
	static const char *const interfaces[] = {"p1", "br7"};
	struct gate gate;

	(void)state;
	for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
		assert_int_equal(divert(&gate, interfaces[i]), 0);
		if (divert_filters_are_missing()) {
			assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
			return;
		}
		assert_int_equal(shell(-1, "nft flush ruleset"), 0);
		assert_int_equal(dial(one, "8.8.8.8", 80), 0);
		assert_int_equal(dial(one, "172.30.0.1", 80), 0);
		assert_false(meets(one, "172.30.0.1", NEVER_MS));
		/* The ports of a bridge are one sandbox; the neighbor of a port is not a part of
		 * it. */
		assert_int_equal(meets(one, "172.30.0.3", i ? WAIT_MS : NEVER_MS), i == 1);
		assert_int_equal(meets(two, "172.30.0.1", i ? NEVER_MS : WAIT_MS), i == 0);
		assert_int_equal(gate_repair(&gate), 1);
		assert_int_equal(gate_repair(&gate), 0);
		assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
		assert_true(meets(one, "172.30.0.1", WAIT_MS));
		assert_int_not_equal(shell(-1, "tc qdisc show | grep clsact"), 0);
	}
}

/* Shut, and nobody has a gate for it: watched all the same. */
static void what_is_held_is_watched(void **state)
{
	static const char *const commands[] = {"nft flush ruleset",
	        "nft delete chain netdev vethguard-divert in-p1",
	        "tc qdisc del dev p1 clsact; nft flush ruleset"};
	struct gate gate;

	(void)state;
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_int_equal(gate_remove(&gate, host, NULL, true), 0);
	assert_int_equal(gate_hold(&gate, host, on_change), 0);
	told = 0;
	run_loop(300);
	assert_int_equal(told, 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		told = 0;
		assert_int_equal(shell(-1, "%s", commands[i]), 0);
		run_loop(WAIT_MS);
		if (told != 1 || told_result != 1 || gate_repair(&gate) != 0)
			fail_msg("%s: told %d times, %d, %s", commands[i], told, told_result,
			        gate.why);
		assert_false(meets(one, "172.30.0.1", NEVER_MS));
		assert_false(meets(one, "172.30.0.3", NEVER_MS));
		assert_int_not_equal(dial(one, "8.8.8.8", 80), 0);
	}
	/* Away, flushed, and back. */
	assert_int_equal(shell(-1, "ip link del p1"), 0);
	run_loop(300);
	told = 0;
	assert_int_equal(shell(-1, "nft flush ruleset"), 0);
	run_loop(WAIT_MS);
	assert_int_equal(told, 1);
	close(one);
	one = make_container(1);
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	run_loop(WAIT_MS);
	assert_int_equal(gate_repair(&gate), 0);
	assert_false(meets(one, "172.30.0.3", NEVER_MS));
	assert_int_equal(gate_remove(&gate, host, NULL, false), 0);
	assert_true(meets(one, "172.30.0.3", WAIT_MS));
	assert_false(has_tables());
}

/* A gate that nobody serves, with its link: its frames go to the gate. Without: nowhere. */
static void a_gate_that_is_held_keeps_its_link(void **state)
{
	const char *pin = pin_path("held");
	struct gate gate, held;

	(void)state;
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_int_equal(gate_pin(&gate, pin), 0);
	held = gate;
	held.netns = held.packets = -1;
	held.listener_count = 0;
	gate_close(&gate);
	assert_int_equal(shell(-1, "nft flush ruleset; tc qdisc del dev p1 clsact"), 0);
	assert_true(meets(one, "172.30.0.1", WAIT_MS)); /* nobody looks yet */
	assert_int_equal(gate_hold(&held, host, on_change), 1);
	assert_int_equal(dial(one, "8.8.8.8", 80), EHOSTUNREACH); /* the gate's word */
	assert_false(meets(one, "172.30.0.3", NEVER_MS));
	assert_int_equal(shell(-1, "ip link del %s; nft flush ruleset", held.host_link), 0);
	assert_int_equal(gate_repair(&held), 1);
	assert_int_equal(gate_repair(&held), 0);
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	assert_int_equal(gate_remove(&held, host, pin, false), 0);
	assert_true(meets(one, "172.30.0.1", WAIT_MS));
}

static void a_pinned_one_is_adopted(void **state)
{
	const char *pin = pin_path("divert");
	struct gate gate, second;

	(void)state;
	assert_int_equal(divert(&gate, "p1"), 0);
	assert_int_equal(gate_pin(&gate, pin), 0);
	second = gate;
	second.netns = second.packets = -1;
	second.listener_count = 0;
	gate_close(&gate);
	gate_host_close(host);
	assert_int_not_equal(dial(one, "8.8.8.8", 80), 0);
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	assert_int_equal(gate_host_open(&host, loop), 0);
	assert_int_equal(gate_adopt(&second, host, pin), 0);
	assert_int_equal(gate_listen(&second), 0);
	assert_int_equal(dial(one, "8.8.8.8", 80), 0);
	assert_int_equal(gate_watch(&second, host, on_change), 0);
	refused("p1", -EEXIST, "already");
	assert_int_equal(shell(-1, "ip link del %s", second.host_link), 0);
	assert_int_equal(gate_repair(&second), -ENOLINK);
	assert_false(meets(one, "172.30.0.1", NEVER_MS));
	assert_int_equal(gate_remove(&second, host, pin, false), 0);
	assert_true(meets(one, "172.30.0.1", WAIT_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	        T(a_whole_bridge_is_one_sandbox),
	        T(a_bridge_gets_no_egress_later),
	        T(more_ways_out_than_a_look_takes_are_taken_by_the_next),
	        T(a_port_is_diverted_and_its_neighbor_is_not),
	        T(two_guarded_containers_do_not_meet),
	        T(gates_without_addresses_are_in_store),
	        T(the_tables_go_with_the_last_interface),
	        T(two_guarded_interfaces_without_their_chains_do_not_meet),
	        T(a_network_of_dockers_is_known_by_its_bridge),
	        T(an_address_that_is_given_is_the_only_one),
	        T(an_interface_without_addresses_has_the_pools),
	        T(a_network_that_is_given_has_its_first_address_as_gate),
	        T(what_is_no_sandbox_is_refused_with_a_reason),
	        T(an_interface_that_comes_back_is_guarded_again),
	        T(foreign_changes_of_the_hosts_rules_are_mended),
	        T(a_flush_of_the_rules_opens_nothing),
	        T(what_is_held_is_watched),
	        T(a_gate_that_is_held_keeps_its_link),
	        T(a_pinned_one_is_adopted),
	};
	int failed;

	if (!enter_host()) {
		printf("skipped: no user namespaces here\n");
		return 0;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
