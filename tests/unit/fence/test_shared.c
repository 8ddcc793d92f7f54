/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fence of a namespace that guard and sandbox share: who gets out, and what notices a change.
 * "pod" is that namespace, "net" the network outside of it, which listens and must hear of the
 * guard only.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

#include "vethguard/fence/shared.h"
#include "world.h"

#define GUARD 1337
#define AGENT 2000
#define TCP_PORT 3128
#define DNS_PORT 7653

struct pod {
	int pod, net;
	int tcp, udp; /* in net: port 80 and 53 */
	struct fence_shared_spec spec;
};

/* One attempt to send as a user. */
struct attempt {
	uid_t uid;
	int family, type;
	const char *to;
	uint16_t port;
	const char *device; /* bound to it; NULL: not */
	uint16_t from;      /* source port; 0: any */
};

static int attempt_now(const struct attempt *a)
{
	struct timeval limit = {.tv_sec = 5};
	struct sockaddr_storage ss = {0};
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(a->from)};
	struct ip ip = world_ip(a->to);
	socklen_t n = ip_to_sockaddr(&ip, a->port, &ss);
	int fd;

	if (setresgid(a->uid, a->uid, a->uid) != 0 || setresuid(a->uid, a->uid, a->uid) != 0)
		return 254;
	fd = socket(a->family == 4 ? AF_INET : AF_INET6, a->type, 0);
	if (fd < 0)
		return 253;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (a->device && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, a->device,
	                         (socklen_t)strlen(a->device)) != 0)
		return 252;
	if (a->from && bind(fd, (struct sockaddr *)&from, sizeof(from)) != 0)
		return 251;
	if (connect(fd, (struct sockaddr *)&ss, n) != 0)
		return errno;
	return a->type == SOCK_STREAM || send(fd, "x", 1, 0) == 1 ? 0 : errno;
}

static int attempt_in(void *context)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(attempt_now(context));
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Returns 0 or the errno with which it failed. */
static int try(struct pod *p, struct attempt a)
{
	return netns_run(p->pod, attempt_in, &a);
}

static int build_net(void *context)
{
	struct pod *p = context;
	struct ip own4 = world_ip("10.78.0.1"), own6 = world_ip("fd78::1");
	struct netlink *nl;

	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(
	        netlink_veth_add(nl, "out", world_gate_mac, "eth0", world_sandbox_mac, p->pod), 0);
	assert_int_equal(netlink_address_add(nl, "out", &own4, 24), 0);
	assert_int_equal(netlink_address_add(nl, "out", &own6, 64), 0);
	assert_int_equal(netlink_link_up(nl, "out"), 0);
	netlink_close(nl);
	p->tcp = fence_listen(4, true, 80, 16);
	p->udp = fence_listen(4, false, 53, 0);
	assert_true(p->tcp >= 0 && p->udp >= 0);
	return 0;
}

static int build_pod(void *context)
{
	struct ip own4 = world_ip("10.78.0.2"), own6 = world_ip("fd78::2");
	struct ip gate4 = world_ip("10.78.0.1"), gate6 = world_ip("fd78::1");
	struct netlink *nl;

	(void)context;
	assert_int_equal(netlink_open(&nl), 0);
	assert_int_equal(netlink_link_up(nl, "lo"), 0);
	assert_int_equal(netlink_address_add(nl, "eth0", &own4, 24), 0);
	assert_int_equal(netlink_address_add(nl, "eth0", &own6, 64), 0);
	assert_int_equal(netlink_link_up(nl, "eth0"), 0);
	assert_int_equal(netlink_route_default(nl, "eth0", &gate4), 0);
	assert_int_equal(netlink_route_default(nl, "eth0", &gate6), 0);
	netlink_close(nl);
	return 0;
}

static int set(void *spec)
{
	return fence_shared_set(spec);
}

static int check(void *spec)
{
	return fence_shared_check(spec);
}

/* As an administrator sees it. */
static int count(void *context)
{
	FILE *f = popen("nft list counters table inet vethguard-shared", "r");
	uint64_t *packets = context;
	char line[256];

	*packets = UINT64_MAX;
	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, " packets %" SCNu64, packets);
	return f ? pclose(f) : -errno;
}

