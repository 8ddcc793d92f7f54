/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's sockets meet: real packets over a veth pair into a fence, TPROXY listeners
 * behind it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "traffic.h"

static void tcp4_reaches_the_listener_with_its_destination(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *address;
		uint16_t port;
	} any[] = {{"93.184.216.34", 443}, {"1.0.0.1", 1}, {"223.255.255.254", 65535},
	        {"169.254.169.254", 80}, {"10.0.0.5", 22}, {"192.168.1.1", 8080}, {"10.77.0.1", 22},
	        {"126.255.255.255", 9}, {"128.0.0.1", 9}};

	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
		assert_intercepted(w, w->tcp4, any[i].address, any[i].port);
	assert_intercepted(w, w->tcp4, "10.77.0.1", w->spec.tcp_port);
}

static void tcp6_reaches_the_listener_with_its_destination(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *address;
		uint16_t port;
	} any[] = {{"2606:2800:220:1::1", 443}, {"fd77::1", 22}, {"64:ff9b::101:101", 80},
	        {"2002:102:304::1", 25}, {"fd00:ec2::254", 80}, {"fc00::1", 1}};

	for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++)
		assert_intercepted(w, w->tcp6, any[i].address, any[i].port);
}

static void tcp_53_reaches_the_responder_not_the_proxy(void **state)
{
	struct world *w = *state;

	assert_intercepted(w, w->dns_tcp4, "8.8.8.8", 53);
	assert_false(world_readable(w->tcp4, 0));
}

static void dns_to_any_resolver_is_answered_from_there(void **state)
{
	struct world *w = *state;

	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_relayed(w, w->dns4, "10.77.0.1", 53);
	assert_relayed(w, w->dns6, "2001:4860:4860::8888", 53);
	assert_relayed(w, w->dns6, "fd77::1", 53);
}

static void named_udp_ports_are_relayed(void **state)
{
	struct world *w = *state;

	assert_relayed(w, w->udp4, "203.0.113.7", 123);
	assert_relayed(w, w->udp6, "2001:db8::7", 123);
}

static void unnamed_udp_is_refused_at_once(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 20; i++) /* also the twentieth: no ICMP rate limit in a gate */
		assert_int_equal(refusal(w, "203.0.113.7", 443), EHOSTUNREACH);
	for (int i = 0; i < 20; i++)
		assert_int_equal(refusal(w, "2001:db8::7", 443), EACCES);
	assert_int_equal(refusal(w, "203.0.113.7", 124), EHOSTUNREACH);
	assert_int_equal(refusal(w, "10.77.0.1", w->spec.tcp_port), EHOSTUNREACH);
}

static int set(void *context)
{
	return fence_set(context);
}

static void a_changed_port_set_counts_at_once(void **state)
{
	struct world *w = *state;

	w->spec.udp_port_count = 0;
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_int_equal(refusal(w, "203.0.113.7", 123), EHOSTUNREACH);
	w->spec.udp_port_count = 1;
	assert_int_equal(netns_run(w->gate, set, &w->spec), 0);
	assert_relayed(w, w->udp4, "203.0.113.7", 123);
}

static void without_a_listener_nothing_passes(void **state)
{
	struct world *w = *state;
	int fd;

	close(w->tcp4);
	close(w->tcp6);
	close(w->dns4);
	close(w->udp4);
	close(w->dns_tcp4);
	w->tcp4 = w->tcp6 = w->dns4 = w->udp4 = w->dns_tcp4 = -1;
	assert_int_equal(
	        connect_from_sandbox(w, SOCK_STREAM, "93.184.216.34", 443, &fd), EHOSTUNREACH);
	close(fd);
	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, "10.77.0.1", 80, &fd), EHOSTUNREACH);
	close(fd);
	assert_int_equal(
	        connect_from_sandbox(w, SOCK_STREAM, "2606:2800:220:1::1", 443, &fd), EACCES);
	close(fd);
	assert_int_equal(connect_from_sandbox(w, SOCK_STREAM, "8.8.8.8", 53, &fd), EHOSTUNREACH);
	close(fd);
	assert_int_equal(refusal(w, "8.8.8.8", 53), EHOSTUNREACH);
	assert_int_equal(refusal(w, "203.0.113.7", 123), EHOSTUNREACH);
}

