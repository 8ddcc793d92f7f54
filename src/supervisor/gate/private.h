/* SPDX-License-Identifier: Apache-2.0 */
/* gate_private: what the files of this folder share. */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_PRIVATE_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_PRIVATE_H

#include "vethguard/fence/divert.h"
#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "supervisor/gate/gate.h"

#define GATE_BITS4 30
/* Synthetic addresses of the same /64 are not on the link, so they are sent to the gate. */
#define GATE_BITS6 126

/* One step of a sequence: names it, and executes it if no step before has failed. */
#define STEP(text, call)                     \
	do {                                 \
		if (!rc) {                   \
			gate->step = (text); \
			rc = (call);         \
		}                            \
	} while (0)

/* Two sockets with the kernel's notifications of one namespace, or of all. Zeroed: closed. */
struct gate_notifications {
	bool open;
	struct loop_io rules, links;
};

struct gate_store {
	struct gate *gates;
	size_t goal, stored;
};

struct gate_host {
	struct loop *loop; /* NULL: nothing is watched */
	int netns;         /* the host's */
	bool home;         /* gate_host_keep_home() */
	struct netlink *nl;
	struct divert *divert;
	struct gate *diverted; /* list of GATE_DIVERT gates */
	int filters;           /* last logged reason why an interface has no tc filter; 0: none */

	struct gate_notifications notifications; /* in the host's namespace */
	struct gate_notifications all; /* of all gates' namespaces; closed: each gate has its own */
	struct gate_watch *by_nsid;    /* gates by namespace id (nsid) */

	struct gate like; /* template of the gates in store */
	struct gate_store store;
	/* Gates whose fence is bare, for GATE_DIVERT, where hardly two gates have the same
	 * addresses. Filled after the first one was asked for. */
	struct gate_store bare;
	struct loop_timer refill;
	bool refilling; /* the timer is set */
};

/* gate.c */
struct fence_spec gate_fence(const struct gate *gate);
struct ip_prefix gate_one(const struct ip *ip);
void gate_random_mac(uint8_t mac[6]);
/* Makes the namespace, sysctls, sockets and the fence without its hook, bare if gate->prepared says
 * so. */
int gate_prepare(struct gate *gate);
/* Takes a gate from the store, or makes a new one, and opens the sockets of the policy's ports. */
int gate_take_place(struct gate *gate);
int gate_open_packets(struct gate *gate);

/* shared.c: the listeners of GATE_SHARED, in the caller's namespace. */
int gate_listen_shared(struct gate *gate);

/* listen.c, in the gate's namespace: the listeners every gate has; those of the policy's ports. */
int gate_listen_always(struct gate *gate);
int gate_listen_udp(struct gate *gate);

/* gate.c, continued */
/* Adds routes to sandbox addresses outside the gate's network. */
int gate_add_routes(struct gate *gate, struct netlink *nl);
/* In the gate's namespace, when the link exists: sets the fence's hook and addresses, brings it
 * up. */
int gate_link_gate_side(struct gate *gate, struct netlink *nl);

/* sandbox.c, in the sandbox's namespace; context is the gate. Returns -EEXIST with gate->why if the
 * namespace has another link, or is a gate. */
int gate_check_sandbox(void *context);
int gate_link_sandbox(void *context);

/* divert.c */
struct ip_prefix gate_network(const struct ip *ip, uint8_t bits);
struct divert_spec gate_divert_spec(const struct gate *gate);
int gate_connect_divert(struct gate *gate);
/* Removes those ports from a bridge that lead to a network: through them the bridge's members would
 * bypass the gate. parted: the name of one of them, or empty. Returns 0 or -errno. */
int gate_part_uplinks(struct gate *gate, char parted[IFNAMSIZ]);

/* verify.c. Returns 0; 1 with the repairs in gate->why; -ENOLINK: the link is gone; -errno. */
int gate_verify(struct gate *gate);

/* pin.c, in the gate's namespace; context is unused. Returns 0 or -errno. */
int gate_delete_link(void *context);

/* host.c */
/* Moves a gate from the store into gate. Returns false if none fits. */
bool gate_host_take(struct gate_host *host, struct gate *gate);
void gate_host_remember(struct gate *gate);
void gate_host_forget(struct gate *gate);
/* Logs that an interface is guarded by nftables rules without tc filters: once for each reason, but
 * for -EBUSY each time. */
void gate_host_tell_filters(struct gate_host *host, const char *interface);
struct gate *gate_host_find(struct gate_host *host, const char *device);

/* watch_host.c: opens the sockets in the host's namespace, once. Returns 0 or -errno. */
int gate_host_watch(struct gate_host *host);
void gate_host_unwatch(struct gate_host *host);
/* watch_all.c: closes the sockets for all gates (gate_host_listen_for_all()). */
void gate_host_listen_end(struct gate_host *host);
/* Switches notifications of routing changes on the shared socket. host may be NULL. */
void gate_host_hear_routing(struct gate_host *host, bool wanted);

#endif
