/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attaching to an existing interface. The gate stands in for the router that the sandbox knows
 * already: its link has the address and the MAC of the interface, or of the bridge it is a port of,
 * so nothing changes inside. The order is that of every gate: the fence is set before the gate's
 * link comes up. The host's rules come last, when frames can be diverted to something.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "supervisor/gate/private.h"

#define HOST_LINK_PREFIX "vg"
#define HOST_LINK_LENGTH 10 /* the prefix and eight hex digits */

struct ip_prefix gate_network(const struct ip *ip, uint8_t bits)
{
	struct ip_prefix network = {*ip, bits};

	for (unsigned i = bits; i < (ip->family == 6 ? 128 : 32); i++)
		network.base.bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	return network;
}

struct divert_spec gate_divert_spec(const struct gate *gate)
{
	struct divert_spec spec = {0};

	memcpy(spec.interface, gate->device, sizeof(spec.interface));
	memcpy(spec.link, gate->host_link, sizeof(spec.link));
	return spec;
}

__attribute__((format(printf, 3, 4))) static int refuse(
        struct gate *gate, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(gate->why, sizeof(gate->why), format, arguments);
	va_end(arguments);
	return error;
}

static bool is_host_link(const char *name)
{
	size_t n = strlen(HOST_LINK_PREFIX);

	return strncmp(name, HOST_LINK_PREFIX, n) == 0 && strlen(name) == HOST_LINK_LENGTH &&
	       strspn(name + n, "0123456789abcdef") == HOST_LINK_LENGTH - n;
}

struct uplinks {
	char name[IFNAMSIZ]; /* of a port that looks like an uplink; empty: none */
};

#define UPLINKS_MAX 16 /* ports that one look removes from a bridge */

/* Any host on that network would be taken for the sandbox. */
static void look_for_uplink(void *context, const struct netlink_link *member)
{
	struct uplinks *found = context;

	if (!divert_kind_leads_to_sandbox(member->kind))
		memcpy(found->name, member->name, sizeof(found->name));
}

int gate_part_uplinks(struct gate *gate, char parted[IFNAMSIZ])
{
	struct netlink *nl = gate->host->nl;
	struct netlink_link link;
	int rc = netlink_link_get(nl, gate->device, 0, &link);

	parted[0] = 0;
	if (rc || strcmp(link.kind, "bridge") != 0)
		return rc == -ENODEV ? 0 : rc;
	for (int i = 0; i < UPLINKS_MAX; i++) {
		struct uplinks found = {""};

		rc = netlink_links_of(nl, link.index, look_for_uplink, &found);
		if (rc || !found.name[0])
			return rc;
		rc = netlink_link_no_master(nl, found.name);
		if (rc && rc != -ENODEV) /* it disappeared by itself */
			return rc;
		memcpy(parted, found.name, sizeof(found.name));
	}
	return -EAGAIN; /* the rest is removed at the next look */
}

static int refuse_uplink(
        struct gate *gate, struct netlink *nl, const struct netlink_link *link, bool force)
{
	struct uplinks found = {""};
	bool is_default = false;
	int rc = netlink_route_is_default(nl, link->index, &is_default);

	if (force)
		return 0;
	if (!rc && strcmp(link->kind, "bridge") == 0)
		rc = netlink_links_of(nl, link->index, look_for_uplink, &found);
	if (rc)
		return refuse(gate, rc, "interface %s: its routes and ports cannot be read: %s",
		        link->name, strerror(-rc));
	if (is_default)
		return refuse(gate, -EBUSY,
		        "interface %s carries the host's default route: guarding it would cut the "
		        "host off, not a sandbox",
		        link->name);
	if (!link->kind[0])
		return refuse(gate, -EBUSY,
		        "interface %s is a network card of the host: what is behind it is a "
		        "network, not a sandbox",
		        link->name);
	if (!divert_kind_leads_to_sandbox(link->kind) && strcmp(link->kind, "bridge") != 0)
		return refuse(gate, -EBUSY,
		        "interface %s is a %s: what comes in on it may be a network's, not a "
		        "sandbox's; guard the veth, tap or bridge that the sandbox is behind",
		        link->name, link->kind);
	if (found.name[0])
		return refuse(gate, -EBUSY,
		        "bridge %s has the port %s, which leads to a network: what is on the "
		        "bridge could leave there; guard the sandbox's own port instead",
		        link->name, found.name);
	return 0;
}

