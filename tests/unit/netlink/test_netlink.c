/* SPDX-License-Identifier: Apache-2.0 */
/* Links, addresses, routes, rules and neighbors in namespaces of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "privileges.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "sysctl.h"

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa}, mac_b[6] = {2, 0, 0, 0, 0, 0xb};

struct body {
	void (*test)(struct netlink *nl, int peer);
};

/*
 * Each test runs in a fresh namespace, with a second one for the peer. The test's own thread goes
 * there, because an assertion that fails in another one cannot be reported.
 */
static void each_in_a_new_namespace(void **state)
{
	const struct body *body = *state;
	int peer = netns_new(), here = netns_new();
	struct netlink *nl;

	assert_true(here >= 0 && peer >= 0);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	assert_int_equal(netlink_open(&nl), 0);
	body->test(nl, peer);
	netlink_close(nl);
	close(peer);
}

static struct ip address(const char *text)
{
	struct ip ip = {0};

	assert_true(ip_parse(slice_from_string(text), &ip));
	return ip;
}

static void assert_mac(const char *name, const uint8_t mac[6])
{
	struct ifreq r = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCGIFHWADDR, &r), 0);
	assert_memory_equal(r.ifr_hwaddr.sa_data, mac, 6);
	close(fd);
}

static int look_at_peer(void *context)
{
	(void)context;
	assert_mac("inner", mac_b);
	return 0;
}

static void add_pair(struct netlink *nl, int peer)
{
	assert_int_equal(netlink_veth_add(nl, "outer", mac_a, "inner", mac_b, peer), 0);
}

static void veth_has_its_ends_where_asked(struct netlink *nl, int peer)
{
	add_pair(nl, peer);
	assert_mac("outer", mac_a);
	assert_int_equal(netns_run(peer, look_at_peer, NULL), 0);
	assert_int_equal(netlink_link_index(nl, "inner"), 0);
	assert_true(netlink_link_index(nl, "outer") > 0);
	assert_int_equal(netlink_link_delete(nl, "outer"), 0);
	assert_int_equal(netlink_link_index(nl, "outer"), 0);
}

static void a_link_bears_a_text(struct netlink *nl, int peer)
{
	char text[NETLINK_ALIAS_MAX + 2], back[NETLINK_ALIAS_MAX + 1];
	struct netlink_link link;

	assert_int_equal(netlink_veth_add(nl, "outer", mac_a, "inner", mac_b, peer), 0);
	assert_int_equal(netlink_link_alias(nl, "outer", back), 0);
	assert_string_equal(back, "");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(netlink_link_set_alias(nl, "outer", text), -EINVAL);
	text[NETLINK_ALIAS_MAX] = 0;
	assert_int_equal(netlink_link_set_alias(nl, "outer", text), 0);
	assert_int_equal(netlink_link_alias(nl, "outer", back), 0);
	assert_string_equal(back, text);
	assert_int_equal(netlink_link_alias(nl, "nobody", back), -ENODEV);
	assert_int_equal(netlink_link_set_alias(nl, "nobody", "x"), -ENODEV);
	assert_int_equal(netlink_link_up(nl, "outer"), 0);
	assert_int_equal(netlink_link_down(nl, "outer"), 0);
	assert_int_equal(netlink_link_get(nl, "outer", 0, &link), 0);
	assert_false(link.up);
	assert_int_equal(netlink_link_down(nl, "nobody"), -ENODEV);
}

struct seen {
	unsigned count, wanted;
	bool found;
};

static void note(void *context, const struct netlink_link *link)
{
	struct seen *seen = context;

	seen->count++;
	seen->found = seen->found || (link->index == seen->wanted &&
	                                     strcmp(link->name, "inner") == 0 && link->elsewhere);
}

/* The links of a namespace that nobody enters. */
static void links_elsewhere_are_listed(struct netlink *nl, int peer)
{
	struct netlink_link outer;
	struct seen seen = {0};

	assert_int_equal(netlink_veth_add(nl, "outer", mac_a, "inner", mac_b, peer), 0);
	assert_int_equal(netlink_link_get(nl, "outer", 0, &outer), 0);
	assert_true(outer.elsewhere && outer.peer > 0);
	seen.wanted = outer.peer;
	assert_int_equal(netlink_links_in(nl, outer.nsid, note, &seen), 0);
	assert_true(seen.found && seen.count >= 2); /* with the loopback */
	seen.count = 0;
	netlink_links_in(nl, outer.nsid + 1000, note, &seen);
	assert_int_equal(seen.count, 0); /* there is no such namespace */
}

