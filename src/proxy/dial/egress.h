/* SPDX-License-Identifier: Apache-2.0 */
/* egress: the way out of the machine, where it is not simply its route: what is said to and heard
 * from a proxy that connections go through (RFC 9110 section 9.3.6), and the interface. */
#ifndef VETHGUARD_SRC_PROXY_DIAL_EGRESS_H
#define VETHGUARD_SRC_PROXY_DIAL_EGRESS_H

#include <stdbool.h>

#include "vethguard/base/slice.h"
#include "vethguard/policy/config.h"

#define EGRESS_HEAD_MAX 8192 /* bytes of the proxy's answer, to its blank line */

enum egress_answer {
	EGRESS_MORE,    /* the blank line has not come */
	EGRESS_OPEN,    /* 2xx: what follows the head is the destination's */
	EGRESS_REFUSED, /* any other final status */
	EGRESS_BAD,     /* not an HTTP/1 response head, or too long */
	EGRESS_ENDED    /* the proxy closed or reset the connection */
};

/* Reads a head from its beginning. *head: its bytes with the blank line; *status: set for OPEN and
 * REFUSED. Bare CR, bare LF, controls and interim responses are BAD. */
enum egress_answer egress_answer_parse(const uint8_t *p, size_t n, size_t *head, unsigned *status);
/* The same from a socket; exactly the head is taken off it, and nothing before it is whole. */
enum egress_answer egress_listen(int fd, unsigned *status);
/* Asks for a tunnel to target ("host:port") on a socket just connected. authorization: the value of
 * Proxy-Authorization, or empty. 0 or -errno. Leaves no copy of it. */
int egress_ask(int fd, const char *target, struct slice authorization);
/* Why there is no tunnel, for people: static. */
const char *egress_refusal_text(enum egress_answer answer, unsigned status);
/* Binds a new socket of that family (4 or 6) to the interface and source address that the
 * configuration names (socket(7), ip(7) about IP_BIND_ADDRESS_NO_PORT). NULL, or why that cannot
 * be: static. Where there are source addresses but none of the family, it cannot: nothing leaves
 * from an address the operator did not name. */
const char *egress_bind(const struct config_egress *egress, int fd, uint8_t family);

#endif
