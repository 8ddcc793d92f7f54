/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: the place between a sandbox and everything else: a nameless network namespace without
 * uplink that holds the outer end of the sandbox's link, the fence on it, and the sockets the
 * worker listens on.
 */
#ifndef SUPERVISOR_GATE_H
#define SUPERVISOR_GATE_H

#include "vethguard/fence/fence.h"
#include "vethguard/wire/message.h"

#define GATE_LINK "vg0"   /* outer end, in the gate */
#define GATE_INNER "eth0" /* inner end, in the sandbox */
#define GATE_DNS_PORT 53
#define GATE_TABLE 100 /* routing table of local delivery, in the gate only */

struct gate_listener {
	enum message_listener kind;
	uint16_t port;
	int fd;
};

struct gate {
	int netns;         /* holds the namespace, and with it the fence, alive */
	int sandbox_netns; /* borrowed */
	int packets;       /* NFLOG socket */
	struct ip gate4, gate6, sandbox4, sandbox6;
	uint8_t mac[6], sandbox_mac[6];
	uint16_t tcp_port;
	uint16_t udp_ports[FENCE_UDP_PORTS_MAX];
	size_t udp_port_count;
	size_t listener_count;
	struct gate_listener listeners[MESSAGE_LISTENERS_MAX];
	const char *step; /* what was under way when gate_open failed */
};

/* An unopened gate: gate_close is harmless on it. */
void gate_init(struct gate *gate);
/* Chooses addresses: the gate has the first, the sandbox the second of each pool. */
void gate_assign(struct gate *gate, const struct ip_prefix *pool4, const struct ip_prefix *pool6);
/* Makes all of it. The fence stands before the link is up. 0 or -errno with gate->step; gate_close
 * undoes what there is. */
int gate_open(struct gate *gate, int sandbox_netns);
/* Compares the fence with what it should be and sets it anew where it is not. 0: it was in order;
 * 1: it was changed and is mended; -errno: it cannot be examined or mended. */
int gate_mend(const struct gate *gate);
/* Packets that the fence dropped so far; 0 where it cannot be asked. */
uint64_t gate_dropped(const struct gate *gate);
/* Closes the supervisor's copies of what the worker holds: without one nothing listens and the
 * fence rejects. The NFLOG socket stays: a second recorder may need it. */
void gate_close_handed_out(struct gate *gate);
void gate_close(struct gate *gate);

#endif