static int check_interface(struct gate *gate, struct netlink *nl, const struct gate_divert *asked,
        struct netlink_link *link)
{
	int rc = netlink_link_get(nl, asked->interface, 0, link);

	if (rc == -EINVAL)
		return refuse(gate, rc, "\"%s\" is not an interface's name", asked->interface);
	if (rc == -ENODEV)
		return refuse(gate, rc,
		        "the daemon's network namespace has no interface %s: 'ip -br link' lists "
		        "those it has",
		        asked->interface);
	if (rc)
		return refuse(gate, rc, "interface %s cannot be examined: %s", asked->interface,
		        strerror(-rc));
	if (link->loopback)
		return refuse(gate, -EINVAL, "interface %s is the host's own loopback", link->name);
	if (!link->ethernet)
		return refuse(gate, -EINVAL,
		        "interface %s has no Ethernet frames (a tap has, a tun has not)",
		        link->name);
	if (is_host_link(link->name))
		return refuse(gate, -EINVAL, "interface %s is vethguard's own", link->name);
	if (gate_host_find(gate->host, link->name))
		return refuse(gate, -EEXIST, "interface %s is guarded already", link->name);
	return refuse_uplink(gate, nl, link, asked->force);
}

/* Docker names the bridge of a user-defined network "br-" and twelve digits of the network's id.
 * The default network, docker0, has no resolver. */
static bool is_named_network(const struct netlink_link *link)
{
	return strcmp(link->kind, "bridge") == 0 && strlen(link->name) == 15 &&
	       strncmp(link->name, "br-", 3) == 0 &&
	       strspn(link->name + 3, "0123456789abcdef") == 12;
}

/* The addresses of one family. */
struct family {
	struct ip *gate, *sandbox;
	struct ip_prefix *source;
	uint8_t *bits;
	struct ip given;
	uint8_t given_bits;
	struct ip own; /* the interface's; family 0: none */
	uint8_t own_bits;
};

static uint8_t bits_of(const struct ip *ip)
{
	return ip->family == 6 ? 128 : 32;
}

/* Writes the first address of the given network to out; false if that is the sandbox's own, or no
 * network is given. */
static bool first_of_given(const struct family *f, struct ip *out)
{
	struct ip_prefix network = gate_network(&f->given, f->given_bits);

	if (f->given_bits == 0 || f->given_bits >= bits_of(&f->given) - 1)
		return false;
	*out = network.base;
	out->bytes[bits_of(&f->given) / 8 - 1] |= 1;
	return !ip_equals(out, &f->given);
}

static void learn_family(struct family *f, bool use_pool)
{
	struct ip_prefix network;

	if (f->own.family) {
		*f->gate = f->own;
		*f->bits = f->own_bits;
	} else if (f->given.family && first_of_given(f, f->gate)) {
		*f->bits = f->given_bits;
	}
	if (!f->given.family && !f->own.family) {
		/* The other family is used; the gate's end keeps its address. */
		if (!use_pool) {
			*f->sandbox = (struct ip){0};
			*f->source = (struct ip_prefix){{0}, 0};
		}
		return;
	}
	*f->sandbox = f->given;
	if (!f->given.family) {
		*f->source = gate_network(&f->own, f->own_bits);
		return;
	}
	network = gate_network(&f->given, f->given_bits ? f->given_bits : bits_of(&f->given));
	*f->source = gate_one(&f->given);
	if (ip_equals(&network.base, &f->given)) {
		*f->source = network; /* a network was given, not an address */
		if (network.bits < bits_of(&f->given))
			f->sandbox->family = 0;
	}
}

