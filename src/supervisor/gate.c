/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a gate. Order matters twice: the fence is set before the link's ends come up, so that no
 * packet ever finds the gate without rules; and the sandbox's side is set up last, when there is
 * something to answer it.
 *
 * The namespace has no name and no file: it lives as long as the supervisor's descriptor, and with
 * it the veth pair and every rule. A supervisor that is killed leaves nothing behind, and a sandbox
 * that outlives it has lost its link. Neighbours are permanent on both sides: no ARP or ND of the
 * sandbox decides where its packets go.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "supervisor/gate.h"

#define LINK4_BITS 30
#define LINK6_BITS \
	126 /* synthetic addresses of the same /64 are off the link: they go to the gate */
#define BACKLOG 1024

void gate_init(struct gate *gate)
{
	memset(gate, 0, sizeof *gate);
	gate->netns = gate->sandbox_netns = gate->packets = -1;
}

static struct ip nth(const struct ip_prefix *pool, uint8_t n)
{
	struct ip ip = pool->base;

	ip.bytes[(ip.family == 6 ? 16 : 4) - 1] |= n; /* pools end in at least two zero bits */
	return ip;
}

void gate_assign(struct gate *gate, const struct ip_prefix *pool4, const struct ip_prefix *pool6)
{
	gate->gate4 = nth(pool4, 1);
	gate->gate6 = nth(pool6, 1);
	gate->sandbox4 = nth(pool4, 2);
	gate->sandbox6 = nth(pool6, 2);
}

/* Locally administered, not multicast. */
static void random_mac(uint8_t mac[6])
{
	random_bytes(mac, 6);
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02);
}

static struct fence_spec fence_spec_of(const struct gate *gate)
{
	struct fence_spec spec = {.interface = GATE_LINK,
	        .sandbox4 = gate->sandbox4,
	        .sandbox6 = gate->sandbox6,
	        .gate4 = gate->gate4,
	        .gate6 = gate->gate6,
	        .tcp_port = gate->tcp_port,
	        .dns_port = GATE_DNS_PORT,
	        .udp_port_count = gate->udp_port_count,
	        .nflog_group = FENCE_NFLOG_GROUP,
	        .whole_namespace = true};

	memcpy(spec.udp_ports, gate->udp_ports, sizeof spec.udp_ports);
	return spec;
}

/* Continues a run of steps: names the step, does it where all before went well. */
#define STEP(text, call)                     \
	do {                                 \
		if (!error) {                \
			gate->step = (text); \
			error = (call);      \
		}                            \
	} while (0)

static int listen_on(struct gate *gate, enum message_listener kind, bool stream, uint16_t port)
{
	static const int families[] = {4, 6};

	for (size_t i = 0; i < 2; i++) {
		if (gate->listener_count >= MESSAGE_LISTENERS_MAX)
			return -ENOSPC;
		int fd = fence_listen(families[i], stream, port, BACKLOG);
		if (fd < 0)
			return fd;
		gate->listeners[gate->listener_count++] = (struct gate_listener){kind, port, fd};
	}
	return 0;
}

static int listen_all(struct gate *gate)
{
	int error = 0;

	STEP("listening for connections",
	        listen_on(gate, MESSAGE_LISTEN_TCP, true, gate->tcp_port));
	STEP("listening for names", listen_on(gate, MESSAGE_LISTEN_DNS_UDP, false, GATE_DNS_PORT));
	STEP("listening for names", listen_on(gate, MESSAGE_LISTEN_DNS_TCP, true, GATE_DNS_PORT));
	for (size_t i = 0; i < gate->udp_port_count; i++)
		STEP("listening for datagrams",
		        listen_on(gate, MESSAGE_LISTEN_UDP, false, gate->udp_ports[i]));
	return error;
}

static int open_packets(struct gate *gate)
{
	gate->packets = fence_nflog_open(FENCE_NFLOG_GROUP);
	return gate->packets < 0 ? gate->packets : 0;
}

static int link_gate_side(struct gate *gate, struct netlink *nl)
{
	const struct fence_spec spec = fence_spec_of(gate);
	int error = 0;

	STEP("making the veth pair", netlink_veth_add(nl, GATE_LINK, gate->mac, GATE_INNER,
	                                     gate->sandbox_mac, gate->sandbox_netns));
	STEP("setting the fence", fence_set(&spec));
	STEP("bringing up lo of the gate", netlink_link_up(nl, "lo"));
	STEP("delivering to the worker", netlink_local_delivery(nl, GATE_LINK, GATE_TABLE));
	STEP("listening for dropped packets", open_packets(gate));
	STEP("listening", listen_all(gate));
	STEP("addresses of the gate", netlink_address_add(nl, GATE_LINK, &gate->gate4, LINK4_BITS));
	STEP("addresses of the gate", netlink_address_add(nl, GATE_LINK, &gate->gate6, LINK6_BITS));
	STEP("bringing up the gate's link", netlink_link_up(nl, GATE_LINK));
	STEP("neighbours of the gate",
	        netlink_neighbour_permanent(nl, GATE_LINK, &gate->sandbox4, gate->sandbox_mac));
	STEP("neighbours of the gate",
	        netlink_neighbour_permanent(nl, GATE_LINK, &gate->sandbox6, gate->sandbox_mac));
	return error;
}

