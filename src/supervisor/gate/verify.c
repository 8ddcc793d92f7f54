/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifying a gate: each part is compared with what it should be and repaired, in the order in
 * which it was made: a link that was down has lost its IPv6 addresses, for example. What is right
 * is not touched, so verifying a gate in order has no visible effect. A link that is gone cannot be
 * repaired: its other end was the sandbox's, or held the host's rules. An interface whose gate has
 * lost its link is shut.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/gate/private.h"

#define EXAMINE_TRIES 8 /* each failed because of a change in the middle of a dump */

static void note(struct gate *gate, const char *what)
{
	size_t n = strlen(gate->why);

	if (strstr(gate->why, what))
		return;
	snprintf(gate->why + n, sizeof(gate->why) - n, "%s%s", n ? ", " : "", what);
}

/* For results of repair functions, which return 1 if something was repaired. */
static int noted(struct gate *gate, int result, const char *what)
{
	if (result > 0)
		note(gate, what);
	return result < 0 ? result : 0;
}

static int repair_link(struct gate *gate, struct netlink *nl)
{
	struct netlink_link link;
	int rc = 0;

	STEP("the gate's link", netlink_link_get(nl, GATE_LINK, 0, &link));
	if (rc)
		return rc == -ENODEV ? -ENOLINK : rc;
	if (memcmp(link.mac, gate->mac, sizeof(gate->mac)) != 0) {
		note(gate, "the MAC address of its link");
		STEP("the gate's link", netlink_link_set_mac(nl, GATE_LINK, gate->mac));
	}
	if (!link.up) {
		note(gate, "its link (down)");
		STEP("the gate's link", netlink_link_up(nl, GATE_LINK));
	}
	return rc;
}

static int repair_address(
        struct gate *gate, struct netlink *nl, const struct ip *address, uint8_t bits)
{
	int rc = netlink_address_add(nl, GATE_LINK, address, bits);

	if (rc == 0)
		note(gate, "its addresses");
	return rc == -EEXIST ? 0 : rc;
}

/* The route to the sandbox. */
static int repair_connected(
        struct gate *gate, struct netlink *nl, const struct ip *address, uint8_t bits)
{
	if (!address->family || bits >= (address->family == 6 ? 128 : 32))
		return 0;
	return noted(
	        gate, netlink_route_connected_repair(nl, GATE_LINK, address, bits), "its routes");
}

static int repair_neighbors(struct gate *gate, struct netlink *nl)
{
	int rc = 0;

	if (gate->kind != GATE_VETH)
		return 0;
	STEP("neighbors of the gate",
	        netlink_neighbor_permanent(nl, GATE_LINK, &gate->sandbox4, gate->sandbox_mac));
	STEP("neighbors of the gate",
	        netlink_neighbor_permanent(nl, GATE_LINK, &gate->sandbox6, gate->sandbox_mac));
	return rc;
}

/* Used once, at the first look after the rules were set: comparing them costs more than setting
 * them, and later looks have a cause or are rare. */
static bool fence_is_as_set(struct gate *gate)
{
	uint32_t set = gate->generation, now;

	gate->generation = 0;
	return set && gate->link && if_nametoindex(GATE_LINK) == gate->link &&
	       fence_generation(&now) == 0 && now == set;
}

static int repair_fence(struct gate *gate)
{
	const struct fence_spec spec = gate_fence(gate);
	int rc = fence_is_as_set(gate) ? 0 : fence_check(&spec);

	if (rc == -ESTALE) {
		note(gate, "its rules");
		rc = fence_set(&spec);
	}
	return rc;
}

static int repair_parts(struct gate *gate, struct netlink *nl)
{
	int rc = 0;

	STEP("its rules", repair_fence(gate)); /* first, to close a gap as early as possible */
	rc = rc == -ENODEV ? -ENOLINK : rc;
	STEP("its sysctls", noted(gate, netns_harden_gate_again(GATE_LINK), "its sysctls"));
	if (!rc)
		rc = repair_link(gate, nl);
	STEP("its addresses", repair_address(gate, nl, &gate->gate4, gate->bits4));
	STEP("its addresses", repair_address(gate, nl, &gate->gate6, gate->bits6));
	STEP("its routes", noted(gate, netlink_local_delivery_repair(nl, GATE_LINK, GATE_TABLE),
	                           "its routes"));
	STEP("its routes", noted(gate, netlink_kernel_rules_repair(nl), "its routes"));
	STEP("its routes", repair_connected(gate, nl, &gate->gate4, gate->bits4));
	STEP("its routes", repair_connected(gate, nl, &gate->gate6, gate->bits6));
	STEP("its routes", gate_add_routes(gate, nl));
	return rc ? rc : repair_neighbors(gate, nl);
}

