/* SPDX-License-Identifier: Apache-2.0 */
/* expose: the host's listeners for ports of a sandbox that its policy exposes. The sandbox owns
 * them and lends them to each of its workers, so that visitors wait while a worker is replaced. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_EXPOSE_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_EXPOSE_H

#include "vethguard/ipc/peer.h"
#include "vethguard/policy/expose.h"
#include "vethguard/wire/message.h"

#define EXPOSE_LISTENERS_MAX (2 * POLICY_EXPOSES_MAX) /* for two generations at a time */
#define EXPOSE_AGAIN_MS 100 /* the first pause; each further one is twice as long */
#define EXPOSE_AGAIN_MAX_MS 5000

struct generation;
struct instance;
struct sandbox;

struct exposed {
	struct loop_timer again;
	int64_t pause_ms; /* pause before the next attempt; 0: nothing failed */
	size_t count;
	struct {
		struct ip at;
		uint16_t port;
		int fd;
	} listeners[EXPOSE_LISTENERS_MAX];
};

/* Opens the listeners that the generation's policy exposes and that are not open yet, with the
 * rights of the user who named the policy. Returns 0, or -errno with the sandbox's failure and
 * fault filled in. */
int sandbox_expose(struct sandbox *s, const struct generation *g);
/* Does the same for the generation in force of a sandbox that existed before. If that fails, the
 * sandbox is served without the listeners, and opening them is tried again. */
void sandbox_expose_again(struct sandbox *s);
/* Closes the listeners that neither the generation in force nor the next one exposes. */
void sandbox_expose_trim(struct sandbox *s);
/* Closes all listeners: no worker will serve them. */
void sandbox_expose_close(struct sandbox *s);
/* Gives the worker the listeners of its generation. Returns 0 or -errno. */
int instance_tell_exposed(struct instance *i);
/* Answers a worker that asks for connections into the sandbox. Returns 0 or -EBADMSG. */
int instance_on_reach(struct instance *i, struct ipc_message *message);
/* call.c: answers a worker whose sandbox calls another one. Returns 0 or -EBADMSG. */
int instance_on_call(struct instance *i, struct ipc_message *message);

#endif
