/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: the place between a sandbox and everything else: a network namespace without uplink that
 * holds the outer end of the sandbox's link, the fence on it, and the sockets the worker listens
 * on.
 *
 * Two kinds, which differ in the link only. GATE_VETH: a veth pair made here, its inner end the
 * sandbox's only link. GATE_DIVERT: an interface of the host that was there before (a veth's outer
 * end, a tap, a bridge's port, a whole bridge): rules of the host hand its frames to the gate's
 * link and back, before bridge, firewall or any service of the host sees one (fence/divert.h).
 *
 * Nameless, a gate lives as long as its descriptor. Pinned (gate_pin), it outlives the supervisor:
 * its rules stand, nothing listens, and everything is refused until gate_adopt().
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_GATE_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_GATE_H

#include "vethguard/fence/fence.h"
#include "vethguard/loop/loop.h"
#include "vethguard/wire/message.h"

#define GATE_LINK "vg0"   /* outer end, in the gate */
#define GATE_INNER "eth0" /* inner end, in the sandbox */
#define GATE_DNS_PORT 53
#define GATE_TABLE 100 /* routing table of local delivery, in the gate only */
#define GATE_WHY_MAX 256

enum gate_kind { GATE_VETH, GATE_DIVERT };

struct gate_listener {
	enum message_listener kind;
	uint16_t port;
	int fd;
};

struct gate_host;
struct gate_door;

struct gate {
	/* The shape: all that the owner of a pinned gate has to write down for gate_adopt(). */
	enum gate_kind kind;
	char device[IFNAMSIZ];    /* GATE_DIVERT: the guarded interface of the host */
	char host_link[IFNAMSIZ]; /* GATE_DIVERT: the host's end of the gate's link */
	struct ip gate4, gate6, sandbox4, sandbox6; /* sandbox's: family 0 where not known */
	uint8_t bits4, bits6;                       /* of the link's networks */
	struct ip_prefix source4, source6;          /* what the sandbox may send from */
	uint8_t mac[6], sandbox_mac[6];             /* sandbox's: zeros where not known */
	uint16_t tcp_port;
	uint16_t udp_ports[FENCE_UDP_PORTS_MAX];
	size_t udp_port_count;
	struct fence_bounds bounds;
	/* GATE_DIVERT, not written down: the interface belongs to a network of Docker's that has a
	 * name, whose containers have Docker's resolver in their own namespace. It may ask from the
	 * host's, past the gate. */
	bool has_resolver;

	/* Of the rules as this process has set them, and the link's number then; 0: not known.
	 * Where both are still the same, nobody has changed the rules since. */
	uint32_t generation;
	unsigned link;

	int netns;         /* holds the namespace, and with it the fence, alive */
	int sandbox_netns; /* borrowed, from gate_open() until gate_connect() is done */
	uint32_t mtu;      /* GATE_DIVERT: of the interface, for the same time */
	bool fits;         /* the fence that is prepared is of these addresses and bounds */
	int packets;       /* NFLOG socket */
	size_t listener_count;
	struct gate_listener listeners[MESSAGE_LISTENERS_MAX];
	const char *step;       /* what was under way when a call failed */
	char why[GATE_WHY_MAX]; /* a sentence in place of step and error; or what was mended */

	struct gate_host *host;   /* borrowed; NULL: none */
	struct gate_watch *watch; /* owned; NULL: not watched */
	struct gate_door *door;   /* owned; NULL: nobody is awaited */
	struct gate *next;        /* of the host's diverted gates */
	unsigned device_index;    /* GATE_DIVERT: as last seen by the watch; 0: not there */
	unsigned link_index;      /* the same of host_link */
	bool held;                /* gate_hold(): there is the host's side alone */
	bool away; /* GATE_DIVERT: the interface was not there when it was last looked for */
};

