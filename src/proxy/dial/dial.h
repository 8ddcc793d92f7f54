/* SPDX-License-Identifier: Apache-2.0 */
/* dial: one dial under way, for the files that share it: dial.c (names to addresses),
 * dial/connect.c (addresses to a socket), dial/http_connect.c (a socket to a proxy's tunnel). */
#ifndef VETHGUARD_SRC_PROXY_DIAL_DIAL_H
#define VETHGUARD_SRC_PROXY_DIAL_DIAL_H

#include "proxy/dial/egress.h"
#include "proxy/private.h"

struct attempt {
	struct loop_io io;
	struct dial *dial;
	struct ip address;
	int fd; /* -1: not under way */
};

struct dial {
	struct proxy *proxy;
	struct destination destination;
	struct policy_decision decision;
	dial_done done;
	void *context;
	struct resolver_wait waiting;
	bool through;                              /* a proxy */
	struct ip targets[RESOLVER_ADDRESSES_MAX]; /* through it: addresses of the destination */
	size_t target_count, target;               /* none: it is asked for the name */
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	size_t count, next, running;
	struct attempt attempts[RESOLVER_ADDRESSES_MAX];
	struct loop_timer stagger;
	struct loop_io io;         /* of result.fd */
	struct dial_result result; /* of a failure so far */
	struct loop_task finish;
};

/* Ends an attempt, if it is under way. */
void dial_attempt_close(struct attempt *a);
/* What the winner's socket has to say before somebody is there to hear it. */
void dial_on_early(struct loop_io *io, unsigned events);
/* Notes why it failed so far. */
void dial_fail(struct dial *d, enum event_cause cause, const char *detail);
/* ... of an address that may not be dialled: the result names it. */
void dial_refuse_address(struct dial *d, const struct ip *address, const char *detail);
/* It is over: the result as it stands is told in a task of its own. */
void dial_finish(struct dial *d);
/* Starts with the next of the addresses; over where none is left and none is under way. */
void dial_try_next(struct dial *d);
/* Connects to the proxy, by the addresses of its name; these are the operator's and not judged. */
void dial_proxy(struct dial *d);
/* result.fd is connected to the proxy: asks it for a tunnel. */
void dial_ask_proxy(struct dial *d);

#endif
