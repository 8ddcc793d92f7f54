/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a dial share: dial.c (a name to addresses), connect.c (addresses to a socket),
 * http_connect.c (a socket to the network's proxy becomes a tunnel). */
#ifndef VETHGUARD_SRC_PROXY_DIAL_PRIVATE_H
#define VETHGUARD_SRC_PROXY_DIAL_PRIVATE_H

#include "proxy/dial/egress.h"
#include "proxy/dial/dial.h"
#include "proxy/private.h"

struct attempt {
	struct loop_io io;
	struct dial *dial;
	struct ip address;
	int fd; /* -1: not under way */
};

struct dial {
	struct list call; /* in proxy.calls while it waits for the supervisor's answer */
	uint64_t call_id; /* 0: not asked yet */
	struct proxy *proxy;
	struct destination destination;
	struct policy_decision decision;
	dial_done done;
	void *context;
	struct resolver_wait waiting;
	bool through;                              /* through the network's proxy */
	struct ip targets[RESOLVER_ADDRESSES_MAX]; /* then: the destination's addresses */
	size_t target_count, target;               /* count 0: the proxy gets the name */
	struct ip addresses[RESOLVER_ADDRESSES_MAX];
	size_t count, next, running;
	struct attempt attempts[RESOLVER_ADDRESSES_MAX];
	struct loop_timer stagger;
	struct loop_io io;         /* of result.fd */
	struct dial_result result; /* of the latest failure, so far */
	struct loop_task finish;
};

/* Ends the attempt if it is under way. */
void dial_attempt_close(struct attempt *a);
/* Keeps the events of the connected socket until the callee takes it. */
void dial_on_early(struct loop_io *io, unsigned events);
/* Notes the latest reason for a failure. */
void dial_fail(struct dial *d, enum event_cause cause, const char *detail);
/* The same for an address that may not be dialed; the result names it. */
void dial_refuse_address(struct dial *d, const struct ip *address, const char *detail);
/* Ends the dial: a task of its own tells the result as it stands. */
void dial_finish(struct dial *d);
/* Starts an attempt with the next address. The dial ends if there is none and no attempt is under
 * way. */
void dial_try_next(struct dial *d);
/* Connects to the network's proxy. Its addresses are the operator's and need no authorization. */
void dial_proxy(struct dial *d);
/* Asks the proxy, to which result.fd is connected, for a tunnel. */
void dial_ask_proxy(struct dial *d);

/* call.c: asks for another sandbox's port. The answer completes the dial. */
void dial_call(struct dial *d);

#endif