/* An unopened gate: gate_close is harmless on it. */
void gate_init(struct gate *gate);
/* Of one that is not watched: from keeps its shape. Nobody is awaited any more. */
void gate_move(struct gate *to, struct gate *from);
/* Chooses addresses: the gate has the first, the sandbox the second of each pool. */
void gate_assign(struct gate *gate, const struct ip_prefix *pool4, const struct ip_prefix *pool6);

/*
 * What the gates of one supervisor share: the namespace of the host, in which it is opened, with
 * its notifications, and gates made in advance. Without a loop (NULL) nothing is watched. 0 or
 * -errno.
 */
int gate_host_open(struct gate_host **out, struct loop *loop);
void gate_host_close(struct gate_host *host);
/* For whoever has many gates: they are watched by two sockets for all instead of two for each. 0 or
 * -errno: then each has its own, which only makes every change of a link or rule anywhere slower.
 */
int gate_host_listen_for_all(struct gate_host *host);
/* Keeps up to count gates of kind GATE_VETH in store, with these addresses and this port, and makes
 * the first at once. A gate that is opened takes one; where its port is another, the store is made
 * anew for that. One at a time is made again in a quiet moment of the loop. */
int gate_host_prepare(struct gate_host *host, const struct gate *like, size_t count);

/* GATE_VETH. All but the link: the namespace with its sockets, which a worker may have from now on.
 * Nothing leads to them before gate_connect(). sandbox_netns is kept until then. host may be NULL.
 * 0 or -errno with gate->step or gate->why (-EEXIST: the sandbox's namespace has another interface,
 * by which it could leave, or is a gate itself); gate_close undoes what there is. */
int gate_open(struct gate *gate, struct gate_host *host, int sandbox_netns);

/* An interface to guard. An address with bits: the network that it is in. family 0: none given. */
struct gate_divert {
	const char *interface;
	struct ip address4, address6;
	uint8_t bits4, bits6; /* 0: none given */
	bool force;           /* also what looks like the host's own uplink */
};
/* The name that the host's end of the gate's link will have: whoever keeps account of gates has to
 * know it before there is one. Without it gate_open_divert() chooses one. */
void gate_name_host_link(struct gate *gate);
/* GATE_DIVERT, as gate_open(). Addresses: the gate has those of the interface, or of the bridge it
 * belongs to; the sandbox may use the addresses given, else that whole network but the gate's own;
 * where neither gives any, those of gate_assign(), which comes first. 0, or -errno with gate->why:
 * no such interface, lo, guarded already, one of vethguard's own, an uplink of the host. Nothing is
 * left of one that failed. */
int gate_open_divert(struct gate *gate, struct gate_host *host, const struct gate_divert *divert);
/* Makes the link, of which the fence stands before it is up, and of GATE_DIVERT hands the
 * interface's frames to it. 0 or -errno with gate->step or gate->why; gate_close undoes what there
 * is, and of GATE_DIVERT nothing is left on the host. */
int gate_connect(struct gate *gate);

/* Whose fault it is that gate_open(), gate_open_divert() or gate_connect() failed. */
enum gate_fault {
	GATE_FAULT_OWN,   /* vethguard's, or the system's */
	GATE_FAULT_ASKED, /* what was asked for cannot be: gate->why says what to do */
	GATE_FAULT_TAKEN  /* it is guarded already */
};
enum gate_fault gate_fault_of(const struct gate *gate, int error);
/* The sentence to tell for what failed. */
const char *gate_failure(const struct gate *gate, int error, char out[GATE_WHY_MAX]);

/* Binds the gate's namespace to a file (made where it is not there, 0600; its directory is
 * of a mount namespace that outlives the supervisor). 0 or -errno. */
int gate_pin(const struct gate *gate, const char *path);
/* A pinned gate of a shape that was written down (every field of the shape is filled in, the rest
 * as gate_init() left it). Examines links, addresses, routes, sysctls and rules and mends what can
 * be; then listens. The owner may move the struct until gate_watch(). 0: all was as it should be;
 * 1: something was mended, gate->why says what; -errno: it cannot be adopted (gate->why says why:
 * the pin is none, the link is gone); its sandbox stays cut off. gate->packets >= 0: the socket of
 * dropped packets is there already (the gate of another daemon that lives: the kernel grants one
 * for each gate), and taken. What gate_listen_early() has opened is kept. */
