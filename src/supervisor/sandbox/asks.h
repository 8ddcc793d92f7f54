/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_asks: requests of a sandbox that wait for a person, and what was granted for a while. A
 * question ends with its worker. Grants outlive workers, but not the supervisor: after its restart
 * a person is asked again. Only a persistent sandbox has somebody who can answer.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_ASKS_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_ASKS_H

#include "vethguard/wire/message.h"

struct instance;
struct ipc_message;
struct sandbox;

#define ASKS_BY_MAX 64 /* bytes: who has granted it */

/* A request that waits, or a grant. */
struct asks_item {
	uint64_t id;                   /* of the request's event */
	struct instance *waits;        /* its worker; NULL: a grant */
	int64_t since_ms;              /* the epoch */
	int64_t until_ms;              /* clock_boot_ms(); 0: no end */
	bool whole;                    /* a grant for all that the rule asks about */
	char by[ASKS_BY_MAX];          /* of a grant */
	struct message_worker_ask ask; /* slices of text */
	char *text;                    /* owned */
};

/* A person's decision. */
struct asks_decision {
	bool approved;
	bool lasts; /* approved: a grant, for for_s seconds; 0: without end */
	uint32_t for_s;
	bool whole;
	const char *reason; /* refused: or NULL */
	const char *by;     /* who has decided */
};

/* Take a worker's question, and its word that a request waits no longer. Return 0, or -EBADMSG. */
int asks_take(struct instance *i, struct ipc_message *message);
int asks_take_end(struct instance *i, struct ipc_message *message);
/* Forgets what waited at a worker that is gone. */
void asks_forget(struct instance *i);
/* Tell one worker, or all of the sandbox, what has become of a proposal. */
void instance_tell_proposed(
        struct instance *i, uint64_t id, const struct message_worker_proposed *m);
void sandbox_tell_proposed(struct sandbox *s, uint64_t id, const struct message_worker_proposed *m);
/* Tells a worker, before its START, what is granted, and what has become of proposals. */
void asks_tell(struct instance *i);
void asks_free(struct sandbox *s);

/* The items in the order in which they were asked, without those that have ended. Returns NULL
 * behind the last. */
const struct asks_item *asks_at(struct sandbox *s, size_t index);
/* Decides about what waits, or ends a grant (not approved). Returns 0, -ENOENT, -EINVAL (a grant is
 * approved already), or -ENOSPC (too many grants). */
int asks_decide(struct sandbox *s, uint64_t id, const struct asks_decision *decision);

#endif
