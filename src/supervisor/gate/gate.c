/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a gate. Order matters twice: the fence is set before the link's ends come up, so that no
 * packet ever finds the gate without rules; and the sandbox's side is set up last, when something
 * can answer it.
 *
 * The work has three parts. The first needs no knowledge of the sandbox and can be done in advance
 * (gate_host_prepare()): the namespace, its sysctls, the fence without its hook on the link, the
 * sockets. gate_open() uses that; from then on a worker may have the sockets, to which nothing
 * leads yet. gate_connect() makes the link, the hook and the addresses, while the worker starts.
 *
 * Without a pin the namespace has no name and no file: it lives as long as the supervisor's
 * descriptor, and with it the veth pair and every rule. A supervisor that is killed leaves nothing
 * behind, and a sandbox that outlives it has lost its link. On a veth pair the neighbors are
 * permanent on both sides: no ARP or ND of the sandbox decides where its packets go.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "supervisor/gate/private.h"

void gate_init(struct gate *gate)
{
	memset(gate, 0, sizeof(*gate));
	gate->netns = gate->sandbox_netns = gate->packets = gate->entrance = -1;
}

void gate_move(struct gate *to, struct gate *from)
{
	gate_await_end(from);
	*to = *from;
	from->netns = from->packets = from->entrance = -1;
	from->listener_count = 0;
}

static struct ip nth(const struct ip_prefix *pool, uint8_t n)
{
	struct ip ip = pool->base;

	ip.bytes[(ip.family == 6 ? 16 : 4) - 1] |= n; /* pools end in at least two zero bits */
	return ip;
}

struct ip_prefix gate_one(const struct ip *ip)
{
	return (struct ip_prefix){*ip, ip->family == 6 ? 128 : 32};
}

void gate_assign(struct gate *gate, const struct ip_prefix *pool4, const struct ip_prefix *pool6)
{
	gate->gate4 = nth(pool4, 1);
	gate->gate6 = nth(pool6, 1);
	gate->sandbox4 = nth(pool4, 2);
	gate->sandbox6 = nth(pool6, 2);
	gate->source4 = gate_one(&gate->sandbox4);
	gate->source6 = gate_one(&gate->sandbox6);
	gate->bits4 = GATE_BITS4;
	gate->bits6 = GATE_BITS6;
}

const char *gate_failure(const struct gate *gate, int error, char out[GATE_WHY_MAX])
{
	if (gate->why[0])
		snprintf(out, GATE_WHY_MAX, "%s", gate->why);
	else
		snprintf(out, GATE_WHY_MAX, "%s: %s", gate->step ? gate->step : "the gate",
		        strerror(-error));
	return out;
}

enum gate_fault gate_fault_of(const struct gate *gate, int error)
{
	if (!gate->why[0])
		return GATE_FAULT_OWN;
	if (gate->kind == GATE_SOCKET)
		return GATE_FAULT_ASKED;
	switch (error) {
	case -EEXIST:
		return gate->kind == GATE_DIVERT ? GATE_FAULT_TAKEN : GATE_FAULT_ASKED;
	case -EINVAL:
	case -ENODEV:
	case -EBUSY:
	case -EADDRINUSE:
		return GATE_FAULT_ASKED;
	default:
		return GATE_FAULT_OWN;
	}
}

struct fence_spec gate_fence(const struct gate *gate)
{
	struct fence_spec spec = {.interface = GATE_LINK,
	        .sandbox4 = gate->source4.base,
	        .sandbox6 = gate->source6.base,
	        .bits4 = gate->source4.bits == 32 ? 0 : gate->source4.bits,
	        .bits6 = gate->source6.bits == 128 ? 0 : gate->source6.bits,
	        .gate4 = gate->gate4,
	        .gate6 = gate->gate6,
	        .tcp_port = gate->tcp_port,
	        .dns_port = GATE_DNS_PORT,
	        .udp_port_count = gate->udp_port_count,
	        .bounds = gate->bounds,
	        .nflog_group = FENCE_NFLOG_GROUP,
	        .whole_namespace = true};

	memcpy(spec.udp_ports, gate->udp_ports, sizeof(spec.udp_ports));
	return spec;
}

