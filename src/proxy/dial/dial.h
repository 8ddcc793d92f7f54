/* SPDX-License-Identifier: Apache-2.0 */
/* dial: from a destination to a connected socket. */
#ifndef VETHGUARD_SRC_PROXY_DIAL_DIAL_H
#define VETHGUARD_SRC_PROXY_DIAL_DIAL_H

#include "proxy/destination.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/event.h"

struct proxy;

/* False for an address of this host itself, because a name that leads there would reach services
 * that trust local callers. A rule or a `permit` in the configuration that names exactly this
 * address permits it; a network that contains it does not. That an address is not one of this
 * host's may have been found out up to five seconds ago. */
bool dial_may_connect(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address);
/* Dials a destination: resolves its name on the host's side and connects to the addresses that
 * authorize_address() permits, IPv6 and IPv4 in turn, starting a further attempt every 250 ms (RFC
 * 8305). */
struct dial;
struct dial_result {
	int fd;                 /* connected, non-blocking, owned by the callee; -1: failed */
	struct loop_io *io;     /* of fd, watching SOCKET_EVENTS: the callee moves or closes it */
	unsigned events;        /* those that io has reported so far */
	struct ip address;      /* the refused address, if cause is ADDRESS */
	enum event_cause cause; /* of a failure: RESOLVE, ADDRESS, CONNECT or TIMEOUT */
	const char *detail;     /* one sentence, static */
};
typedef void (*dial_done)(void *context, const struct dial_result *result);
/* Starts a dial. Returns NULL if there is no memory. done is never called from within
 * dial_start(). */
struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context);
void dial_cancel(struct dial *dial); /* no callback follows */
/* call.c: true if the destination is another sandbox. */
bool dial_is_call(const struct destination *destination);
/* Sets up what the proxy needs for such dials. Returns 0 or -errno. */
int dial_calls_open(struct proxy *proxy);
void dial_calls_close(struct proxy *proxy);

#endif
