/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate: the place between a sandbox and everything else: a network namespace without uplink. It
 * holds the outer end of the sandbox's link, the fence on that link, and the sockets the worker
 * listens on.
 *
 * GATE_SHARED is different: guard and sandbox share one namespace, whose fence was set before
 * (fence/shared.h) and over which this process has no rights. The gate holds sockets on the
 * loopback addresses; there is nothing to set, watch or repair.
 *
 * The other two kinds differ in the link only. GATE_VETH: a veth pair made here; its inner end is
 * the sandbox's only link. GATE_DIVERT: an existing interface of the host (a veth's outer end, a
 * tap, a bridge's port, a whole bridge): rules of the host hand its frames to the gate's link and
 * back, before a bridge, firewall or service of the host sees them (fence/divert.h).
 *
 * GATE_SOCKET has no link, no namespace and no fence: its only entrance is one Unix or vsock socket
 * that the owner has made. Connections wait at that socket while no worker serves it.
 *
 * A gate without a pin lives as long as its descriptor. A pinned gate (gate_pin()) outlives the
 * supervisor: its rules stand, nothing listens, and everything is refused until gate_adopt().
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_GATE_GATE_H
#define VETHGUARD_SRC_SUPERVISOR_GATE_GATE_H

#include "vethguard/fence/fence.h"
#include "vethguard/loop/loop.h"
#include "vethguard/wire/message.h"

#define GATE_LINK "vg0"   /* outer end, in the gate */
#define GATE_INNER "eth0" /* inner end, in the sandbox */
#define GATE_DNS_PORT 53
#define GATE_TABLE 100 /* routing table for local delivery, in the gate only */
#define GATE_WHY_MAX 256

enum gate_kind { GATE_VETH, GATE_DIVERT, GATE_SOCKET, GATE_SHARED };

struct gate_listener {
	enum message_listener kind;
	uint16_t port;
	int fd;
	uint32_t cid; /* MESSAGE_LISTEN_VSOCK */
};

struct gate_host;
struct gate_door;

struct gate {
	/* The shape: all that the owner of a pinned gate has to write down for gate_adopt(). */
	enum gate_kind kind;
	char device[IFNAMSIZ];    /* GATE_DIVERT: the guarded interface of the host */
	char host_link[IFNAMSIZ]; /* GATE_DIVERT: the host's end of the gate's link */
	struct ip gate4, gate6, sandbox4, sandbox6; /* sandbox's: family 0 if unknown */
	uint8_t bits4, bits6;                       /* prefix lengths of the link's networks */
	struct ip_prefix source4, source6;          /* source addresses the sandbox may use */
	uint8_t mac[6], sandbox_mac[6];             /* sandbox's: zeros if unknown */
	uint16_t tcp_port;
	uint16_t dns_port; /* GATE_SHARED; the others have GATE_DNS_PORT */
	uint16_t udp_ports[FENCE_UDP_PORTS_MAX];
	size_t udp_port_count;
	struct fence_bounds bounds;
	/* GATE_DIVERT, not written down: the interface belongs to a user-defined Docker network.
	 * Its containers have Docker's resolver in their own namespace, and the resolver may query
	 * from the host's namespace, past the gate. */
	bool has_resolver;

	/* Generation of the rules as this process set them, and the link's index at that time; 0:
	 * unknown. While both are the same, nobody has changed the rules. */
	uint32_t generation;
	unsigned link;

	int netns;                    /* keeps the namespace, and with it the fence, alive */
	int sandbox_netns;            /* borrowed, from gate_open() until gate_connect() is done */
	uint32_t mtu;                 /* GATE_DIVERT: the interface's MTU, for the same time */
	enum fence_prepared prepared; /* how much of the fence exists before gate_connect() */
	int packets;                  /* NFLOG socket */
	int entrance; /* GATE_SOCKET: the listening socket, open as long as the gate is */
	uint32_t cid; /* GATE_SOCKET: the CID that may connect to a vsock socket; otherwise 0 */
	size_t listener_count;
	struct gate_listener listeners[MESSAGE_LISTENERS_MAX];
	bool dozes;             /* gate_doze(): the listeners do nothing until gate_wake() */
	const char *step;       /* the current step, for the error text */
	char why[GATE_WHY_MAX]; /* text in place of step and error; or what was repaired */