static void bad_links_are_refused(struct netlink *nl, int peer)
{
	static const char long_name[] = "sixteen-letters-";
	int regular = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(netlink_veth_add(nl, "", mac_a, "inner", mac_b, peer), -EINVAL);
	assert_int_equal(netlink_veth_add(nl, long_name, mac_a, "inner", mac_b, peer), -EINVAL);
	assert_int_equal(netlink_veth_add(nl, "outer", mac_a, "", mac_b, peer), -EINVAL);
	assert_int_equal(netlink_veth_add(nl, "outer", mac_a, long_name, mac_b, peer), -EINVAL);
	assert_int_equal(netlink_veth_add(nl, "a/b", mac_a, "inner", mac_b, peer), -EINVAL);
	assert_true(netlink_veth_add(nl, "outer", mac_a, "inner", mac_b, -1) < 0);
	assert_true(netlink_veth_add(nl, "outer", mac_a, "inner", mac_b, regular) < 0);
	assert_int_equal(netlink_link_index(nl, "outer"), 0);
	add_pair(nl, peer);
	assert_int_equal(netlink_veth_add(nl, "outer", mac_a, "other", mac_b, peer), -EEXIST);
	assert_int_equal(netlink_link_delete(nl, "absent"), -ENODEV);
	assert_int_equal(netlink_link_delete(nl, long_name), -EINVAL);
	assert_int_equal(netlink_link_up(nl, "absent"), -ENODEV);
	assert_int_equal(netlink_link_up(nl, ""), -EINVAL);
	assert_int_equal(netlink_link_index(nl, "absent"), 0);
	assert_int_equal(netlink_link_index(nl, long_name), 0);
	close(regular);
}

static void assert_bindable(const char *text, int expected)
{
	struct ip ip = address(text);
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&ip, 0, &ss);
	int fd = socket(ip.family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result = bind(fd, (struct sockaddr *)&ss, n) < 0 ? errno : 0;

	assert_int_equal(result, expected);
	close(fd);
}

static void addresses_are_usable_at_once(struct netlink *nl, int peer)
{
	struct ip v4 = address("10.1.2.1"), v6 = address("fd01::1");

	add_pair(nl, peer);
	assert_bindable("fd01::1", EADDRNOTAVAIL);
	assert_int_equal(netlink_link_up(nl, "outer"), 0);
	assert_int_equal(netlink_address_add(nl, "outer", &v4, 30), 0);
	assert_int_equal(netlink_address_add(nl, "outer", &v6, 64), 0);
	assert_bindable("10.1.2.1", 0);
	assert_bindable("10.1.2.2", EADDRNOTAVAIL);
	assert_bindable("fd01::1", 0); /* no duplicate address detection to wait for */
}

static void bad_addresses_are_refused(struct netlink *nl, int peer)
{
	struct ip v4 = address("10.1.2.1"), v6 = address("fd01::1"), none = {0};

	add_pair(nl, peer);
	assert_int_equal(netlink_address_add(nl, "outer", &none, 30), -EAFNOSUPPORT);
	assert_int_equal(netlink_address_add(nl, "outer", &v4, 33), -EINVAL);
	assert_int_equal(netlink_address_add(nl, "outer", &v6, 129), -EINVAL);
	assert_int_equal(netlink_address_add(nl, "absent", &v4, 30), -ENODEV);
	assert_int_equal(netlink_address_add(nl, "outer", &v4, 30), 0);
	assert_int_equal(netlink_address_add(nl, "outer", &v4, 30), -EEXIST);
	assert_int_equal(netlink_route_default(nl, "outer", &none), -EAFNOSUPPORT);
	assert_int_equal(netlink_route_default(nl, "absent", &v4), -ENODEV);
	assert_int_equal(netlink_neighbor_permanent(nl, "outer", &none, mac_b), -EAFNOSUPPORT);
	assert_int_equal(netlink_neighbor_permanent(nl, "absent", &v4, mac_b), -ENODEV);
}

/* The exit status of a command line in the namespace of this thread. */
static int shell(const char *line)
{
	return system(line);
}