/* The link disappears with an ending sandbox, also during a look: then that is the error, whichever
 * part has failed. */
static int in_gate(void *context)
{
	struct gate *gate = context;
	struct netlink *nl = NULL;
	int rc = 0;

	STEP("netlink in the gate's namespace", netlink_open(&nl));
	if (rc)
		return rc;
	rc = repair_parts(gate, nl);
	netlink_close(nl);
	if (rc && if_nametoindex(GATE_LINK) == 0 && errno == ENODEV) {
		gate->step = "the gate's link";
		rc = -ENOLINK;
	}
	return rc;
}

static int repair_host_link(struct gate *gate)
{
	struct netlink *nl = gate->host->nl;
	struct netlink_link link;
	int rc = 0;

	STEP("the host's end of its link", netlink_link_get(nl, gate->host_link, 0, &link));
	if (rc)
		return rc == -ENODEV ? -ENOLINK : rc;
	if (!link.up) {
		note(gate, "the host's end of its link (down)");
		STEP("the host's end of its link", netlink_link_up(nl, gate->host_link));
	}
	return rc;
}

/* An absent interface is not an error: it lets nothing through. When it comes back it has its rules
 * before it can be used; meanwhile the second wall (fence/divert.h) stands. */
static int repair_host_rules(struct gate *gate, const struct divert_spec *spec)
{
	struct divert *divert = gate->host->divert;
	bool was_away = gate->away;
	int rc = divert_ports(divert, spec);

	if (!rc)
		rc = divert_check(divert, spec);
	if (rc == -ESTALE) {
		note(gate, "the host's rules");
		rc = divert_set(divert, spec);
		/* Check again: if only this interface's chains were missing, divert_set() has added
		 * just them, and the wall may still be wrong. */
		if ((rc == 0 || rc == -ENODEV) && divert_check(divert, spec) == -ESTALE)
			rc = divert_set(divert, spec);
	}
	gate->away = rc == -ENODEV;
	if (was_away && !rc)
		note(gate, "its interface is there again");
	return gate->away ? 0 : rc;
}

#define PORTS_STEP "a port of its bridge that leads to a network"

/* The members of a bridge reach its other ports without the gate, so none of them may lead to a
 * network. Such a port is refused when the bridge is attached, and removed from the bridge if it is
 * added later. */
static int repair_ports(struct gate *gate)
{
	char parted[IFNAMSIZ], text[IFNAMSIZ + 64];
	int rc = gate_part_uplinks(gate, parted);

	if (rc || !parted[0])
		return rc;
	snprintf(text, sizeof(text), "%s, which leads to a network, is not a port of its bridge",
	        parted);
	note(gate, text);
	return 0;
}

static int repair_host(struct gate *gate)
{
	struct divert_spec spec = gate_divert_spec(gate);
	int link = repair_host_link(gate), ports, rc;

	if (link == -ENOLINK)
		spec.link[0] = 0; /* no link to divert to: shut it */
	else if (link)
		return link;
	ports = repair_ports(gate);
	gate->step = "the host's rules";
	rc = repair_host_rules(gate, &spec); /* also if repairing the ports failed */
	if (ports && !rc) {
		gate->step = PORTS_STEP;
		rc = ports;
	}
	if (link && !gate->held && !rc)
		gate->step = "the host's end of its link";
	return rc || gate->held ? rc : link;
}

static int examine(struct gate *gate)
{
	int rc = gate->kind == GATE_DIVERT ? repair_host(gate) : 0;

	return rc || gate->held ? rc : netns_run(gate->netns, in_gate, gate);
}

int gate_verify(struct gate *gate)
{
	int rc = -EINTR;

	gate->why[0] = 0;
	if (gate->kind == GATE_SOCKET)
		return 0;
	for (int i = 0; i < EXAMINE_TRIES && rc == -EINTR; i++)
		rc = examine(gate);
	if (rc) {
		snprintf(gate->why, sizeof(gate->why), "%s: %s", gate->step,
		        rc == -ENOLINK ? "it is gone" : strerror(-rc));
		return rc;
	}
	return gate->why[0] ? 1 : 0;
}

int gate_repair(struct gate *gate)
{
	return gate->kind == GATE_SHARED ? 0 : gate_verify(gate);
}

void gate_release(struct gate *gate)
{
	gate_close(gate);
	gate->held = false;
}

int gate_hold(
        struct gate *gate, struct gate_host *host, void (*on_change)(struct gate *gate, int result))
{
	int mended, rc;

	if (gate->kind != GATE_DIVERT)
		return -EINVAL;
	gate->host = host;
	gate->held = true;
	mended = gate_verify(gate);
	rc = gate_watch(gate, host, on_change); /* also if the first look failed */
	return rc ? rc : mended;
}