static int setup(void **state)
{
	struct pod *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->spec = (struct fence_shared_spec){.uid = GUARD,
	        .tcp_port = TCP_PORT,
	        .dns_port = DNS_PORT,
	        .synthetic4 = {{4, {198, 18}}, 15},
	        .synthetic6 = {{6, {0xfd, 0x76, 0x65, 0x74}}, 64},
	        .loopback_all = true,
	        .devices = {"eth0"},
	        .device_count = 1,
	        .nflog_group = FENCE_NFLOG_GROUP};
	p->pod = netns_new();
	p->net = netns_new();
	assert_true(p->pod >= 0 && p->net >= 0);
	assert_int_equal(netns_run(p->net, build_net, p), 0);
	assert_int_equal(netns_run(p->pod, build_pod, p), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pod *p = *state;

	close(p->tcp);
	close(p->udp);
	close(p->pod);
	close(p->net);
	free(p);
	return 0;
}

static void put(struct pod *p)
{
	assert_int_equal(netns_run(p->pod, set, &p->spec), 0);
	assert_int_equal(netns_run(p->pod, check, &p->spec), 0);
}

static int shell(struct pod *p, const char *line)
{
	struct world_command c = {line};

	return netns_run(p->pod, world_run_command, &c);
}

static int listen_in_pod(void *port)
{
	return fence_listen(4, true, *(uint16_t *)port, 16);
}

static const struct attempt guard_tcp = {GUARD, 4, SOCK_STREAM, "10.78.0.1", 80, NULL, 0};
static const struct attempt agent_tcp = {AGENT, 4, SOCK_STREAM, "10.78.0.1", 80, NULL, 0};

static struct attempt udp(uid_t uid, const char *to, uint16_t port)
{
	return (struct attempt){uid, strchr(to, ':') ? 6 : 4, SOCK_DGRAM, to, port, NULL, 0};
}

static void only_the_guard_gets_out(void **state)
{
	struct pod *p = *state;

	assert_int_equal(try(p, agent_tcp), 0); /* it would, without the fence */
	put(p);
	assert_int_equal(try(p, guard_tcp), 0);
	assert_int_equal(try(p, udp(GUARD, "10.78.0.1", 53)), 0);
	assert_true(world_readable(p->udp, 5000));
	assert_int_equal(try(p, agent_tcp), ECONNREFUSED); /* redirected; nobody listens */
	assert_int_equal(try(p, udp(AGENT, "10.78.0.1", 9)), EPERM);
	assert_int_equal(try(p, udp(AGENT, "fd78::1", 9)), EPERM);
	assert_int_equal(try(p, udp(0, "10.78.0.1", 9)), EPERM); /* root is not the guard */
	assert_int_equal(try(p, udp(GUARD, "fd78::1", 9)), 0);
}

static void tcp_and_dns_of_any_address_reach_the_guard(void **state)
{
	struct pod *p = *state;
	uint16_t port = TCP_PORT;
	struct sockaddr_in to = {0};
	socklen_t n = sizeof(to);
	int listener, fd;

	put(p);
	listener = netns_run(p->pod, listen_in_pod, &port);
	assert_true(listener >= 0);
	assert_int_equal(try(p, agent_tcp), 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, IPPROTO_IP, 80 /* SO_ORIGINAL_DST */, &to, &n), 0);
	assert_int_equal(ntohs(to.sin_port), 80);
	assert_int_equal(ntohl(to.sin_addr.s_addr), 0x0a4e0001);
	close(fd);
	close(listener);
	/* To the guard's name service, where nobody is: the error comes with a later call. */
	assert_int_equal(try(p, udp(AGENT, "10.78.0.1", 53)), 0);
	assert_false(world_readable(p->udp, 200));
}

/* Without the wall behind the rewriting, these would leave by eth0. */
static void a_socket_bound_to_the_uplink_gets_nothing_out(void **state)
{
	struct pod *p = *state;
	struct attempt a = agent_tcp;

	put(p);
	a.device = "eth0";
	assert_int_not_equal(try(p, a), 0);
	a = udp(AGENT, "127.0.0.1", 9);
	a.device = "eth0";
	assert_int_not_equal(try(p, a), 0);
	a = udp(AGENT, "10.78.0.1", 53);
	a.device = "eth0";
	try(p, a); /* may look sent */
	assert_false(world_readable(p->udp, 200));
}