	struct gate_host *host;   /* borrowed; NULL: none */
	struct gate_watch *watch; /* owned; NULL: not watched */
	struct gate_door *door;   /* owned; NULL: gate_await() is not active */
	struct gate *next;        /* in the host's list of diverted gates */
	unsigned device_index;    /* GATE_DIVERT: index the watch saw last; 0: absent */
	unsigned link_index;      /* the same for host_link */
	bool held;                /* gate_hold(): only the host's side exists */
	bool away;                /* GATE_DIVERT: interface was absent at the last look */
};

/* Initializes an unopened gate; gate_close() is allowed on it. */
void gate_init(struct gate *gate);
/* Moves a gate that is not watched; from keeps its shape. Ends gate_await(). */
void gate_move(struct gate *to, struct gate *from);
/* Assigns addresses: the gate gets the first of each pool, the sandbox the second. */
void gate_assign(struct gate *gate, const struct ip_prefix *pool4, const struct ip_prefix *pool6);
/* Gives both ends of a GATE_VETH link, before gate_open(), the MACs that all gates made so have: a
 * snapshot of a machine behind one runs behind any other. The second function tells whether a gate
 * has them. */
void gate_same_macs(struct gate *gate);
bool gate_has_same_macs(const struct gate *gate);

/*
 * Opens what the gates of one supervisor share: the host's namespace (the caller's) with its
 * notifications, and gates made in advance. With loop NULL, nothing is watched. Returns 0 or
 * -errno.
 */
int gate_host_open(struct gate_host **out, struct loop *loop);
void gate_host_close(struct gate_host *host);
/* For a process that stays in its namespace until gate_host_close(), as the daemon does: what the
 * calling thread does in gates returns there without looking for it (netns_keep_home()). */
void gate_host_keep_home(struct gate_host *host);
/* Watches all gates with two sockets instead of two for each; for a daemon with many gates. Returns
 * 0, or -errno: then each gate has its own, and every change of a link or rule anywhere is
 * slower. */
int gate_host_listen_for_all(struct gate_host *host);
/* Keeps up to count gates of kind GATE_VETH in store, with like's addresses and port. Makes the
 * first at once; later ones are made one at a time in quiet moments of the loop. Opening a gate
 * takes one from the store; if its port differs, the store is emptied and refilled for the new
 * port. */
int gate_host_prepare(struct gate_host *host, const struct gate *like, size_t count);

/* GATE_VETH. Makes all but the link: the namespace with its sockets, which may be given to a
 * worker. Nothing leads to them before gate_connect(). sandbox_netns is kept until then. host may
 * be NULL. Returns 0, or -errno with gate->step or gate->why (-EEXIST: the sandbox's namespace has
 * another interface by which it could leave, or is itself a gate); then call gate_close(). */
int gate_open(struct gate *gate, struct gate_host *host, int sandbox_netns);

/* An interface to guard. An address with bits stands for its network. family 0: none given. */
struct gate_divert {
	const char *interface;
	struct ip address4, address6;
	uint8_t bits4, bits6; /* 0: none given */
	bool force;           /* also allow what looks like the host's own uplink */
};
/* Chooses the name of the host's end of the gate's link, for callers that must write it down before
 * the gate exists. Otherwise gate_open_divert() chooses it. */
void gate_name_host_link(struct gate *gate);
/*
 * GATE_DIVERT; like gate_open(). Addresses: the gate gets the interface's, or those of the bridge
 * it belongs to. The sandbox may use the given addresses; if none are given, the whole network
 * except the gate's address; if there is no network either, the addresses of gate_assign(), which
 * has to be called before.
 *
 * Returns 0, or -errno with gate->why: no such interface, lo, guarded already, one of vethguard's
 * own, an uplink of the host. A failed call leaves nothing behind.
 */
