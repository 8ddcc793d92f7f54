/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are this host's own and are not dialed, however the host got them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <sys/ioctl.h>

#include "../fixture.h"
#include "proxy/dial/dial.h"
#include "vethguard/netlink/netlink.h"

#define LINK "own0"

static const struct ip first = {4, {198, 51, 100, 5}}, second = {4, {198, 51, 100, 6}},
                       neighbor = {4, {198, 51, 100, 7}}, far = {4, {192, 88, 1, 1}};
static const struct ip first6 = {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 5}},
                       second6 = {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 6}},
                       neighbor6 = {6, {0x20, 0x01, 0x0d, 0xb8, [15] = 7}};
/* Inside of networks of which every address is local. */
static const struct ip any = {4, {203, 0, 113, 9}}, any6 = {6, {0x20, 0x01, 0x0d, 0xb9, [15] = 9}},
                       any6_small = {6, {0x20, 0x01, 0x0d, 0xba, [15] = 9}},
                       any6_link = {6, {0x20, 0x01, 0x0d, 0xbb, [15] = 9}};

/* All of a network leads to this host (ip-route(8), type local), seen from the address source; mtu
 * 0: the device's. */
static void make_local(const struct ip *base, uint8_t bits, const struct ip *source,
        const char *device, uint32_t mtu)
{
	char bytes[256] = {0};
	struct nlmsghdr *h = mnl_nlmsg_put_header(bytes);
	struct mnl_socket *s = mnl_socket_open(NETLINK_ROUTE);
	size_t n = base->family == 6 ? 16 : 4;
	struct rtmsg *m;

	h->nlmsg_type = RTM_NEWROUTE;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->rtm_family = base->family == 6 ? AF_INET6 : AF_INET;
	m->rtm_dst_len = bits;
	m->rtm_table = RT_TABLE_LOCAL;
	m->rtm_scope = RT_SCOPE_HOST;
	m->rtm_type = RTN_LOCAL;
	mnl_attr_put(h, RTA_DST, n, base->bytes);
	mnl_attr_put_u32(h, RTA_OIF, if_nametoindex(device));
	if (source)
		mnl_attr_put(h, RTA_PREFSRC, n, source->bytes);
	if (mtu) {
		struct nlattr *metrics = mnl_attr_nest_start(h, RTA_METRICS);

		mnl_attr_put_u32(h, RTAX_MTU, mtu);
		mnl_attr_nest_end(h, metrics);
	}
	assert_non_null(s);
	assert_int_equal(mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID), 0);
	assert_true(mnl_socket_sendto(s, h, h->nlmsg_len) > 0);
	n = (size_t)mnl_socket_recvfrom(s, bytes, sizeof(bytes));
	assert_int_equal(mnl_cb_run(bytes, n, 0, mnl_socket_get_portid(s), NULL, NULL), 0);
	mnl_socket_close(s);
}

static int make_addresses(void **state)
{
	static const uint8_t macs[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	const struct ip network = {4, {203, 0, 113}}, network6 = {6, {0x20, 0x01, 0x0d, 0xb9}},
	                small6 = {6, {0x20, 0x01, 0x0d, 0xba}},
	                link6 = {6, {0x20, 0x01, 0x0d, 0xbb}};
	struct netlink *nl;
	int here;

	(void)state;
	world_network();
	here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(netlink_veth_add(nl, LINK, macs[0], "own1", macs[1], here), 0);
	close(here);
	assert_int_equal(netlink_link_up(nl, LINK), 0);
	assert_int_equal(netlink_link_up(nl, "own1"), 0);
	assert_int_equal(netlink_address_add(nl, LINK, &first, 24), 0);
	assert_int_equal(netlink_address_add(nl, LINK, &second, 24), 0);
	assert_int_equal(netlink_address_add(nl, LINK, &first6, 64), 0);
	assert_int_equal(netlink_address_add(nl, LINK, &second6, 64), 0);
	assert_int_equal(netlink_route_default(nl, LINK, &neighbor), 0);
	netlink_close(nl);
	make_local(&network, 24, &first, "lo", 0);
	make_local(&network6, 64, NULL, "lo", 0);
	make_local(&small6, 64, NULL, "lo", 1400);
	make_local(&link6, 64, NULL, LINK, 0);
	return 0;
}

static bool may_connect(const struct ip *address)
{
	const struct policy_decision nothing = {.rule = POLICY_NONE, .credential = POLICY_NONE};

	return dial_may_connect(w.proxy, &nothing, address);
}

static void test_others_may_be_dialled(void **state)
{
	(void)state;
	assert_true(may_connect(&neighbor));
	assert_true(may_connect(&neighbor6));
	assert_true(may_connect(&far));
}

static void test_addresses_of_a_link(void **state)
{
	(void)state;
	assert_false(may_connect(&first));
	assert_false(may_connect(&first6));
}

/* A rule for a network that has it does not name it; one for just this address does. */
static void test_rules_that_have_it(void **state)
{
	const struct policy_decision network = {.names_address = true};
	const struct policy_decision exact = {.names_address = true, .names_exactly = true};

	(void)state;
	assert_false(dial_may_connect(w.proxy, &network, &first));
	assert_false(dial_may_connect(w.proxy, &network, &first6));
	assert_true(dial_may_connect(w.proxy, &network, &neighbor));
	assert_true(dial_may_connect(w.proxy, &exact, &first));
	assert_true(dial_may_connect(w.proxy, &exact, &first6));
}

/* The kernel takes the first one of the network for the source of what goes to another one. */
static void test_a_further_address_of_the_same_network(void **state)
{
	(void)state;
	assert_false(may_connect(&second));
	assert_false(may_connect(&second6));
}

static void test_a_network_that_is_local_as_a_whole(void **state)
{
	(void)state;
	assert_false(may_connect(&any));
	assert_false(may_connect(&any6));
	assert_false(may_connect(&any6_small)); /* packets are no larger than those of a socket */
	assert_false(may_connect(&any6_link));  /* nor is the route one over the loopback */
}

/* The loopback may have the packets of a socket as well. */
static void test_no_packet_size_is_taken_for_the_loopbacks(void **state)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_mtu = 1500};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &request), 0);
	assert_false(may_connect(&first6));
	assert_false(may_connect(&any6));
	assert_false(may_connect(&any6_small));
	assert_true(may_connect(&neighbor6));
	request.ifr_mtu = 65536;
	assert_int_equal(ioctl(fd, SIOCSIFMTU, &request), 0);
	close(fd);
}

/* Nothing is sent to find out: not to others, and not to a program of this host. */
static void test_nothing_is_sent(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char byte;

	(void)state;
	memcpy(&to.sin_addr, second.bytes, 4);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_false(may_connect(&second));
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_others_may_be_dialled),
	        TEST(test_addresses_of_a_link),
	        TEST(test_rules_that_have_it),
	        TEST(test_a_further_address_of_the_same_network),
	        TEST(test_a_network_that_is_local_as_a_whole),
	        TEST(test_no_packet_size_is_taken_for_the_loopbacks),
	        TEST(test_nothing_is_sent),
	};

	return cmocka_run_group_tests(tests, make_addresses, NULL);
}