static void members_reach_each_other_as_the_spec_says(void **state)
{
	struct pod *p = *state;
	uint16_t open = 8080, shut = 8081;
	struct attempt a = {AGENT, 4, SOCK_STREAM, "127.0.0.1", 8080, NULL, 0};
	int one = netns_run(p->pod, listen_in_pod, &open);
	int two = netns_run(p->pod, listen_in_pod, &shut);

	assert_true(one >= 0 && two >= 0);
	put(p);
	assert_int_equal(try(p, a), 0);
	a.port = shut;
	assert_int_equal(try(p, a), 0);
	p->spec.loopback_all = false;
	p->spec.loopback_ports[0] = open;
	p->spec.loopback_count = 1;
	put(p);
	assert_int_not_equal(try(p, a), 0);
	a.port = open;
	assert_int_equal(try(p, a), 0);
	assert_int_equal(try(p, udp(AGENT, "127.0.0.1", open)), EPERM);
	close(one);
	close(two);
}

static int make_synthetic_local(void *context)
{
	const struct pod *p = context;
	struct netlink *nl;

	assert_int_equal(netlink_open(&nl), 0);
	for (int i = 0; i < 2; i++) { /* again: nothing changes */
		assert_int_equal(netlink_route_to_loopback(
		                         nl, &p->spec.synthetic4.base, p->spec.synthetic4.bits),
		        0);
		assert_int_equal(netlink_route_to_loopback(
		                         nl, &p->spec.synthetic6.base, p->spec.synthetic6.bits),
		        0);
	}
	netlink_close(nl);
	return 0;
}

static int bind_in_pod(void *port)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(*(uint16_t *)port)};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? fd : -errno;
}

/* What is local because of the route is not the group's own. */
static void synthetic_addresses_take_only_the_datagrams_of_the_spec(void **state)
{
	static const char *const to[] = {"198.18.0.7", "198.19.255.255", "fd76:6574::7"};
	struct pod *p = *state;
	uint16_t open = 5000, shut = 5001;
	struct attempt tcp = {AGENT, 4, SOCK_STREAM, "198.18.0.7", 80, NULL, 0};
	int one, two;
	char byte;

	assert_int_equal(netns_run(p->pod, make_synthetic_local, p), 0);
	p->spec.udp_ports[0] = open;
	p->spec.udp_count = 1;
	put(p);
	one = netns_run(p->pod, bind_in_pod, &open);
	two = netns_run(p->pod, bind_in_pod, &shut);
	assert_true(one >= 0 && two >= 0);
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		assert_int_equal(try(p, udp(AGENT, to[i], open)), 0);
		assert_true(world_readable(one, 5000));
		assert_int_equal(recv(one, &byte, 1, 0), 1);
		assert_int_equal(try(p, udp(AGENT, to[i], shut)), EPERM);
	}
	assert_int_equal(try(p, udp(AGENT, "198.20.0.0", open)), EPERM);
	assert_int_equal(try(p, udp(AGENT, "10.78.0.1", open)), EPERM);
	assert_int_equal(try(p, udp(AGENT, "127.0.0.1", shut)), 0); /* the group's own */
	assert_int_equal(try(p, tcp), ECONNREFUSED);                /* redirected; nobody listens */
	p->spec.udp_count = 0;
	put(p);
	assert_int_equal(try(p, udp(AGENT, "198.18.0.7", open)), EPERM);
	close(one);
	close(two);
}

/* Docker's resolver listens in the namespace and forwards. */
static void the_resolver_of_docker_is_out_of_reach(void **state)
{
	struct pod *p = *state;

	put(p);
	assert_int_equal(try(p, udp(AGENT, "127.0.0.11", 40000)), EPERM);
	assert_int_equal(try(p, udp(AGENT, "127.0.0.12", 40000)), 0);
}

static int connect_from_net(void *port)
{
	struct attempt a = {0, 4, SOCK_STREAM, "10.78.0.2", *(uint16_t *)port, NULL, 0};

	return attempt_in(&a);
}

static void only_inbound_ports_are_reached_from_outside(void **state)
{
	struct pod *p = *state;
	uint16_t open = 8080, shut = 8081;
	int one = netns_run(p->pod, listen_in_pod, &open);
	int two = netns_run(p->pod, listen_in_pod, &shut);

	p->spec.inbound_ports[0] = open;
	p->spec.inbound_count = 1;
	put(p);
	assert_int_equal(netns_run(p->net, connect_from_net, &open), 0);
	assert_int_not_equal(netns_run(p->net, connect_from_net, &shut), 0);
	close(one);
	close(two);
}

