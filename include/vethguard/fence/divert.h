/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divert: rules in the host's own namespace that hand an interface's frames to a gate's link and back. The interface
 * existed before: a veth's outer end, a tap, a port of a bridge, or a bridge itself.
 *
 * Table "netdev vethguard-divert" has three chains, which all drop by policy:
 * - ingress hook of the interface: its frames go out of the link (fwd), before bridge, firewall, routing and services
 *   of the host;
 * - ingress hook of the link: its frames go out of the interface, marked;
 * - egress hook of the interface (Linux 5.16 and newer): only marked frames pass.
 *
 * Tables "inet vethguard-divert", "bridge" and "arp" (if the kernel has them) are the second wall. They drop by the
 * interface's name, so they also hold while the interface vanishes and comes back. They also keep IP and ARP from the
 * host in frames that a bridge's port would give to it past the bridge.
 *
 * Programs of traffic control (netlink/filter.h), which no flush of nftables removes, do the same diversion a second
 * time: while the rules are gone, frames pass only to the gate and from it. If the programs have no place on the
 * interface or may not be loaded, the rules stand alone.
 *
 * A sandbox on a bridge that is guarded whole reaches the bridge's other ports without the gate. Programs on the
 * ports mark what comes in, and the gate's frames are marked anyway. The bridge table lets neither leave through a
 * port of a kind that may lead to a network, whether or not a daemon runs.
 *
 * Not covered: what takes frames from an interface before nftables does (XDP, tc's ingress, macvtap, an AF_PACKET
 * socket's copy).
 */
#ifndef VETHGUARD_FENCE_DIVERT_H
#define VETHGUARD_FENCE_DIVERT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define DIVERT_TABLE "vethguard-divert"
#define DIVERT_MARK 0x76676174u      /* on frames on their way from a gate to its interface */
#define DIVERT_PORT_MARK 0x76670001u /* on frames that came in on a port of a bridge that is guarded whole */

struct divert_spec {
	char interface[IFNAMSIZ]; /* the guarded interface */
	char link[IFNAMSIZ];      /* the host's end of the gate's link; "": no link, the interface is shut */
};

/* True if a link of this kind (IFLA_INFO_KIND; "": no kind, a network card) leads to a sandbox: kinds that container
 * engines and hypervisors make. Any other kind may lead to a network. */
bool divert_kind_leads_to_sandbox(const char *kind);

struct divert; /* the rules of one namespace; its sockets stay open */

/* Opens it in the caller's namespace; every later call has to be made there too. Returns 0 or -errno. */
int divert_open(struct divert **out);
void divert_close(struct divert *d);
/* Puts the diversion in force, or renews it: the programs first, then the rules, each even if the other fails.
 * Returns 0; -ENODEV: the interface does not exist, and what works without it is in force; -ENOLINK: the link does
 * not exist; or another -errno. */
int divert_set(struct divert *d, const struct divert_spec *spec);
/* Reads everything back and compares. Returns 0: as it should be; -ESTALE: changed or missing; -ENODEV: no such
 * interface, and what works without it is as it should be; -ENOLINK: no such link; or another -errno. */
int divert_check(struct divert *d, const struct divert_spec *spec);
/* For a bridge: guards ports that were added meanwhile like the earlier ones. Returns 0 or -errno. */
int divert_ports(struct divert *d, const struct divert_spec *spec);
/* Removes all of the diversion that exists, so that the interface is as before. Neither interface nor link has to
 * exist. */
int divert_remove(struct divert *d, const struct divert_spec *spec);
/* Removes the diversion but keeps the interface shut until divert_set() or divert_remove(). */
int divert_shut(struct divert *d, const struct divert_spec *spec);
/* Removes the tables if they guard or shut no interface any more. Returns 0, or -errno: the tables stay, which does
 * no harm. */
int divert_tidy(struct divert *d);
/* The netlink address that the rules' changes come from (fence_watch_read()). */
uint32_t divert_port(const struct divert *d);
/* The netlink address that the filters' changes come from. */
uint32_t divert_filter_port(const struct divert *d);
/* The result of the last divert_set() or divert_shut() for the filters. 0: the interface has its filters; -errno: why
 * it has none (-EBUSY: somebody else's filters are there). */
int divert_filters(const struct divert *d);

#endif