static void services_of_the_gate_are_out_of_reach(void **state)
{
	struct world *w = *state;
	int tcp = gate_service(w, SOCK_STREAM, "10.77.0.1", 8888);
	int udp = gate_service(w, SOCK_DGRAM, "0.0.0.0", 7777);
	int udp6 = gate_service(w, SOCK_DGRAM, "fd77::1", 7777);

	assert_intercepted(w, w->tcp4, "10.77.0.1", 8888);
	assert_int_equal(refusal(w, "10.77.0.1", 7777), EHOSTUNREACH);
	assert_int_equal(refusal(w, "fd77::1", 7777), EACCES);
	assert_false(world_readable(tcp, 50));
	assert_false(world_readable(udp, 0));
	assert_false(world_readable(udp6, 0));
	close(tcp);
	close(udp);
	close(udp6);
}

/* Of the gate; -1 where the kernel has no connection tracking. */
static int count_connections(void *context)
{
	FILE *f = fopen("/proc/sys/net/netfilter/nf_conntrack_count", "r");
	int count = -1;

	(void)context;
	if (!f)
		return -1;
	if (fscanf(f, "%d", &count) != 1)
		count = -1;
	fclose(f);
	return count;
}

static void nothing_is_tracked(void **state)
{
	struct world *w = *state;
	struct ip loopback = world_ip("127.0.0.1");
	struct sockaddr_storage ss;
	socklen_t n = ip_to_sockaddr(&loopback, 9, &ss);
	int fd = open_socket(w->gate, AF_INET, SOCK_DGRAM, 0);

	/* A rule that asks for connection state switches tracking on in this namespace. */
	assert_int_equal(
	        world_shell(w, "nft 'add table inet t; add chain inet t c { type filter hook "
	                       "input priority 0; }; add rule inet t c ct state new'"),
	        0);
	assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
	assert_relayed(w, w->dns4, "8.8.8.8", 53);
	assert_true(netns_run(w->gate, count_connections, NULL) <= 0);
	sendto(fd, "x", 1, 0, (struct sockaddr *)&ss, n);
	assert_true(netns_run(w->gate, count_connections, NULL) != 0); /* it would have shown */
	close(fd);
}

struct replacing {
	struct world *w;
	bool stop;
	int times, result;
};

static void *replace_again_and_again(void *context)
{
	struct replacing *r = context;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED) && r->result == 0) {
		r->result = netns_run(r->w->gate, world_fence_set, r->w);
		__atomic_add_fetch(&r->times, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A packet that met half a ruleset would be refused, or let a refused port through. */
static void replacing_the_fence_is_never_seen(void **state)
{
	struct world *w = *state;
	struct replacing r = {.w = w};
	int open_port = gate_service(w, SOCK_DGRAM, "10.77.0.1", 7777);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, replace_again_and_again, &r), 0);
	for (int i = 0; i < 200 || __atomic_load_n(&r.times, __ATOMIC_RELAXED) < 50; i++) {
		assert_int_equal(__atomic_load_n(&r.result, __ATOMIC_RELAXED), 0);
		assert_intercepted(w, w->tcp4, "93.184.216.34", 443);
		assert_int_equal(refusal(w, "10.77.0.1", 7777), EHOSTUNREACH);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(r.result, 0);
	assert_false(world_readable(open_port, 0));
	close(open_port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        IN_WORLD(tcp4_reaches_the_listener_with_its_destination),
	        IN_WORLD(tcp6_reaches_the_listener_with_its_destination),
	        IN_WORLD(tcp_53_reaches_the_responder_not_the_proxy),
	        IN_WORLD(dns_to_any_resolver_is_answered_from_there),
	        IN_WORLD(named_udp_ports_are_relayed),
	        IN_WORLD(unnamed_udp_is_refused_at_once),
	        IN_WORLD(a_changed_port_set_counts_at_once),
	        IN_WORLD(without_a_listener_nothing_passes),
	        IN_WORLD(services_of_the_gate_are_out_of_reach),
	        IN_WORLD(nothing_is_tracked),
	        IN_WORLD(replacing_the_fence_is_never_seen),
	};

	if (!privileges_for_namespaces()) {
		fprintf(stderr, "skipped: no network namespaces for this user\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