int gate_open_divert(struct gate *gate, struct gate_host *host, const struct gate_divert *divert);
/* GATE_SOCKET. Takes entrance, a listening socket; -1: the gate has none, and the gateway passes
 * connections to its worker. cid: for a vsock socket, the machine that may connect; otherwise 0.
 * Neither gate_connect() nor a pin is needed. Returns 0, or -errno with gate->step; then call
 * gate_close(). */
int gate_open_socket(struct gate *gate, int entrance, uint32_t cid);
/* GATE_SHARED; like gate_open(). tcp_port and dns_port are set before. Takes packets, an NFLOG
 * socket, or -1. Returns 0, or -errno with gate->step or gate->why. */
int gate_open_shared(struct gate *gate, int packets);
/* Makes the link, whose fence is set before it is up; GATE_DIVERT: then diverts the interface's
 * frames to it. Returns 0, or -errno with gate->step or gate->why; then call gate_close(). After a
 * failure of GATE_DIVERT nothing is left on the host. */
int gate_connect(struct gate *gate);

/* The kind of a failure of gate_open(), gate_open_divert() or gate_connect(). */
enum gate_fault {
	GATE_FAULT_OWN,   /* vethguard, or the system */
	GATE_FAULT_ASKED, /* the caller's request: gate->why says what to do */
	GATE_FAULT_TAKEN  /* it is guarded already */
};
enum gate_fault gate_fault_of(const struct gate *gate, int error);
/* Writes the error text for a failed call to out. Returns out. */
const char *gate_failure(const struct gate *gate, int error, char out[GATE_WHY_MAX]);

/* Binds the gate's namespace to a file (created with mode 0600 if missing; its directory is in a
 * mount namespace that outlives the supervisor). Returns 0 or -errno. */
int gate_pin(const struct gate *gate, const char *path);
/*
 * Adopts a pinned gate. Every field of the shape is filled in from the owner's record, the rest is
 * as gate_init() left it. Verifies links, addresses, routes, sysctls and rules, repairs what it
 * can, then listens. The owner may move the struct until gate_watch(). If gate->packets >= 0, it is
 * the NFLOG socket that another live daemon has opened (the kernel grants one for each gate), and
 * is used. Listeners of gate_listen_early() are kept.
 *
 * Returns 0: everything was as it should be; 1: something was repaired, see gate->why; -errno: it
 * cannot be adopted, see gate->why (the pin holds no namespace, the link is gone), and its sandbox
 * stays cut off.
 */
int gate_adopt(struct gate *gate, struct gate_host *host, const char *path);
/* To be called before gate_adopt(): opens the pin and listens, so that clients wait instead of
 * being refused. Rules and links are not verified: no worker may get these sockets before
 * gate_adopt(). Returns 0, or -errno with nothing opened; gate_adopt() will give the reason. */
int gate_listen_early(struct gate *gate, const char *path);
/* Calls on_knock once, when a client waits at a listener that no worker has yet. Ends when the
 * listeners are closed, and with gate_move(). Returns 0 or -errno. */
int gate_await(struct gate *gate, struct loop *loop, void (*on_knock)(struct gate *gate));
/* Allowed if gate_await() is not active. */
void gate_await_end(struct gate *gate);
/* Removes the gate for good: pin, namespace, link, the host's rules. closed: the guarded interface
 * of GATE_DIVERT stays shut (nothing in, nothing out) until this is called again with false, or a
 * new gate is made; otherwise it is as before it was guarded. path may be NULL. Calls gate_close().
 * Returns 0 or -errno. */
int gate_remove(struct gate *gate, struct gate_host *host, const char *path, bool closed);

/* Opens another set of listeners while a worker still has the first set (SO_REUSEPORT; connections
 * queued at a listener that closes go to the others; GATE_SOCKET has only one queue).
 * gate->listeners must be closed (gate_close_handed_out()) and is filled in again. Returns 0 or
 * -errno. */
