/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divert: rules of the host's own namespace that hand an interface's frames to a gate's link and
 * back. The interface is one that was there before: a veth's outer end, a tap, a port of a bridge,
 * or a bridge itself.
 *
 * Table "netdev vethguard-divert": what comes in on the interface goes out of the link (fwd) at the
 * ingress hook, before bridge, firewall, routing and services of the host; what comes in on the
 * link goes out of the interface, marked; the egress hook of the interface (Linux 5.16 and newer)
 * lets out only what bears the mark. All three chains drop by policy. Tables "inet
 * vethguard-divert", "bridge" and "arp" (where the kernel has them) are the second wall: they drop
 * by the interface's name, so they also stand where it vanishes and comes back; and they keep the
 * host from IP and ARP in frames that the port of a bridge would give to it past the bridge.
 *
 * The same diversion is there a second time as programs of traffic control (netlink/filter.h),
 * which no flush of nftables takes away: while the rules are gone, nothing passes but to the gate
 * and from it. Who has no such place, or no right to load programs, has the rules alone.
 *
 * Whoever is on a bridge that is guarded whole reaches its other ports without the gate. Programs
 * on the ports mark what comes in, the gate's frames are marked anyway, and the bridge table lets
 * neither leave by a port of a kind that may lead to a network, whether or not a daemon runs.
 *
 * What holds an interface before nftables does (XDP, tc's ingress, macvtap, an AF_PACKET socket's
 * copy) is not met.
 */
#ifndef VETHGUARD_FENCE_DIVERT_H
#define VETHGUARD_FENCE_DIVERT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define DIVERT_TABLE "vethguard-divert"
#define DIVERT_MARK 0x76676174u /* of frames on their way from a gate to its interface */
#define DIVERT_PORT_MARK \
	0x76670001u /* of what came in on a port of a bridge that is guarded whole */

struct divert_spec {
	char interface[IFNAMSIZ]; /* guarded */
	char link[IFNAMSIZ]; /* the host's end of the gate's link; "": none, the interface is shut
	                      */
};

/* Whether a link of this kind (IFLA_INFO_KIND; "": none, a network card) leads to a sandbox: what
 * container engines and hypervisors make. Any other may lead to a network. */
bool divert_kind_leads_to_sandbox(const char *kind);

struct divert; /* the rules of one namespace; its socket stays open */

/* In the caller's namespace, in which every later call has to be made as well. 0 or -errno. */
int divert_open(struct divert **out);
void divert_close(struct divert *d);
/* Puts the diversion in force, or anew where it is there: the programs first, and either half
 * whatever becomes of the other. 0; -ENODEV: the interface does not exist, and what stands without
 * it is in force; -ENOLINK: the link does not exist; -errno. */
int divert_set(struct divert *d, const struct divert_spec *spec);
/* Reads back and compares. 0: as they should be; -ESTALE: changed or missing; -ENODEV: no such
 * interface, and what stands without it is as it should be; -ENOLINK: no such link; -errno. */
int divert_check(struct divert *d, const struct divert_spec *spec);
/* Of a bridge: ports that it has got since are guarded as those it had. 0 or -errno. */
int divert_ports(struct divert *d, const struct divert_spec *spec);
/* Takes the rules away, whatever there is of them: the interface is what it was. Neither has to
 * exist. */
int divert_remove(struct divert *d, const struct divert_spec *spec);
/* The same, but the interface stays shut, until divert_set() or divert_remove(). */
int divert_shut(struct divert *d, const struct divert_spec *spec);
/* Takes the tables away where no interface is guarded, or shut, by them any more. 0 or -errno: they
 * stay, which harms nobody. */
int divert_tidy(struct divert *d);
/* The netlink address from which these changes are made (fence_watch_read). */
uint32_t divert_port(const struct divert *d);
/* The same of the filters. */
uint32_t divert_filter_port(const struct divert *d);
/* Of the last divert_set() or divert_shut(): 0: the interface has its filters; -errno: why it has
 * none (-EBUSY: somebody else's are there). */
int divert_filters(const struct divert *d);

#endif
