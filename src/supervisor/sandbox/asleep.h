/* SPDX-License-Identifier: Apache-2.0 */
/* asleep: a session without a connection has no worker. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SANDBOX_ASLEEP_H
#define VETHGUARD_SRC_SUPERVISOR_SANDBOX_ASLEEP_H

#include "vethguard/wire/message.h"

struct instance;
struct sandbox;

/* Looks at a worker in each time of keep_worker, and those in a row that find nothing open before
 * it ends. So it ends when nothing was open for one to one and a half of that time. */
#define SANDBOX_IDLE_LOOKS 2
#define SANDBOX_IDLE_IN_A_ROW (SANDBOX_IDLE_LOOKS + 1)
/* STARTING: interval of looks at what it waits for. */
#define SANDBOX_READY_LOOK_MS 20

struct sandbox_sleep {
	int64_t ready_until_ms; /* STARTING: the time limit */
	uint64_t question;      /* id of the last look; 0: it was answered */
	uint64_t entered;       /* connections that it was given up to that look */
	unsigned idle;          /* looks in a row that found nothing open */
	bool waking;            /* its worker is being started because of a connection */
	/* What its workers have done that were ended because they were idle, under the present
	 * generation. Only the counters count, not what was open. */
	struct message_worker_stats past;
};

/* Learns from the CAs of the keeper what the sandbox is to trust. Returns 0; -EAGAIN: the keeper
 * has not told yet; or -ENOKEY, with the sandbox's failure filled in. */
int sandbox_know_root(struct sandbox *s);
/* Call when a worker has begun to serve: it is looked at from now on. */
void sandbox_begin_looking(struct sandbox *s);
/* Takes the answer to a look. Returns false if the message is none. */
bool sandbox_take_look(
        struct sandbox *s, struct instance *i, uint64_t id, const struct message_worker_stats *m);
/* Adds what workers that were ended before have done. */
void sandbox_add_past(const struct sandbox *s, struct message_worker_stats *m);
/* sources_examine() for the present generation, also without a worker. */
void sandbox_examine_sources(
        const struct sandbox *s, void (*tell)(void *context, const char *fault), void *context);

#endif