int gate_listen(struct gate *gate);
/* Opens listeners for one more worker of a gate with a link, for TCP connections only. What was in
 * gate->listeners is closed. Returns 0, or -errno with gate->step. */
int gate_listen_further(struct gate *gate);
/* Sets other UDP ports and bounds, for a new policy or configuration. Call gate_listen()
 * afterwards. Returns 0 or -errno. */
int gate_set_traffic(
        struct gate *gate, const uint16_t *ports, size_t count, const struct fence_bounds *bounds);

/* For a gate that is connected and that nobody serves yet: closes its sockets, so that everything
 * is refused; opens them again (the listeners, and the NFLOG socket). Returns 0, or -errno with
 * gate->step. */
void gate_sleep(struct gate *gate);
int gate_wake(struct gate *gate);
/* Like gate_sleep(), but keeps new sockets ready for gate_wake(): stream sockets have their ports
 * and do not listen, datagram sockets have no port yet, and the NFLOG socket has no group. If that
 * fails, the gate sleeps. */
void gate_doze(struct gate *gate);

/* Returns why no connection into this gate's sandbox is possible, or NULL. */
const char *gate_cannot_reach(const struct gate *gate);
/* Makes up to count sockets that are connecting from the gate to a port of the sandbox
 * (non-blocking). *made: how many; fewer if one fails. Returns 0, or -errno if none was made. */
int gate_reach(const struct gate *gate, uint16_t port, int *fds, size_t count, size_t *made);
/* Returns the address of the sandbox that they connect to. */
const struct ip *gate_reached(const struct gate *gate);

/* Compares the fence with what it should be and repairs it. Returns 0: it was in order; 1: it was
 * changed and is repaired; -errno: it cannot be examined or repaired. */
int gate_repair(struct gate *gate);
/* Result for on_change: the interface of GATE_DIVERT is absent; everything that does not need it
 * stands. */
#define GATE_AWAY 2
#define GATE_POLL_MS 300000
#define GATE_CALM_MS 100 /* at least this long between two looks at a gate */
/* Calls gate_repair() when somebody changes the rules or links around the gate, and every
 * GATE_POLL_MS otherwise. on_change is called with results other than 0, and once with GATE_AWAY
 * when the interface is absent. The gate module's own changes are in order and are not reported.
 * on_change may close the gate. Returns 0, or -errno: it is not watched. */
int gate_watch(struct gate *gate, struct gate_host *host,
        void (*on_change)(struct gate *gate, int result));
/* gate_move() for a gate that is watched: it stays watched, with another callback. */
void gate_move_watched(
        struct gate *to, struct gate *from, void (*on_change)(struct gate *gate, int result));
/* Ends gate_watch(). Allowed on a gate that is not watched, and from on_change. */
void gate_unwatch(struct gate *gate);
/* For a GATE_DIVERT gate that is closed, or was never open here (its shape is filled in): keeps the
 * host's rules in order and watches them as gate_watch() does. If the gate's link is gone, the
 * interface is shut; otherwise its frames go to the gate, where nothing listens. The interface need
 * not exist. Returns 0: they were in order; 1: they were repaired, see gate->why; -errno.
 * gate_remove() ends it. */
int gate_hold(struct gate *gate, struct gate_host *host,
        void (*on_change)(struct gate *gate, int result));
/* Ends gate_hold() and closes the gate's descriptors, so that gate_adopt() can follow; the rules
 * stay. The gate need not be held. */
void gate_release(struct gate *gate);

/* Returns what the fence has dropped so far; zeros if that cannot be read. */
struct fence_counters gate_dropped(const struct gate *gate);
/* Closes the supervisor's copies of the worker's sockets: without a worker nothing listens and the
 * fence rejects. The NFLOG socket stays open: a second recorder may need it. */
void gate_close_handed_out(struct gate *gate);
/* Closes the descriptors. A gate without a pin ceases to exist; of GATE_DIVERT the host's rules
 * stay, and the interface is shut. */
void gate_close(struct gate *gate);

#endif
