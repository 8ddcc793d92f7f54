/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer: TLS around everything that a socket carries, the sandbox's own TLS included. A client of
 * the gateway has begun it: the gateway made the handshake and read the proof, and the worker goes
 * on with the connection (tls_state_go_on()). outer_receive() works like recv(2). outer_seal()
 * turns plain bytes into those to send; the owner sends them, in the order of the calls.
 */
#ifndef VETHGUARD_SRC_PROXY_TRANSPORT_OUTER_H
#define VETHGUARD_SRC_PROXY_TRANSPORT_OUTER_H

#include <sys/types.h>

#include "vethguard/base/buf.h"
#include "vethguard/tls/tls.h"

#define OUTER_CHUNK (64u << 10)   /* bytes received at once */
#define OUTER_TX_MAX (512u << 10) /* sealed bytes of one call */

/* Shared by all connections of a thread; nothing is allocated before the first of them. */
struct outer_shared {
	uint8_t *rx;   /* OUTER_CHUNK bytes; NULL: not allocated yet */
	struct buf tx; /* the bytes that were sealed last */
};

/* Everything is private to outer.c. */
struct outer {
	struct outer_shared *shared;
	struct tls *tls;      /* owned */
	struct buf parked;    /* received bytes that TLS has not used */
	struct buf answer;    /* what TLS wrote while it read: goes before what is sealed next */
	uint64_t received;    /* bytes received since outer_take_received() */
	bool emptied, closed; /* see outer_is_emptied(); close_notify was sealed */
};

void outer_shared_init(struct outer_shared *s);
void outer_shared_fini(struct outer_shared *s);

/* Goes on with the connection of this state. Returns NULL if the state cannot be used, or if there
 * is no memory. */
struct outer *outer_new(
        struct outer_shared *shared, struct tls_server *server, const struct tls_state *state);
void outer_free(struct outer *o); /* NULL is allowed */
/* As recv(2) with MSG_DONTWAIT, for plain bytes. 0: the peer has sent close_notify or FIN. -1 with
 * EPROTO: the bytes are no TLS of this connection, or there is no memory. */
ssize_t outer_receive(struct outer *o, int fd, uint8_t *p, size_t cap);
/* True if the last outer_receive() has left no bytes, neither here nor in the kernel. */
bool outer_is_emptied(const struct outer *o);
/* Returns the bytes that came over the network since the last call: the cost of reading. */
uint64_t outer_take_received(struct outer *o);
/* Seals n bytes; with `ends` also close_notify after them, unless it was sealed before. *wire: the
 * bytes to send, borrowed until the next call for any connection. Returns false if sealing failed:
 * the connection is over. */
bool outer_seal(struct outer *o, const void *p, size_t n, bool ends, struct slice *wire);

#endif