static int in_gate(void *context)
{
	struct gate *gate = context;
	struct netlink *nl = NULL;
	int error = 0;

	STEP("hardening the gate's namespace", netns_harden_gate());
	STEP("netlink in the gate's namespace", netlink_open(&nl));
	if (!error) {
		error = link_gate_side(gate, nl);
		netlink_close(nl);
	}
	return error;
}

static int link_sandbox_side(struct gate *gate, struct netlink *nl)
{
	int error = 0;

	STEP("bringing up lo of the sandbox", netlink_link_up(nl, "lo"));
	netns_settle_link(GATE_INNER);
	STEP("addresses of the sandbox",
	        netlink_address_add(nl, GATE_INNER, &gate->sandbox4, LINK4_BITS));
	STEP("addresses of the sandbox",
	        netlink_address_add(nl, GATE_INNER, &gate->sandbox6, LINK6_BITS));
	STEP("bringing up the sandbox's link", netlink_link_up(nl, GATE_INNER));
	STEP("neighbours of the sandbox",
	        netlink_neighbour_permanent(nl, GATE_INNER, &gate->gate4, gate->mac));
	STEP("neighbours of the sandbox",
	        netlink_neighbour_permanent(nl, GATE_INNER, &gate->gate6, gate->mac));
	STEP("routes of the sandbox", netlink_route_default(nl, GATE_INNER, &gate->gate4));
	STEP("routes of the sandbox", netlink_route_default(nl, GATE_INNER, &gate->gate6));
	return error;
}

static int in_sandbox(void *context)
{
	struct gate *gate = context;
	struct netlink *nl = NULL;
	int error = 0;

	STEP("netlink in the sandbox's namespace", netlink_open(&nl));
	if (!error) {
		error = link_sandbox_side(gate, nl);
		netlink_close(nl);
	}
	return error;
}

int gate_open(struct gate *gate, struct gate_host *host, int sandbox_netns)
{
	int error = 0;

	(void)host;
	gate->sandbox_netns = sandbox_netns;
	random_mac(gate->mac);
	random_mac(gate->sandbox_mac);
	gate->step = "making the gate's namespace";
	gate->netns = netns_new();
	if (gate->netns < 0) {
		error = gate->netns;
		gate->netns = -1;
		return error;
	}
	STEP("entering the gate's namespace", netns_run(gate->netns, in_gate, gate));
	STEP("entering the sandbox's namespace", netns_run(sandbox_netns, in_sandbox, gate));
	return error;
}

static int listen_again(void *context)
{
	return listen_all(context);
}

int gate_listen(struct gate *gate)
{
	int error = netns_run(gate->netns, listen_again, gate);

	if (error)
		gate_close_handed_out(gate);
	return error;
}

static int mend(void *context)
{
	const struct fence_spec spec = fence_spec_of(context);
	int error = fence_check(&spec);

	if (error != -ESTALE)
		return error;
	error = fence_set(&spec);
	return error ? error : 1;
}

int gate_set_udp_ports(struct gate *gate, const uint16_t *ports, size_t count)
{
	if (count > FENCE_UDP_PORTS_MAX)
		return -E2BIG;
	memcpy(gate->udp_ports, ports, count * sizeof *ports);
	gate->udp_port_count = count;
	int result = netns_run(gate->netns, mend, gate);
	return result < 0 ? result : 0;
}

int gate_mend(struct gate *gate)
{
	return netns_run(gate->netns, mend, gate);
}

static int count_dropped(void *context)
{
	struct fence_counters counters;
	int error = fence_counters_get(GATE_LINK, &counters);

	*(uint64_t *)context = counters.packets;
	return error;
}

uint64_t gate_dropped(const struct gate *gate)
{
	uint64_t dropped = 0;

	return netns_run(gate->netns, count_dropped, &dropped) == 0 ? dropped : 0;
}

void gate_close_handed_out(struct gate *gate)
{
	for (size_t i = 0; i < gate->listener_count; i++)
		close(gate->listeners[i].fd);
	gate->listener_count = 0;
}

void gate_close(struct gate *gate)
{
	gate_close_handed_out(gate);
	if (gate->packets >= 0)
		close(gate->packets);
	gate->packets = -1;
	if (gate->netns >= 0)
		close(gate->netns);
	gate->netns = -1;
}

static int adopt(void *context)
{
	struct gate *gate = context;
	int changed = mend(context), error = changed < 0 ? changed : 0;

	STEP("listening for dropped packets", open_packets(gate));
	STEP("listening", listen_all(gate));
	return error ? error : changed;
}

int gate_adopt(struct gate *gate, struct gate_host *host, const char *path)
{
	int result;

	(void)host;
	gate->netns = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (gate->netns < 0) {
		result = -errno;
		snprintf(gate->why, sizeof gate->why, "its namespace is gone: %s",
		        strerror(-result));
		return result;
	}
	gate->step = "examining the gate";
	result = netns_run(gate->netns, adopt, gate);
	if (result < 0) {
		gate_close(gate);
		snprintf(gate->why, sizeof gate->why, "%s: %s", gate->step, strerror(-result));
	} else if (result > 0) {
		snprintf(gate->why, sizeof gate->why, "its rules were changed from outside");
	}
	return result;
}

int gate_pause(struct gate *gate, bool paused)
{
	gate->paused = paused;
	return 0;
}

int gate_open_divert(struct gate *gate, struct gate_host *host, const struct gate_divert *divert)
{
	(void)host;
	snprintf(gate->why, sizeof gate->why, "%s: interfaces cannot be guarded yet",
	        divert->interface);
	return -EOPNOTSUPP;
}