static void routes_and_neighbors(struct netlink *nl, int peer)
{
	struct ip v4 = address("10.1.2.1"), v6 = address("fd01::1");
	struct ip gate4 = address("10.1.2.2"), gate6 = address("fd01::2");
	struct ip far4 = address("192.0.2.9"); /* at the end of the wire, outside of any prefix */

	add_pair(nl, peer);
	assert_int_equal(netlink_address_add(nl, "outer", &v4, 30), 0);
	assert_int_equal(netlink_address_add(nl, "outer", &v6, 64), 0);
	assert_int_equal(netlink_route_default(nl, "outer", &gate4), -ENETDOWN);
	assert_int_equal(netlink_link_up(nl, "outer"), 0);
	assert_int_equal(netlink_route_default(nl, "outer", &gate4), 0);
	assert_int_equal(netlink_route_default(nl, "outer", &gate6), 0);
	assert_int_equal(shell("ip -4 route show default | grep -q 'via 10.1.2.2 dev outer'"), 0);
	assert_int_equal(shell("ip -6 route show default | grep -q 'via fd01::2 dev outer'"), 0);
	assert_int_equal(netlink_route_default(nl, "outer", &far4), 0);
	assert_int_equal(shell("ip -4 route show default | grep -q 'via 192.0.2.9 dev outer'"), 0);
	assert_int_not_equal(shell("ip -4 route show default | grep -q 10.1.2.2"), 0);
	assert_int_equal(netlink_neighbor_permanent(nl, "outer", &gate4, mac_b), 0);
	assert_int_equal(netlink_neighbor_permanent(nl, "outer", &gate6, mac_b), 0);
	assert_int_equal(netlink_neighbor_permanent(nl, "outer", &gate6, mac_b), 0);
	assert_int_equal(shell("test $(ip neigh show dev outer | grep -c '02:00:00:00:00:0b "
	                       "PERMANENT') = 2"),
	        0);
}

static void local_delivery_comes_and_goes(struct netlink *nl, int peer)
{
	static const char there[] =
	        "ip -4 rule | grep -q 'iif outer lookup 4242' && "
	        "ip -6 rule | grep -q 'iif outer lookup 4242' && "
	        "ip -4 route show table 4242 | grep -q '^local default dev lo' && "
	        "ip -6 route show table 4242 | grep -q '^local default dev lo'";
	static const char take_away[] =
	        "ip -4 rule del iif outer && ip -6 rule del iif outer && "
	        "ip -4 route flush table 4242 && ip -6 route flush table 4242";

	add_pair(nl, peer);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netlink_local_delivery(nl, "outer", 4242), 0);
		assert_int_equal(netlink_local_delivery(nl, "outer", 4242), 0);
		assert_int_equal(shell(there), 0);
		assert_int_equal(shell("test $(ip -4 rule | grep -c outer) = 1"), 0);
		assert_int_equal(shell(take_away), 0);
	}
	assert_int_equal(netlink_local_delivery(nl, "", 4242), -EINVAL);
	assert_int_equal(netlink_local_delivery(nl, "sixteen-letters-", 4242), -EINVAL);
}

static void what_a_namespace_begins_with_is_made_again(struct netlink *nl, int peer)
{
	struct ip v4 = address("10.1.2.1"), v6 = address("fd01::1");

	add_pair(nl, peer);
	assert_int_equal(netlink_link_up(nl, "outer"), 0);
	assert_int_equal(netlink_address_add(nl, "outer", &v4, 30), 0);
	assert_int_equal(netlink_address_add(nl, "outer", &v6, 64), 0);
	assert_int_equal(netlink_kernel_rules_repair(nl), 0);
	assert_int_equal(netlink_route_connected_repair(nl, "outer", &v4, 30), 0);
	assert_int_equal(netlink_route_connected_repair(nl, "outer", &v6, 64), 0);
	assert_int_equal(shell("(ip -4 rule; ip -6 rule) >/tmp/vethguard-rules-process$PPID; "
	                       "ip -4 rule flush; ip -6 rule flush; ip -4 rule del pref 0; "
	                       "ip -4 route flush table main; ip -6 route flush table main"),
	        0);
	assert_int_equal(netlink_kernel_rules_repair(nl), 1);
	assert_int_equal(netlink_kernel_rules_repair(nl), 0);
	assert_int_equal(netlink_route_connected_repair(nl, "outer", &v4, 30), 1);
	assert_int_equal(netlink_route_connected_repair(nl, "outer", &v4, 30), 0);
	assert_int_equal(netlink_route_connected_repair(nl, "outer", &v6, 64), 1);
	assert_int_equal(netlink_route_connected_repair(nl, "outer", &v6, 64), 0);
	assert_int_equal(
	        shell("(ip -4 rule; ip -6 rule) | cmp - /tmp/vethguard-rules-process$PPID; "
	              "r=$?; rm /tmp/vethguard-rules-process$PPID; exit $r"),
	        0);
	assert_int_equal(shell("ip -4 route | grep -q '^10.1.2.0/30 dev outer .*src 10.1.2.1'; "
	                       "ip -6 route | grep -q '^fd01::/64 dev outer'"),
	        0);
	assert_int_equal(netlink_route_connected_repair(nl, "absent", &v4, 30), -ENODEV);
}

static int links_seen, filters_seen;

static void on_link(void *context, const struct netlink_link *link, bool removed)
{
	(void)context;
	links_seen += strcmp(link->name, "outer") == 0 && removed;
}