int gate_adopt(struct gate *gate, struct gate_host *host, const char *path);
/* Before that: opens the pin and listens, so that whoever connects waits instead of being refused.
 * Rules and links were not looked at: no worker is to get these sockets before gate_adopt(). 0 or
 * -errno with nothing opened, the reason of which is gate_adopt()'s to tell. */
int gate_listen_early(struct gate *gate, const char *path);
/* Somebody waits at a listener that no worker has yet: on_knock is told once. Ends with the
 * listeners, and with gate_move(). 0 or -errno. */
int gate_await(struct gate *gate, struct loop *loop, void (*on_knock)(struct gate *gate));
/* Harmless where nobody is awaited. */
void gate_await_end(struct gate *gate);
/* Takes the gate away for good: pin, namespace, link, the host's rules. closed: the guarded
 * interface of GATE_DIVERT stays shut (nothing in, nothing out) until it is called again with
 * false, or a new gate is made; else it is what it was before it was guarded. path may be NULL.
 * Calls gate_close. */
int gate_remove(struct gate *gate, struct gate_host *host, const char *path, bool closed);

/* A further set of listeners beside those of a worker that still has the first (SO_REUSEPORT; what
 * waits in the queue of a listener that closes goes to the others). gate->listeners was closed
 * (gate_close_handed_out) and is filled in anew. */
int gate_listen(struct gate *gate);
/* Other UDP ports and bounds, for a new policy or configuration; gate_listen() follows. */
int gate_set_traffic(
        struct gate *gate, const uint16_t *ports, size_t count, const struct fence_bounds *bounds);

/* Compares the fence with what it should be and sets it anew where it is not. 0: it was in order;
 * 1: it was changed and is mended; -errno: it cannot be examined or mended. */
int gate_repair(struct gate *gate);
/* The interface of GATE_DIVERT is not there; all that stands without it does. */
#define GATE_AWAY 2
#define GATE_POLL_MS 300000
#define GATE_CALM_MS 100 /* between two looks, however often something changes */
/* Calls gate_repair() at once when somebody changes the rules or links around the gate, and seldom
 * without cause (GATE_POLL_MS). on_change is told of results other than 0, and once of an interface
 * that is not there (GATE_AWAY). What this module changes itself is in order, so nobody is told of
 * it. on_change may close the gate. 0 or -errno: it is not watched. */
int gate_watch(struct gate *gate, struct gate_host *host,
        void (*on_change)(struct gate *gate, int result));
/* Ends that. Harmless on a gate that is not watched; on_change may call it. */
void gate_unwatch(struct gate *gate);
/* Of a gate of GATE_DIVERT that is closed, or was never open here (its shape is filled in): from
 * now on the host's rules are kept in order all the same, and watched as by gate_watch(). Where the
 * gate's link is gone the interface is shut, else its frames go to the gate, where nobody listens.
 * The interface need not exist. 0: they were in order; 1: they were mended, gate->why says what;
 * -errno. gate_remove() ends it. */
int gate_hold(struct gate *gate, struct gate_host *host,
        void (*on_change)(struct gate *gate, int result));

/* What the fence dropped so far; zeros where it cannot be asked. */
struct fence_counters gate_dropped(const struct gate *gate);
/* Closes the supervisor's copies of what the worker holds: without one nothing listens and the
 * fence rejects. The NFLOG socket stays: a second recorder may need it. */
void gate_close_handed_out(struct gate *gate);
/* Closes the descriptors. A gate that is not pinned is gone with them; of GATE_DIVERT the host's
 * rules stay, and the interface is shut. */
void gate_close(struct gate *gate);

#endif