/* A rule that goes by the connection's mark alone would let the agent use it. */
static void a_port_of_the_guard_is_of_no_use_to_others(void **state)
{
	struct pod *p = *state;

	put(p);
	for (uint16_t port = 40000; port < 40004; port++) {
		struct attempt a = udp(GUARD, "10.78.0.1", 53);
		char byte;

		a.from = port;
		assert_int_equal(try(p, a), 0);
		assert_true(world_readable(p->udp, 5000));
		assert_int_equal(recv(p->udp, &byte, 1, 0), 1);
		a.uid = AGENT;
		assert_int_equal(try(p, a), EPERM);
		assert_false(world_readable(p->udp, 100));
	}
}

static void what_is_refused_is_counted(void **state)
{
	struct pod *p = *state;
	uint64_t before, after;

	put(p);
	assert_int_equal(netns_run(p->pod, count, &before), 0);
	assert_int_equal(try(p, udp(AGENT, "10.78.0.1", 9)), EPERM);
	assert_int_equal(netns_run(p->pod, count, &after), 0);
	assert_true(after > before);
}

static void a_change_is_noticed_and_set_right(void **state)
{
	static const char *const changes[] = {
	        "nft add rule inet vethguard-shared output accept",
	        "nft insert rule inet vethguard-shared others accept",
	        "nft flush chain inet vethguard-shared rewrite",
	        "nft chain inet vethguard-shared output '{ policy accept; }'",
	        "nft add chain inet vethguard-shared more '{ type filter hook output priority 1; "
	        "}'",
	        "nft add table inet vethguard-shared '{ flags dormant; }'",
	        "nft delete table inet vethguard-shared",
	        "nft delete table netdev vethguard-shared",
	        "nft insert rule netdev vethguard-shared out-eth0 accept",
	        "nft flush chain netdev vethguard-shared out-eth0",
	        "nft flush ruleset",
	};
	struct pod *p = *state;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		put(p);
		assert_int_equal(shell(p, changes[i]), 0);
		assert_int_equal(netns_run(p->pod, check, &p->spec), -ESTALE);
	}
	put(p);
	p->spec.uid++;
	assert_int_equal(netns_run(p->pod, check, &p->spec), -ESTALE);
}

static void a_spec_without_sense_is_refused(void **state)
{
	struct pod *p = *state;
	const struct fence_shared_spec good = p->spec;

	p->spec.uid = 0;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.dns_port = good.tcp_port;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.tcp_port = FENCE_WITNESS_PORT;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.inbound_count = FENCE_SHARED_PORTS_MAX + 1;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.inbound_count = 1; /* port 0 */
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.loopback_count = 1;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	strcpy(p->spec.devices[0], "lo");
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.device_count = FENCE_SHARED_DEVICES_MAX + 1;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.udp_count = FENCE_SHARED_PORTS_MAX + 1;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.udp_count = 1; /* port 0 */
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.synthetic4.bits = 33;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.synthetic6.base.family = 4;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
	p->spec = good;
	p->spec.cgroup_level = 1;
	assert_int_equal(netns_run(p->pod, set, &p->spec), -EINVAL);
}

#define POD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {POD_TEST(only_the_guard_gets_out),
	        POD_TEST(tcp_and_dns_of_any_address_reach_the_guard),
	        POD_TEST(a_socket_bound_to_the_uplink_gets_nothing_out),
	        POD_TEST(members_reach_each_other_as_the_spec_says),
	        POD_TEST(synthetic_addresses_take_only_the_datagrams_of_the_spec),
	        POD_TEST(the_resolver_of_docker_is_out_of_reach),
	        POD_TEST(only_inbound_ports_are_reached_from_outside),
	        POD_TEST(a_port_of_the_guard_is_of_no_use_to_others),
	        POD_TEST(what_is_refused_is_counted), POD_TEST(a_change_is_noticed_and_set_right),
	        POD_TEST(a_spec_without_sense_is_refused)};

	if (geteuid() != 0 || !privileges_for_namespaces()) {
		fprintf(stderr, "skipped: other users' sockets need root\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
