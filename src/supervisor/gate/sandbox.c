/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's side of a veth gate. Its link must be the only one there that leads anywhere: a
 * namespace with another link is not guarded by a fence on this one, and is refused before anything
 * is made.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/gate/private.h"

static void look_for_route_out(void *context, const struct netlink_link *link)
{
	struct gate *gate = context;

	if (strcmp(link->name, GATE_LINK) == 0)
		snprintf(gate->why, sizeof(gate->why),
		        "that network namespace has an interface " GATE_LINK
		        ": it is a gate of vethguard's, not a sandbox");
	else if (!gate->why[0] && !netlink_link_leads_nowhere(link))
		snprintf(gate->why, sizeof(gate->why),
		        "that network namespace has an interface %s already, by which it could "
		        "leave: guard that one (--interface), or take it away",
		        link->name);
}

int gate_check_sandbox(void *context)
{
	struct gate *gate = context;
	struct netlink *nl;
	int rc = netlink_open(&nl);

	if (rc)
		return rc;
	rc = netlink_links_of(nl, 0, look_for_route_out, gate);
	netlink_close(nl);
	return rc ? rc : gate->why[0] ? -EEXIST : 0;
}

static int link_sandbox_side(struct gate *gate, struct netlink *nl)
{
	int rc = 0;

	STEP("bringing up lo of the sandbox", netlink_link_up(nl, "lo"));
	netns_settle_link(GATE_INNER);
	STEP("addresses of the sandbox",
	        netlink_address_add(nl, GATE_INNER, &gate->sandbox4, gate->bits4));
	STEP("addresses of the sandbox",
	        netlink_address_add(nl, GATE_INNER, &gate->sandbox6, gate->bits6));
	STEP("bringing up the sandbox's link", netlink_link_up(nl, GATE_INNER));
	STEP("neighbors of the sandbox",
	        netlink_neighbor_permanent(nl, GATE_INNER, &gate->gate4, gate->mac));
	STEP("neighbors of the sandbox",
	        netlink_neighbor_permanent(nl, GATE_INNER, &gate->gate6, gate->mac));
	STEP("routes of the sandbox", netlink_route_default(nl, GATE_INNER, &gate->gate4));
	STEP("routes of the sandbox", netlink_route_default(nl, GATE_INNER, &gate->gate6));
	return rc;
}

int gate_link_sandbox(void *context)
{
	struct gate *gate = context;
	struct netlink *nl = NULL;
	int rc = 0;

	STEP("netlink in the sandbox's namespace", netlink_open(&nl));
	if (!rc) {
		rc = link_sandbox_side(gate, nl);
		netlink_close(nl);
	}
	return rc;
}