static int learn_addresses(struct gate *gate, struct netlink *nl, const struct gate_divert *asked,
        const struct netlink_link *router)
{
	struct family four = {&gate->gate4, &gate->sandbox4, &gate->source4, &gate->bits4,
	        asked->address4, asked->bits4, {0}, 0};
	struct family six = {&gate->gate6, &gate->sandbox6, &gate->source6, &gate->bits6,
	        asked->address6, asked->bits6, {0}, 0};
	int rc = netlink_address_first(nl, router->index, 4, &four.own, &four.own_bits);
	bool known;

	if (!rc)
		rc = netlink_address_first(nl, router->index, 6, &six.own, &six.own_bits);
	if (rc)
		return refuse(gate, rc, "the addresses of %s cannot be read: %s", router->name,
		        strerror(-rc));
	if ((asked->address4.family && ip_equals(&asked->address4, &four.own)) ||
	        (asked->address6.family && ip_equals(&asked->address6, &six.own)))
		return refuse(gate, -EADDRINUSE,
		        "the sandbox cannot have the address that %s has itself", router->name);
	known = four.own.family || six.own.family || four.given.family || six.given.family;
	learn_family(&four, !known);
	learn_family(&six, !known);
	return 0;
}

static int in_gate(void *context)
{
	struct gate *gate = context;
	uint8_t host_mac[6];
	struct netlink *nl = NULL;
	int rc = 0;

	gate_random_mac(host_mac);
	STEP("netlink in the gate's namespace", netlink_open(&nl));
	if (rc)
		return rc;
	STEP("making the veth pair", netlink_veth_add(nl, GATE_LINK, gate->mac, gate->host_link,
	                                     host_mac, gate->host->netns));
	STEP("the frame size of the gate's link", netlink_link_set_mtu(nl, GATE_LINK, gate->mtu));
	if (!rc)
		rc = gate_link_gate_side(gate, nl);
	netlink_close(nl);
	return rc;
}

/* The host's end only carries frames: no address, no packets of its own. */
static int link_host_side(struct gate *gate)
{
	struct netlink *nl = gate->host->nl;
	const struct divert_spec spec = gate_divert_spec(gate);
	int rc = 0;

	STEP("the host's end of the gate's link", netlink_link_no_ipv6(nl, gate->host_link));
	STEP("the frame size of the gate's link",
	        netlink_link_set_mtu(nl, gate->host_link, gate->mtu));
	STEP("bringing up the gate's link", netlink_link_up(nl, gate->host_link));
	if (rc)
		return rc;
	STEP("diverting the interface", divert_set(gate->host->divert, &spec));
	if (rc) /* part of it may be in force */
		divert_remove(gate->host->divert, &spec);
	else
		gate_host_tell_filters(gate->host, gate->device);
	return rc;
}

void gate_name_host_link(struct gate *gate)
{
	uint32_t number;

	random_bytes(&number, sizeof(number));
	snprintf(gate->host_link, sizeof(gate->host_link), HOST_LINK_PREFIX "%08x", number);
}

int gate_connect_divert(struct gate *gate)
{
	int rc = 0;

	STEP("entering the gate's namespace", netns_run(gate->netns, in_gate, gate));
	if (!rc)
		rc = link_host_side(gate);
	if (!rc)
		gate_host_remember(gate);
	else
		netlink_link_delete(gate->host->nl, gate->host_link);
	return rc;
}

int gate_open_divert(struct gate *gate, struct gate_host *host, const struct gate_divert *asked)
{
	struct netlink_link link, router;
	int rc;

	gate->kind = GATE_DIVERT;
	gate->host = host;
	gate->why[0] = 0;
	gate->step = "examining the interface";
	rc = check_interface(gate, host->nl, asked, &link);
	if (rc)
		return rc;
	router = link;
	if (link.master)
		rc = netlink_link_get(host->nl, NULL, link.master, &router);
	if (!rc)
		rc = learn_addresses(gate, host->nl, asked, &router);
	if (rc)
		return rc;
	memcpy(gate->device, link.name, sizeof(gate->device));
	memcpy(gate->mac, router.mac, sizeof(gate->mac));
	gate->mtu = link.mtu;
	gate->has_resolver = is_named_network(&router);
	if (!gate->host_link[0])
		gate_name_host_link(gate);
	rc = gate_take_place(gate);
	if (rc)
		gate_close(gate);
	return rc;
}