int gate_open_packets(struct gate *gate)
{
	int fd = fence_nflog_open(FENCE_NFLOG_GROUP);

	gate->packets = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

/* The part that needs no knowledge of the sandbox. */
static int in_gate_prepare(void *context)
{
	struct gate *gate = context;
	const struct fence_spec spec = gate_fence(gate);
	struct netlink *nl = NULL;
	int rc = 0;

	STEP("hardening the gate's namespace", netns_harden_gate());
	STEP("netlink in the gate's namespace", netlink_open(&nl));
	if (rc)
		return rc;
	STEP("delivering to the worker", netlink_local_delivery(nl, GATE_LINK, GATE_TABLE));
	STEP("preparing the fence",
	        fence_prepare(&spec, gate->prepared == FENCE_BARE, &gate->generation));
	STEP("listening for dropped packets", gate_open_packets(gate));
	STEP("listening", gate_listen_always(gate));
	netlink_close(nl);
	return rc;
}

int gate_prepare(struct gate *gate)
{
	gate->step = "making the gate's namespace";
	gate->netns = netns_new();
	if (gate->netns < 0) {
		int rc = gate->netns;

		gate->netns = -1;
		return rc;
	}
	return netns_run(gate->netns, in_gate_prepare, gate);
}

static int add_addresses(struct gate *gate, struct netlink *nl)
{
	int rc = 0;

	STEP("addresses of the gate",
	        netlink_address_add(nl, GATE_LINK, &gate->gate4, gate->bits4));
	STEP("addresses of the gate",
	        netlink_address_add(nl, GATE_LINK, &gate->gate6, gate->bits6));
	return rc;
}

/* Both ends of the link are known. */
static int add_neighbors(struct gate *gate, struct netlink *nl)
{
	int rc = 0;

	STEP("neighbors of the gate",
	        netlink_neighbor_permanent(nl, GATE_LINK, &gate->sandbox4, gate->sandbox_mac));
	STEP("neighbors of the gate",
	        netlink_neighbor_permanent(nl, GATE_LINK, &gate->sandbox6, gate->sandbox_mac));
	return rc;
}

/* Adds a route over the link if the sandbox's address is not in the gate's network. */
static int add_route(struct gate *gate, struct netlink *nl, const struct ip_prefix *source,
        const struct ip *own, uint8_t bits)
{
	struct ip_prefix network = gate_network(own, bits);

	if (source->base.family == 0 || ip_in_prefix(&source->base, &network))
		return 0;
	gate->step = "routes of the gate";
	return netlink_route_on_link(nl, GATE_LINK, &source->base, source->bits);
}

int gate_add_routes(struct gate *gate, struct netlink *nl)
{
	int rc = add_route(gate, nl, &gate->source4, &gate->gate4, gate->bits4);

	return rc ? rc : add_route(gate, nl, &gate->source6, &gate->gate6, gate->bits6);
}

int gate_link_gate_side(struct gate *gate, struct netlink *nl)
{
	const struct fence_spec spec = gate_fence(gate);
	int rc = 0;

	STEP("setting the fence", fence_set_prepared(&spec, gate->prepared, &gate->generation));
	gate->link = if_nametoindex(GATE_LINK);
	if (!rc)
		rc = add_addresses(gate, nl);
	STEP("bringing up the gate's link", netlink_link_up(nl, GATE_LINK));
	if (gate->kind == GATE_VETH && !rc)
		return add_neighbors(gate, nl);
	STEP("routes of the gate", gate_add_routes(gate, nl));
	return rc;
}

static int in_gate(void *context)
{
	struct gate *gate = context;
	struct netlink *nl = NULL;
	int rc = 0;

	STEP("netlink in the gate's namespace", netlink_open(&nl));
	if (rc)
		return rc;
	STEP("making the veth pair", netlink_veth_add(nl, GATE_LINK, gate->mac, GATE_INNER,
	                                     gate->sandbox_mac, gate->sandbox_netns));
	if (!rc)
		rc = gate_link_gate_side(gate, nl);
	netlink_close(nl);
	return rc;
}

void gate_random_mac(uint8_t mac[6])
{
	random_bytes(mac, 6);
	mac[0] = (uint8_t)((mac[0] & 0xfc) | 0x02); /* locally administered, not multicast */
}

static int in_gate_listen(void *context)
{
	return gate_listen_udp(context);
}

/* Locally administered. Each gate's link is a network of its own, so nobody meets them twice. */
static const uint8_t same_mac[6] = {0x02, 'v', 'g', 0, 0, 1};
static const uint8_t same_sandbox_mac[6] = {0x02, 'v', 'g', 0, 0, 2};

void gate_same_macs(struct gate *gate)
{
	memcpy(gate->mac, same_mac, sizeof(gate->mac));
	memcpy(gate->sandbox_mac, same_sandbox_mac, sizeof(gate->sandbox_mac));
}

bool gate_has_same_macs(const struct gate *gate)
{
	return memcmp(gate->mac, same_mac, sizeof(gate->mac)) == 0 &&
	       memcmp(gate->sandbox_mac, same_sandbox_mac, sizeof(gate->sandbox_mac)) == 0;
}

int gate_take_place(struct gate *gate)
{
	int rc = 0;

	if (!gate_host_take(gate->host, gate)) {
		gate->prepared = FENCE_FITS;
		rc = gate_prepare(gate);
	}
	if (gate->udp_port_count)
		STEP("listening", netns_run(gate->netns, in_gate_listen, gate));
	return rc;
}

int gate_open(struct gate *gate, struct gate_host *host, int sandbox_netns)
{
	int rc = 0;

	gate->kind = GATE_VETH;
	gate->host = host;
	gate->sandbox_netns = sandbox_netns;
	gate->why[0] = 0;
	STEP("examining the sandbox's namespace",
	        netns_run(sandbox_netns, gate_check_sandbox, gate));
	if (rc)
		return rc;
	if (!gate_has_same_macs(gate)) {
		gate_random_mac(gate->mac);
		gate_random_mac(gate->sandbox_mac);
	}
	return gate_take_place(gate);
}

static int connect_veth(struct gate *gate)
{
	int rc = 0;

	STEP("entering the gate's namespace", netns_run(gate->netns, in_gate, gate));
	if (rc == -EEXIST) /* that one leads nowhere: others were refused before */
		snprintf(gate->why, sizeof(gate->why),
		        "that network namespace has an interface " GATE_INNER
		        " already, which is the name of the one that is made there: take it away");
	STEP("entering the sandbox's namespace",
	        netns_run(gate->sandbox_netns, gate_link_sandbox, gate));
	return rc;
}

int gate_open_socket(struct gate *gate, int entrance, uint32_t cid)
{
	gate->kind = GATE_SOCKET;
	gate->entrance = entrance;
	gate->cid = cid;
	return gate_listen(gate);
}

int gate_connect(struct gate *gate)
{
	if (gate->kind == GATE_SOCKET || gate->kind == GATE_SHARED)
		return 0;
	gate_host_hear_routing(gate->host, false);
	int rc = gate->kind == GATE_VETH ? connect_veth(gate) : gate_connect_divert(gate);
	gate_host_hear_routing(gate->host, true);

	gate->sandbox_netns = -1;
	return rc;
}

static int in_gate_set(void *context)
{
	const struct fence_spec spec = gate_fence(context);

	return fence_set(&spec);
}

int gate_set_traffic(
        struct gate *gate, const uint16_t *ports, size_t count, const struct fence_bounds *bounds)
{
	bool same_ports;

	if (count > FENCE_UDP_PORTS_MAX)
		return -E2BIG;
	same_ports = count == gate->udp_port_count &&
	             (count == 0 || memcmp(ports, gate->udp_ports, count * sizeof(*ports)) == 0);
	if (same_ports && memcmp(bounds, &gate->bounds, sizeof(*bounds)) == 0)
		return 0;
	if (!same_ports) {
		/* Listeners that were not handed out yet have the wrong ports. */
		gate_close_handed_out(gate);
		if (count)
			memcpy(gate->udp_ports, ports, count * sizeof(*ports));
		gate->udp_port_count = count;
	}
	gate->bounds = *bounds;
	if (gate->kind == GATE_SHARED || gate->kind == GATE_SOCKET)
		return 0;
	return netns_run(gate->netns, in_gate_set, gate);
}

static int count_dropped(void *context)
{
	return fence_counters_get(GATE_LINK, context);
}

struct fence_counters gate_dropped(const struct gate *gate)
{
	struct fence_counters dropped = {0};

	if (gate->kind != GATE_SOCKET && gate->kind != GATE_SHARED &&
	        netns_run(gate->netns, count_dropped, &dropped) != 0)
		dropped = (struct fence_counters){0};
	return dropped;
}

void gate_close(struct gate *gate)
{
	gate_unwatch(gate);
	gate_host_forget(gate);
	gate_close_handed_out(gate);
	if (gate->packets >= 0)
		close(gate->packets);
	gate->packets = -1;
	if (gate->entrance >= 0)
		close(gate->entrance);
	gate->entrance = -1;
	if (gate->netns >= 0)
		close(gate->netns);
	gate->netns = -1;
}
