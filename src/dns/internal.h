/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the responder share. */
#ifndef VETHGUARD_SRC_DNS_INTERNAL_H
#define VETHGUARD_SRC_DNS_INTERNAL_H

#include <stddef.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/rate.h"
#include "vethguard/dns/responder.h"
#include "vethguard/fence/fence.h"
#include "vethguard/policy/config.h"

#define RESPONDER_TCP_MAX 32 /* connections */
#define RESPONDER_TCP_IDLE_MS 10000
#define RESPONDER_TURN_QUERIES 64 /* of one socket before others have their turn */
#define RESPONDER_PAUSE_MS 1000
/* Times queries_per_s: what the fence lets through in one second, and so more than comes where the
 * sandbox's kernel does not hand many datagrams over as one packet (UDP_SEGMENT, udp(7)). */
#define RESPONDER_READ_MOST (CONFIG_QUERIES_DROPPED * (FENCE_BURST_S + 1))
#define ALLOWED_SEARCH_LABELS 8 /* of a search list's domain */

/* Where a query came from and what it was sent to. */
struct responder_peer {
	struct ip client, asked; /* asked.family 0: unknown */
	uint16_t client_port, asked_port;
	bool tcp;
};

struct responder_udp {
	struct responder *responder;
	struct responder_udp *next;
	struct loop_io io;
};

struct responder_listener {
	struct responder *responder;
	struct responder_listener *next;
	struct loop_io io;
	struct rate rate;        /* connections */
	struct loop_timer pause; /* while descriptors have run out, or there is no rate left */
};

struct responder_connection {
	struct responder *responder;
	struct responder_connection *prev, *next;
	struct loop_io io;
	struct loop_deadline idle;
	struct loop_task again;
	struct responder_peer peer;
	struct buf in, out;
	bool ended; /* the client has shut down its side */
};

struct responder {
	struct responder_config config;
	struct responder_udp *udp;
	struct responder_listener *listeners;
	struct responder_connection *connections;
	size_t connection_count;
	struct loop_deadlines idle; /* of connections */
	bool idle_open;

	/* The rate: queries of the second that began at second_ms, and those of them that were
	 * refused. */
	int64_t second_ms;
	uint32_t queries;
	uint64_t refused, refused_before;   /* since they were told last; those that were told */
	struct responder_peer refused_peer; /* the first of them */
	struct loop_timer refused_timer;
	bool refused_timer_open;
	struct loop_timer pause; /* until the second is over nothing is read over UDP */
	bool paused;
	bool held;
};

/* True where some rule allows anything at all on the host; *decision is then that rule's. */
bool allowed_name(const struct policy *policy, struct slice host, struct policy_decision *decision);
/* For a host that is not allowed: where it is an allowed name with a domain behind it, that domain
 * (the shortest, of at most ALLOWED_SEARCH_LABELS labels; borrowed from host). Else empty. */
struct slice allowed_search_domain(const struct policy *policy, struct slice host);
/* One query in, one answer out, for both transports: pure but for names and clock. Size of the
 * answer, 0: stay silent. localhost and names under .localhost, .onion (RFC 7686), .invalid:
 * NXDOMAIN. Single-label names: NXDOMAIN unless a rule mentions them. Reverse names of synthetic
 * addresses: NXDOMAIN. Denied names that a search list makes of allowed ones: NXDOMAIN, for every
 * type. Other denied names get an address too (the explanation comes over HTTP), the event says
 * denied. */
size_t responder_answer(struct responder *responder, const uint8_t *query, size_t n,
        const struct responder_peer *peer, uint8_t *out, size_t cap);
/* More queries came in this second than the fence would let through one by one. */
bool responder_is_flooded(const struct responder *responder);
/* Answers what waits, within bounds. */
void responder_udp_serve_rest(struct responder *responder);
void responder_udp_on_pause_over(struct loop_timer *timer);
/* Nothing is held any more. */
void responder_udp_go_on(struct responder *responder);
void responder_tcp_go_on(struct responder *responder);
void responder_udp_free_all(struct responder *responder);
void responder_tcp_free_all(struct responder *responder);

#endif
