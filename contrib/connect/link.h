/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link: one connection of a program (near) and its connection to the gateway (far).
 *
 *                           .-> ASSOCIATING -> ASSOCIATED -> CLOSED
 *   FIRST -> GREETING -> REQUEST -> ASKED -> TUNNEL -> CLOSED     SOCKS5
 *     |                               ^ |
 *     |--> HEAD <-> BODY              | `-> REFUSED               HTTP
 *     |     `----- CONNECT -----------|
 *     `-------------------------------'                           redirected
 */
#ifndef VETHGUARD_CONTRIB_CONNECT_LINK_H
#define VETHGUARD_CONTRIB_CONNECT_LINK_H

#include <event2/bufferevent.h>

#include "connect.h"
#include "vethguard/wire/body_meter.h"

enum link_state {
	LINK_FIRST,    /* waiting for the first byte */
	LINK_GREETING, /* SOCKS5: the methods */
	LINK_REQUEST,  /* SOCKS5: the destination */
	LINK_HEAD,     /* HTTP: the head of a request */
	LINK_BODY,     /* HTTP: its body */
	LINK_ASKED,    /* CONNECT is on its way to the gateway, or its answer is */
	LINK_TUNNEL,
	LINK_ASSOCIATING, /* SOCKS5: the gateway was asked for an association */
	LINK_ASSOCIATED,  /* ... and there is one. The connection carries nothing */
	LINK_REFUSED,     /* the last bytes are on their way to the program */
	LINK_CLOSED,
	LINK_STATE_COUNT
};

struct near_udp;

enum link_near { NEAR_HTTP, NEAR_SOCKS, NEAR_REDIRECTED };

struct link {
	struct connect *connect;
	struct list place;
	struct bufferevent *near, *far; /* far: NULL until the gateway is needed */
	enum link_state state;
	enum link_near speaks;
	size_t looked; /* HEAD: see proxy_head_parse() */
	struct body_meter meter;
	struct evbuffer *waiting; /* bytes for the gateway until it is reached, then NULL */
	struct event *again;      /* timer of the next try to reach it */
	unsigned tries;
	bool near_over, far_over; /* that side sends nothing more */
	struct near_udp *udp;     /* ASSOCIATING, ASSOCIATED; else NULL */
};

/* --- link.c --- */
void link_enter(struct link *l, enum link_state state);
void link_free(struct link *l);
/* Ends the link once its last bytes have reached the program. */
void link_finish(struct link *l);
/* Moves what one side has sent to the other. Stops reading from a side that sends too fast. */
void link_pass(struct bufferevent *from, struct bufferevent *to);

/* --- far.c --- */
/* Begins to connect to the gateway. far_put() may be called at once: its bytes wait for the
 * connection. Returns false if there is no memory. */
bool far_open(struct link *l);
void far_put(struct link *l, const void *p, size_t n);
/* Asks the gateway for a tunnel: destination is "host:port". */
void far_ask(struct link *l, const char *destination);
/* Puts "Proxy-Authorization: Bearer TOKEN" and its line end. Returns false after a message. */
bool far_put_proof(struct link *l);

/* --- near.c --- */
/* Handles what the program has sent. */
void near_read(struct link *l);
/* Tells the program that the gateway cannot be reached; why is static. */
void near_fail(struct link *l, const char *why);
/* Refuses a request of SOCKS5: by the policy, or because of a failure. */
void near_refuse(struct link *l, bool by_policy);
/* Tells the program the gateway's answer to CONNECT: its head has head_n bytes in `from`. */
void near_answer(struct link *l, struct evbuffer *from, size_t head_n, unsigned status);

/* --- near_udp.c --- */
/* Asks the gateway for an association for the datagrams of one socket of this machine: the one with
 * this port; 0: the first that sends. Returns false if there is no memory or no socket, or there
 * are too many associations. */
bool near_udp_open(struct link *l, uint16_t announced_port);
/* NULL is allowed. */
void near_udp_free(struct near_udp *u);

#endif
