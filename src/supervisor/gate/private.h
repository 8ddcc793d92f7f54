/* SPDX-License-Identifier: Apache-2.0 */
/* gate_private: what the files of the gate share (gate.c, divert.c, gate/verify.c,
 * pin.c, unlink.c, listen.c, host.c, sandbox.c, watch.c, watch_all.c, watch_host.c). */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_PRIVATE_H

#include "vethguard/fence/divert.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "supervisor/gate/gate.h"

#define GATE_BITS4 30
#define GATE_BITS6 \
	126 /* synthetic addresses of the same /64 are off the link: they go to the gate */

/* Continues a run of steps: names the step, does it where all before went well. */
#define STEP(text, call)                     \
	do {                                 \
		if (!error) {                \
			gate->step = (text); \
			error = (call);      \
		}                            \
	} while (0)

struct gate_host {
	struct loop *loop; /* NULL: nothing is watched */
	int netns;         /* the host's */
	struct netlink *nl;
	struct divert *divert;
	struct gate *diverted; /* list of the gates of GATE_DIVERT */
	int filters;           /* why an interface has none, as last said; 0: nothing was */

	int rules, links; /* notifications of the host's namespace; -1: none */
	struct loop_io rules_io, links_io;
	int all_rules, all_links; /* of all gates' namespaces; -1: each gate has its own */
	struct loop_io all_rules_io, all_links_io;
	struct gate_watch *by_nsid; /* gates by the number of their namespace */

	struct gate like; /* what prepared gates are like */
	struct gate *store;
	size_t goal, stored;
	struct loop_timer refill;
	bool refilling; /* it is set */
};

/* gate.c */
struct fence_spec gate_fence(const struct gate *gate);
struct ip_prefix gate_one(const struct ip *ip);
void gate_random_mac(uint8_t mac[6]);
/* Namespace, sysctls, sockets and the fence but for its hook. */
int gate_prepare(struct gate *gate);
/* One of those from the store, or a new one, with the sockets of the policy's ports. */
int gate_take_place(struct gate *gate);
int gate_open_packets(struct gate *gate);

/* listen.c: in the gate's namespace. Those that every gate has; those of the policy's ports.
 */
int gate_listen_always(struct gate *gate);
int gate_listen_udp(struct gate *gate);

/* gate.c, again */
/* Routes to a sandbox whose address is not in the gate's network. */
int gate_add_routes(struct gate *gate, struct netlink *nl);
/* In the gate's namespace, where the link is there: the fence's hook, addresses, up. */
int gate_link_gate_side(struct gate *gate, struct netlink *nl);

/* sandbox.c: in the sandbox's namespace; context is the gate. -EEXIST with gate->why: the
 * namespace has a link besides, or is a gate. */
int gate_check_sandbox(void *context);
int gate_link_sandbox(void *context);

/* divert.c */
struct ip_prefix gate_network(const struct ip *ip, uint8_t bits);
struct divert_spec gate_divert_spec(const struct gate *gate);
int gate_connect_divert(struct gate *gate);
/* Of a bridge: takes ports out of it that lead to a network: by these, what is on the bridge would
 * get past the gate. parted: the name of one; empty: there were none. 0 or -errno. */
int gate_part_uplinks(struct gate *gate, char parted[IFNAMSIZ]);

/* gate/verify.c: 0 or 1 and what was mended in gate->why; -ENOLINK: the link is gone; -errno. */
int gate_verify(struct gate *gate);

/* pin.c: in the gate's namespace; context is not looked at. 0 or -errno. */
int gate_delete_link(void *context);

/* host.c */
/* Moves a prepared gate into this one. False: there is none that fits. */
bool gate_host_take(struct gate_host *host, struct gate *gate);
void gate_host_remember(struct gate *gate);
void gate_host_forget(struct gate *gate);
/* Says, once for each reason, that rules stand alone. */
void gate_host_tell_filters(struct gate_host *host, const char *interface);
struct gate *gate_host_find(struct gate_host *host, const char *device);

/* watch_host.c: opens the sockets in the host's namespace. Once. 0 or -errno. */
int gate_host_watch(struct gate_host *host);
void gate_host_unwatch(struct gate_host *host);
/* watch_all.c: closes the sockets for all gates (gate_host_listen_for_all). */
void gate_host_listen_end(struct gate_host *host);
/* Whether the one socket for all gates hears of more than links. host may be NULL. */
void gate_host_hear_routing(struct gate_host *host, bool wanted);

#endif
