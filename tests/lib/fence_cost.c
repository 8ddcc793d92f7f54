/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence_cost: what the rules cost a packet, with one sandbox in the namespace and with COUNT
 * (default 1000).
 *
 *     fence_cost [COUNT]
 *
 * A veth pair carries datagrams from one namespace to a fenced interface of another; the kernel
 * works through the receiving side's rules before sendto() returns, so the time of sendto() holds
 * their cost. The other sandboxes are dummy interfaces with fences of their own. Needs root, or a
 * user namespace (unshare -Urn).
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/fence/fence.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"

#define PACKETS 10000
#define ROUNDS \
	60 /* short ones, of which the best counts: other work on the machine disturbs the rest */

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 1}, mac_b[6] = {2, 0, 0, 0, 0, 2};
static struct fence_spec spec = {.interface = "vg0",
        .tcp_port = 9,
        .dns_port = 53,
        .nflog_group = FENCE_NFLOG_GROUP,
        .whole_namespace = true};
static int sandbox, udp, listener;

static void must(const char *what, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "fence_cost: %s: %s\n", what, strerror(-result));
	exit(1);
}

static struct ip address(const char *text)
{
	struct ip ip = {0};

	ip_parse(slice_from_string(text), &ip);
	return ip;
}

static int build_sandbox(void *context)
{
	struct netlink *nl;

	(void)context;
	must("open", netlink_open(&nl));
	must("address", netlink_address_add(nl, "eth0", &spec.sandbox4, 30));
	must("up", netlink_link_up(nl, "eth0"));
	must("route", netlink_route_default(nl, "eth0", &spec.gate4));
	must("neighbour", netlink_neighbor_permanent(nl, "eth0", &spec.gate4, mac_a));
	netlink_close(nl);
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return udp < 0 ? -errno : 0;
}

static void build(void)
{
	struct netlink *nl;

	spec.sandbox4 = address("10.77.0.2");
	spec.gate4 = address("10.77.0.1");
	spec.sandbox6 = address("fd77::2");
	spec.gate6 = address("fd77::1");
	sandbox = netns_new();
	must("namespace", sandbox);
	must("harden", netns_harden_gate());
	must("open", netlink_open(&nl));
	must("veth", netlink_veth_add(nl, "vg0", mac_a, "eth0", mac_b, sandbox));
	must("address", netlink_address_add(nl, "vg0", &spec.gate4, 30));
	must("up", netlink_link_up(nl, "vg0"));
	must("delivery", netlink_local_delivery(nl, "vg0", 100));
	netlink_close(nl);
	must("sandbox", netns_run(sandbox, build_sandbox, NULL));
	listener = fence_listen(4, false, 53, 0);
	must("listen", listener);
}

/* Nanoseconds of CPU of one sendto(), the best of some rounds. */
static double send_cost(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct timespec a, b;
	double best = 1e9, ns;

	to.sin_addr.s_addr = htonl(0x08080808);
	for (int round = 0; round < ROUNDS; round++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		for (int i = 0; i < PACKETS; i++)
			(void)sendto(udp, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		ns = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
		     PACKETS;
		best = ns < best ? ns : best;
	}
	return best;
}

static void timed_set(const char *label)
{
	int64_t start = clock_monotonic_us();

	must("fence_set", fence_set(&spec));
	printf("fence_set, %s: %lld us\n", label, (long long)(clock_monotonic_us() - start));
	start = clock_monotonic_us();
	must("fence_check", fence_check(&spec));
	printf("fence_check, %s: %lld us\n", label, (long long)(clock_monotonic_us() - start));
}

static void add_others(int count)
{
	struct fence_spec other = spec;
	char line[96];
	FILE *batch = popen("ip -batch -", "w");
	int64_t start;

	for (int i = 1; i < count && batch; i++) {
		snprintf(line, sizeof(line), "link add vg%d type veth peer name p%d\n", i, i);
		fputs(line, batch);
	}
	if (!batch || pclose(batch) != 0)
		must("ip", -EIO);
	start = clock_monotonic_us();
	for (int i = 1; i < count; i++) {
		snprintf(other.interface, sizeof(other.interface), "vg%d", i);
		must("fence_set", fence_set(&other));
	}
	printf("%d further fences: %lld us each\n", count - 1,
	        (long long)(clock_monotonic_us() - start) / (count > 1 ? count - 1 : 1));
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	must("unshare", unshare(CLONE_NEWNET) < 0 ? -errno : 0);
	build();
	printf("no rules: %.0f ns a datagram\n", send_cost(53));
	timed_set("the first");
	printf("1 sandbox: %.0f ns passed, %.0f ns refused\n", send_cost(53), send_cost(54));
	add_others(count);
	printf("%d sandboxes: %.0f ns passed, %.0f ns refused\n", count, send_cost(53),
	        send_cost(54));
	timed_set("again among all");
	close(listener);
	return 0;
}