static void on_filter(void *context, unsigned index, uint32_t by)
{
	const unsigned *outer = context;

	filters_seen += index == *outer && by != 0;
}

static void changes_are_told(struct netlink *nl, int peer)
{
	unsigned outer;
	const struct netlink_watcher watcher = {on_link, on_filter, &outer};
	int routing = netlink_watch_open(NETLINK_WATCH_ROUTING);
	int filters = netlink_watch_open(NETLINK_WATCH_FILTERS);

	add_pair(nl, peer);
	outer = netlink_link_index(nl, "outer");
	assert_true(netlink_watch_read(routing, &watcher) >= 0); /* a link was made */
	assert_int_equal(netlink_watch_read(routing, &watcher), 0);
	assert_int_equal(write_sysctl("ipv4/ip_forward", "1"), 0);
	assert_int_equal(netlink_watch_read(routing, &watcher), 1);
	assert_int_equal(write_sysctl("ipv6/conf/all/forwarding", "1"), 0);
	assert_int_equal(netlink_watch_read(routing, &watcher), 1);
	assert_int_equal(write_sysctl("ipv4/conf/outer/rp_filter", "2"), 0);
	assert_int_equal(netlink_watch_read(routing, &watcher), 1);
	assert_int_equal(shell("ip rule del pref 32766"), 0);
	assert_int_equal(netlink_watch_read(routing, &watcher), 1);
	assert_int_equal(netlink_watch_read(routing, &watcher), 0);
	assert_int_equal(netlink_watch_read(filters, &watcher), 0);
	assert_int_equal(filters_seen, 0);
	assert_int_equal(shell("tc qdisc add dev outer clsact"), 0);
	assert_int_equal(netlink_watch_read(filters, &watcher), 0);
	assert_true(filters_seen > 0);
	links_seen = 0;
	assert_int_equal(netlink_link_delete(nl, "outer"), 0);
	assert_int_equal(netlink_watch_read(filters, &watcher), 0);
	assert_int_equal(links_seen, 1);
	close(routing);
	close(filters);
}

/* While only links are watched, other changes are not reported later. */
static void routing_is_heard_where_it_is_wanted(struct netlink *nl, int peer)
{
	const struct netlink_watcher watcher = {on_link, NULL, NULL};
	int fd = netlink_watch_open(NETLINK_WATCH_ROUTING);

	add_pair(nl, peer);
	assert_true(netlink_watch_read(fd, &watcher) >= 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netlink_watch_routing(fd, false), 0);
		assert_int_equal(write_sysctl("ipv4/ip_forward", i ? "0" : "1"), 0);
		assert_int_equal(netlink_watch_read(fd, &watcher), 0);
		assert_int_equal(netlink_watch_routing(fd, true), 0);
		assert_int_equal(netlink_watch_read(fd, &watcher), 0);
		assert_int_equal(write_sysctl("ipv4/ip_forward", i ? "1" : "0"), 0);
		assert_int_equal(netlink_watch_read(fd, &watcher), 1);
	}
	assert_int_equal(netlink_watch_routing(fd, false), 0);
	links_seen = 0;
	assert_int_equal(netlink_link_delete(nl, "outer"), 0);
	assert_int_equal(netlink_watch_read(fd, &watcher), 0);
	assert_int_equal(links_seen, 1);
	close(fd);
	assert_int_equal(netlink_watch_routing(fd, true), -EBADF);
}

#define TEST(name) static const struct body body_##name = {name}
TEST(veth_has_its_ends_where_asked);
TEST(a_link_bears_a_text);
TEST(links_elsewhere_are_listed);
TEST(bad_links_are_refused);
TEST(addresses_are_usable_at_once);
TEST(bad_addresses_are_refused);
TEST(routes_and_neighbors);
TEST(local_delivery_comes_and_goes);
TEST(what_a_namespace_begins_with_is_made_again);
TEST(changes_are_told);
TEST(routing_is_heard_where_it_is_wanted);
#undef TEST
#define TEST(name)                                                               \
	{                                                                        \
#name, each_in_a_new_namespace, NULL, NULL, (void *)&body_##name \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(veth_has_its_ends_where_asked),
	        TEST(a_link_bears_a_text),
	        TEST(links_elsewhere_are_listed),
	        TEST(bad_links_are_refused),
	        TEST(addresses_are_usable_at_once),
	        TEST(bad_addresses_are_refused),
	        TEST(routes_and_neighbors),
	        TEST(local_delivery_comes_and_goes),
	        TEST(what_a_namespace_begins_with_is_made_again),
	        TEST(changes_are_told),
	        TEST(routing_is_heard_where_it_is_wanted),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	netlink_close(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
