/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the responder share. */
#ifndef VETHGUARD_SRC_DNS_PRIVATE_H
#define VETHGUARD_SRC_DNS_PRIVATE_H

#include <stddef.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/rate.h"
#include "vethguard/dns/responder.h"
#include "vethguard/fence/fence.h"
#include "vethguard/policy/config.h"

#define RESPONDER_TCP_MAX 32 /* connections */
#define RESPONDER_TCP_IDLE_MS 10000
#define RESPONDER_TURN_QUERIES 64 /* per socket before others have their turn */
#define RESPONDER_PAUSE_MS 1000
/* Factor of queries_per_s: what the fence lets pass in one second. More comes only if the sandbox's
 * kernel hands over many datagrams as one packet (UDP_SEGMENT, udp(7)). */
#define RESPONDER_READ_MOST (CONFIG_QUERIES_DROPPED * (FENCE_BURST_S + 1))
#define ALLOWED_SEARCH_LABELS 8 /* labels of a search list's domain */

/* The source and destination of a query. */
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
	struct loop_timer pause; /* runs while descriptors or the rate are used up */
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

	/* The rate: queries in the second that began at second_ms, and how many of them were
	 * refused. */
	int64_t second_ms;
	uint32_t queries;
	uint64_t refused, refused_before;   /* since the last report; reported before */
	struct responder_peer refused_peer; /* the first one refused since the last report */
	struct loop_timer refused_timer;
	bool refused_timer_open;
	struct loop_timer pause; /* nothing is read over UDP until the second is over */
	bool paused;
	bool held;
};

/* True if some rule allows anything at all on the host; *decision is then that rule's. */
bool allowed_name(const struct policy *policy, struct slice host, struct policy_decision *decision);
/* For a host that is not allowed: if it is an allowed name with a domain appended, returns that
 * domain (the shortest, of at most ALLOWED_SEARCH_LABELS labels; borrowed from host). Otherwise
 * empty. */
struct slice allowed_search_domain(const struct policy *policy, struct slice host);
/* Answers one query, for both transports; depends on nothing but the names and the clock. Returns
 * the size of the answer, or 0 to stay silent. NXDOMAIN is the answer for:
 * - localhost and names under .localhost, .onion (RFC 7686) and .invalid;
 * - single-label names, unless a rule mentions them;
 * - reverse names of synthetic addresses;
 * - denied names that a search list makes from allowed ones, for every type.
 *
 * Other denied names get an address, because the explanation comes over HTTP; the event says
 * denied. */
size_t responder_answer(struct responder *responder, const uint8_t *query, size_t n,
        const struct responder_peer *peer, uint8_t *out, size_t cap);
/* Records the refusals of the second that is over. */
void responder_on_refused_time(struct loop_timer *timer);
/* True if more queries came in this second than the fence would let pass one by one. */
bool responder_is_flooded(const struct responder *responder);
/* Answers what waits, within bounds. */
void responder_udp_serve_rest(struct responder *responder);
void responder_udp_on_pause_over(struct loop_timer *timer);
/* Go on after a hold. */
void responder_udp_go_on(struct responder *responder);
void responder_tcp_go_on(struct responder *responder);
void responder_udp_free_all(struct responder *responder);
void responder_tcp_free_all(struct responder *responder);

#endif
