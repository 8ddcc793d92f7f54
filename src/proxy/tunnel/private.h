/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the UDP relay share: udp_relay.c (the relay and its sockets towards the
 * sandbox), udp_association.c (sockets towards clients of SOCKS5), udp_flow.c (one flow),
 * udp_flow_leak.c (placeholders in it), udp_socket.c (datagrams with both addresses). */
#ifndef VETHGUARD_SRC_PROXY_TUNNEL_PRIVATE_H
#define VETHGUARD_SRC_PROXY_TUNNEL_PRIVATE_H

#include "vethguard/base/table.h"
#include "proxy/exchange/authorize.h"
#include "proxy/private.h"
#include "proxy/tunnel/udp_association.h"
#include "proxy/tunnel/udp_relay.h"
#include "vethguard/fence/fence.h"

#define DATAGRAM_MAX 65535
#define DATAGRAM_BATCH 64
/* The fence lets pass what comes in a second after a burst of FENCE_BURST_S times as much. More
 * comes only if the sandbox's kernel hands over many datagrams as one packet. */
#define DATAGRAM_BURST_S (FENCE_BURST_S + 1)
#define DATAGRAM_PAUSE_MS 10
#define SOCKETS_MAX (2 * POLICY_UDP_PORTS_MAX)

/* Keys are compared as bytes, with host_n bytes of host: zero a key before you fill it in. */
struct udp_flow_key {
	struct ip src, dst; /* dst: family 0 if host is set */
	uint16_t src_port, dst_port;
	uint32_t association; /* 0: none */
	uint16_t host_n;
	char host[POLICY_HOST_MAX]; /* the canonical name that a client of SOCKS5 has sent */
};

static inline unsigned udp_flow_key_bytes(const struct udp_flow_key *key)
{
	return (unsigned)offsetof(struct udp_flow_key, host) + key->host_n;
}

struct udp_socket {
	struct udp_relay *relay;
	struct udp_association *association; /* NULL: a socket towards the sandbox */
	struct loop_io io;
	int fd;
	uint16_t port;
};

struct udp_association {
	struct udp_socket socket;
	struct list list;
	uint32_t number; /* in the relay; not 0 */
	struct ip client;
	uint16_t client_port; /* 0: not known yet; else the socket is connected to it */
	int64_t used_ms;
};

enum udp_flow_state {
	UDP_FLOW_RESOLVING, /* authorized; the destination's address is being resolved */
	UDP_FLOW_OPEN,      /* its socket is connected */
	UDP_FLOW_REFUSED,   /* kept until idle: a flood is authorized and recorded once */
	UDP_FLOW_CUT,       /* reauthorize.c: recorded, and about to be freed */
	UDP_FLOW_STATE_COUNT
};

struct udp_flow {
	struct udp_relay *relay;
	enum udp_flow_state state;
	struct udp_socket *socket;
	struct udp_flow_key key;
	UT_hash_handle hh;
	struct loop_io io;
	int fd; /* -1: none; set in UDP_FLOW_OPEN */
	struct destination destination;
	struct verdict verdict;
	struct resolver_wait waiting;
	struct ip address;
	struct buf kept; /* datagrams, each after a 2-byte length */
	unsigned kept_count;
	uint64_t bytes_out, bytes_in;
	int64_t start_ms;
	bool holds_name;
	bool leak_told; /* a placeholder in it was recorded */
	struct limit_held held;
	struct loop_deadline deadline;
	enum event_cause cause;
	const char *detail;
};

/* True if the flow's event was recorded; then no datagram passes any more. */
static inline bool udp_flow_is_over(const struct udp_flow *f)
{
	return f->state == UDP_FLOW_REFUSED || f->state == UDP_FLOW_CUT;
}

struct udp_relay {
	struct proxy *proxy;
	struct udp_socket sockets[SOCKETS_MAX];
	size_t socket_count;
	struct list associations;
	uint32_t last_association;
	struct udp_flow *flows;
	struct rate rate;
	struct loop_timer pause;
	bool paused;       /* no datagram of the sandbox is read until the timer fires */
	size_t kept_bytes; /* of all flows */
	uint8_t *datagram; /* DATAGRAM_MAX bytes */
};

/* Takes fd and watches it for datagrams. Returns 0, or -errno with fd closed. */
int udp_relay_open_socket(
        struct udp_relay *relay, struct udp_socket *socket, int fd, uint16_t port);
/* Records and frees the socket's flows, and closes it. */
void udp_relay_close_socket(struct udp_socket *socket);
/* udp_association.c. Receives the next datagram into p (DATAGRAM_MAX bytes), whose payload follows
 * after *header_n bytes. Returns its bytes; 0 if it is to be dropped; or -1 if there is none. */
ssize_t udp_association_receive(
        struct udp_association *a, uint8_t *p, struct udp_flow_key *key, size_t *header_n);
/* Sends a datagram to the client, as from the flow's destination. Returns false if it is lost. */
bool udp_association_send(
        struct udp_association *a, const struct udp_flow_key *key, const uint8_t *p, size_t n);
/* Connects the socket to this port of the client: the kernel drops what others send. Returns false
 * if it cannot. */
bool udp_association_connect(struct udp_association *a, uint16_t port);
/* Opens a flow for the key and authorizes it: it is then refused, connected, or waiting for its
 * name's addresses. NULL: no room for another flow. */
struct udp_flow *udp_flow_open(struct udp_socket *s, const struct udp_flow_key *key);
/* udp_flow_leak.c: look for a placeholder in the host's name, or in a datagram, and record it.
 * True: the policy refuses the flow for it. */
#define UDP_FLOW_NAME_TEXT \
	"a credential's placeholder was sent where it does not belong: in the host's name"
bool udp_flow_name_leaks(struct udp_flow *f);
bool udp_flow_leaks(struct udp_flow *f, const uint8_t *p, size_t n);
/* Sends a datagram of the flow now, or once the name is resolved, or loses it. */
void udp_flow_forward(struct udp_flow *f, const uint8_t *p, size_t n);
/* Authorizes the flow by the next policy and, if allowed, keeps the new verdict. */
bool udp_flow_passes(struct udp_flow *f, const struct policy *next);
/* Ends a flow that the policy no longer allows, and records that. The caller frees it. */
void udp_flow_cut(struct udp_flow *f, enum event_cause cause, const char *detail);
/* Records the event of the flow's end, or of its refusal. */
void udp_flow_record(const struct udp_flow *f);
void udp_flow_free(struct udp_flow *f);

#endif
